//! IPv6 prefixes: a tree bitmap of stride 6 (W. Eatherton, G. Varghese and Z. Dittia, "Tree bitmap:
//! hardware/software IP lookups with incremental updates", ACM CCR 34(2), 2004).
//!
//! A node has a bit for each prefix that ends in it (1 + 2 + … + 32 = 63) and for each child (64), and the
//! indices of two dense arrays, of next hops and of children. A search visits at most 22 nodes, 9 for a /48.
//! A change copies at most two arrays of 64 nodes. Memory: 24 bytes per node, in arrays of powers of two; at
//! most 22 nodes per prefix, and few if prefixes share their beginnings.

use super::arena::Arena;
use super::{HopId, Prefix, TableFull};
use std::collections::BTreeMap;

const STRIDE: u8 = 6;
/// Levels of a 128-bit prefix.
const LEVELS: usize = 22;

/// For each value of six bits: the bits of all prefixes of zero to five bits that contain it. The prefix of
/// `n` bits with value `v` has bit 2^n − 1 + v, so a longer one has a higher bit.
const HOLDING: [u64; 64] = holding();

#[derive(Debug, Clone, Copy, Default)]
struct Node {
    /// The prefixes that end here.
    ending: u64,
    /// The existing children.
    below: u64,
    hops: u32,
    children: u32,
}

/// IPv6 prefixes with their next hops.
#[derive(Debug)]
pub struct V6Table {
    nodes: Arena<Node, { 1 << 16 }>,
    hops: Arena<u16, { 1 << 18 }>,
    root: u32,
    prefixes: BTreeMap<Prefix<u128>, HopId>,
    limit: usize,
}

impl V6Table {
    /// An empty table that takes at most `limit` prefixes.
    pub fn new(limit: usize) -> Self {
        let mut nodes = Arena::new();
        let root = nodes.alloc(1).unwrap_or_default();
        Self { nodes, hops: Arena::new(), root, prefixes: BTreeMap::new(), limit }
    }

    /// The next hop of the longest prefix that contains `address`.
    #[inline]
    pub fn find(&self, address: u128) -> Option<HopId> {
        let mut node = self.nodes.at(self.root);
        let mut best = None;
        for level in 0..LEVELS {
            let bits = chunk(address, level);
            let held = node.ending & HOLDING[bits as usize];
            if held != 0 {
                best = Some((node, 63 - held.leading_zeros()));
            }
            if node.below >> bits & 1 == 0 {
                break;
            }
            node = self.nodes.at(node.children + rank(node.below, bits));
        }
        let (node, bit) = best?;
        HopId::from_raw(self.hops.at(node.hops + rank(node.ending, bit)))
    }

    /// Adds a prefix or changes its next hop. Returns the previous one.
    ///
    /// # Errors
    /// If there is no room for another.
    pub fn insert(&mut self, prefix: Prefix<u128>, hop: HopId) -> Result<Option<HopId>, TableFull> {
        let full = TableFull { limit: self.limit };
        if !self.prefixes.contains_key(&prefix) && self.prefixes.len() >= self.limit {
            return Err(full);
        }
        let mut at = self.root;
        for level in 0..usize::from(prefix.bits() / STRIDE) {
            at = self.child_or_new(at, chunk(prefix.address(), level)).ok_or(full)?;
        }
        let mut node = self.nodes.at(at);
        let bit = bit_of(prefix);
        let rank = rank(node.ending, bit);
        if node.ending >> bit & 1 == 1 {
            *self.hops.at_mut(node.hops + rank) = hop.0.get();
        } else {
            let count = node.ending.count_ones() as usize;
            node.hops = self.hops.with(node.hops, count, rank as usize, hop.0.get()).ok_or(full)?;
            node.ending |= 1 << bit;
            *self.nodes.at_mut(at) = node;
        }
        Ok(self.prefixes.insert(prefix, hop))
    }

    /// Removes a prefix. Returns its next hop, or none if there was no such prefix.
    pub fn remove(&mut self, prefix: Prefix<u128>) -> Option<HopId> {
        let hop = self.prefixes.remove(&prefix)?;
        let levels = usize::from(prefix.bits() / STRIDE);
        let mut way = [self.root; LEVELS];
        for level in 0..levels {
            let node = self.nodes.at(way[level]);
            way[level + 1] = node.children + rank(node.below, chunk(prefix.address(), level));
        }
        let node = self.nodes.at(way[levels]);
        let bit = bit_of(prefix);
        let count = node.ending.count_ones() as usize;
        let hops = self.hops.without(node.hops, count, rank(node.ending, bit) as usize);
        let ending = node.ending & !(1 << bit);
        *self.nodes.at_mut(way[levels]) = Node { ending, hops, ..node };
        for level in (0..levels).rev() {
            let last = self.nodes.at(way[level + 1]);
            if last.ending != 0 || last.below != 0 {
                break;
            }
            let bits = chunk(prefix.address(), level);
            let node = self.nodes.at(way[level]);
            let count = node.below.count_ones() as usize;
            let children = self.nodes.without(node.children, count, rank(node.below, bits) as usize);
            *self.nodes.at_mut(way[level]) = Node { below: node.below & !(1 << bits), children, ..node };
        }
        Some(hop)
    }

    /// The prefixes in order of address and length, with their next hops.
    pub fn iter(&self) -> impl Iterator<Item = (Prefix<u128>, HopId)> {
        self.prefixes.iter().map(|(&prefix, &hop)| (prefix, hop))
    }

    /// Memory of the tree in bytes: the peak of all arrays. The list of prefixes is not included.
    pub fn memory(&self) -> usize {
        self.nodes.bytes() + self.hops.bytes()
    }

    fn child_or_new(&mut self, at: u32, bits: u32) -> Option<u32> {
        let mut node = self.nodes.at(at);
        let rank = rank(node.below, bits);
        if node.below >> bits & 1 == 0 {
            let count = node.below.count_ones() as usize;
            node.children = self.nodes.with(node.children, count, rank as usize, Node::default())?;
            node.below |= 1 << bits;
            *self.nodes.at_mut(at) = node;
        }
        Some(node.children + rank)
    }
}

/// The six bits of an address for a level; zeros follow the last.
#[inline]
fn chunk(address: u128, level: usize) -> u32 {
    let at = level as u32 * 6;
    ((address << at) >> 122) as u32
}

/// The bit of a prefix in the node where it ends.
fn bit_of(prefix: Prefix<u128>) -> u32 {
    let (level, rest) = (prefix.bits() / STRIDE, u32::from(prefix.bits() % STRIDE));
    (1 << rest) - 1 + (chunk(prefix.address(), level.into()) >> (6 - rest))
}

/// Number of set bits below `bit`.
#[inline]
fn rank(bits: u64, bit: u32) -> u32 {
    (bits & ((1 << bit) - 1)).count_ones()
}

const fn holding() -> [u64; 64] {
    let mut table = [0; 64];
    let mut value = 0;
    while value < 64 {
        let mut len = 0;
        while len < 6 {
            table[value] |= 1 << ((1 << len) - 1 + (value >> (6 - len)));
            len += 1;
        }
        value += 1;
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::net::Ipv6Addr;

    fn id(number: u16) -> HopId {
        HopId::from_raw(number).unwrap()
    }

    fn prefix(text: &str) -> Prefix<u128> {
        text.parse().unwrap()
    }

    #[test]
    fn the_longest_prefix_wins_and_what_it_hid_comes_back() {
        let mut table = V6Table::new(100);
        let routes =
            ["::/0", "fd00::/8", "fd00:1::/32", "fd00:1:2::/48", "fd00:1:2:3::/64", "fd00:1:2:3::7/128"];
        for (hop, text) in routes.iter().enumerate() {
            assert_eq!(table.insert(prefix(text), id(hop as u16 + 1)), Ok(None));
        }
        let expected = [
            ("::1", 1),
            ("fe00::1", 1),
            ("fdff::1", 2),
            ("fd00:2::", 2),
            ("fd00:1:3::", 3),
            ("fd00:1:2:4::", 4),
            ("fd00:1:2:3::8", 5),
            ("fd00:1:2:3::7", 6),
        ];
        for (address, hop) in expected {
            assert_eq!(table.find(address.parse::<Ipv6Addr>().unwrap().into()), Some(id(hop)), "{address}");
        }
        let mut hops = vec![];
        for text in routes.iter().rev() {
            assert!(table.remove(prefix(text)).is_some());
            hops.push(table.find(prefix("fd00:1:2:3::7/128").address()).map_or(0, |HopId(id)| id.get()));
        }
        assert_eq!(hops, [5, 4, 3, 2, 1, 0]);
        assert_eq!(table.remove(prefix("::/0")), None);
    }

    #[test]
    fn a_full_table_says_so() {
        let mut table = V6Table::new(1);
        table.insert(prefix("fd00::/8"), id(1)).unwrap();
        assert_eq!(table.insert(prefix("fe00::/8"), id(1)), Err(TableFull { limit: 1 }));
        assert_eq!(table.insert(prefix("fd00::/8"), id(2)), Ok(Some(id(1))));
    }

    #[test]
    fn arrays_are_used_again() {
        let mut table = V6Table::new(1000);
        let mut memory = 0;
        for round in 0..20u128 {
            let host = |n: u128| Prefix::host(round << 100 | n << 64 | n);
            (0..100).for_each(|n| assert!(table.insert(host(n), id(1)).is_ok()));
            if round == 3 {
                memory = table.memory();
            }
            (0..100).for_each(|n| assert!(table.remove(host(n)).is_some()));
        }
        assert_eq!(table.memory(), memory);
        assert!(table.prefixes.is_empty());
    }

    /// Prefixes close to each other, so that they nest, at all lengths.
    fn prefixes() -> impl Strategy<Value = Prefix<u128>> {
        let part = || prop::sample::select(vec![0u128, 1, 0x8000, 0xffff, 0x0820]);
        let address = prop::collection::vec(part(), 8)
            .prop_map(|parts| parts.into_iter().fold(0, |address, part| address << 16 | part));
        (address, 0..=128u8).prop_map(|(address, len)| Prefix::new(address, len).unwrap())
    }

    proptest! {
        #[test]
        fn is_a_list_searched_from_end_to_end(
            changes in prop::collection::vec((prefixes(), 1..9u16, any::<bool>()), 1..80),
            asked in prop::collection::vec(prefixes(), 40),
        ) {
            let mut table = V6Table::new(1000);
            let mut model = BTreeMap::new();
            for (prefix, hop, add) in changes {
                if add {
                    prop_assert_eq!(table.insert(prefix, id(hop)).unwrap(), model.insert(prefix, id(hop)));
                } else {
                    prop_assert_eq!(table.remove(prefix), model.remove(&prefix));
                }
                for address in asked.iter().map(|prefix| prefix.address()).chain([prefix.address()]) {
                    let holding = model.iter().filter(|(prefix, _)| prefix.holds(address));
                    let longest = holding.max_by_key(|(prefix, _)| prefix.bits()).map(|(_, &hop)| hop);
                    prop_assert_eq!(table.find(address), longest);
                }
            }
            for (prefix, _) in model {
                table.remove(prefix);
            }
            let root = table.nodes.at(table.root);
            prop_assert_eq!((root.ending, root.below), (0, 0));
        }
    }
}
