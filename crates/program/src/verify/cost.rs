//! Worst-case cost of a program: counts of its operations on the most expensive path.
//!
//! A backward pass computes the maximum remaining cost at every instruction (`path`).

use crate::call::Cost;
use crate::memory::Region;
use crate::{Helper, MapSpec};
use std::ops::{Index, IndexMut};

macro_rules! items {
    ($($variant:ident $name:literal $help:literal;)+) => {
        /// A counted and priced operation of programs.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Item { $(#[doc = $help] $variant),+ }

        impl Item {
            /// All operations.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// Its name in price lists.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name),+ }
            }

            /// Whether it takes time on this machine.
            pub const fn is_timed(self) -> bool {
                !matches!(self, Self::Cycle)
            }

            /// What is counted.
            pub const fn help(self) -> &'static str {
                match self { $(Self::$variant => $help),+ }
            }
        }
    };
}

items! {
    Instruction "instruction" "An instruction, whatever it does besides; one of 16 bytes is one.";
    Cycle "cycle" "A cycle of the paper's virtual router processor: what it is, `verify/cycles.rs` says. It \
        has no price in time.";
    Division "division" "A division or a remainder, besides its instruction.";
    PacketLoad "packet-load" "An instruction that loads from the packet.";
    PacketStore "packet-store" "An instruction that stores into the packet.";
    StateAccess "state-access" "A read or a write of the flow's state; an atomic operation is one of each.";
    StateTransfer "state-transfer" "4 bytes of the flow's state, or less, read or written, or of the operand \
        of an atomic operation.";
    StateByte "state-byte" "A byte of the flow's state read or written, or of the operand of an atomic \
        operation.";
    StateLine "state-line" "64 bytes of the flow's state touched for the first time.";
    MapAccess "map-access" "A read or a write of a map's value through an address; an atomic operation is \
        one of each.";
    MapTransfer "map-transfer" "4 bytes of a map's value or key, or less, read or written, or of the operand \
        of an atomic operation.";
    MapLine "map-line" "64 bytes of a map's value touched for the first time.";
    Atomic "atomic" "An atomic operation.";
    ArrayLookup "array-lookup" "An array's value found.";
    HashLookup "hash-lookup" "A hash map's value searched: a hash, two buckets and a key.";
    ArrayUpdate "array-update" "An array's value written by a helper.";
    HashUpdate "hash-update" "A hash map's value written by a helper, or a key removed.";
    PortLookup "port-lookup" "A port found in a device map.";
    Call "call" "A helper that does next to nothing.";
    Random "random" "A number drawn.";
    Checksum "checksum" "A checksum difference, but for its bytes.";
    Hash "hash" "A hash, but for its bytes.";
    Copy "copy" "Bytes copied by a helper, but for each of them.";
    Adjust "adjust" "The packet's beginning or end moved.";
    SummedByte "summed-byte" "A byte that a checksum is taken over.";
    HashedByte "hashed-byte" "A byte that a hash is taken over.";
    Record "record" "Room for a record found in a ring, and given back, but for its bytes.";
    CopiedByte "copied-byte" "A byte that a helper copies.";
}

/// Counts of each operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts([u32; Item::ALL.len()]);

impl Counts {
    /// All zero.
    pub const NONE: Self = Self([0; Item::ALL.len()]);

    /// Non-zero counts.
    pub fn iter(&self) -> impl Iterator<Item = (Item, u32)> + '_ {
        Item::ALL.iter().map(|&item| (item, self[item])).filter(|&(_, count)| count > 0)
    }

    /// The sum of both.
    #[must_use]
    pub fn plus(mut self, other: &Self) -> Self {
        self.0.iter_mut().zip(&other.0).for_each(|(mine, more)| *mine = mine.saturating_add(*more));
        self
    }

    /// This, repeated.
    #[must_use]
    pub fn repeated(mut self, times: u32) -> Self {
        self.0.iter_mut().for_each(|count| *count = count.saturating_mul(times));
        self
    }

    /// The maximum for each operation.
    #[must_use]
    pub fn most(mut self, other: &Self) -> Self {
        self.0.iter_mut().zip(&other.0).for_each(|(mine, theirs)| *mine = (*mine).max(*theirs));
        self
    }

    /// Number of hashes: the program's own, and those of lookups in hash maps.
    pub fn hashes(&self) -> u64 {
        [Item::Hash, Item::HashLookup, Item::HashUpdate].iter().map(|&item| u64::from(self[item])).sum()
    }
}

impl Index<Item> for Counts {
    type Output = u32;

    fn index(&self, item: Item) -> &u32 {
        &self.0[item as usize]
    }
}

impl IndexMut<Item> for Counts {
    fn index_mut(&mut self, item: Item) -> &mut u32 {
        &mut self.0[item as usize]
    }
}

/// The price of each operation, in one unit, such as picoseconds or cycles.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prices([u64; Item::ALL.len()]);

impl Prices {
    /// All zero.
    pub const NONE: Self = Self([0; Item::ALL.len()]);

    /// Cycles of the Princeton paper's virtual router processor, which counts memory accesses and hashes
    /// separately ("Building a Robust Software-Based Router Using Network Processors", section 4.3).
    pub const VRP_CYCLES: Self = {
        let mut prices = [0; Item::ALL.len()];
        prices[Item::Cycle as usize] = 1;
        Self(prices)
    };

    /// Picoseconds on no particular machine, used without measurements: assumptions for a 3 GHz processor
    /// with a memory latency of 90 ns.
    pub const ASSUMED_PICOSECONDS: Self = {
        let mut prices = [0; Item::ALL.len()];
        prices[Item::Instruction as usize] = 400;
        prices[Item::Division as usize] = 8_000;
        prices[Item::PacketLoad as usize] = 400;
        prices[Item::PacketStore as usize] = 400;
        prices[Item::StateAccess as usize] = 400;
        prices[Item::StateLine as usize] = ASSUMED_MISS;
        prices[Item::MapAccess as usize] = 400;
        prices[Item::MapLine as usize] = ASSUMED_MISS;
        prices[Item::Atomic as usize] = 7_000;
        prices[Item::ArrayLookup as usize] = 5_000;
        prices[Item::HashLookup as usize] = 10_000 + 5 * ASSUMED_MISS;
        prices[Item::ArrayUpdate as usize] = 20_000;
        prices[Item::HashUpdate as usize] = 40_000 + 7 * ASSUMED_MISS;
        prices[Item::PortLookup as usize] = 10_000 + 5 * ASSUMED_MISS;
        prices[Item::Call as usize] = 2_000;
        prices[Item::Random as usize] = 5_000;
        prices[Item::Checksum as usize] = 10_000;
        prices[Item::Hash as usize] = 10_000;
        prices[Item::Copy as usize] = 10_000;
        prices[Item::Adjust as usize] = 5_000;
        prices[Item::Record as usize] = 20_000;
        prices[Item::SummedByte as usize] = 500;
        prices[Item::HashedByte as usize] = 500;
        prices[Item::CopiedByte as usize] = 100;
        Self(prices)
    };

    /// These prices with another one for an operation.
    #[must_use]
    pub fn with(mut self, item: Item, price: u64) -> Self {
        self.0[item as usize] = price;
        self
    }

    /// Price of an operation.
    pub fn price(&self, item: Item) -> u64 {
        self.0[item as usize]
    }

    /// Total price of counts.
    pub fn total(&self, counts: &Counts) -> u64 {
        let each = self.0.iter().zip(&counts.0).map(|(price, &count)| price.saturating_mul(count.into()));
        each.fold(0, u64::saturating_add)
    }
}

/// A cache line from memory, in picoseconds: an assumption.
const ASSUMED_MISS: u64 = 90_000;

/// Cost of an access in addition to its instruction.
pub(super) struct Touch {
    pub region: Region,
    pub reads: bool,
    pub writes: bool,
    /// Whether the previous value is returned to a register.
    pub returns: bool,
    pub size: u32,
    /// Lines accessed for the first time.
    pub lines: u32,
}

impl Touch {
    pub fn count(&self, counts: &mut Counts) {
        let times = u32::from(self.reads) + u32::from(self.writes);
        // An atomic addition sends only the number to memory: the paper's counter of SYNs is 4 bytes read or
        // written, and needs no register (table 5).
        let transfers = if self.returns { times } else { 1 };
        let mut add = |item, count| counts[item] += count;
        match self.region {
            Region::Packet => {
                add(Item::PacketLoad, u32::from(self.reads));
                add(Item::PacketStore, u32::from(self.writes));
            }
            Region::State => {
                add(Item::StateAccess, times);
                add(Item::StateTransfer, transfers * self.size.div_ceil(4));
                add(Item::StateByte, transfers * self.size);
                add(Item::StateLine, self.lines);
            }
            Region::Map(_) => {
                add(Item::MapAccess, times);
                add(Item::MapTransfer, transfers * self.size.div_ceil(4));
                add(Item::MapLine, self.lines);
            }
            Region::Context | Region::Stack | Region::Handle(_) | Region::Code => {}
        }
    }
}

/// Cost of a helper call in addition to its instruction and the bytes of state and maps among its arguments.
/// `bytes` is the maximum that it processes, and `workers` is the number of workers that run the program.
pub(super) fn helper_cost(helper: Helper, map: Option<&MapSpec>, bytes: u32, workers: u32) -> Counts {
    let mut counts = Counts::NONE;
    let key = map.filter(|map| !map.kind.is_array() && !map.kind.is_ring()).map(|map| map.key_size);
    let value = map.map_or(0, |map| map.value_size);
    let by_kind = |array, hash| if key.is_some() { hash } else { array };
    let (item, per_byte) = match helper.signature().cost {
        Cost::Call | Cost::Loop => (Item::Call, None),
        Cost::TailCall => (Item::ArrayLookup, None),
        Cost::Lock => (Item::Atomic, None),
        Cost::Lookup => (by_kind(Item::ArrayLookup, Item::HashLookup), None),
        Cost::Update => (by_kind(Item::ArrayUpdate, Item::HashUpdate), None),
        Cost::RedirectMap => (Item::PortLookup, None),
        Cost::Random => (Item::Random, None),
        Cost::Checksum => (Item::Checksum, Some(Item::SummedByte)),
        Cost::Hash => (Item::Hash, Some(Item::HashedByte)),
        Cost::Copy => (Item::Copy, Some(Item::CopiedByte)),
        Cost::Adjust => (Item::Adjust, Some(Item::CopiedByte)),
        // A route and a neighbour.
        Cost::Route => (Item::HashLookup, None),
        Cost::Record => (Item::Record, Some(Item::CopiedByte)),
    };
    counts[item] = if helper.signature().cost == Cost::Route { 2 } else { 1 };
    if let Some(item) = per_byte {
        counts[item] = bytes;
        // Registers are copied or summed one by one. The paper's processor has a hash unit, and its
        // classifier has already found the transport header, whose ports it hashes (section 4.5).
        if item != Item::HashedByte && helper != Helper::Transport {
            counts[Item::Cycle] = bytes.div_ceil(4);
        }
    }
    // The key is hashed, and compared with the entry's; for prefixes, once per length.
    let searches = if helper == Helper::MapLookup { map.map_or(1, MapSpec::searches) } else { 1 };
    counts[item] *= searches;
    counts[Item::HashedByte] += searches * key.unwrap_or(0);
    counts[Item::MapTransfer] += searches * key.unwrap_or(0).div_ceil(4);
    if helper.signature().cost == Cost::Record {
        // Writers' and reader's positions, and the record with its header.
        counts[Item::MapTransfer] += bytes.div_ceil(4);
        counts[Item::MapLine] += bytes.div_ceil(64) + 3;
    }
    if helper == Helper::MapUpdate {
        // With a new key, the values of all other workers, which are beside it, are cleared.
        let has_others = key.is_some() && map.is_some_and(|map| map.kind.is_per_worker());
        let others = if has_others { workers.saturating_sub(1) } else { 0 };
        let written = others.saturating_mul(value.div_ceil(8).saturating_mul(8)).saturating_add(value);
        counts[Item::CopiedByte] += written;
        counts[Item::MapTransfer] += written.div_ceil(4);
        counts[Item::MapLine] += written.div_ceil(64) + 1;
    }
    counts
}
