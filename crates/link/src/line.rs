//! The delay line: packets that travel, and when they leave.
//!
//! As long as packets leave in the order in which they were sent, at times that never go backwards, a list threaded through them
//! is all there is. Packets that overtake, and times that must be sorted, lie in agendas that few links have.

use crate::agenda::Agenda;
use crate::delay::Order;
use crate::fifo::Fifo;
use longwire_packet::{Handle, Meta, Pool};
use longwire_units::Nanos;

/// See the module.
#[derive(Debug)]
pub(crate) struct Line {
    /// When the next packet leaves; never if there is none.
    next: Nanos,
    fifo: Fifo,
    packets: u32,
    /// Whether the heaps hold anything.
    irregular: bool,
    /// Which of the things that few links have its link has: see `has.rs`. It stands here because there is room.
    pub features: u16,
}

/// What a delay line has besides if its packets overtake each other.
#[derive(Debug, Default)]
pub(crate) struct Heaps {
    /// The times at which packets of the list leave, if they are sorted apart from them: as many as it has packets.
    slots: Agenda<()>,
    /// No time of packets that are sorted comes before this: those sent before the last change of the delay leave by then.
    pub floor: Nanos,
    /// Packets that keep no place.
    free: Agenda<Handle>,
}

impl Default for Line {
    fn default() -> Self {
        Self { next: Nanos::NEVER, fifo: Fifo::EMPTY, packets: 0, irregular: false, features: 0 }
    }
}

impl Line {
    /// When the next packet leaves; never if there is none.
    #[inline]
    pub(crate) fn next(&self) -> Nanos {
        self.next
    }

    /// Packets on their way; segments of a train count one each.
    #[inline]
    pub(crate) fn packets(&self) -> u32 {
        self.packets
    }

    /// The first packet of those that keep their places.
    #[inline]
    pub(crate) fn first(&self) -> Option<Handle> {
        self.fifo.first()
    }

    /// When the last one of those leaves that keep their places; at zero if there is none.
    pub(crate) fn last_leaving(&self, pool: &Pool) -> Nanos {
        self.fifo.last().map_or(Nanos::ZERO, |last| Nanos(pool.meta(last).leave))
    }

    /// Adds a packet that keeps its place and leaves at `leave`, or after the one before it, which leaves at `last`.
    #[inline]
    pub(crate) fn join(&mut self, last: &mut Nanos, pool: &mut Pool, handle: Handle, leave: Nanos) {
        debug_assert!(!self.irregular);
        let leave = leave.max(*last);
        *last = leave;
        self.next = self.next.min(leave);
        self.append(pool, handle, leave);
    }

    /// Adds a packet that leaves at `leave`, and after all that are there; only when it is sent, others are held up by it.
    pub(crate) fn join_decided(&mut self, pool: &mut Pool, handle: Handle, leave: Nanos) {
        debug_assert!(!self.irregular);
        self.next = self.next.min(leave);
        self.append(pool, handle, leave);
    }

    /// The same for a single packet whose `Meta` is at hand. The one before it, if there is one: that it has a next one is still to be said there.
    #[inline(always)]
    pub(crate) fn join_plain(&mut self, meta: &mut Meta, handle: Handle, leave: Nanos) -> Option<Handle> {
        debug_assert!(!self.irregular && !meta.is_train());
        (meta.leave, meta.next) = (leave.0, Handle::NONE.0);
        self.packets += 1;
        let last = self.fifo.push_known(handle);
        if last.is_none() {
            self.next = leave;
        }
        last
    }

    /// Takes out a packet and all behind it.
    pub(crate) fn part_from(&mut self, pool: &mut Pool, first: Handle) -> Fifo {
        let parted = self.fifo.part_from(pool, first);
        self.packets -= parted.iter(pool).map(|handle| u32::from(pool.meta(handle).segments)).sum::<u32>();
        self.next = self.fifo.first().map_or(Nanos::NEVER, |first| Nanos(pool.meta(first).leave));
        parted
    }

    /// Adds a packet to a line that has agendas, or is to have them.
    #[inline(always)]
    pub(crate) fn join_heaps(
        &mut self,
        (heaps, last): (&mut Heaps, &mut Nanos),
        pool: &mut Pool,
        handle: Handle,
        (leave, order): (Nanos, Order),
    ) {
        if order == Order::Free {
            // It holds up nobody until another delay wants order again.
            *last = (*last).max(leave);
            return self.join_apart(heaps, pool, handle, leave);
        }
        if order == Order::InOrder || heaps.slots.is_empty() {
            return self.join_others((heaps, last), pool, handle, (leave, order));
        }
        // What happens all the time on a line whose times are sorted.
        let leave = leave.max(heaps.floor);
        heaps.slots.push(leave.0, ());
        *last = (*last).max(leave);
        self.next = self.next.min(leave);
        self.append(pool, handle, leave);
    }

    /// Adds the first packet whose time is sorted, or one that leaves in order behind such.
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
            // The times of those that joined in order are sorted already.
            self.fifo.iter(pool).for_each(|waiting| heaps.slots.push(pool.meta(waiting).leave, ()));
        }
        if order == Order::Sorted || !heaps.slots.is_empty() {
            self.irregular = true;
            heaps.slots.push(leave.0, ());
        }
        *last = (*last).max(leave);
        self.next = self.next.min(leave);
        self.append(pool, handle, leave);
    }

    /// Adds a packet that leaves at `leave` whatever the others do, nor do they mind it.
    #[inline(always)]
    pub(crate) fn join_apart(&mut self, heaps: &mut Heaps, pool: &mut Pool, handle: Handle, leave: Nanos) {
        self.irregular = true;
        self.packets += u32::from(pool.meta(handle).segments);
        pool.meta_mut(handle).leave = leave.0;
        heaps.free.push(leave.0, handle);
        self.next = self.next.min(leave);
    }

    /// Whether [`Line::join`] and [`Line::take`] will not do.
    #[inline]
    pub(crate) fn is_irregular(&self) -> bool {
        self.irregular
    }

    /// Takes the packet that leaves next, with `Meta::leave` set.
    #[inline]
    pub(crate) fn take<'p>(&mut self, pool: &'p Pool) -> Option<(Handle, &'p Meta)> {
        let (handle, meta) = self.take_plain(pool)?;
        self.count_taken(meta.segments.into());
        Some((handle, meta))
    }

    /// The same without counting: how many were taken is to be said later.
    #[inline(always)]
    pub(crate) fn take_plain<'p>(&mut self, pool: &'p Pool) -> Option<(Handle, &'p Meta)> {
        let (handle, meta) = self.fifo.pop_known(pool)?;
        self.next = match self.fifo.first() {
            Some(first) => {
                // It is in the cache since the last time; now the one behind it.
                let first = pool.meta(first);
                pool.prefetch(Handle(first.next));
                Nanos(first.leave)
            }
            None => Nanos::NEVER,
        };
        Some((handle, meta))
    }

    /// So many packets, segments of a train one each, were taken.
    #[inline(always)]
    pub(crate) fn count_taken(&mut self, packets: u32) {
        self.packets -= packets;
    }

    /// The same for a line with agendas.
    #[inline(always)]
    pub(crate) fn take_heaps(&mut self, heaps: &mut Heaps, pool: &mut Pool) -> Option<Handle> {
        if heaps.free.is_empty() {
            return self.take_listed(heaps, pool);
        }
        if !self.fifo.is_empty() && self.next_listed(heaps, pool) <= heaps.free.first() {
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

    /// Takes the first of those that keep their places, which leaves next.
    #[inline(always)]
    fn take_listed(&mut self, heaps: &mut Heaps, pool: &mut Pool) -> Option<Handle> {
        let handle = self.fifo.pop(pool)?;
        let meta = pool.meta_mut(handle);
        if let Some((leave, ())) = heaps.slots.pop() {
            meta.leave = leave;
        }
        self.packets -= u32::from(meta.segments);
        if let Some(first) = self.fifo.first() {
            pool.prefetch(Handle(pool.meta(first).next));
        }
        self.note_next(heaps, pool);
        Some(handle)
    }

    /// The same where there are also others.
    #[inline(never)]
    fn take_before_free(&mut self, heaps: &mut Heaps, pool: &mut Pool) -> Option<Handle> {
        self.take_listed(heaps, pool)
    }

    #[inline(always)]
    fn note_next(&mut self, heaps: &Heaps, pool: &Pool) {
        self.irregular = !heaps.slots.is_empty() || !heaps.free.is_empty();
        self.next = Nanos(self.next_listed(heaps, pool).min(heaps.free.first()));
    }

    /// Takes all packets out: a run ends.
    pub(crate) fn drain(&mut self, heaps: Option<&mut Heaps>, pool: &mut Pool) -> Fifo {
        let features = self.features;
        let mut all = std::mem::replace(self, Self { features, ..Self::default() }).fifo;
        if let Some(heaps) = heaps {
            heaps.slots.drain();
            heaps.free.drain().into_iter().for_each(|(_, handle)| all.push(pool, handle));
        }
        all
    }

    /// When the first packet of the list leaves.
    #[inline]
    fn next_listed(&self, heaps: &Heaps, pool: &Pool) -> u64 {
        match self.fifo.first() {
            None => u64::MAX,
            Some(first) if heaps.slots.is_empty() => pool.meta(first).leave,
            Some(_) => heaps.slots.first(),
        }
    }

    #[inline]
    fn append(&mut self, pool: &mut Pool, handle: Handle, leave: Nanos) {
        let meta = pool.meta_mut(handle);
        (meta.leave, meta.next) = (leave.0, Handle::NONE.0);
        self.packets += u32::from(meta.segments);
        self.fifo.push_last(pool, handle);
    }
}
