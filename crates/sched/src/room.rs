//! Packet memory, shared so that new flows find some.
//!
//! - While more than a quarter of the places are free, a flow may have as many packets inside as there are
//!   free places.
//! - Below that it may have its share: of half of all places an equal share among flows with packets inside,
//!   of the other half a share by weight, because a flow with more service needs more waiting packets. Both
//!   are computed as if there were one more flow of weight 1. However much flows ask for, n of weight 1 hold
//!   1/(n + 1) of the places each.
//! - A flow without packets may have one, and the last few places are reserved for those.
//!
//! As long as there is room this takes two comparisons, and never a division.
//!
//! Alternatives: *dynamic thresholds* (Choudhury & Hahne, "Dynamic Queue Length Thresholds for Shared-Memory
//! Packet Switches", IEEE/ACM Transactions on Networking 6(2), 1998: for each flow the number of free places,
//! times α) need no number of flows. But when packets of many flows come together, the first flows take the
//! places freed since the last time: of 1000 flows whose packets came in the same order each time, 250 were
//! served. *Pushing out* the newest packet of the largest flow (McKenney, "Stochastic Fairness Queueing",
//! INFOCOM 1990) leaves no place unused, but needs flows sorted by their packets, and returns packets that
//! were admitted.

use crate::record::{List, PacketState, Slot};
use crate::table::NONE;

/// Fraction of places that must be free for flows to exceed their share.
const AMPLE: u32 = 4;
/// Fraction of places reserved for flows without packets.
const KEPT: u32 = 256;

/// Places for packets, and the flows that share them.
#[derive(Debug)]
pub(crate) struct Room {
    free: List,
    left: u32,
    /// Above the first number of free places room is ample; up to the second, places are reserved for flows
    /// without packets.
    ample: u32,
    kept: u32,
    /// Half of the shared places.
    half: u64,
    /// Flows with packets inside, and the sum of their weights, plus one flow of weight 1.
    flows: u64,
    weights: u64,
    /// First come, first served, without shares, as with one queue for all.
    first_come: bool,
}

impl Room {
    /// All of these.
    pub(crate) fn new(slots: &mut [Slot], first_come: bool) -> Self {
        let (mut free, left) = (List::EMPTY, slots.len() as u32);
        // Any order works; in ascending order the first packets are adjacent.
        (0..left).for_each(|slot| free.push(slots, slot));
        let (ample, kept) = (left / AMPLE, (left / KEPT).max(1));
        Self { free, left, ample, kept, half: u64::from(left - kept) / 2, flows: 1, weights: 1, first_come }
    }

    /// Counts a flow of this weight that gets its first packet inside.
    #[inline]
    pub(crate) fn enter(&mut self, weight: u32) {
        (self.flows, self.weights) = (self.flows + 1, self.weights + u64::from(weight));
    }

    /// Removes a flow of this weight without packets inside.
    #[inline]
    pub(crate) fn leave(&mut self, weight: u32) {
        (self.flows, self.weights) = (self.flows - 1, self.weights - u64::from(weight));
    }

    /// Whether a flow of this weight with `inside` packets may have another.
    #[inline]
    pub(crate) fn is_for(&self, inside: u32, weight: u32) -> bool {
        (inside < self.left && self.left > self.ample) || self.may_still_have(inside, weight)
    }

    fn may_still_have(&self, inside: u32, weight: u32) -> bool {
        if inside == 0 || self.first_come {
            return self.left > 0;
        }
        self.left > self.kept && self.is_share(u64::from(inside) + 1, weight.into())
    }

    /// Whether half / flows + half · weight / weights is at least `wanted`.
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
        // The slot used last is still in the processor's cache.
        (place.state, place.next) = (PacketState::Free, self.free.first);
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

    /// Packets of each flow of these weights if all ask for more in turn until none gets any, and the free
    /// places.
    fn filled(places: usize, weights: &[u32]) -> (Vec<u32>, Room) {
        let mut slots = vec![Slot::default(); places];
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
            // As many as are free, while that is more than a quarter.
            (4096, &[1][..], &[2048][..]),
            (4096, &[1; 3], &[1024; 3]),
            // From then on 2 · 2040 / (n + 1), as 16 are reserved.
            (4096, &[1; 4], &[816; 4]),
            (4096, &[1; 15], &[255; 15]),
            // All had 768 when room became short. Of the rest the first may have 2040 / 5 + 2040 · 8 / 12,
            // the others 2040 / 5 + 2040 / 12.
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
