//! Arrivals of each link's packets: number, bytes, and times.

use longwire_units::Nanos;
use std::net::Ipv4Addr;

/// Offset of the destination address in an Ethernet frame with IPv4.
const DESTINATION: std::ops::Range<usize> = 30..34;
/// Offset of a traffic source's sequence number: behind headers, a magic number and the flow's number.
const SEQUENCE: std::ops::Range<usize> = 46..52;

/// Arrivals of one link's packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Arrivals {
    pub packets: u64,
    /// Bytes of the frames with FCS, at least 64 each, as a link's rate counts them.
    pub bytes: u64,
    first_bytes: u64,
    pub first: Nanos,
    pub last: Nanos,
}

impl Arrivals {
    /// Bits per second from first to last arrival, the first packet's bits excluded; none with fewer than two
    /// packets.
    pub(crate) fn rate(&self) -> Option<f64> {
        let span = self.last.since(self.first);
        (self.packets > 1 && span > Nanos::ZERO).then(|| self.bits() as f64 * 1e9 / span.0 as f64)
    }

    /// Bits of all packets but the first.
    pub(crate) fn bits(&self) -> u64 {
        (self.bytes - self.first_bytes) * 8
    }
}

/// Counts frames by their destination.
#[derive(Debug, Clone, Default)]
pub(crate) struct Meter {
    base: u32,
    /// By the offset of the destination address from the base.
    pub links: Vec<Arrivals>,
    /// The sequence numbers received, if recorded.
    pub sequences: Option<Vec<u64>>,
    /// Frames to other destinations.
    pub others: u64,
    /// Length of windows, and bytes of all links in each, from the start of counting.
    pub windows: Option<(Nanos, Vec<u64>)>,
    from: Nanos,
}

impl Meter {
    /// For `links` destinations from `base` on.
    pub(crate) fn new(base: Ipv4Addr, links: u32) -> Self {
        Self { base: base.to_bits(), links: vec![Arrivals::default(); links as usize], ..Self::default() }
    }

    /// Also records the sequence numbers of sources' packets.
    pub(crate) fn with_sequences(self) -> Self {
        Self { sequences: Some(Vec::new()), ..self }
    }

    /// Also counts in windows.
    pub(crate) fn in_windows(self, length: Nanos) -> Self {
        Self { windows: Some((length, Vec::new())), ..self }
    }

    /// Bits per second in each whole window.
    pub(crate) fn window_rates(&self) -> Vec<f64> {
        let Some((length, bytes)) = &self.windows else { return Vec::new() };
        // The last one may be incomplete.
        let whole = bytes.len().saturating_sub(1);
        bytes[..whole].iter().map(|bytes| *bytes as f64 * 8.0 / length.as_secs_f64()).collect()
    }

    /// Ignores arrivals before `from`.
    pub(crate) fn after(self, from: Nanos) -> Self {
        Self { from, ..self }
    }

    /// Counts a frame of `wire_len` bytes without FCS.
    pub(crate) fn take(&mut self, at: Nanos, frame: &[u8], wire_len: u32) {
        if at < self.from {
            return;
        }
        let to = frame.get(DESTINATION).and_then(|bytes| bytes.try_into().ok()).map(u32::from_be_bytes);
        let place = to.and_then(|to| to.checked_sub(self.base));
        let Some(link) = place.and_then(|place| self.links.get_mut(place as usize)) else {
            self.others += 1;
            return;
        };
        let bytes = u64::from(wire_len + 4).max(64);
        if link.packets == 0 {
            (link.first, link.first_bytes) = (at, bytes);
        }
        link.packets += 1;
        link.bytes += bytes;
        link.last = link.last.max(at);
        if let Some((length, windows)) = &mut self.windows {
            let window = (at.since(self.from).0 / length.0.max(1)) as usize;
            windows.resize(windows.len().max(window + 1), 0);
            windows[window] += bytes;
        }
        if let (Some(sequences), Some(number)) = (&mut self.sequences, frame.get(SEQUENCE)) {
            sequences.push(number.iter().fold(0, |sum, byte| sum << 8 | u64::from(*byte)));
        }
    }

    /// The rates of all links that have one.
    pub(crate) fn rates(&self) -> Vec<f64> {
        self.links.iter().map(|link| link.rate().unwrap_or(0.0)).collect()
    }

    /// Packets of all links.
    pub(crate) fn packets(&self) -> u64 {
        self.links.iter().map(|link| link.packets).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_from_first_to_last_arrival_without_the_first_packet() {
        let mut meter = Meter::new(Ipv4Addr::new(10, 2, 0, 0), 2).with_sequences().after(Nanos(50));
        let mut frame = [0; 60];
        frame[30..34].copy_from_slice(&[10, 2, 0, 1]);
        for (at, number, len) in [(49, 9, 60), (1000, 1, 1514), (1_001_000, 3, 1246), (2_001_000, 4, 40)] {
            frame[51] = number;
            meter.take(Nanos(at), &frame, len);
        }
        frame[30] = 11;
        meter.take(Nanos(5000), &frame, 60);
        meter.take(Nanos(5000), &frame[..20], 20);
        assert_eq!((meter.links[1].packets, meter.others, meter.packets()), (3, 2, 3));
        // 1250 bytes, and the 64 of a short frame, in 2 ms.
        assert_eq!(meter.links[1].rate(), Some(1314.0 * 8.0 / 0.002));
        assert_eq!(meter.rates()[0], 0.0);
        assert_eq!(meter.sequences, Some(vec![1, 3, 4]));
        assert!(meter.window_rates().is_empty());
        let mut meter =
            Meter::new(Ipv4Addr::new(10, 2, 0, 0), 2).after(Nanos(50)).in_windows(Nanos(1_000_000));
        (frame[30], frame[33]) = (10, 0);
        for at in [100, 900_000, 1_000_100, 3_000_000] {
            meter.take(Nanos(at), &frame, 121);
        }
        // Packets of 125 bytes: two in the first millisecond, one in the second, none in the third; the last
        // is incomplete.
        assert_eq!(meter.window_rates()[..2], [2e6, 1e6]);
        assert_eq!(meter.window_rates().len(), 2);
    }
}
