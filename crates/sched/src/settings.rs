//! What a scheduler is told when it is made, checked once.

use crate::{Estimator, PerByte};
use longwire_units::Nanos;
use thiserror::Error;

/// Most flows, packets and ports of a scheduler.
const MOST_FLOWS: u32 = 1 << 22;
const MOST_PACKETS: u32 = 1 << 24;
const MOST_PORTS: u16 = 256;
/// Largest budget: with it, estimates with 16 fraction bits times a factor of 16 bits fit into 63 bits.
const MOST_CYCLES: u64 = 1 << 30;

/// What a scheduler is told. The defaults suit programs measured in nanoseconds and one port of 1 Gbit/s.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// Flows known at once, 1 to 4 194 304. Idle ones make room for new ones, unless they were given a weight
    /// or a port.
    pub flows: u32,
    /// Packets inside at once, waiting, processed or ready to be sent, 1 to 16 777 216. Flows that have some
    /// share them, half alike and half by weight, so that n that ask for all they can get hold 1/(n + 1) of
    /// them each, and who is new finds some; but with `fifo`.
    pub packets: u32,
    /// Packets of one flow that may wait for a processor, 1 and more.
    pub flow_limit: u32,
    /// How many processors there are: what the normalised cost of processing is divided by.
    pub processors: u32,
    /// Packets that processors and the rings before them hold: as many rounds of a flow may be on their way
    /// with `mr3` and `gmr3`. None for as many as there are processors, which leaves none of them idle where
    /// one that is done is given its next packet at once.
    pub under_way: Option<u32>,
    /// Cycles of a processor in a microsecond; with 1000 what is measured is nanoseconds.
    pub clock_mhz: u32,
    /// What a byte costs on the port, in truth: for schedulers that weigh both resources by their capacities.
    pub port: PerByte,
    /// What the paper's CBCS charges for a byte.
    pub charged: PerByte,
    /// Output ports, 1 to 256.
    pub ports: u16,
    /// What a flow of weight 1 may cost in each round, 1 ns to 4.29 s: with `cbcs` of a processor and for its
    /// bytes together, with `cbcs-normalised` both over their capacities, with `gmr3` of its dominant
    /// resource over the capacity, in the processors' half of `separate-drr` of a processor
    /// ([`Spec::quantum`](crate::Spec::quantum)). Others look at none. Its largest packet's cost is right.
    pub quantum: Nanos,
    /// Bytes a flow of weight 1 may send in each round of the port's half of `separate-drr`.
    pub quantum_bytes: u32,
    /// How far a flow's two resources may get apart in `drfq-dovetail`; `Nanos::NEVER` for as far as they
    /// like.
    pub dovetail: Nanos,
    /// How the cost of processing a packet is predicted.
    pub estimator: Estimator,
    /// What is predicted of a flow of which nothing has been measured, in cycles; none for what packets of
    /// all flows took lately.
    pub first_estimate: Option<u64>,
    /// The most that a program may take, in cycles: where it is stopped, and what estimates can't exceed.
    pub budget: u64,
    /// The longest packet, in bytes: for warnings.
    pub longest: u32,
    /// Packets that are ready for a port beyond which its flows get no processor; with `separate-drr`,
    /// packets of each flow behind the processors' round. Flows to different ports then wait in lines of
    /// their own, but with `fifo`. None for one line for all, as the paper has it, and no limit: who asks for
    /// packets sees to full rings.
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

/// Why there can't be a scheduler of these settings.
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
    /// There is no scheduler of this name.
    #[error("there is no scheduler \"{name}\"; give one of {known}")]
    Unknown {
        /// What was given.
        name: String,
        /// What may be given.
        known: String,
    },
}

/// What works, and will not do what it looks like.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Warning {
    /// Packets may cost more than a round's credit.
    #[error(
        "{field} = {quantum} is below the largest cost of a packet, {largest} {unit}: such a packet waits for several rounds; give {largest} or more"
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
