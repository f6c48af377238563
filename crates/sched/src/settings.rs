//! Settings of a scheduler, checked once.

use crate::Estimator;
use longwire_units::Nanos;
use thiserror::Error;

/// Most flows, packets and ports of a scheduler.
const MOST_FLOWS: u32 = 1 << 22;
const MOST_PACKETS: u32 = 1 << 24;
const MOST_PORTS: u16 = 256;
/// Largest budget: estimates with 16 fractional bits times a factor of 16 bits must fit into 63 bits.
const MOST_CYCLES: u64 = 1 << 30;

/// Settings of a scheduler. The defaults suit programs measured in nanoseconds and one port of 1 Gbit/s.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// Most flows known at once, 1 to 4 194 304. Idle ones are evicted for new ones, unless a weight or port
    /// was assigned.
    pub flows: u32,
    /// Most packets inside, waiting, processed or ready to be sent, 1 to 16 777 216. Except with `fifo`,
    /// flows with packets share them, half equally and half by weight, so that n flows that ask for all hold
    /// 1/(n + 1) of them each, and new flows find some.
    pub packets: u32,
    /// Most packets of one flow that may wait for a processor, at least 1.
    pub flow_limit: u32,
    /// Number of processors, the divisor of normalised processing cost.
    pub processors: u32,
    /// Packets that processors and the rings before them hold: the number of rounds of a flow that may be in
    /// progress with `mr3` and `gmr3`. None means the number of processors, which keeps all of them busy if a
    /// free one gets its next packet at once.
    pub under_way: Option<u32>,
    /// Cycles of a processor per microsecond; with 1000 measurements are in nanoseconds.
    pub clock_mhz: u32,
    /// Real cost of a byte on the port, for schedulers that weigh both resources by their capacities.
    pub port: PerByte,
    /// Cost of a byte charged by the paper's CBCS.
    pub charged: PerByte,
    /// Output ports, 1 to 256.
    pub ports: u16,
    /// Cost that a flow of weight 1 may use in each round, 1 ns to 4.29 s: with `cbcs` of a processor and for
    /// its bytes together, with `cbcs-normalised` both over their capacities, with `gmr3` of its dominant
    /// resource over the capacity, in the processors' half of `separate-drr` of a processor
    /// ([`Spec::quantum`](crate::Spec::quantum)). Others ignore it. The cost of the largest packet is a good
    /// value.
    pub quantum: Nanos,
    /// Bytes a flow of weight 1 may send in each round of the port's half of `separate-drr`.
    pub quantum_bytes: u32,
    /// Largest distance of a flow's two resources in `drfq-dovetail`; `Nanos::NEVER` for no limit.
    pub dovetail: Nanos,
    /// Method of predicting the processing cost of a packet.
    pub estimator: Estimator,
    /// Initial prediction for a flow without measurements, in cycles; none for the recent cost of all flows.
    pub first_estimate: Option<u64>,
    /// Most cycles of a program: it is stopped there, and estimates can't exceed it.
    pub budget: u64,
    /// The longest packet, in bytes: for warnings.
    pub longest: u32,
    /// Packets ready for a port above which its flows get no processor; with `separate-drr`, packets of each
    /// flow behind the processors' round. Flows to different ports then wait in separate lines, except with
    /// `fifo`. None means one line for all, as in the paper, and no limit: the caller handles full rings.
    pub ready_limit: Option<u32>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            flows: 1024,
            packets: 4096,
            flow_limit: 256,
            processors: 1,
            under_way: None,
            clock_mhz: 1000,
            port: PerByte::of_ns(8),
            charged: PerByte::of_ns(8),
            ports: 1,
            quantum: Nanos(20_000),
            quantum_bytes: 1518,
            dovetail: Nanos::NEVER,
            estimator: Estimator::HALF,
            first_estimate: None,
            ready_limit: None,
            budget: 1_000_000,
            longest: 1518,
        }
    }
}

/// Reason why settings are invalid.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum SettingsError {
    /// A number is out of its range.
    #[error("{field} = {value} is out of range; give {range}")]
    Range {
        /// The field of [`Settings`].
        field: &'static str,
        /// What was given.
        value: u64,
        /// What may be given.
        range: &'static str,
    },
    /// Unknown scheduler name.
    #[error("there is no scheduler \"{name}\"; give one of {known}")]
    Unknown {
        /// What was given.
        name: String,
        /// What may be given.
        known: String,
    },
}

/// A setting that works, but not as expected.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Warning {
    /// Packets may cost more than a round's credit.
    #[error(
        "{field} = {quantum} is below the largest cost of a packet, {largest} {unit}: such a packet waits \
         for several rounds; give {largest} or more"
    )]
    QuantumBelowCost {
        /// The field of [`Settings`].
        field: &'static str,
        /// What was given.
        quantum: u64,
        /// What a packet may cost.
        largest: u64,
        /// The unit of both.
        unit: &'static str,
    },
}

impl Settings {
    /// # Errors
    /// The first field that is out of its range.
    pub fn check(&self) -> Result<(), SettingsError> {
        let range = |ok: bool, field, value, range| {
            if ok { Ok(()) } else { Err(SettingsError::Range { field, value, range }) }
        };
        let within = |value: u32, most: u32| (1..=most).contains(&value);
        range(within(self.flows, MOST_FLOWS), "flows", self.flows.into(), "1 to 4194304")?;
        range(within(self.packets, MOST_PACKETS), "packets", self.packets.into(), "1 to 16777216")?;
        range(self.flow_limit > 0, "flow_limit", 0, "1 or more")?;
        range(within(self.processors, 65_536), "processors", self.processors.into(), "1 to 65536")?;
        range(within(self.clock_mhz, 1_000_000), "clock_mhz", self.clock_mhz.into(), "1 to 1000000")?;
        range((1..=MOST_PORTS).contains(&self.ports), "ports", self.ports.into(), "1 to 256")?;
        let quantum = self.quantum.0;
        range((1..=u64::from(u32::MAX)).contains(&quantum), "quantum", quantum, "1 ns to 4.29 s")?;
        range(self.quantum_bytes > 0, "quantum_bytes", 0, "1 or more")?;
        let budget = self.budget;
        range((1..=MOST_CYCLES).contains(&budget), "budget", budget, "1 to 1073741824 cycles")?;
        range(self.ready_limit != Some(0), "ready_limit", 0, "1 or more")?;
        if let Estimator::Smoothed { alpha } = self.estimator {
            range(within(alpha, 65_536), "alpha", alpha.into(), "1 to 65536, in 1/65536")?;
        }
        let first = self.first_estimate.unwrap_or(0);
        range(first <= budget, "first_estimate", first, "at most the budget")
    }
}

/// Cost of a byte, in 2⁻³² ns: 300 bit/s to beyond 1 Tbit/s.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PerByte(u64);

impl PerByte {
    /// A whole number of nanoseconds, at most 2³² − 1.
    pub const fn of_ns(ns: u32) -> Self {
        Self((ns as u64) << 32)
    }

    /// Cost of a byte at a rate in bit/s; zero at a rate of 0, which means no port at all. It is rounded up,
    /// so that [`bytes`](Self::bytes) gives whole nanoseconds exactly.
    pub const fn of_rate(bits_per_second: u64) -> Self {
        if bits_per_second == 0 {
            return Self(0);
        }
        let cost = (8_000_000_000u128 << 32).div_ceil(bits_per_second as u128);
        Self(if cost > u64::MAX as u128 { u64::MAX } else { cost as u64 })
    }

    /// Cost of `bytes` bytes, in whole nanoseconds rounded down, at most 2³² − 1.
    #[inline]
    pub const fn bytes(self, bytes: u32) -> u32 {
        let exact = (self.0 as u128 * bytes as u128) >> 32;
        if exact > u32::MAX as u128 { u32::MAX } else { exact as u32 }
    }
}

/// A flow's weight: 1 to 65 535. A flow of weight 2 gets twice what one of weight 1 gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Weight(u32);

/// An invalid weight.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("weight = {0} is out of range; give 1 to 65535 (a flow without a share would never be served)")]
pub struct WeightError(pub i64);

impl Weight {
    /// The default weight.
    pub const ONE: Self = Self(1);
    /// The largest.
    pub const MOST: Self = Self(65_535);

    /// # Errors
    /// If it is zero, negative, or above 65 535.
    pub fn new(weight: i64) -> Result<Self, WeightError> {
        match u32::try_from(weight) {
            Ok(whole @ 1..=65_535) => Ok(Self(whole)),
            _ => Err(WeightError(weight)),
        }
    }

    /// The number.
    #[inline]
    pub const fn number(self) -> u32 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zero_and_negative_weights_are_refused() {
        for wrong in [0, -1, 65_536, i64::MIN, i64::MAX] {
            assert!(Weight::new(wrong).unwrap_err().to_string().contains(&wrong.to_string()));
        }
        assert_eq!((Weight::new(1), Weight::new(65_535)), (Ok(Weight::ONE), Ok(Weight::MOST)));
    }
}
