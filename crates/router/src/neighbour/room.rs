//! Room for a neighbour that is not there yet, and who goes for it.

use super::{Neighbours, REACH, Slot, State};
use longwire_units::Nanos;
use std::ops::Range;

/// Most slots that are looked at elsewhere for one neighbour.
const SWEPT: usize = 4 * REACH;

impl Neighbours {
    /// Finds room for a neighbour that is not there: a free slot, or one of a neighbour that nobody will miss.
    pub(super) fn insert(&mut self, slot: Slot, now: Nanos) -> Option<usize> {
        let home = self.home(slot.port, slot.address);
        let reach = home..home + REACH;
        let free = reach.clone().find(|&at| self.slots[at].state == State::Free);
        if let Some(at) = free.filter(|_| self.used < self.limits.neighbours) {
            self.used += 1;
            self.held.take(slot.port);
            self.slots[at] = slot;
            return Some(at);
        }
        let at = reach.clone().find(|&at| self.is_old(at, now)).or_else(|| {
            // What was told without having been asked gives way to what is asked for.
            reach
                .clone()
                .find(|&at| !slot.unasked && self.slots[at].unasked && self.slots[at].state == State::Stale)
        });
        let at = at.or_else(|| self.of_a_port_that_has_much(slot.port, reach.clone()));
        let at = at.or_else(|| {
            // Who goes is looked for everywhere by turns: always near those that come, the rest would crowd together.
            let elsewhere = free.map_or(reach.clone(), |_| self.next_swept());
            [elsewhere, reach].into_iter().find_map(|among| self.of_the_same_port_or_more(&slot, among))
        });
        let victim = at?;
        let at = match free {
            // A search ends at the first free slot: nothing may be put behind it.
            Some(free) if free < victim || victim < home => {
                self.remove(victim);
                self.used += 1;
                // Those behind it have moved up, and may have left another one free.
                (home..home + REACH).find(|&at| self.slots[at].state == State::Free)?
            }
            _ => {
                self.unasked -= usize::from(self.slots[victim].unasked);
                self.held.give_back(self.slots[victim].port);
                victim
            }
        };
        self.held.take(slot.port);
        self.slots[at] = slot;
        Some(at)
    }

    /// Slots in which one is looked for who goes if there is a free slot within reach; next time the following ones.
    fn next_swept(&mut self) -> Range<usize> {
        // Behind the last home there are few: the last ones overlap those before them.
        let from = self.swept.min(self.slots.len().saturating_sub(SWEPT));
        let to = (from + SWEPT).min(self.slots.len());
        self.swept = if to == self.slots.len() { 0 } else { to };
        from..to
    }

    /// A neighbour that has not answered for longest, behind a port that has more than its share, if this port has less.
    fn of_a_port_that_has_much(&self, port: u16, reach: Range<usize>) -> Option<usize> {
        if self.held.is_full(port) {
            return None;
        }
        let may_go = |&at: &usize| self.is_idle(at) && self.held.is_over(self.slots[at].port);
        reach.filter(may_go).min_by_key(|&at| self.slots[at].confirmed)
    }

    /// For one that is asked for: who has not answered for longest, behind the same port, of the family that has more of them here, so that neither
    /// takes the other's places; gateways come last. If there is none, one behind a port that has more.
    fn of_the_same_port_or_more(&self, slot: &Slot, among: Range<usize>) -> Option<usize> {
        if slot.unasked {
            return None;
        }
        let of_the_same = |&at: &usize| self.is_idle(at) && self.slots[at].port == slot.port;
        let (mut v4, mut v6) = (0, 0);
        let counts = |at: usize| if is_v4(self.slots[at].address) { v4 += 1 } else { v6 += 1 };
        among.clone().filter(of_the_same).for_each(counts);
        let goes_v4 = v4 > v6 || (v4 == v6 && is_v4(slot.address));
        let key = |&at: &usize| {
            let other = &self.slots[at];
            (other.is_gateway, is_v4(other.address) != goes_v4, other.confirmed)
        };
        let of_more = |&at: &usize| self.is_idle(at) && self.held.has_more(self.slots[at].port, slot.port);
        among.clone().filter(of_the_same).min_by_key(key).or_else(|| among.filter(of_more).min_by_key(key))
    }

    fn is_idle(&self, at: usize) -> bool {
        let slot = &self.slots[at];
        matches!(slot.state, State::Stale | State::Reachable) && slot.waiting == 0
    }

    fn is_old(&self, at: usize, now: Nanos) -> bool {
        let slot = &self.slots[at];
        matches!(slot.state, State::Stale | State::Reachable)
            && now.since(slot.confirmed) >= self.limits.forget
    }
}

/// Whether an address is one of IPv4, as [`crate::neighbour_key`] writes them.
const fn is_v4(address: u128) -> bool {
    address >> 32 == 0xffff
}
