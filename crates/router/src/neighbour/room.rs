//! Room for a new neighbour, and the choice of a victim.

use super::{NeighbourState, Neighbours, REACH, Slot};
use longwire_units::Nanos;
use std::ops::Range;

/// Slots searched elsewhere for a victim, and the number of such searches: usually one is enough.
const SWEEPS: usize = 4;
const SWEPT: usize = 2 * REACH;

impl Neighbours {
    /// Makes room for a new neighbour: a free slot, or that of an expendable one.
    pub(super) fn insert(&mut self, slot: Slot, now: Nanos) -> Option<usize> {
        let home = self.home(slot.port, slot.address);
        let reach = home..home + REACH;
        let free = reach.clone().find(|&at| self.slots[at].state == NeighbourState::Free);
        if let Some(at) = free.filter(|_| self.used < self.limits.neighbours) {
            self.used += 1;
            self.held.take(slot.port);
            *self.slots.change(at) = slot;
            return Some(at);
        }
        let at = reach.clone().find(|&at| self.is_old(at, now)).or_else(|| {
            // Neighbours from unsolicited messages give way to requested ones.
            reach.clone().find(|&at| {
                !slot.unasked && self.slots[at].unasked && self.slots[at].state == NeighbourState::Stale
            })
        });
        let at = at.or_else(|| self.of_a_port_that_has_much(slot.port, reach.clone()));
        let at = at.or_else(|| {
            // The search for a victim moves through the whole table: always near the new ones, the others
            // would crowd together.
            let sweeps = if free.is_some() { SWEEPS } else { 0 };
            (0..=sweeps).find_map(|sweep| {
                let among = if sweep == sweeps { reach.clone() } else { self.next_swept() };
                self.of_the_same_port_or_more(&slot, among, now)
            })
        });
        let victim = at?;
        let at = match free {
            // A search ends at the first free slot: nothing may be put behind it.
            Some(free) if free < victim || victim < home => {
                self.remove(victim);
                self.used += 1;
                // Those behind it have moved up, and may have freed another slot.
                (home..home + REACH).find(|&at| self.slots[at].state == NeighbourState::Free)?
            }
            _ => {
                self.unasked -= usize::from(self.slots[victim].unasked);
                self.held.give_back(self.slots[victim].port);
                victim
            }
        };
        self.held.take(slot.port);
        *self.slots.change(at) = slot;
        Some(at)
    }

    /// Slots in which to search for a victim if there is a free slot within reach; the following ones next
    /// time.
    fn next_swept(&mut self) -> Range<usize> {
        let (from, to) = (self.swept, self.swept + SWEPT);
        // Behind the last home slot there are few: they belong to those before them, so that each is searched
        // equally often.
        let is_last = to + REACH >= self.slots.len();
        self.swept = if is_last { 0 } else { to };
        let to = if is_last { self.slots.len() } else { to };
        from..to
    }

    /// The neighbour without an answer for longest at a port above its share, if this port is below its own.
    fn of_a_port_that_has_much(&self, port: u16, reach: Range<usize>) -> Option<usize> {
        if self.held.is_full(port) {
            return None;
        }
        let may_go = |&at: &usize| self.is_idle(at) && self.held.is_over(self.slots[at].port);
        reach.filter(may_go).min_by_key(|&at| self.slots[at].confirmed)
    }

    /// Victim for a requested neighbour: an unused one of the same port, without an answer for longest, of
    /// the family that has more of them here, so that neither family displaces the other; gateways come last.
    /// If there is none, one of a port above its share.
    fn of_the_same_port_or_more(&self, slot: &Slot, among: Range<usize>, now: Nanos) -> Option<usize> {
        if slot.unasked {
            return None;
        }
        // A neighbour in use would have been probed, and answered, before that.
        let out_of_use = Nanos(self.limits.reachable.0.saturating_mul(2));
        let unused = |at: usize| self.is_idle(at) && now.since(self.slots[at].confirmed) >= out_of_use;
        let of_the_same = |&at: &usize| unused(at) && self.slots[at].port == slot.port;
        let (mut v4, mut v6) = (0, 0);
        let counts = |at: usize| if is_v4(self.slots[at].address) { v4 += 1 } else { v6 += 1 };
        among.clone().filter(of_the_same).for_each(counts);
        let goes_v4 = v4 > v6 || (v4 == v6 && is_v4(slot.address));
        let key = |&at: &usize| {
            let other = &self.slots[at];
            (other.is_gateway, is_v4(other.address) != goes_v4, other.confirmed)
        };
        let of_more = |&at: &usize| unused(at) && self.held.has_more(self.slots[at].port, slot.port);
        among.clone().filter(of_the_same).min_by_key(key).or_else(|| among.filter(of_more).min_by_key(key))
    }

    fn is_idle(&self, at: usize) -> bool {
        let slot = &self.slots[at];
        matches!(slot.state, NeighbourState::Stale | NeighbourState::Reachable) && slot.waiting == 0
    }

    fn is_old(&self, at: usize, now: Nanos) -> bool {
        let slot = &self.slots[at];
        matches!(slot.state, NeighbourState::Stale | NeighbourState::Reachable)
            && now.since(slot.confirmed) >= self.limits.forget
    }
}

/// Whether this is an IPv4 address, as written by [`crate::neighbour_key`].
const fn is_v4(address: u128) -> bool {
    address >> 32 == 0xffff
}
