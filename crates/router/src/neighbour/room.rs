//! Room for a neighbour that is not there yet, and who goes for it.

use super::{Neighbours, REACH, Slot, State};
use longwire_units::Nanos;
use std::ops::Range;

/// Slots that are looked at elsewhere for one neighbour, and how often, at most: usually the first time is
/// enough.
const SWEEPS: usize = 4;
const SWEPT: usize = 2 * REACH;

impl Neighbours {
    /// Finds room for a neighbour that is not there: a free slot, or one of a neighbour that nobody will
    /// miss.
    pub(super) fn insert(&mut self, slot: Slot, now: Nanos) -> Option<usize> {
        let home = self.home(slot.port, slot.address);
        let reach = home..home + REACH;
        let free = reach.clone().find(|&at| self.slots[at].state == State::Free);
        if let Some(at) = free.filter(|_| self.used < self.limits.neighbours) {
            self.used += 1;
            self.held.take(slot.port);
            *self.slots.change(at) = slot;
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
            // Who goes is looked for everywhere by turns: always near those that come, the rest would crowd
            // together.
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
        *self.slots.change(at) = slot;
        Some(at)
    }

    /// Slots in which one is looked for who goes if there is a free slot within reach; next time the
    /// following ones.
    fn next_swept(&mut self) -> Range<usize> {
        let (from, to) = (self.swept, self.swept + SWEPT);
        // Behind the last home there are few: they go with those before them, so that each is looked at
        // equally often.
        let is_last = to + REACH >= self.slots.len();
        self.swept = if is_last { 0 } else { to };
        let to = if is_last { self.slots.len() } else { to };
        from..to
    }

    /// A neighbour that has not answered for longest, behind a port that has more than its share, if this
    /// port has less.
    fn of_a_port_that_has_much(&self, port: u16, reach: Range<usize>) -> Option<usize> {
        if self.held.is_full(port) {
            return None;
        }
        let may_go = |&at: &usize| self.is_idle(at) && self.held.is_over(self.slots[at].port);
        reach.filter(may_go).min_by_key(|&at| self.slots[at].confirmed)
    }

    /// For one that is asked for: who is out of use and has not answered for longest, behind the same port,
    /// of the family that has more of them here, so that neither takes the other's places; gateways come
    /// last. If there is none, one behind a port that has more.
    fn of_the_same_port_or_more(&self, slot: &Slot, among: Range<usize>, now: Nanos) -> Option<usize> {
        if slot.unasked {
            return None;
        }
        // Who is used is asked again before that, and has answered.
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
