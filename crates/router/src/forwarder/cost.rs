//! Processor time of programs by sampling: in one of many batches, each program's work on each packet is
//! timed. All other batches only decrement a counter.

use crate::meter::Meter;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

/// Sampling interval in batches. For processors on threads, in packets, of which only those that meet a
/// single program are measured, as a whole.
const EVERY: u32 = 256;
/// Bits of a time that select a bucket within a power of two: quantiles are at most an eighth too high.
const FINE: u32 = 3;
/// Longest time with its own bucket, as a power of two of picoseconds (over a second).
const LARGEST: u32 = 41;
const BUCKETS: usize = ((LARGEST - FINE + 1) << FINE) as usize;

/// Measured time of a program per packet, in picoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MeasuredCost {
    /// Number of packets measured.
    pub samples: u64,
    /// The mean.
    pub mean: u64,
    /// The 99th percentile, to an eighth.
    pub p99: u64,
    /// The maximum; it includes interruptions by the machine.
    pub most: u64,
}

/// Measurements of a program by all threads that run it.
pub(super) struct Costs {
    samples: AtomicU64,
    sum: AtomicU64,
    most: AtomicU64,
    buckets: Box<[AtomicU32; BUCKETS]>,
}

impl Costs {
    pub fn new() -> Self {
        Self {
            samples: AtomicU64::new(0),
            sum: AtomicU64::new(0),
            most: AtomicU64::new(0),
            buckets: Box::new([const { AtomicU32::new(0) }; BUCKETS]),
        }
    }

    fn note(&self, picoseconds: u64) {
        self.samples.fetch_add(1, Relaxed);
        self.sum.fetch_add(picoseconds, Relaxed);
        self.most.fetch_max(picoseconds, Relaxed);
        self.buckets[bucket(picoseconds)].fetch_add(1, Relaxed);
    }

    /// None while nothing was measured.
    pub fn read(&self) -> Option<MeasuredCost> {
        let counts: Vec<u64> = self.buckets.iter().map(|count| count.load(Relaxed).into()).collect();
        let samples: u64 = counts.iter().sum();
        let most = self.most.load(Relaxed);
        let mean = self.sum.load(Relaxed).checked_div(self.samples.load(Relaxed))?;
        let mut up_to = 0;
        let place = counts.iter().position(|count| {
            up_to += count;
            up_to * 100 >= samples * 99
        });
        Some(MeasuredCost { samples, mean, p99: upper_end(place?).min(most), most })
    }
}

/// The bucket of a time.
fn bucket(picoseconds: u64) -> usize {
    let time = picoseconds.min((1 << LARGEST) - 1);
    if time < 1 << FINE {
        return time as usize;
    }
    let power = time.ilog2();
    let fine = time >> (power - FINE) & ((1 << FINE) - 1);
    (((power - FINE + 1) as usize) << FINE) + fine as usize
}

/// The longest time in a bucket.
fn upper_end(bucket: usize) -> u64 {
    let (power, fine) = (bucket >> FINE, (bucket & ((1 << FINE) - 1)) as u64);
    match power {
        0 => fine,
        _ => (((1 << FINE) + fine + 1) << (power - 1)) - 1,
    }
}

/// Decides when to measure, on one thread.
pub(super) struct Sampler {
    meter: Option<Meter>,
    left: u32,
    is_on: bool,
    /// Overhead of a measurement, in cycles.
    empty: u64,
}

impl Sampler {
    /// Measures nothing.
    pub const OFF: Self = Self { meter: None, left: EVERY, is_on: false, empty: 0 };

    /// Measures with this meter, starting with the next batch.
    pub fn with(meter: Meter) -> Self {
        let nothing = || {
            let begin = (meter.cycles)();
            (meter.cycles)().wrapping_sub(begin)
        };
        let empty = (0..32).map(|_| nothing()).min().unwrap_or(0);
        Self { meter: Some(meter), left: 1, is_on: false, empty }
    }

    /// Does not read the clock: it is told a packet's cost in this meter's cycles.
    pub const fn told(meter: Meter) -> Self {
        Self { meter: Some(meter), left: 1, is_on: false, empty: 0 }
    }

    /// Counts a batch or packet. Returns whether it is to be measured.
    #[inline]
    pub fn count(&mut self) -> bool {
        self.left -= 1;
        if self.left == 0 {
            self.left = EVERY;
            self.is_on = self.meter.is_some();
        } else {
            self.is_on = false;
        }
        self.is_on
    }

    /// Starts a measurement, if one is due.
    #[inline]
    pub fn begin(&self) -> Option<u64> {
        if !self.is_on {
            return None;
        }
        self.meter.map(|meter| (meter.cycles)())
    }

    /// Ends a measurement.
    #[inline]
    pub fn end(&self, began: Option<u64>, costs: &Costs) {
        if let (Some(began), Some(meter)) = (began, self.meter) {
            self.note((meter.cycles)().wrapping_sub(began), costs);
        }
    }

    /// Records a measurement.
    pub fn note(&self, cycles: u64, costs: &Costs) {
        if let Some(meter) = self.meter {
            let cycles = cycles.saturating_sub(self.empty);
            costs.note(cycles.saturating_mul(1_000_000) / u64::from(meter.per_microsecond.max(1)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use longwire_units::Nanos;
    use std::cell::Cell;

    #[test]
    fn every_time_lies_in_its_bucket_to_an_eighth() {
        let mut last = 0;
        for time in
            (0..5000).chain((13..41).flat_map(|power| [(1u64 << power) - 1, 1 << power, 5 << (power - 2)]))
        {
            let end = upper_end(bucket(time));
            assert!(end >= time && end <= time + time / 8, "{time}: {end}");
            assert!(time >= 5000 || end >= last);
            last = end;
        }
        assert_eq!(bucket(u64::MAX), BUCKETS - 1);
        assert!(upper_end(BUCKETS - 1) >= (1 << LARGEST) - 1);
    }

    #[test]
    fn mean_and_quantile_by_hand() {
        let costs = Costs::new();
        assert_eq!(costs.read(), None);
        (0..99).for_each(|_| costs.note(4000));
        costs.note(1_000_000);
        let read = costs.read().unwrap();
        // 4000 is in the bucket 3584 to 4095.
        assert_eq!((read.samples, read.mean, read.p99, read.most), (100, 13_960, 4095, 1_000_000));
    }

    thread_local! {
        static CYCLES: Cell<u64> = const { Cell::new(0) };
    }

    #[test]
    fn one_batch_in_256_is_measured_without_what_measuring_takes() {
        let meter = Meter {
            cycles: || {
                CYCLES.set(CYCLES.get() + 30);
                CYCLES.get()
            },
            per_microsecond: 2000,
            now: || Nanos::ZERO,
        };
        let (mut sampler, costs) = (Sampler::with(meter), Costs::new());
        let measured = (0..1025).filter(|_| {
            let is_due = sampler.count();
            let began = sampler.begin();
            assert_eq!(began.is_some(), is_due);
            CYCLES.set(CYCLES.get() + 100);
            sampler.end(began, &costs);
            is_due
        });
        assert_eq!(measured.count(), 5);
        // 100 cycles at 2 GHz.
        assert_eq!(costs.read().unwrap().mean, 50_000);
        let mut off = Sampler::OFF;
        assert!((0..1000).all(|_| !off.count() && off.begin().is_none()));
    }
}
