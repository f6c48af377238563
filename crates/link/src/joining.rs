//! Links that join a worker's and leave them while packets flow.

use crate::counters::LinkStats;
use crate::link::Link;
use crate::links::{Links, no_dice};
use longwire_block::{Dice, DropReason, Values};
use longwire_packet::{Pool, huge_vec};
use longwire_units::Nanos;
use std::mem::{swap, take};

/// The place in the plan of a link that has left.
pub const GONE: u32 = u32::MAX;

/// Links that are to join others, and what the worker needs for them. It is made by the asking thread and
/// goes back there, to be freed, with what it replaced.
pub struct Joining {
    links: Links,
    /// Where each goes: an index that a link has left, or one behind all others.
    slots: Vec<u32>,
    /// Longer arrays, if those of the worker have no room.
    room: Option<Room>,
    /// The places in the plan of all links, these included, by index.
    places: Vec<u32>,
}

struct Room {
    links: Vec<Link>,
    late: Vec<u32>,
    dice: Vec<Dice>,
}

impl Joining {
    /// The `links`, each for its index in `slots`. `places` are those of all links of the worker afterwards;
    /// `room` says whether longer arrays are needed.
    pub fn new(links: Links, slots: Vec<u32>, places: Vec<u32>, room: bool) -> Self {
        let count = Self::room_for(places.len());
        let room = room.then(|| Room {
            links: huge_vec(count),
            late: Vec::with_capacity(count),
            dice: Vec::with_capacity(count),
        });
        Self { links, slots, places, room }
    }

    /// For how many links longer arrays have room, where `count` are needed.
    pub const fn room_for(count: usize) -> usize {
        count + count / 4 + SPARE
    }

    /// The indices of the links: those that are used again, and then those behind all others.
    pub fn slots(&self) -> &[u32] {
        &self.slots
    }
}

/// Links for which longer arrays have room beyond what is needed and a quarter.
const SPARE: usize = 64;

impl Links {
    /// Takes in links, which begin now.
    pub fn join(&mut self, joining: &mut Joining, now: Nanos) {
        if let Some(room) = &mut joining.room {
            room.links.append(&mut self.links);
            room.late.append(&mut self.late);
            room.dice.append(&mut self.dice);
            swap(&mut self.links, &mut room.links);
            swap(&mut self.late, &mut room.late);
            swap(&mut self.dice, &mut room.dice);
        }
        let Joining { links: fresh, slots, places, .. } = joining;
        let again = slots.iter().take_while(|slot| (**slot as usize) < self.links.len()).count();
        fresh.links.iter_mut().for_each(|link| link.start(now));
        // What is replaced goes back.
        for (link, &slot) in fresh.links.iter_mut().zip(&slots[..again]) {
            let index = slot as usize;
            self.retired.add(&self.links[index].stats());
            self.retired.late_packets += u64::from(take(&mut self.late[index]));
            swap(&mut self.links[index], link);
        }
        for link in fresh.links.drain(again..) {
            self.links.push(link);
            self.late.push(0);
        }
        if !fresh.dice.is_empty() || !self.dice.is_empty() {
            self.dice.resize_with(self.links.len(), no_dice);
            for (own, &slot) in fresh.dice.iter_mut().zip(&*slots) {
                swap(&mut self.dice[slot as usize], own);
            }
        }
        swap(&mut self.places, places);
    }

    /// Takes a link out of the others: what it holds is dropped, and what still arrives is, too. A link that
    /// is drained sends what it holds, and what is on its way to it.
    pub fn leave(&mut self, pool: &mut Pool, link: u32, now: Nanos, drained: bool) {
        let off = |key: &str, text: &[(&str, &str)]| {
            let spec = crate::registry().into_iter().find(|spec| spec.key == key);
            let spec = if text.is_empty() { crate::without(key) } else { spec }?;
            Some((spec, Values::read(spec, text).ok()?))
        };
        let background = self.has_background(link).then(|| off(crate::background::KEY, &[])).flatten();
        let down = (!drained).then(|| off("state", &[("state", "down")])).flatten();
        let changes: Vec<_> = background.into_iter().chain(down).collect();
        if !changes.is_empty() {
            // Both keys are in the registry, and neither is a medium's.
            let _ = self.change(pool, link, now, &changes);
        }
        if !drained {
            let link = &mut self.links[link as usize];
            link.catch_up(pool, now);
            link.flush(pool, now, DropReason::LinkRemoved);
        }
    }

    /// What links have counted whose indices others have now.
    pub fn retired(&self) -> &LinkStats {
        &self.retired
    }
}

impl LinkStats {
    /// Adds another link's counters.
    pub fn add(&mut self, other: &Self) {
        self.in_packets += other.in_packets;
        self.in_bytes += other.in_bytes;
        self.out_packets += other.out_packets;
        self.out_bytes += other.out_bytes;
        self.made_packets += other.made_packets;
        self.consumed_packets += other.consumed_packets;
        self.steered_packets += other.steered_packets;
        self.marked_packets += other.marked_packets;
        self.corrupted_packets += other.corrupted_packets;
        self.collisions += other.collisions;
        for (reason, packets) in &other.drops {
            match self.drops.iter_mut().find(|(known, _)| known == reason) {
                Some((_, sum)) => *sum += packets,
                None => self.drops.push((reason, *packets)),
            }
        }
        self.queued_packets += other.queued_packets;
        self.queued_bytes += other.queued_bytes;
        self.travelling_packets += other.travelling_packets;
        self.late_packets += other.late_packets;
        self.max_late = self.max_late.max(other.max_late);
    }
}
