//! Received bytes of a transfer, by interval.

use serde::{Deserialize, Serialize};

/// Most intervals of a receiver; later bytes are added to the last.
const MAX_INTERVALS: u64 = 10_000;

/// The receiver's view of a transfer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BulkReception {
    /// Bytes of TCP payload that arrived.
    pub bytes: u64,
    /// From first to last arrival, in nanoseconds.
    pub span_ns: u64,
    /// Bits of TCP payload over the span, those of the first arrival excluded; none if all came at once.
    pub goodput_bits_per_second: Option<f64>,
    /// Length of an interval, in nanoseconds.
    pub interval_ns: u64,
    /// Bytes that arrived in each interval, counted from the first arrival.
    pub intervals: Vec<u64>,
}

/// Counts bytes as they arrive.
pub(super) struct Goodput {
    bytes: u64,
    first_bytes: u64,
    first: u64,
    last: u64,
    interval_ns: u64,
    intervals: Vec<u64>,
}

impl Goodput {
    /// Starts counting with this interval in nanoseconds.
    pub fn new(interval_ns: u64) -> Self {
        let intervals = Vec::with_capacity(MAX_INTERVALS as usize);
        Self { bytes: 0, first_bytes: 0, first: 0, last: 0, interval_ns, intervals }
    }

    /// Counts bytes received at this time of the monotonic clock.
    pub fn arrive(&mut self, now: u64, bytes: u64) {
        if self.bytes == 0 {
            (self.first, self.first_bytes) = (now, bytes);
        }
        self.last = now;
        self.bytes += bytes;
        let interval = ((now - self.first) / self.interval_ns).min(MAX_INTERVALS - 1) as usize;
        if interval >= self.intervals.len() {
            self.intervals.resize(interval + 1, 0);
        }
        self.intervals[interval] += bytes;
    }

    pub fn reception(self) -> BulkReception {
        let span = self.last - self.first;
        let bits = (self.bytes - self.first_bytes) as f64 * 8.0;
        BulkReception {
            bytes: self.bytes,
            span_ns: span,
            goodput_bits_per_second: (span > 0).then(|| bits * 1e9 / span as f64),
            interval_ns: self.interval_ns,
            intervals: self.intervals,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn goodput_by_hand() {
        let mut goodput = Goodput::new(100);
        for (now, bytes) in [(1000, 50), (1050, 10), (1100, 20), (1350, 30)] {
            goodput.arrive(now, bytes);
        }
        let got = goodput.reception();
        assert_eq!((got.bytes, got.span_ns, got.intervals), (110, 350, vec![60, 20, 0, 30]));
        // 60 bytes after the first arrival, in 350 ns.
        assert_eq!(got.goodput_bits_per_second, Some(480.0 * 1e9 / 350.0));
        let mut goodput = Goodput::new(100);
        goodput.arrive(0, 1);
        goodput.arrive(u64::MAX, 1);
        let got = goodput.reception();
        assert_eq!((got.intervals.len() as u64, got.intervals.last()), (MAX_INTERVALS, Some(&1)));
    }
}
