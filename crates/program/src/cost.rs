//! Counted and priced operations of programs.

use std::ops::{Index, IndexMut};

macro_rules! items {
    ($($variant:ident $name:literal $price:expr, $help:literal;)+) => {
        /// A counted and priced operation of programs.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Item { $(#[doc = $help] $variant),+ }

        impl Item {
            /// All operations.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// Assumed prices in picoseconds, in this order.
            const ASSUMED: [u64; Self::ALL.len()] = [$($price),+];

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

/// A cache line from memory, in picoseconds: an assumption.
const MISS: u64 = 90_000;

// Names, assumed prices in picoseconds (of which some have none), and what is counted.
items! {
    Instruction "instruction" 400, "An instruction, whatever it does besides; one of 16 bytes is one.";
    Cycle "cycle" 0, "A cycle of the paper's virtual router processor: what it is, `verify/cycles.rs` says. \
        It has no price in time.";
    Division "division" 8_000, "A division or a remainder, besides its instruction.";
    PacketLoad "packet-load" 400, "An instruction that loads from the packet.";
    PacketStore "packet-store" 400, "An instruction that stores into the packet.";
    StateAccess "state-access" 400, "A read or a write of the flow's state; an atomic operation is one of \
        each.";
    StateTransfer "state-transfer" 0, "4 bytes of the flow's state, or less, read or written, or of the \
        operand of an atomic operation.";
    StateByte "state-byte" 0, "A byte of the flow's state read or written, or of the operand of an atomic \
        operation.";
    StateLine "state-line" MISS, "64 bytes of the flow's state touched for the first time.";
    MapAccess "map-access" 400, "A read or a write of a map's value through an address; an atomic operation \
        is one of each.";
    MapTransfer "map-transfer" 0, "4 bytes of a map's value or key, or less, read or written, or of the \
        operand of an atomic operation.";
    MapLine "map-line" MISS, "64 bytes of a map's value touched for the first time.";
    Atomic "atomic" 7_000, "An atomic operation.";
    ArrayLookup "array-lookup" 5_000, "An array's value found.";
    HashLookup "hash-lookup" 10_000 + 5 * MISS, "A hash map's value searched: a hash, two buckets and a key.";
    ArrayUpdate "array-update" 20_000, "An array's value written by a helper.";
    HashUpdate "hash-update" 40_000 + 7 * MISS, "A hash map's value written by a helper, or a key removed.";
    PortLookup "port-lookup" 10_000 + 5 * MISS, "A port found in a device map.";
    Call "call" 2_000, "A helper that does next to nothing.";
    Random "random" 5_000, "A number drawn.";
    Checksum "checksum" 10_000, "A checksum difference, but for its bytes.";
    Hash "hash" 10_000, "A hash, but for its bytes.";
    Copy "copy" 10_000, "Bytes copied by a helper, but for each of them.";
    Adjust "adjust" 5_000, "The packet's beginning or end moved.";
    SummedByte "summed-byte" 500, "A byte that a checksum is taken over.";
    HashedByte "hashed-byte" 500, "A byte that a hash is taken over.";
    Record "record" 20_000, "Room for a record found in a ring, and given back, but for its bytes.";
    CopiedByte "copied-byte" 100, "A byte that a helper copies.";
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
    pub const VRP_CYCLES: Self = Self::NONE.with(Item::Cycle, 1);

    /// Picoseconds on no particular machine, used without measurements: assumptions for a 3 GHz processor
    /// with a memory latency of 90 ns.
    pub const ASSUMED_PICOSECONDS: Self = Self(Item::ASSUMED);

    /// These prices with another one for an operation.
    #[must_use]
    pub const fn with(mut self, item: Item, price: u64) -> Self {
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
