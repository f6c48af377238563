//! IPv4 prefixes: a trie of strides 16, 8, 4 and 4, with each prefix expanded to the slots of one node (V.
//! Srinivasan and G. Varghese, "Fast address lookups using controlled prefix expansion", ACM TOCS 17(1),
//! 1999), without leaf pushing.
//!
//! A search reads one to four slots. A change writes the slots of one node: at most 32768 for prefixes up to
//! 16 bits, 128 up to 24, 8 beyond; the default route is separate. Memory: half a mebibyte for the root, of
//! which only used pages are touched, 2 KiB for each /16 with longer prefixes, 128 bytes for each such /24
//! and /28, and about 30 bytes per prefix for the list from which shorter prefixes are restored when longer
//! ones are removed.

use super::arena::Arena;
use super::{Address, HopId, Prefix, TableFull};
use longwire_packet::prefetch;
use std::collections::BTreeMap;

/// Prefix lengths at which the root and each level below end.
const ENDS: [u8; 4] = [16, 24, 28, 32];
/// Slots in a chunk: 16 MiB.
const CHUNK: usize = 1 << 21;

/// A slot: the child's index in bits 0 to 31, the next hop in 32 to 47, the length of its prefix in 48 to 55;
/// zero if empty.
type Slot = u64;

/// IPv4 prefixes with their next hops.
#[derive(Debug)]
pub struct V4Table {
    /// The default route.
    default: Option<HopId>,
    root: Vec<Slot>,
    nodes: Arena<Slot, CHUNK>,
    /// By node, for each block of 16 slots: the number of prefixes that end in it, and of children.
    weights: Vec<u16>,
    prefixes: BTreeMap<Prefix<u32>, HopId>,
    limit: usize,
}

/// A step of the path to a prefix: the node's index, none for the root, and the slot in it.
#[derive(Debug, Clone, Copy)]
struct Step {
    node: Option<u32>,
    slot: usize,
}

impl V4Table {
    /// An empty table that takes at most `limit` prefixes.
    pub fn new(limit: usize) -> Self {
        let mut nodes = Arena::new();
        // Index 0 means no child.
        nodes.alloc(16);
        Self {
            default: None,
            root: vec![0; 1 << ENDS[0]],
            nodes,
            weights: vec![0],
            prefixes: BTreeMap::new(),
            limit,
        }
    }

    /// The next hop of the longest prefix that contains `address`.
    #[inline]
    pub fn find(&self, address: u32) -> Option<HopId> {
        let mut slot = self.root[(address >> 16) as usize];
        let mut best = hop(slot);
        if child(slot) != 0 {
            slot = self.nodes.at(child(slot) + (address >> 8 & 0xff));
            best = hop(slot).or(best);
            if child(slot) != 0 {
                slot = self.nodes.at(child(slot) + (address >> 4 & 0xf));
                best = hop(slot).or(best);
                if child(slot) != 0 {
                    best = hop(self.nodes.at(child(slot) + (address & 0xf))).or(best);
                }
            }
        }
        best.or(self.default)
    }

    /// Prefetches the root's slot for `address`.
    #[inline]
    pub fn prefetch_root(&self, address: u32) {
        prefetch(&self.root[(address >> 16) as usize]);
    }

    /// Prefetches the slot below the root for `address`.
    #[inline]
    pub fn prefetch_node(&self, address: u32) {
        let slot = self.root[(address >> 16) as usize];
        if child(slot) != 0 {
            self.nodes.prefetch(child(slot) + (address >> 8 & 0xff));
        }
    }

    /// Adds a prefix or changes its next hop. Returns the previous one.
    ///
    /// # Errors
    /// If there is no room for another.
    pub fn insert(&mut self, prefix: Prefix<u32>, hop: HopId) -> Result<Option<HopId>, TableFull> {
        let full = TableFull { limit: self.limit };
        let known = self.prefixes.contains_key(&prefix);
        if !known && self.prefixes.len() >= self.limit {
            return Err(full);
        }
        if prefix.bits() == 0 {
            self.default = Some(hop);
        } else {
            let (steps, level) = self.way(prefix).ok_or(full)?;
            let Step { node, slot } = steps[level];
            if !known && let Some(node) = node {
                self.weights[node as usize / 16] += 1;
            }
            let count = 1 << (ENDS[level] - prefix.bits());
            for slot in self.slots(node, slot, count) {
                if len(*slot) <= prefix.bits() {
                    *slot = filled(child(*slot), Some(hop), prefix.bits());
                }
            }
        }
        Ok(self.prefixes.insert(prefix, hop))
    }

    /// Removes a prefix. Returns its next hop, or none if there was no such prefix.
    pub fn remove(&mut self, prefix: Prefix<u32>) -> Option<HopId> {
        let hop = self.prefixes.remove(&prefix)?;
        if prefix.bits() == 0 {
            self.default = None;
            return Some(hop);
        }
        // It exists, so all nodes of its path do.
        let (steps, level) = self.way(prefix)?;
        let begin = if level == 0 { 0 } else { ENDS[level - 1] };
        let shorter = (begin + 1..prefix.bits()).rev().find_map(|bits| {
            let shorter = Prefix { address: prefix.address().masked(bits), len: bits };
            self.prefixes.get(&shorter).map(|&hop| (hop, bits))
        });
        let (now, bits) = shorter.map_or((None, 0), |(hop, bits)| (Some(hop), bits));
        let Step { node, slot } = steps[level];
        let count = 1 << (ENDS[level] - prefix.bits());
        for slot in self.slots(node, slot, count) {
            if len(*slot) == prefix.bits() {
                *slot = filled(child(*slot), now, bits);
            }
        }
        self.lighten(&steps[..=level]);
        Some(hop)
    }

    /// The prefixes in order of address and length, with their next hops.
    pub fn iter(&self) -> impl Iterator<Item = (Prefix<u32>, HopId)> {
        self.prefixes.iter().map(|(&prefix, &hop)| (prefix, hop))
    }

    /// Memory of the trie in bytes: the root, and the peak number of nodes. The list of prefixes is not
    /// included.
    pub fn memory(&self) -> usize {
        self.root.len() * size_of::<Slot>() + self.nodes.bytes() + self.weights.len() * 2
    }

    /// The nodes on the path to `prefix`, which is not the default, and its level. Missing ones are created;
    /// none if there is no space.
    fn way(&mut self, prefix: Prefix<u32>) -> Option<([Step; 4], usize)> {
        let address = prefix.address();
        let level = ENDS.iter().position(|&end| prefix.bits() <= end)?;
        let mut steps = [Step { node: None, slot: (address >> 16) as usize }; 4];
        for below in 1..=level {
            let Step { node, slot } = steps[below - 1];
            let above = self.slots(node, slot, 1)[0];
            let place = match child(above) {
                0 => self.grow(node, slot, below)?,
                place => place,
            };
            let width = ENDS[below] - ENDS[below - 1];
            let slot = (address >> (32 - ENDS[below])) as usize & ((1 << width) - 1);
            steps[below] = Step { node: Some(place), slot };
        }
        Some((steps, level))
    }

    /// Creates the child of a slot, a node of `level`.
    fn grow(&mut self, node: Option<u32>, slot: usize, level: usize) -> Option<u32> {
        let place = self.nodes.alloc(1 << (ENDS[level] - ENDS[level - 1]))?;
        let blocks = self.nodes.bytes() / size_of::<Slot>() / 16;
        self.weights.resize(blocks.max(self.weights.len()).max(place as usize / 16 + 1), 0);
        self.weights[place as usize / 16] = 0;
        let above = &mut self.slots(node, slot, 1)[0];
        *above |= u64::from(place);
        if let Some(node) = node {
            self.weights[node as usize / 16] += 1;
        }
        Some(place)
    }

    /// Decrements the weight of the last node, and frees nodes without weight.
    fn lighten(&mut self, steps: &[Step]) {
        for level in (1..steps.len()).rev() {
            let Some(node) = steps[level].node else { return };
            let weight = &mut self.weights[node as usize / 16];
            *weight -= 1;
            if *weight > 0 {
                return;
            }
            self.nodes.free(node, 1 << (ENDS[level] - ENDS[level - 1]));
            let Step { node, slot } = steps[level - 1];
            let above = &mut self.slots(node, slot, 1)[0];
            *above &= !0xffff_ffff;
        }
    }

    fn slots(&mut self, node: Option<u32>, slot: usize, count: usize) -> &mut [Slot] {
        match node {
            None => &mut self.root[slot..slot + count],
            Some(node) => self.nodes.slice_mut(node + slot as u32, count),
        }
    }
}

#[inline]
const fn child(slot: Slot) -> u32 {
    slot as u32
}

#[inline]
fn hop(slot: Slot) -> Option<HopId> {
    HopId::from_raw((slot >> 32) as u16)
}

const fn len(slot: Slot) -> u8 {
    (slot >> 48) as u8
}

fn filled(child: u32, hop: Option<HopId>, len: u8) -> Slot {
    let hop = hop.map_or(0, |HopId(id)| u64::from(id.get()));
    u64::from(child) | hop << 32 | u64::from(len) << 48
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::net::Ipv4Addr;

    fn id(number: u16) -> HopId {
        HopId::from_raw(number).unwrap()
    }

    fn prefix(text: &str) -> Prefix<u32> {
        text.parse().unwrap()
    }

    fn found(table: &V4Table, address: &str) -> u16 {
        table.find(address.parse::<Ipv4Addr>().unwrap().into()).map_or(0, |HopId(id)| id.get())
    }

    #[test]
    fn the_longest_prefix_wins_and_what_it_hid_comes_back() {
        let mut table = V4Table::new(100);
        let routes = [
            ("0.0.0.0/0", 1),
            ("10.0.0.0/8", 2),
            ("10.1.0.0/16", 3),
            ("10.1.2.0/23", 4),
            ("10.1.2.0/24", 5),
            ("10.1.2.128/25", 6),
            ("10.1.2.128/28", 7),
            ("10.1.2.129/32", 8),
        ];
        for (text, hop) in routes {
            assert_eq!(table.insert(prefix(text), id(hop)), Ok(None));
        }
        let expected = [
            ("9.255.255.255", 1),
            ("10.0.0.0", 2),
            ("10.1.255.255", 3),
            ("10.1.3.0", 4),
            ("10.1.2.127", 5),
            ("10.1.2.255", 6),
            ("10.1.2.128", 7),
            ("10.1.2.129", 8),
            ("11.0.0.0", 1),
        ];
        for (address, hop) in expected {
            assert_eq!(found(&table, address), hop, "{address}");
        }
        let mut hops = vec![];
        for (text, hop) in routes.into_iter().rev() {
            assert_eq!(table.remove(prefix(text)), Some(id(hop)));
            hops.push(found(&table, "10.1.2.129"));
        }
        assert_eq!(hops, [7, 6, 5, 4, 3, 2, 1, 0]);
        assert_eq!(table.remove(prefix("10.0.0.0/8")), None);
    }

    #[test]
    fn a_full_table_says_so_and_still_changes_what_it_has() {
        let mut table = V4Table::new(1);
        table.insert(prefix("10.0.0.0/8"), id(1)).unwrap();
        assert_eq!(table.insert(prefix("11.0.0.0/8"), id(1)), Err(TableFull { limit: 1 }));
        assert_eq!(table.insert(prefix("10.0.0.0/8"), id(2)), Ok(Some(id(1))));
        assert_eq!((found(&table, "10.0.0.1"), found(&table, "11.0.0.1"), table.prefixes.len()), (2, 0, 1));
    }

    #[test]
    fn nodes_are_used_again() {
        let mut table = V4Table::new(1000);
        let mut memory = 0;
        for round in 0..100u32 {
            let host = |n: u32| Prefix::host(round << 24 | n << 16 | n);
            (0..100).for_each(|n| assert!(table.insert(host(n), id(1)).is_ok()));
            memory = memory.max(table.memory());
            (0..100).for_each(|n| assert!(table.remove(host(n)).is_some()));
            assert_eq!(table.memory(), memory, "round {round}");
        }
        assert!(table.prefixes.is_empty() && table.root.iter().all(|&slot| slot == 0));
    }

    /// Prefixes close to each other, so that they nest, at all lengths.
    fn prefixes() -> impl Strategy<Value = Prefix<u32>> {
        let address = (0..2u32, 0..2u32, 0..4u32, any::<u8>())
            .prop_map(|(a, b, c, d)| (10 + a) << 24 | b << 16 | c << 8 | u32::from(d));
        (address, 0..=32u8).prop_map(|(address, len)| Prefix::new(address, len).unwrap())
    }

    proptest! {
        #[test]
        fn is_a_list_searched_from_end_to_end(
            changes in prop::collection::vec((prefixes(), 1..9u16, any::<bool>()), 1..80),
            asked in prop::collection::vec(prefixes(), 40),
        ) {
            let mut table = V4Table::new(1000);
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
            prop_assert!(table.iter().eq(model.iter().map(|(&prefix, &hop)| (prefix, hop))));
            for (prefix, _) in model {
                table.remove(prefix);
            }
            prop_assert!(table.root.iter().all(|&slot| slot == 0));
        }
    }
}
