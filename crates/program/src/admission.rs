//! Admission of programs: the arithmetic of a router's budget per packet.
//!
//! Every packet meets the classifier, then at most one per-flow program, then all general programs. So
//! classifier + most expensive per-flow program + sum of the general ones must be within the budget, for each
//! resource. The instruction store holds all programs at once, so their sizes are added. ("Building a Robust
//! Software-Based Router Using Network Processors", sections 4.3, 4.5 and 4.6.)

use crate::{Item, Prices, VerifiedProgram};
use std::fmt;
use thiserror::Error;

/// A limited resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Resource {
    /// Cycles of the paper's processor: instructions.
    Cycles,
    /// Reads or writes of 4 bytes of state, or of maps' values and keys. (Buckets of hash maps are part of
    /// the hash.)
    Transfers,
    /// Hashes: the program's own, and those of hash maps.
    Hashes,
    /// Bytes of state read or written.
    StateBytes,
    /// Slots of 8 bytes in the instruction store.
    Slots,
    /// Time on this machine, in picoseconds.
    Time,
}

impl Resource {
    /// Every resource.
    pub const ALL: &'static [Self] =
        &[Self::Cycles, Self::Transfers, Self::Hashes, Self::StateBytes, Self::Slots, Self::Time];

    /// Its name, with its unit.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Cycles => "cycles",
            Self::Transfers => "4-byte transfers",
            Self::Hashes => "hashes",
            Self::StateBytes => "bytes of state",
            Self::Slots => "instruction slots",
            Self::Time => "picoseconds",
        }
    }

    /// Whether all installed programs use it together, whatever a packet meets.
    const fn is_stored(self) -> bool {
        matches!(self, Self::Slots)
    }
}

/// Worst-case demand per packet for each resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Demand([u64; Resource::ALL.len()]);

impl Demand {
    /// The paper's classifier: 56 instructions and 20 bytes of state (section 4.5), and two hashes, of the IP
    /// and the TCP header. Its slots are its instructions.
    pub const VRP_CLASSIFIER: Self = Self([56, 5, 2, 20, 56, 0]);

    /// The demand of a program. `picoseconds` are this machine's prices.
    pub fn of(verified: &VerifiedProgram, picoseconds: &Prices) -> Self {
        let most = verified.most();
        let mut demand = Self::default();
        demand
            .with(Resource::Cycles, verified.worst_path(&Prices::VRP_CYCLES).price)
            .with(
                Resource::Transfers,
                u64::from(most[Item::StateTransfer]) + u64::from(most[Item::MapTransfer]),
            )
            .with(Resource::Hashes, most.hashes())
            .with(Resource::StateBytes, most[Item::StateByte].into())
            .with(Resource::Slots, verified.program().code.slot_count() as u64)
            .with(Resource::Time, verified.worst_path(picoseconds).price);
        demand
    }

    /// The demand of a packet that meets this and then the other.
    #[must_use]
    pub fn then(mut self, other: Self) -> Self {
        for (own, other) in self.0.iter_mut().zip(other.0) {
            *own = own.saturating_add(other);
        }
        self
    }

    /// The demand of a packet that meets one of them, while both are stored.
    #[must_use]
    pub fn or(mut self, other: Self) -> Self {
        for &resource in Resource::ALL {
            let (own, other) = (&mut self.0[resource as usize], other.amount(resource));
            *own = if resource.is_stored() { own.saturating_add(other) } else { other.max(*own) };
        }
        self
    }

    /// Sets the demand for a resource.
    pub fn with(&mut self, resource: Resource, amount: u64) -> &mut Self {
        self.0[resource as usize] = amount;
        self
    }

    /// The demand for a resource.
    pub fn amount(&self, resource: Resource) -> u64 {
        self.0[resource as usize]
    }
}

/// Budget of each resource per packet. Resources without a limit are unlimited.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Budget([Option<u64>; Resource::ALL.len()]);

impl Budget {
    /// The paper's virtual router processor, for 8 × 100 Mbit/s (section 4.3).
    pub const VRP: Self = Self([Some(240), Some(24), Some(3), Some(96), Some(650), None]);

    /// Bytes of the shortest Ethernet frame on the wire: 64, preamble 8, gap 12.
    const SHORTEST: u64 = 84;

    /// The time between two of the shortest frames at this rate in bits per second. At 0 it is unlimited.
    pub fn line_rate(bits_per_second: u64) -> Self {
        let picoseconds = (Self::SHORTEST * 8 * 1_000_000_000_000).checked_div(bits_per_second);
        let mut budget = Self::default();
        budget.0[Resource::Time as usize] = picoseconds;
        budget
    }

    /// The highest rate in bits per second with at least `picoseconds` (at least 1) between two of the
    /// shortest frames.
    pub fn rate_for(picoseconds: u64) -> u64 {
        Self::SHORTEST * 8 * 1_000_000_000_000 / picoseconds.max(1)
    }

    /// Reduces time and cycles by a reserve of this many nanoseconds per second, up to all of them. Other
    /// resources are per packet and unaffected.
    #[must_use]
    pub fn setting_aside(mut self, nanoseconds: u64) -> Self {
        const SECOND: u128 = 1_000_000_000;
        let left = SECOND.saturating_sub(nanoseconds.into());
        for resource in [Resource::Cycles, Resource::Time] {
            let limit = &mut self.0[resource as usize];
            *limit = limit.map(|limit| (u128::from(limit) * left / SECOND) as u64);
        }
        self
    }

    /// The limit of a resource; none if unlimited.
    pub fn limit(&self, resource: Resource) -> Option<u64> {
        self.0[resource as usize]
    }
}

/// An item in the budget.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BudgetItem {
    /// Its name in errors.
    pub name: Box<str>,
    /// What it needs.
    pub demand: Demand,
}

/// Checks that all fit the budget. Returns the worst-case demand per packet.
///
/// # Errors
/// The arithmetic of every exceeded resource.
pub fn admit(
    budget: &Budget,
    classifier: Demand,
    per_flow: &[BudgetItem],
    general: &[BudgetItem],
) -> Result<Demand, Overdrawn> {
    let mut total = Demand::default();
    let mut sums = Vec::new();
    for &resource in Resource::ALL {
        let term = |installed: &BudgetItem| (installed.name.clone(), installed.demand.amount(resource));
        let mut terms = vec![("classifier".into(), classifier.amount(resource))];
        if resource.is_stored() {
            terms.extend(per_flow.iter().map(term));
        } else {
            terms.extend(per_flow.iter().map(term).max_by_key(|&(_, amount)| amount));
        }
        terms.extend(general.iter().map(term));
        let sum = terms.iter().fold(0u64, |sum, &(_, amount)| sum.saturating_add(amount));
        let sum = Sum { resource, terms, total: sum, limit: budget.limit(resource) };
        total.with(resource, sum.total);
        if sum.limit.is_some_and(|limit| sum.total > limit) {
            sums.push(sum);
        }
    }
    if sums.is_empty() { Ok(total) } else { Err(Overdrawn { sums }) }
}

/// An exceeded budget.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("the budget per packet does not suffice: {}; remove a program, or choose a larger budget",
    joined(.sums))]
pub struct Overdrawn {
    /// The exceeded resources.
    pub sums: Vec<Sum>,
}

/// Demand and limit of a resource.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sum {
    /// The resource.
    pub resource: Resource,
    /// The summands: names and amounts. Of the per-flow programs only the most expensive one, unless all are
    /// added.
    pub terms: Vec<(Box<str>, u64)>,
    /// Their sum.
    pub total: u64,
    /// The limit, if known.
    pub limit: Option<u64>,
}

impl fmt::Display for Sum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, (name, amount)) in self.terms.iter().enumerate() {
            write!(f, "{}{name} {amount}", if place == 0 { "" } else { " + " })?;
        }
        write!(f, " = {} {}", self.total, self.resource.name())?;
        match self.limit {
            Some(limit) => write!(f, ", {limit} allowed"),
            None => Ok(()),
        }
    }
}

fn joined(sums: &[Sum]) -> String {
    sums.iter().map(Sum::to_string).collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_set_aside_is_of_time_and_cycles_only() {
        let tenth = Budget::VRP.setting_aside(100_000_000);
        assert_eq!(tenth.0, [Some(216), Some(24), Some(3), Some(96), Some(650), None]);
        let thousandth = Budget::line_rate(1_000_000_000).setting_aside(1_000_000);
        assert_eq!(thousandth.limit(Resource::Time), Some(671_328));
        assert_eq!(Budget::default().setting_aside(500_000_000), Budget::default());
        assert_eq!(Budget::VRP.setting_aside(u64::MAX).limit(Resource::Cycles), Some(0));
    }

    #[test]
    fn of_programs_that_a_packet_may_meet_the_most_expensive_counts_and_all_are_stored() {
        let [one, other] = [Demand([10, 4, 1, 8, 30, 500]), Demand([20, 3, 0, 9, 40, 400])];
        assert_eq!(one.then(other), Demand([30, 7, 1, 17, 70, 900]));
        assert_eq!(one.or(other), Demand([20, 4, 1, 9, 70, 500]));
        assert_eq!(one.or(Demand::default()), one);
    }

    /// A forwarder of the paper's table 5: bytes of state, instructions. The table has no slots; as many as
    /// instructions.
    fn forwarder(name: &str, bytes: u64, instructions: u64) -> BudgetItem {
        let mut demand = Demand::default();
        demand
            .with(Resource::StateBytes, bytes)
            .with(Resource::Transfers, bytes / 4)
            .with(Resource::Cycles, instructions)
            .with(Resource::Slots, instructions);
        BudgetItem { name: name.into(), demand }
    }

    fn table_5() -> [BudgetItem; 6] {
        [
            forwarder("splicer", 24, 45),
            forwarder("wavelet", 8, 28),
            forwarder("ack", 12, 15),
            forwarder("syn", 4, 5),
            forwarder("ports", 20, 26),
            forwarder("ip", 24, 32),
        ]
    }

    #[test]
    fn the_papers_forwarders_fit_its_budget() {
        let [splicer, wavelet, ack, syn, ports, ip] = table_5();
        let per_flow = [wavelet.clone(), splicer.clone(), ack.clone()];
        let general = [syn.clone(), ports.clone(), ip.clone()];
        let total = admit(&Budget::VRP, Demand::VRP_CLASSIFIER, &per_flow, &general).unwrap();
        // 56 + 45 + 5 + 26 + 32 of 240; 20 + 24 + 4 + 20 + 24 of 96; 5 + 6 + 1 + 5 + 6 of 24; 2 of 3; with
        // wavelet 28 and ack 15 too.
        assert_eq!(total, Demand([164, 23, 2, 92, 207, 0]));

        // The ACK monitor for every packet is too much, though cycles suffice.
        let all = [syn, ports, ack, ip];
        let overdrawn = admit(&Budget::VRP, Demand::VRP_CLASSIFIER, &[splicer, wavelet], &all).unwrap_err();
        assert_eq!(
            overdrawn.to_string(),
            "the budget per packet does not suffice: \
             classifier 5 + splicer 6 + syn 1 + ports 5 + ack 3 + ip 6 = 26 4-byte transfers, 24 allowed; \
             classifier 20 + splicer 24 + syn 4 + ports 20 + ack 12 + ip 24 = 104 bytes of state, 96 \
             allowed; remove a program, or choose a larger budget"
        );
    }

    #[test]
    fn every_program_is_stored_but_one_is_met() {
        let programs: Vec<BudgetItem> = (0..10)
            .map(|n| forwarder(if n == 3 { "large" } else { "small" }, 4, 40 + 20 * u64::from(n == 3)))
            .collect();
        let total = admit(&Budget::VRP, Demand::VRP_CLASSIFIER, &programs, &[]).unwrap();
        assert_eq!(
            (total.amount(Resource::Cycles), total.amount(Resource::Slots)),
            (56 + 60, 56 + 9 * 40 + 60)
        );
        let more: Vec<BudgetItem> = programs.iter().chain(&programs).cloned().collect();
        let overdrawn = admit(&Budget::VRP, Demand::VRP_CLASSIFIER, &more, &[]).unwrap_err();
        assert_eq!(overdrawn.sums.len(), 1);
        assert_eq!((overdrawn.sums[0].resource, overdrawn.sums[0].total), (Resource::Slots, 896));
        assert_eq!(overdrawn.sums[0].terms.len(), 21);
    }

    #[test]
    fn a_line_rate_leaves_time() {
        // 84 bytes at 1 Gbit/s: 672 ns.
        let budget = Budget::line_rate(1_000_000_000);
        assert_eq!(budget.limit(Resource::Time), Some(672_000));
        assert_eq!(budget.limit(Resource::Cycles), None);
        assert_eq!(Budget::line_rate(0), Budget::default());
        assert_eq!((Budget::rate_for(672_000), Budget::rate_for(125_000)), (1_000_000_000, 5_376_000_000));
        let mut classifier = Demand::default();
        classifier.with(Resource::Time, 600_000);
        let slow = |time| {
            let mut demand = Demand::default();
            [BudgetItem { name: "slow".into(), demand: *demand.with(Resource::Time, time) }]
        };
        assert!(admit(&budget, classifier, &slow(72_000), &[]).is_ok());
        assert_eq!(
            admit(&budget, classifier, &[], &slow(72_001)).unwrap_err().sums[0].to_string(),
            "classifier 600000 + slow 72001 = 672001 picoseconds, 672000 allowed"
        );
    }
}
