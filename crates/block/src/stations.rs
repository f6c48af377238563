//! The forwarding database: maps stations to ports.
//!
//! Open addressing with linear probing, at most half full, allocated once. A station is stored within `REACH`
//! slots of its home, so that no choice of addresses makes a lookup long; a station that would be stored
//! farther away is not learnt.

use longwire_units::Nanos;

/// Most slots that a lookup visits: half a kilobyte.
const REACH: usize = 32;

/// A station, or none if all is zero.
#[derive(Debug, Clone, Copy, Default)]
struct Slot {
    /// The 48 bits of the address, then the 16 of the port.
    station: u64,
    /// Time of the last frame from it, in nanoseconds.
    seen: u64,
}

impl Slot {
    fn is_free(self) -> bool {
        self.station == 0
    }

    fn address(self) -> u64 {
        self.station >> 16
    }
}

/// Stations by address. Addresses are 48-bit numbers; zero is never learnt.
#[derive(Debug)]
pub struct Stations {
    /// A power of two of home slots, then room for those that overflow the last.
    slots: Box<[Slot]>,
    shift: u32,
    used: usize,
    limit: usize,
    ageing: Nanos,
    /// No station expires before this time: until then a full table need not be swept.
    sweep_at: Nanos,
}

impl Stations {
    /// A table of at most `limit` stations, each forgotten after `ageing` without a frame from it.
    pub fn new(limit: usize, ageing: Nanos) -> Self {
        let homes = (limit.max(1) * 2).next_power_of_two();
        Self {
            slots: vec![Slot::default(); homes + REACH].into(),
            shift: u64::BITS - homes.trailing_zeros(),
            used: 0,
            limit,
            ageing,
            sweep_at: Nanos::ZERO,
        }
    }

    /// The port of `address`, if it was heard less than the ageing time before `now`.
    #[inline]
    pub fn find(&self, address: u64, now: Nanos) -> Option<u16> {
        let slot = self.slots[self.place_of(address)?];
        (!self.is_old(slot, now)).then_some(slot.station as u16)
    }

    /// The slot of a station, if it is known.
    #[inline]
    fn place_of(&self, address: u64) -> Option<usize> {
        let home = self.home(address);
        for (place, slot) in (home..).zip(&self.slots[home..home + REACH]) {
            // Checked first, because the address zero, which is never learnt, would match a free slot.
            if slot.is_free() {
                break;
            }
            if slot.address() == address {
                return Some(place);
            }
        }
        None
    }

    /// The slots of a source heard behind `port` and of a destination; none if one of them is unknown. See
    /// [`Stations::again`].
    pub fn places(&self, source: u64, port: u16, destination: u64) -> Option<[u32; 2]> {
        let [from, to] = [self.place_of(source)?, self.place_of(destination)?];
        (self.slots[from].station == station(source, port)).then_some([from as u32, to as u32])
    }

    /// Equivalent of [`Stations::learn`] and [`Stations::find`] for a frame whose source and destination
    /// (each made by [`station`] of address and port) are still in these slots and whose destination has not
    /// expired. The slots are compared, so no invalidation is needed.
    #[inline]
    #[must_use]
    pub fn again(&mut self, places: [u32; 2], source: u64, destination: u64, now: Nanos) -> bool {
        let [from, to] = places.map(|place| place as usize);
        match (self.slots.get(to), self.slots.get(from)) {
            (Some(&known), Some(heard)) if known.station == destination && heard.station == source => {
                let old = self.is_old(known, now);
                if !old {
                    self.slots[from].seen = now.0;
                }
                !old
            }
            _ => false,
        }
    }

    /// Records that `address` was heard at `now` behind `port`. Returns false if there is no room.
    #[inline]
    pub fn learn(&mut self, address: u64, port: u16, now: Nanos) -> bool {
        let home = self.home(address);
        let new = Slot { station: station(address, port), seen: now.0 };
        for slot in &mut self.slots[home..home + REACH] {
            if slot.address() == address {
                *slot = new;
                return true;
            }
            if slot.is_free() {
                break;
            }
        }
        self.insert(home, new, now)
    }

    /// Number of stations, expired ones that were not swept yet included.
    #[cfg(test)]
    fn len(&self) -> usize {
        self.used
    }

    /// Finds room for a station that is not in the table.
    #[cold]
    fn insert(&mut self, home: usize, new: Slot, now: Nanos) -> bool {
        if self.used >= self.limit && now >= self.sweep_at {
            self.sweep(now);
        }
        let ageing = self.ageing;
        for slot in &mut self.slots[home..home + REACH] {
            if slot.is_free() {
                if self.used >= self.limit {
                    return false;
                }
                self.used += 1;
                *slot = new;
                return true;
            }
            if now.since(Nanos(slot.seen)) >= ageing {
                *slot = new;
                return true;
            }
        }
        false
    }

    /// Removes every expired station, and computes when the next one can expire.
    fn sweep(&mut self, now: Nanos) {
        let mut oldest = now;
        let mut at = 0;
        while at < self.slots.len() {
            let slot = self.slots[at];
            if slot.is_free() {
                at += 1;
            } else if self.is_old(slot, now) {
                self.remove(at);
            } else {
                oldest = oldest.min(Nanos(slot.seen));
                at += 1;
            }
        }
        self.sweep_at = oldest + self.ageing;
    }

    /// Frees a slot and moves later ones up, so that no station is separated from its home by a free slot.
    fn remove(&mut self, at: usize) {
        let mut hole = at;
        for next in at + 1..self.slots.len() {
            let slot = self.slots[next];
            if slot.is_free() {
                break;
            }
            if self.home(slot.address()) <= hole {
                self.slots[hole] = slot;
                hole = next;
            }
        }
        self.slots[hole] = Slot::default();
        self.used -= 1;
    }

    #[inline]
    fn is_old(&self, slot: Slot, now: Nanos) -> bool {
        now.since(Nanos(slot.seen)) >= self.ageing
    }

    /// The slot at which the search for an address begins.
    #[inline]
    fn home(&self, address: u64) -> usize {
        (hash_address(address) >> self.shift) as usize
    }
}

/// A station by its address, of 48 bits, and the port behind which it was heard.
#[inline]
pub const fn station(address: u64, port: u16) -> u64 {
    address << 16 | port as u64
}

/// The hash of an Ethernet address, of which the upper bits are good (Fibonacci hashing: Knuth, vol. 3, 6.4).
#[inline]
pub const fn hash_address(address: u64) -> u64 {
    address.wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    const AGEING: Nanos = Nanos(100);

    #[test]
    fn forgets_after_the_ageing_time() {
        let mut table = Stations::new(4, AGEING);
        assert!(table.learn(1, 7, Nanos(1000)));
        assert_eq!(table.find(1, Nanos(1099)), Some(7));
        assert_eq!(table.find(1, Nanos(1100)), None);
        assert!(table.learn(1, 7, Nanos(1099)));
        assert_eq!(table.find(1, Nanos(1198)), Some(7));
        assert_eq!(table.find(2, Nanos(1198)), None);
    }

    #[test]
    fn a_full_table_learns_again_when_one_is_old() {
        let mut table = Stations::new(4, AGEING);
        for address in 1..=4 {
            assert!(table.learn(address, address as u16, Nanos(address)));
        }
        assert!(!table.learn(5, 5, Nanos(100)));
        assert!(table.learn(1, 9, Nanos(100)), "those it knows are refreshed and moved");
        assert_eq!(table.find(1, Nanos(100)), Some(9));
        // 2 was last heard at time 2 and expires at 102.
        assert!(!table.learn(5, 5, Nanos(101)));
        assert!(table.learn(5, 5, Nanos(102)));
        assert_eq!(
            [1, 2, 3, 4, 5].map(|address| table.find(address, Nanos(102))),
            [Some(9), None, Some(3), Some(4), Some(5)]
        );
        assert_eq!(table.len(), 4);
    }

    #[test]
    fn takes_as_many_as_it_says() {
        for limit in [0, 1, 2, 3, 100, 4096] {
            let mut table = Stations::new(limit, Nanos::NEVER);
            let learnt = (1..=5000).filter(|&address| table.learn(address, 1, Nanos::ZERO)).count();
            assert_eq!((learnt, table.len()), (limit, limit));
        }
    }

    #[test]
    fn no_choice_of_addresses_makes_a_lookup_long() {
        let mut table = Stations::new(1000, Nanos::NEVER);
        let crowded: Vec<_> = (1..1 << 20).filter(|&address| table.home(address) == 5).take(100).collect();
        let learnt = crowded.iter().filter(|&&address| table.learn(address, 1, Nanos::ZERO)).count();
        assert_eq!((crowded.len(), learnt), (100, REACH));
    }

    #[test]
    fn without_ageing_time_nothing_is_known() {
        let mut table = Stations::new(4, Nanos::ZERO);
        table.learn(1, 1, Nanos(5));
        assert_eq!(table.find(1, Nanos(5)), None);
    }

    proptest! {
        /// Compares with an unbounded map: lookups agree, and learning fails only for lack of room.
        #[test]
        fn is_a_map_with_ageing(
            limit in 1..24usize,
            events in prop::collection::vec((1..40u64, 0..4u16, 0..30u64), 1..300),
        ) {
            let mut table = Stations::new(limit, AGEING);
            let mut model = BTreeMap::<u64, (u16, u64)>::new();
            let mut now = 0;
            for (address, port, step) in events {
                now += step;
                model.retain(|_, (_, seen)| now - *seen < AGEING.0);
                let fits = model.contains_key(&address) || model.len() < limit;
                prop_assert_eq!(table.learn(address, port, Nanos(now)), fits);
                if fits {
                    model.insert(address, (port, now));
                }
                for address in 1..40 {
                    let expected = model.get(&address).map(|&(port, _)| port);
                    prop_assert_eq!(table.find(address, Nanos(now)), expected);
                }
            }
        }
    }
}
