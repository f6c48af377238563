//! Room for packets, shared so that who is new finds some.
//!
//! While more than a quarter of the places are left, a flow may have as many packets inside as there are
//! places left. From there on it may have its share: of half of all places the same as each other flow that
//! has packets inside, of the other half by its weight, as who is served more at a time needs more waiting;
//! both as if there were one flow of weight 1 more. However much flows ask for, n of weight 1 hold 1/(n + 1)
//! of the places each. Who has none may have one, and the last few places are for those. As long as there is
//! room it takes two comparisons, and no division ever.
//!
//! Two other ways were measured or weighed. *Dynamic thresholds* (Choudhury & Hahne, "Dynamic Queue Length
//! Thresholds for Shared-Memory Packet Switches", IEEE/ACM Transactions on Networking 6(2), 1998: as many
//! packets for each as there are places left, times α) need no number of flows, but where packets of many
//! flows come together, those that come first see the places that became free since the last time, and take
//! them: of 1000 flows whose packets came in the same order each time, 250 were served. *Throwing out* the
//! newest packet of who holds most (McKenney, "Stochastic Fairness Queueing", INFOCOM 1990) leaves no place
//! unused, but needs flows sorted by what they hold, and gives back packets that were let in.

use crate::record::{List, Slot, State};
use crate::table::NONE;

/// Which part of all places must be left for flows to have more than their share.
const AMPLE: u32 = 4;
/// Which part of all places is nobody's share: for those that have none.
const KEPT: u32 = 256;

/// Places for packets, and who shares them.
#[derive(Debug)]
pub(crate) struct Room {
    free: List,
    left: u32,
    /// While more are left, none is short of room; while no more are left, they are for flows that have none.
    ample: u32,
    kept: u32,
    /// Half of the places that are shared.
    half: u64,
    /// Flows that have packets inside, and their weights, one flow of weight 1 more than there are.
    flows: u64,
    weights: u64,
    /// Whoever comes first has it, as where there is one queue for all.
    first_come: bool,
}

impl Room {
    /// All of these.
    pub(crate) fn new(slots: &mut [Slot], first_come: bool) -> Self {
        let (mut free, left) = (List::EMPTY, slots.len() as u32);
        // From the last to the first would do as well; in order, the first packets lie side by side.
        (0..left).for_each(|slot| free.push(slots, slot));
        let (ample, kept) = (left / AMPLE, (left / KEPT).max(1));
        Self { free, left, ample, kept, half: u64::from(left - kept) / 2, flows: 1, weights: 1, first_come }
    }

    /// A flow of this weight has its first packet inside.
    #[inline]
    pub(crate) fn enter(&mut self, weight: u32) {
        (self.flows, self.weights) = (self.flows + 1, self.weights + u64::from(weight));
    }

    /// A flow of this weight has no packet inside any more.
    #[inline]
    pub(crate) fn leave(&mut self, weight: u32) {
        (self.flows, self.weights) = (self.flows - 1, self.weights - u64::from(weight));
    }

    /// Whether a flow of this weight with so many packets inside may have another.
    #[inline]
    pub(crate) fn is_for(&self, inside: u32, weight: u32) -> bool {
        if inside < self.left && self.left > self.ample {
            return true;
        }
        self.may_still_have(inside, weight)
    }

    fn may_still_have(&self, inside: u32, weight: u32) -> bool {
        if inside == 0 || self.first_come {
            return self.left > 0;
        }
        self.left > self.kept && self.is_share(u64::from(inside) + 1, weight.into())
    }

    /// Whether half / flows + half · weight / weights is so much.
    fn is_share(&self, wanted: u64, weight: u64) -> bool {
        let (all, part) = (self.weights, weight * self.flows);
        u128::from(wanted * self.flows) * u128::from(all) <= u128::from(self.half) * u128::from(all + part)
    }

    /// A place, if any is left.
    #[inline]
    pub(crate) fn take(&mut self, slots: &[Slot]) -> Option<u32> {
        let slot = self.free.pop(slots)?;
        self.left -= 1;
        Some(slot)
    }

    /// A place is free again.
    #[inline]
    pub(crate) fn give_back(&mut self, slots: &mut [Slot], slot: u32) {
        let place = &mut slots[slot as usize];
        // What was used last is what the processor's cache still has.
        (place.state, place.next) = (State::Free, self.free.first);
        if self.free.first == NONE {
            self.free.last = slot;
        }
        self.free.first = slot;
        self.left += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many packets each flow of these weights holds, if all of them ask for more in turn until none gets
    /// any, and the room that is left.
    fn filled(places: usize, weights: &[u32]) -> (Vec<u32>, Room) {
        let mut slots = vec![Slot::FREE; places];
        let mut room = Room::new(&mut slots, false);
        let mut held = vec![0; weights.len()];
        loop {
            let before = room.left;
            for (held, weight) in held.iter_mut().zip(weights) {
                if room.is_for(*held, *weight) {
                    assert!(room.take(&slots).is_some());
                    if *held == 0 {
                        room.enter(*weight);
                    }
                    *held += 1;
                }
            }
            if room.left == before {
                return (held, room);
            }
        }
    }

    #[test]
    fn shares_by_hand() {
        for (places, weights, each) in [
            // As much as is left, while that is more than a quarter.
            (4096, &[1][..], &[2048][..]),
            (4096, &[1; 3], &[1024; 3]),
            // From then on 2 · 2040 / (n + 1), as 16 are nobody's.
            (4096, &[1; 4], &[816; 4]),
            (4096, &[1; 15], &[255; 15]),
            // All had 768 when room became short. Of it the first may have 2040 / 5 + 2040 · 8 / 12, the
            // others 2040 / 5 + 2040 / 12.
            (4096, &[8, 1, 1, 1], &[1768, 768, 768, 768]),
            (1, &[1], &[1]),
            (2, &[1], &[1]),
            (9, &[1], &[5]),
        ] {
            assert_eq!(filled(places, weights).0, each, "{places} {weights:?}");
        }
    }

    #[test]
    fn who_is_new_finds_a_place_whatever_the_others_weigh() {
        for weights in [&[1; 2000][..], &[65_535; 20], &[1000; 2000]] {
            let (held, room) = filled(4096, weights);
            assert!(room.left >= 16 && room.is_for(0, 1), "{} left of {weights:?}", room.left);
            let (least, most) = (held.iter().min(), held.iter().max());
            assert_eq!(least, most, "{weights:?}");
        }
    }
}
