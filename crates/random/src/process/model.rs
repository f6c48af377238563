//! Models of processes.

use super::replay::{Packets, Speed};
use super::spec::{
    CbrSettings, MmppSettings, OnOffSettings, ParetoOnOffSettings, PoissonSettings, RateOrInterval,
    ReplaySettings,
};
use longwire_block::{Spec, Values};
use longwire_settings::Settings;
use longwire_units::{Bytes, Nanos, Rate};
use std::sync::Arc;

/// The time between packets: `nanos` for every `per` packets, so that no rate needs rounding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Interval {
    pub(super) nanos: u64,
    pub(super) per: u64,
}

impl Interval {
    /// An interval of `time`; none if it is 0 or above 292 years.
    pub fn of(time: Nanos) -> Option<Self> {
        Self::checked(time.0, 1)
    }

    /// An interval for this number of packets per second; none if 0.
    pub fn per_second(packets: u64) -> Option<Self> {
        Self::checked(1_000_000_000, packets)
    }

    fn checked(nanos: u64, per: u64) -> Option<Self> {
        // The top bit is reserved for sums of exponential gaps.
        (nanos > 0 && per > 0 && nanos < 1 << 63).then_some(Self { nanos, per })
    }
}

/// A model of arrivals. All except `Replay` send packets of one size, in bytes.
#[derive(Debug, Clone, PartialEq)]
pub enum Model {
    /// The n-th packet, from 0, comes at n·interval, rounded down: rounding never accumulates.
    Cbr {
        /// The interval.
        every: Interval,
        /// Bytes of each packet.
        size: u32,
    },
    /// Exponential gaps of this mean, the first one before the first packet: a Poisson process.
    Poisson {
        /// The mean gap.
        every: Interval,
        /// Bytes of each packet.
        size: u32,
    },
    /// A Poisson process whose rate depends on a state (Fischer & Meier-Hellstern, "The Markov-modulated
    /// Poisson process (MMPP) cookbook", 1993). Each state lasts an exponential time; the next one, and the
    /// first, is drawn from all others with equal probability.
    Mmpp {
        /// The states' rates.
        rates: Arc<[Rate]>,
        /// Mean duration of a state.
        dwell: Nanos,
        /// Bytes of each packet.
        size: u32,
    },
    /// Constant rate while on, nothing while off. The initial state is drawn. Both times are exponential, or
    /// Pareto: sums of many are self-similar then, with H = (3 − shape)/2 for a shape from 1 to 2 (Willinger,
    /// Taqqu, Sherman & Wilson, "Self-similarity through high-variability", 1997).
    OnOff {
        /// Rate while on.
        peak: Rate,
        /// Mean times on and off.
        means: [Nanos; 2],
        /// The Pareto distribution's shape in millionths, above one; none for exponential times.
        shape: Option<u64>,
        /// Bytes of each packet.
        size: u32,
    },
    /// Packets of a list, with times divided by a speed.
    Replay {
        /// Times, ascending, and bytes.
        packets: Arc<Packets>,
        /// Speed relative to the list.
        speed: Speed,
    },
}

impl Model {
    /// Reads a model from one of the [`SPECS`](super::SPECS) with its values. An unlimited rate is treated as
    /// [`Rate::MAX`]. For `cbr` and `poisson` the rate may be an interval instead.
    pub fn read(spec: &Spec, values: &Values) -> Self {
        // At a rate of 0 no packets come; the progress of the current one is kept.
        let every = |pace, size: Bytes| match pace {
            RateOrInterval::Interval(interval) => {
                Interval { nanos: interval.0.clamp(1, (1 << 63) - 1), per: 1 }
            }
            RateOrInterval::Rate(rate) => Interval { nanos: bits(size.0 as u32), per: finite(rate).0 },
        };
        match spec.kind {
            "poisson" => {
                let PoissonSettings { rate, size } = PoissonSettings::of(values);
                Self::Poisson { every: every(rate, size), size: size.0 as u32 }
            }
            "mmpp" => {
                let MmppSettings { rates, dwell, size } = MmppSettings::of(values);
                Self::Mmpp { rates: rates.as_slice().into(), dwell, size: size.0 as u32 }
            }
            "on-off" => {
                let OnOffSettings { rate, on, off, size } = OnOffSettings::of(values);
                Self::OnOff { peak: finite(rate), means: [on, off], shape: None, size: size.0 as u32 }
            }
            "pareto-on-off" => {
                let ParetoOnOffSettings { rate, on, off, shape, size } = ParetoOnOffSettings::of(values);
                let (peak, size) = (finite(rate), size.0 as u32);
                Self::OnOff { peak, means: [on, off], shape: Some(shape.0), size }
            }
            "replay" => {
                let ReplaySettings { file, speed } = ReplaySettings::of(values);
                Self::Replay { packets: file, speed: *speed }
            }
            _ => {
                let CbrSettings { rate, size } = CbrSettings::of(values);
                Self::Cbr { every: every(rate, size), size: size.0 as u32 }
            }
        }
    }

    /// Bytes of its largest packet; 0 if it has none.
    pub fn largest(&self) -> u32 {
        match self {
            Self::Replay { packets, .. } => packets.largest(),
            _ => self.size(),
        }
    }

    /// Bytes of each packet; 0 if they differ.
    pub(super) fn size(&self) -> u32 {
        match *self {
            Self::Cbr { size, .. }
            | Self::Poisson { size, .. }
            | Self::Mmpp { size, .. }
            | Self::OnOff { size, .. } => size,
            Self::Replay { .. } => 0,
        }
    }

    /// Whether progress in one can continue in the other.
    pub(super) fn resembles(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Replay { packets, .. }, Self::Replay { packets: other, .. }) => {
                Arc::ptr_eq(packets, other)
            }
            (Self::OnOff { shape, .. }, Self::OnOff { shape: other, .. }) => {
                shape.is_some() == other.is_some()
            }
            _ => std::mem::discriminant(self) == std::mem::discriminant(other),
        }
    }

    /// Work of a packet, in units that a state produces per nanosecond.
    pub(super) fn packet(&self) -> u64 {
        match self {
            Self::Cbr { every, .. } | Self::Poisson { every, .. } => every.nanos,
            _ => bits(self.size()),
        }
    }

    /// Whether a packet's work is multiplied by an exponential variate.
    pub(super) const fn is_poisson(&self) -> bool {
        matches!(self, Self::Poisson { .. } | Self::Mmpp { .. })
    }

    /// Work that a state produces per nanosecond.
    pub(super) fn given(&self, state: usize) -> u64 {
        match self {
            Self::Cbr { every, .. } | Self::Poisson { every, .. } => every.per,
            Self::Mmpp { rates, .. } => rates.get(state).map_or(0, |&rate| finite(rate).0),
            Self::OnOff { peak, .. } if state == ON => peak.0,
            _ => 0,
        }
    }

    /// Mean duration of a state; [`Nanos::NEVER`] if it is the only one.
    pub(super) fn mean_time(&self, state: usize) -> Nanos {
        match self {
            Self::Mmpp { rates, dwell, .. } if rates.len() > 1 => *dwell,
            Self::OnOff { means, .. } => means[state & 1],
            _ => Nanos::NEVER,
        }
    }

    /// Mean work of all states together, and the mean time for it.
    pub(super) fn mean(&self) -> (u128, u128) {
        match self {
            Self::Mmpp { rates, .. } => {
                (rates.iter().map(|&rate| u128::from(finite(rate).0)).sum(), rates.len() as u128)
            }
            Self::OnOff { peak, means, .. } => {
                let [on, off] = means.map(|mean| u128::from(mean.0));
                (u128::from(peak.0) * on, on + off)
            }
            _ => (self.given(0).into(), 1),
        }
    }
}

/// The state in which on-off models send.
pub(super) const ON: usize = 0;

/// Work of a packet in bits, in units of a rate per nanosecond.
fn bits(size: u32) -> u64 {
    u64::from(size.max(1)) * 8_000_000_000
}

fn finite(rate: Rate) -> Rate {
    rate.min(Rate::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_that_are_none() {
        assert_eq!(Interval::of(Nanos::ZERO), None);
        assert_eq!(Interval::per_second(0), None);
        assert_eq!(Interval::of(Nanos(1 << 63)), None);
        assert_eq!(Interval::per_second(3), Some(Interval { nanos: 1_000_000_000, per: 3 }));
    }
}
