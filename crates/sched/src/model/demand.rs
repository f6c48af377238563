//! Demand of flows: packet lengths, and cycles per packet by program, by length, or drawn from a range.

use longwire_block::Dice;

/// Cycles of a program for a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Demand {
    /// A constant demand.
    PerPacket(u64),
    /// A constant, plus cycles per byte.
    BySize {
        /// For any packet.
        base: u64,
        /// For each of its bytes.
        per_byte: u64,
    },
    /// Uniform over a range, ends included: the paper's table 7.
    Drawn {
        /// The fewest.
        from: u64,
        /// The most.
        to: u64,
    },
    /// It never ends.
    Endless,
}

impl Demand {
    /// Cycles for a packet of `bytes` bytes.
    pub fn cycles(&self, bytes: u32, dice: &mut Dice) -> u64 {
        match *self {
            Self::PerPacket(cycles) => cycles,
            Self::BySize { base, per_byte } => base.saturating_add(per_byte.saturating_mul(bytes.into())),
            Self::Drawn { from, to } => from + dice.below(to.saturating_sub(from).saturating_add(1)),
            Self::Endless => u64::MAX,
        }
    }
}

/// A flow of a source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FlowPlan {
    /// Its key.
    pub key: u32,
    /// Lengths are uniform from the first to the second, both included.
    pub bytes: (u32, u32),
    /// What its program takes.
    pub demand: Demand,
}

impl FlowPlan {
    /// A packet.
    pub fn packet(&self, dice: &mut Dice) -> Packet {
        let (from, to) = self.bytes;
        let bytes = from + dice.below(u64::from(to.saturating_sub(from)) + 1) as u32;
        Packet::new(self.key, bytes, self.demand.cycles(bytes, dice))
    }
}

/// A packet on arrival.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Packet {
    /// Its flow.
    pub key: u32,
    /// Its length.
    pub bytes: u32,
    /// What its program will take.
    pub cycles: u64,
    /// Its port, unless its flow has an assigned one.
    pub port: u16,
    /// Identifier for its source.
    pub handle: u32,
    /// Note of its source from processing.
    pub note: u16,
}

impl Packet {
    /// One for the first port.
    pub const fn new(key: u32, bytes: u32, cycles: u64) -> Self {
        Self { key, bytes, cycles, port: 0, handle: 0, note: 0 }
    }
}

/// A class of the paper's flows: table 7.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Class {
    /// Processor, then bandwidth: `HH`, `HL`, `LH`, `LL`, `MM`.
    pub name: &'static str,
    /// The flows' numbers.
    pub flows: &'static [u32],
    /// Cycles per packet, from and to.
    pub cycles: (u64, u64),
    /// Bytes, from and to.
    pub bytes: (u32, u32),
}

const HIGH: (u64, u64) = (2400, 3600);
const LOW: (u64, u64) = (78, 134);

/// Table 7 of UNSW-CSE-TR-0505: sixteen flows in five classes, in the order of the paper's tables 8 to 12.
pub const TABLE_7: [Class; 5] = [
    Class { name: "HH", flows: &[4, 11, 15], cycles: HIGH, bytes: (120, 127) },
    Class { name: "HL", flows: &[1, 5, 9, 13], cycles: HIGH, bytes: (42, 48) },
    Class { name: "LH", flows: &[2, 6, 10, 14], cycles: LOW, bytes: (120, 127) },
    Class { name: "LL", flows: &[3, 8, 12], cycles: LOW, bytes: (42, 48) },
    Class { name: "MM", flows: &[7, 16], cycles: (1200, 1800), bytes: (80, 88) },
];

/// The paper's sixteen flows by their numbers, with processor costs times a factor.
pub fn table_7(factor: u64) -> Vec<FlowPlan> {
    let plan = |class: &Class, key| {
        let (from, to) = class.cycles;
        let demand = Demand::Drawn { from: from * factor, to: to * factor };
        FlowPlan { key, bytes: class.bytes, demand }
    };
    let all = TABLE_7.iter().flat_map(|class| class.flows.iter().map(move |key| plan(class, *key)));
    let mut all: Vec<_> = all.collect();
    all.sort_by_key(|flow| flow.key);
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cycles_by_hand() {
        let mut dice = Dice::seeded(1);
        assert_eq!(Demand::PerPacket(7).cycles(100, &mut dice), 7);
        assert_eq!(Demand::BySize { base: 10, per_byte: 2 }.cycles(100, &mut dice), 210);
        let drawn = Demand::Drawn { from: 5, to: 8 };
        let seen: std::collections::BTreeSet<_> = (0..200).map(|_| drawn.cycles(0, &mut dice)).collect();
        assert_eq!(seen.into_iter().collect::<Vec<_>>(), [5, 6, 7, 8]);
        assert_eq!(Demand::Endless.cycles(1, &mut dice), u64::MAX);
    }

    #[test]
    fn table_7_has_each_flow_once_and_the_mean_that_the_processors_load_follows_from() {
        let keys: Vec<_> = table_7(1).iter().map(|flow| flow.key).collect();
        assert_eq!(keys, (1..=16).collect::<Vec<_>>());
        let twice_the_mean: u64 =
            TABLE_7.iter().map(|class| (class.cycles.0 + class.cycles.1) * class.flows.len() as u64).sum();
        // (7 · 3000 + 7 · 106 + 2 · 1500) / 16 = 1546.4 cycles
        assert_eq!(twice_the_mean, 2 * (7 * 3000 + 7 * 106 + 2 * 1500));
    }
}
