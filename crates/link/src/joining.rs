//! Links that join a worker's and leave them while packets flow.

use crate::counters::LinkStats;
use crate::link::Link;
use crate::links::Links;
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
    /// Takes in links, which begin now, with their schedules and traces in step with those of other links.
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
        for link in &mut fresh.links {
            link.start(self.begin);
            // Its background traffic begins now.
            if let Some(background) = link.known_rare_mut().and_then(|rare| rare.background.as_mut()) {
                background.begin = now;
            }
        }
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
            self.dice.resize_with(self.links.len(), Dice::default);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Fifo, LinkConfig, registry};

    /// A link joins one of a run that began at `begin`, ten seconds later.
    fn joined(begin: Nanos, (key, kind): (&str, &str), given: &[(&str, &str)]) -> Links {
        let spec = registry().into_iter().find(|spec| (spec.key, spec.kind) == (key, kind)).unwrap();
        let config = LinkConfig::default().with(spec, Values::read(spec, given).unwrap());
        let mut links = Links::with_capacity(1, 1, Nanos::ZERO);
        links.add(0, "one", &LinkConfig::default());
        links.start(begin);
        let mut fresh = Links::with_capacity(1, 1, Nanos::ZERO);
        fresh.add(1, "other", &config);
        let mut joining = Joining::new(fresh, vec![1], vec![0, 1], true);
        links.join(&mut joining, begin + Nanos::from_secs(10));
        links
    }

    /// Delays grow from 10 ms to 20 ms at 11 s of the run.
    #[test]
    fn a_trace_counts_from_the_start_of_the_run() {
        let trace = [("file", "0 s 10 ms; 11 s 20 ms; 99 s end")];
        for begin in [Nanos::ZERO, Nanos::from_secs(7)] {
            let mut links = joined(begin, ("delay", "trace"), &trace);
            let mut pool = Pool::new(1 << 20).unwrap();
            let (mut left, mut out) = (Vec::new(), Fifo::EMPTY);
            for millis in [10_500, 11_500] {
                let handle = pool.insert(&[0; 60]).unwrap();
                pool.meta_mut(handle).arrival = (begin + Nanos::from_millis(millis)).0;
                links.arrive_and_leave(&mut pool, 1, handle, &mut out);
                links.expire(&mut pool, 1, begin + Nanos::from_secs(20), &mut out);
                let handle = out.pop(&pool).unwrap();
                left.push(Nanos(pool.meta(handle).leave()).since(begin));
            }
            assert_eq!(left, [10_510, 11_520].map(Nanos::from_millis));
        }
    }

    /// In virtual time background packets do not keep a run going; in real time they are served within a
    /// millisecond.
    #[test]
    fn background_traffic_begins_with_its_link() {
        let background = [("rate", "1 Mbit/s"), ("size", "500 B")];
        for (begin, due) in [(Nanos::ZERO, Nanos::NEVER), (Nanos::from_secs(7), Nanos::from_millis(17_001))] {
            let mut links = joined(begin, ("background", "cbr"), &background);
            assert_eq!(links.deadline(1), due);
            let mut pool = Pool::new(1 << 20).unwrap();
            // The first two come at 10 s and 4 ms later.
            let stats = links.stats(&mut pool, 1, begin + Nanos::from_millis(10_007));
            assert_eq!(stats.made_packets, 2);
        }
    }
}
