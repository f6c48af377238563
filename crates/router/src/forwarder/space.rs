//! Finds the per-flow forwarder of a packet: tuple space search (V. Srinivasan, S. Suri, G. Varghese, "Packet
//! classification using tuple space search", SIGCOMM 1999). Immutable once built.

use super::key::{FlowKey, Words};
use longwire_program::fold;

/// Hash tables, one for each combination of fields and prefix lengths.
#[derive(Debug, Default)]
pub(crate) struct Space {
    /// Fewest wildcards first, then longest prefixes.
    tuples: Box<[Tuple]>,
}

#[derive(Debug)]
struct Tuple {
    mask: Words,
    rank: u32,
    /// A power of two, at most half of them used.
    slots: Box<[Slot]>,
    seed: u64,
    /// Most slots that a search visits.
    longest: u32,
}

#[derive(Debug, Clone, Copy, Default)]
#[repr(align(64))]
struct Slot {
    words: Words,
    /// Index of the key's forwarder plus 1; 0 if the slot is free.
    found: u32,
}

impl Space {
    /// A space of these keys in the order of their fids; lookups return their index. `seed` makes collisions
    /// unpredictable.
    pub fn new(keys: &[FlowKey], seed: u64) -> Self {
        let mut masks: Vec<(Words, u32)> = keys.iter().map(|key| (key.mask(), key.rank())).collect();
        masks.sort_unstable_by_key(|&(mask, rank)| (rank, mask));
        masks.dedup();
        let tuples = masks.into_iter().map(|(mask, rank)| {
            let own = keys.iter().enumerate().filter(|(_, key)| key.mask() == mask);
            Tuple::new(mask, rank, own.map(|(place, key)| (key.words(), place as u32)).collect(), seed)
        });
        Self { tuples: tuples.collect() }
    }

    /// Index of the flow's forwarder: among matching keys the one with the fewest wildcards, then the longest
    /// prefixes, then the first.
    #[inline]
    pub fn find(&self, flow: &Words) -> Option<usize> {
        let mut best: Option<(u32, u32)> = None;
        for tuple in &self.tuples {
            if best.is_some_and(|(rank, _)| rank != tuple.rank) {
                break;
            }
            if let Some(found) = tuple.find(flow) {
                best = Some((tuple.rank, best.map_or(found, |(_, other)| other.min(found))));
            }
        }
        best.map(|(_, found)| found as usize)
    }

    /// For each lookup, the most cache lines that it touches.
    pub fn lookups(&self) -> impl Iterator<Item = u32> {
        self.tuples.iter().map(|tuple| tuple.longest)
    }

    /// Whether there are no keys.
    pub fn is_empty(&self) -> bool {
        self.tuples.is_empty()
    }
}

impl Tuple {
    fn new(mask: Words, rank: u32, keys: Vec<(Words, u32)>, seed: u64) -> Self {
        let slots = vec![Slot::default(); (keys.len() * 2).next_power_of_two()].into();
        let mut tuple = Self { mask, rank, slots, seed, longest: 1 };
        for (words, place) in keys {
            tuple.insert(&words, place);
        }
        // An unsuccessful search ends at the free slot after a run of used ones.
        tuple.longest = tuple.longest_run() + 1;
        tuple
    }

    /// Among equal keys the first is kept.
    fn insert(&mut self, words: &Words, place: u32) {
        let last = self.slots.len() - 1;
        let mut at = self.start(words);
        while self.slots[at].found > 0 {
            if self.slots[at].words == *words {
                return;
            }
            at = (at + 1) & last;
        }
        self.slots[at] = Slot { words: *words, found: place + 1 };
    }

    fn longest_run(&self) -> u32 {
        let (mut longest, mut run) = (0, 0);
        // Twice around, because a run may wrap around.
        for slot in self.slots.iter().chain(&*self.slots) {
            run = if slot.found > 0 { run + 1 } else { 0 };
            longest = longest.max(run);
        }
        longest
    }

    #[inline]
    fn find(&self, flow: &Words) -> Option<u32> {
        let last = self.slots.len() - 1;
        let mut at = self.start(flow);
        for _ in 0..self.longest {
            let slot = &self.slots[at];
            if slot.found == 0 {
                return None;
            }
            if self.is(flow, &slot.words) {
                return Some(slot.found - 1);
            }
            at = (at + 1) & last;
        }
        None
    }

    /// Whether these are the flow's words, apart from wildcards.
    #[inline]
    fn is(&self, flow: &Words, words: &Words) -> bool {
        let differs = |at: usize| flow[at] & self.mask[at] ^ words[at];
        differs(0) | differs(1) | differs(2) | differs(3) | differs(4) == 0
    }

    /// First slot of a search for a flow. Its words have just been written, and are read one by one: a wider
    /// read would defeat store forwarding.
    #[inline]
    fn start(&self, flow: &Words) -> usize {
        let mix = |state, (&word, &mask): (&u64, &u64)| fold(state ^ word & mask, 0xa409_3822_299f_31d1);
        let state = flow.iter().zip(&self.mask).fold(self.seed, mix);
        state as usize & (self.slots.len() - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::forwarder::KeyAddress;
    use proptest::prelude::*;
    use std::net::IpAddr;

    fn key(source: u8, source_port: u16, destination: u8, destination_port: u16, protocol: u8) -> FlowKey {
        // From 100 on, a prefix of 30 bits.
        let address = |host: u8| match host {
            0 => None,
            1..100 => Some([10, 0, 0, host].into()),
            _ => KeyAddress::new(IpAddr::from([10, 0, 0, host - 100]), 30),
        };
        let port = |port: u16| (port > 0).then_some(port);
        FlowKey {
            source: address(source),
            source_port: port(source_port),
            destination: address(destination),
            destination_port: port(destination_port),
            protocol: (protocol > 0).then_some(protocol),
        }
    }

    #[test]
    fn fewest_wild_fields_win_then_the_lowest_fid() {
        // 0 is a wildcard.
        let keys = [
            key(0, 0, 0, 0, 0),
            key(0, 0, 2, 80, 6),
            key(1, 0, 0, 80, 6),
            key(1, 7, 2, 80, 0),
            key(1, 7, 2, 80, 0),
            key(1, 7, 2, 80, 6),
            key(9, 7, 2, 80, 0),
        ];
        let space = Space::new(&keys, 5);
        for (flow, found) in [
            (key(1, 7, 2, 80, 6), 5),
            (key(1, 7, 2, 80, 17), 3),
            (key(9, 7, 2, 80, 6), 6),
            (key(1, 8, 2, 80, 6), 1),
            (key(1, 8, 3, 80, 6), 2),
            (key(3, 8, 2, 80, 6), 1),
            (key(3, 8, 2, 81, 6), 0),
        ] {
            assert_eq!(space.find(&flow.words()), Some(found), "{flow:?}");
        }
        assert_eq!((space.lookups().count(), Space::new(&[], 5).find(&keys[0].words())), (5, None));
    }

    #[test]
    fn of_equally_wild_ones_the_longest_prefix_wins() {
        // Hosts from 100 on are all of 10.0.0.0/30.
        let keys = [key(100, 0, 0, 0, 0), key(2, 0, 0, 0, 0), key(100, 0, 0, 80, 0), key(101, 0, 0, 0, 0)];
        let space = Space::new(&keys, 5);
        for (flow, found) in [
            (key(2, 7, 9, 9, 6), Some(1)),
            (key(3, 7, 9, 9, 6), Some(0)),
            (key(2, 7, 9, 80, 6), Some(2)),
            (key(4, 7, 9, 80, 6), None),
        ] {
            assert_eq!(space.find(&flow.words()), found, "{flow:?}");
        }
    }

    #[test]
    fn a_lookup_has_a_longest_way() {
        let keys: Vec<_> = (1..=1000).map(|port| key(0, port, 0, 0, 0)).collect();
        let space = Space::new(&keys, 1);
        // Half full: a longest run of 1000 keys in 2048 slots is some tens.
        assert!(space.lookups().all(|lines| (2..100).contains(&lines)));
        assert!((0..1000).all(|at| space.find(&keys[at].words()) == Some(at)));
        assert_eq!(space.find(&key(0, 1001, 0, 0, 0).words()), None);
    }

    fn any_key() -> impl Strategy<Value = FlowKey> {
        let host = || prop_oneof![0..4u8, 100..108u8];
        (host(), 0..4u16, host(), 0..4u16, 0..3u8).prop_map(|(a, b, c, d, e)| key(a, b, c, d, e))
    }

    proptest! {
        #[test]
        fn the_same_as_looking_at_every_key(
            keys in prop::collection::vec(any_key(), 0..40),
            flows in prop::collection::vec((1..5u8, 1..5u16, 1..5u8, 1..5u16, 1..4u8), 1..40),
            seed: u64,
        ) {
            let space = Space::new(&keys, seed);
            for (a, b, c, d, e) in flows {
                let flow = key(a, b, c, d, e).words();
                let fits = |key: &FlowKey| {
                    let (words, mask) = (key.words(), key.mask());
                    (0..5).all(|at| flow[at] & mask[at] == words[at])
                };
                let matching = keys.iter().enumerate().filter(|(_, key)| fits(key));
                let best = matching.min_by_key(|&(place, key)| (key.rank(), place)).map(|(place, _)| place);
                prop_assert_eq!(space.find(&flow), best);
            }
        }
    }
}
