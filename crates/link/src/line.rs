//! The delay line: packets in flight, with their departures.
//!
//! While packets leave in the order in which they were sent, at times that never decrease, a run of them is
//! sufficient. Packets that overtake, and times that must be sorted, are in agendas that few links have.

use crate::agenda::Agenda;
use crate::delay::Order;
use crate::fifo::Fifo;
use longwire_packet::{Handle, Place, Pool, Run};
use longwire_units::Nanos;

/// See the module.
#[derive(Debug)]
pub(crate) struct Line {
    /// The next departure; never if there is none.
    next: Nanos,
    run: Run,
    /// On a decided link, the position of the first packet that may still wait, if others precede it.
    waits: Place,
    packets: u32,
    /// Whether the heaps hold anything.
    irregular: bool,
    /// Rare features of its link: see `has.rs`. Stored here because there is room.
    pub features: u16,
}

/// Additional state of a delay line on which packets overtake.
#[derive(Debug, Default)]
pub(crate) struct Heaps {
    /// Departures of the run's packets, if sorted separately: as many as it has packets.
    slots: Agenda<()>,
    /// Lower bound on sorted times: packets sent before the last change of the delay leave by then.
    pub floor: Nanos,
    /// Packets that keep no place.
    free: Agenda<Handle>,
}

impl Default for Line {
    fn default() -> Self {
        Self {
            next: Nanos::NEVER,
            run: Run::EMPTY,
            waits: Place::FIRST,
            packets: 0,
            irregular: false,
            features: 0,
        }
    }
}

impl Line {
    /// Adds features, or removes them.
    pub(crate) fn set(&mut self, features: u16, present: bool) {
        self.features = self.features & !features | if present { features } else { 0 };
    }

    /// The next departure; never if there is none.
    #[inline]
    pub(crate) fn next(&self) -> Nanos {
        self.next
    }

    /// Packets in flight; each segment of a train is counted.
    #[inline]
    pub(crate) fn packets(&self) -> u32 {
        self.packets
    }

    /// The first packet in order.
    #[inline]
    pub(crate) fn first(&self) -> Option<Handle> {
        self.run.first()
    }

    /// The first packet of a line that is not empty and in order.
    #[inline]
    pub(crate) fn first_known(&self) -> Handle {
        self.run.first_known()
    }

    /// Departure of the last packet in order; zero if there is none.
    pub(crate) fn last_leaving(&self, pool: &Pool) -> Nanos {
        pool.last_of(&self.run).map_or(Nanos::ZERO, |last| Nanos(pool.meta(last).leave()))
    }

    /// Adds a packet in order that leaves at `leave`, or after its predecessor, which leaves at `last`.
    #[inline]
    pub(crate) fn join(&mut self, last: &mut Nanos, pool: &mut Pool, handle: Handle, leave: Nanos) {
        debug_assert!(!self.irregular);
        let leave = leave.max(*last);
        *last = leave;
        self.next = self.next.min(leave);
        self.append(pool, handle, leave);
    }

    /// Adds a single packet of a decided link, which leaves at `leave` (as in its `Meta`), after all present
    /// ones. It waits behind its predecessor, or is the first that may wait. Returns whether the line was
    /// empty.
    #[inline(always)]
    pub(crate) fn join_plain(&mut self, pool: &mut Pool, handle: Handle, leave: Nanos, waits: bool) -> bool {
        debug_assert!(!self.irregular);
        self.packets += 1;
        let was_empty = self.run.is_empty();
        if was_empty {
            (self.run, self.next, self.waits) = (Run::of(handle), leave, Place::FIRST);
        } else {
            let place = pool.append(&mut self.run, handle);
            if !waits {
                self.waits = place;
            }
        }
        was_empty
    }

    /// Position of the first of the last `waiting` packets.
    #[inline]
    fn first_waiting(&self, waiting: u32) -> Place {
        if self.packets == waiting { Place::FIRST } else { self.waits }
    }

    /// The first of the packets that wait, the last `waiting` ones.
    #[inline]
    pub(crate) fn waiting(&self, pool: &Pool, waiting: u32) -> Handle {
        pool.at(&self.run, self.first_waiting(waiting))
    }

    /// Removes the first waiting packet from those that wait; returns the next, if there is one.
    #[inline]
    pub(crate) fn pass(&mut self, pool: &Pool, waiting: u32) -> Option<Handle> {
        let next = pool.after(&self.run, self.first_waiting(waiting))?;
        self.waits = next;
        Some(pool.at(&self.run, next))
    }

    /// Removes the waiting packets, the last ones, as a list.
    pub(crate) fn part_waiting(&mut self, pool: &mut Pool, waiting: u32) -> Fifo {
        let (place, mut parted) = (self.first_waiting(waiting), Fifo::EMPTY);
        pool.split_off(&mut self.run, place, |pool, handle| parted.push(pool, handle));
        self.packets -= waiting;
        self.next = self.run.first().map_or(Nanos::NEVER, |first| Nanos(pool.meta(first).leave()));
        parted
    }

    /// Adds a packet to a line that has, or needs, agendas.
    #[inline(always)]
    pub(crate) fn join_heaps(
        &mut self,
        (heaps, last): (&mut Heaps, &mut Nanos),
        pool: &mut Pool,
        handle: Handle,
        (leave, order): (Nanos, Order),
    ) {
        if order == Order::Free {
            // It does not hold back others until a delay with order applies again.
            *last = (*last).max(leave);
            return self.join_apart(heaps, pool, handle, leave);
        }
        if order == Order::InOrder || heaps.slots.is_empty() {
            return self.join_others((heaps, last), pool, handle, (leave, order));
        }
        // The common case of a line with sorted times.
        let leave = leave.max(heaps.floor);
        heaps.slots.push(leave.0, ());
        *last = (*last).max(leave);
        self.next = self.next.min(leave);
        self.append(pool, handle, leave);
    }

    /// Adds the first packet with a sorted time, or one in order behind such packets.
    #[inline(never)]
    fn join_others(
        &mut self,
        (heaps, last): (&mut Heaps, &mut Nanos),
        pool: &mut Pool,
        handle: Handle,
        (leave, order): (Nanos, Order),
    ) {
        let leave = leave.max(if order == Order::InOrder { *last } else { heaps.floor });
        if order == Order::Sorted {
            // The times of packets that joined in order are already sorted.
            pool.each(&self.run).for_each(|waiting| heaps.slots.push(pool.meta(waiting).leave(), ()));
        }
        if order == Order::Sorted || !heaps.slots.is_empty() {
            self.irregular = true;
            heaps.slots.push(leave.0, ());
        }
        *last = (*last).max(leave);
        self.next = self.next.min(leave);
        self.append(pool, handle, leave);
    }

    /// Adds a packet that leaves at `leave` independently of others.
    #[inline(always)]
    pub(crate) fn join_apart(&mut self, heaps: &mut Heaps, pool: &mut Pool, handle: Handle, leave: Nanos) {
        self.irregular = true;
        self.packets += u32::from(pool.meta(handle).segments);
        pool.meta_mut(handle).set_leave(leave.0);
        heaps.free.push(leave.0, handle);
        self.next = self.next.min(leave);
    }

    /// Whether [`Line::join`] and [`Line::take`] are not applicable.
    #[inline]
    pub(crate) fn is_irregular(&self) -> bool {
        self.irregular
    }

    /// Takes the packet that leaves next, with `Meta::leave` set.
    #[inline]
    pub(crate) fn take(&mut self, pool: &mut Pool) -> Option<Handle> {
        self.first()?;
        let (held, handle) = (self.packets, self.take_plain(pool));
        self.count_taken(held, pool.meta(handle).segments);
        Some(handle)
    }

    /// Takes the next packet, which must exist, without counting it.
    #[inline(always)]
    pub(crate) fn take_plain(&mut self, pool: &mut Pool) -> Handle {
        let (handle, behind) = pool.pop_known(&mut self.run);
        self.next = behind.map_or(Nanos::NEVER, |behind| Nanos(behind.leave()));
        handle
    }

    /// Counts segments taken out of the `held` ones before.
    #[inline(always)]
    pub(crate) fn count_taken(&mut self, held: u32, segments: u16) {
        self.packets = held - u32::from(segments);
    }

    /// Takes the next packet of a line with agendas.
    #[inline(always)]
    pub(crate) fn take_heaps(&mut self, heaps: &mut Heaps, pool: &mut Pool) -> Option<Handle> {
        if heaps.free.is_empty() {
            return self.take_listed(heaps, pool);
        }
        if !self.run.is_empty() && self.next_listed(heaps, pool) <= heaps.free.first() {
            return self.take_before_free(heaps, pool);
        }
        let (_, handle) = heaps.free.pop()?;
        if let Some(soon) = heaps.free.soon() {
            pool.prefetch(soon);
        }
        self.packets -= u32::from(pool.meta(handle).segments);
        self.note_next(heaps, pool);
        Some(handle)
    }

    /// Takes the first packet in order, which leaves next.
    #[inline(always)]
    fn take_listed(&mut self, heaps: &mut Heaps, pool: &mut Pool) -> Option<Handle> {
        let handle = pool.pop(&mut self.run)?;
        let meta = pool.meta_mut(handle);
        if let Some((leave, ())) = heaps.slots.pop() {
            meta.set_leave(leave);
        }
        self.packets -= u32::from(meta.segments);
        if heaps.slots.is_empty() || !heaps.free.is_empty() {
            self.note_next(heaps, pool);
        } else {
            self.next = Nanos(heaps.slots.first());
        }
        Some(handle)
    }

    /// Takes the first packet in order if there are others too.
    #[inline(never)]
    fn take_before_free(&mut self, heaps: &mut Heaps, pool: &mut Pool) -> Option<Handle> {
        self.take_listed(heaps, pool)
    }

    #[inline(always)]
    fn note_next(&mut self, heaps: &Heaps, pool: &Pool) {
        self.irregular = !heaps.slots.is_empty();
        self.next = Nanos(self.next_listed(heaps, pool));
        if !heaps.free.is_empty() {
            self.irregular = true;
            self.next = self.next.min(Nanos(heaps.free.first()));
        }
    }

    /// Removes all packets, at the end of a run.
    pub(crate) fn drain(&mut self, heaps: Option<&mut Heaps>, pool: &mut Pool) -> Fifo {
        let mut all = Fifo::EMPTY;
        while let Some(handle) = pool.pop(&mut self.run) {
            all.push(pool, handle);
        }
        *self = Self { features: self.features, ..Self::default() };
        if let Some(heaps) = heaps {
            heaps.slots.drain();
            heaps.free.drain().into_iter().for_each(|(_, handle)| all.push(pool, handle));
        }
        all
    }

    /// Departure of the first packet of the run.
    #[inline]
    fn next_listed(&self, heaps: &Heaps, pool: &Pool) -> u64 {
        match self.run.first() {
            None => u64::MAX,
            Some(first) if heaps.slots.is_empty() => pool.meta(first).leave(),
            Some(_) => heaps.slots.first(),
        }
    }

    #[inline(always)]
    fn append(&mut self, pool: &mut Pool, handle: Handle, leave: Nanos) {
        let meta = pool.meta_mut(handle);
        meta.set_leave(leave.0);
        self.packets += u32::from(meta.segments);
        pool.push(&mut self.run, handle);
    }
}
