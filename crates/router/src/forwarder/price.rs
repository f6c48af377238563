//! Prices of a router's own work per packet, and the budget.

use super::space::Space;
use longwire_program::{Budget, BudgetItem, Demand, Item, Overdrawn, Prices, Resource, admit};

/// Budget and prices.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Admission {
    /// The budget per packet. The default is unlimited.
    pub budget: Budget,
    /// Prices on this machine.
    pub prices: RouterPrices,
}

impl Admission {
    /// Checks that the router's own work, classifying and minimal IP, fits without any program. It is done in
    /// any case.
    ///
    /// # Errors
    /// The arithmetic of the exceeded resource.
    pub fn check(&self) -> Result<Demand, Overdrawn> {
        let classifier = classifier(&self.prices, &Space::default(), false);
        admit(&self.budget, classifier, &[], &[minimal_ip(&self.prices)])
    }
}

/// Prices of operations for a packet on this machine, in picoseconds. Everything outside the packet is a
/// cache miss.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RouterPrices {
    /// Instructions and helpers of programs.
    pub items: Prices,
    /// Classifying.
    pub classify: u64,
    /// Minimal IP: route, neighbour, header.
    pub forward: u64,
}

/// Assumptions for no particular machine: the time of a packet at 8 million packets per second, a quarter of
/// it for classifying.
impl Default for RouterPrices {
    fn default() -> Self {
        Self { items: Prices::ASSUMED_PICOSECONDS, classify: 30_000, forward: 95_000 }
    }
}

/// Bytes of a flow: two addresses, ports, protocol.
const FLOW_BYTES: u64 = 40;

impl RouterPrices {
    /// A flow lookup in a table, where it touches this many cache lines.
    pub fn lookup(&self, lines: u32) -> u64 {
        let item = |item| self.items.price(item);
        item(Item::Hash) + FLOW_BYTES * item(Item::HashedByte) + u64::from(lines) * item(Item::StateLine)
    }
}

/// Cost of classification. The paper's classifier has one lookup, and its instructions are known; each
/// further mask costs the paper's bytes, a hash, and for each of five words a mask, a comparison, a load and
/// a branch. With programs that write, a packet is classified twice.
pub(super) fn classifier(prices: &RouterPrices, space: &Space, writes: bool) -> Demand {
    const READ: u64 = 20;
    const INSTRUCTIONS: u64 = 20;
    let further = (space.lookups().count() as u64).saturating_sub(1);
    let lookups: u64 = space.lookups().map(|lines| prices.lookup(lines)).sum();
    let mut demand = Demand::VRP_CLASSIFIER;
    let mut add = |resource, amount| {
        let before = demand.amount(resource);
        demand.with(resource, before + amount);
    };
    add(Resource::Cycles, INSTRUCTIONS * further);
    add(Resource::Slots, INSTRUCTIONS * further);
    add(Resource::Hashes, further);
    add(Resource::Transfers, READ / 4 * further);
    add(Resource::StateBytes, READ * further);
    add(Resource::Time, prices.classify * (1 + u64::from(writes)) + lookups);
    demand
}

/// Cost of minimal IP, which every packet meets last (table 5 of the paper: 24 bytes, 32 instructions).
pub(super) fn minimal_ip(prices: &RouterPrices) -> BudgetItem {
    let mut demand = Demand::default();
    demand
        .with(Resource::Cycles, 32)
        .with(Resource::Slots, 32)
        .with(Resource::Transfers, 6)
        .with(Resource::StateBytes, 24)
        .with(Resource::Time, prices.forward);
    BudgetItem { name: "minimal IP".into(), demand }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::forwarder::FlowKey;

    #[test]
    fn a_rate_that_nothing_can_hold_is_none() {
        // 30 + 95 ns; 84 bytes take 672 ns at 1 Gbit/s, 125.07 at 5.373 and 124.98 at 5.377.
        let at = |rate| Admission { budget: Budget::line_rate(rate), ..Admission::default() }.check();
        assert_eq!(at(1_000_000_000).unwrap().amount(Resource::Time), 125_000);
        assert!(at(5_373_000_000).is_ok());
        assert_eq!(
            at(5_377_000_000).unwrap_err().sums[0].to_string(),
            "classifier 30000 + minimal IP 95000 = 125000 picoseconds, 124976 allowed"
        );
        assert!(Admission { budget: Budget::VRP, ..Admission::default() }.check().is_ok());
    }

    #[test]
    fn lookups_are_charged() {
        let prices = RouterPrices::default();
        let none = classifier(&prices, &Space::default(), false);
        assert_eq!((none.amount(Resource::Time), none.amount(Resource::Cycles)), (30_000, 56));
        let port = |port| FlowKey { source_port: Some(port), ..FlowKey::default() };
        let one = classifier(&prices, &Space::new(&[port(1), port(2)], 1), true);
        assert_eq!((one.amount(Resource::Cycles), one.amount(Resource::Hashes)), (56, 2));
        // Hash 10, 40 bytes 20; lines 90 each, at least two of them; classified twice.
        let lines = (one.amount(Resource::Time) - 60_000 - 30_000) / 90_000;
        assert!((2..=3).contains(&lines), "{lines}");
        let all = FlowKey::default();
        let two = classifier(&prices, &Space::new(&[port(1), all], 1), false);
        assert_eq!(
            [Resource::Cycles, Resource::Hashes, Resource::Transfers, Resource::StateBytes, Resource::Slots]
                .map(|resource| two.amount(resource)),
            [76, 3, 10, 40, 76]
        );
    }
}
