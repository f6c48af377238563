//! The delay line: packets that travel, and when they leave.
//!
//! As long as packets leave in the order in which they were sent, at times that never go backwards, a list threaded through them
//! is all there is. Packets that overtake, and times that must be sorted, lie in agendas that few links have.

use crate::agenda::Agenda;
use crate::delay::Order;
use crate::fifo::Fifo;
use longwire_packet::{Handle, Pool};
use longwire_units::Nanos;

/// See the module.
#[derive(Debug)]
pub(crate) struct Line {
    fifo: Fifo,
    packets: u32,
    /// Whether the heaps hold anything.
    irregular: bool,
    /// When the next packet leaves; never if there is none.
    next: Nanos,
    /// The latest time at which one leaves that keeps its place.
    last: Nanos,
}

/// What a delay line has besides if its packets overtake each other.
#[derive(Debug, Default)]
pub(crate) struct Heaps {
    /// The times at which packets of the list leave, if they are sorted apart from them: as many as it has packets.
    slots: Agenda<()>,
    /// No time of packets that are sorted comes before this: those sent before the last change of the delay leave by then.
    floor: Nanos,
    /// Packets that keep no place.
    free: Agenda<Handle>,
}

impl Default for Line {
    fn default() -> Self {
        Self { fifo: Fifo::EMPTY, packets: 0, irregular: false, next: Nanos::NEVER, last: Nanos::ZERO }
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

    /// Adds a packet that keeps its place and leaves at `leave`, or after the one before it.
    #[inline]
    pub(crate) fn join(&mut self, pool: &mut Pool, handle: Handle, leave: Nanos) {
        debug_assert!(!self.irregular);
        let leave = leave.max(self.last);
        self.last = leave;
        self.next = self.next.min(leave);
        self.append(pool, handle, leave);
    }

    /// Adds a packet to a line that has heaps, or is to have them.
    #[inline(never)]
    pub(crate) fn join_heaps(
        &mut self,
        heaps: &mut Heaps,
        pool: &mut Pool,
        handle: Handle,
        (leave, order): (Nanos, Order),
    ) {
        let leave = if order == Order::Sorted { leave.max(heaps.floor) } else { leave };
        if order == Order::Sorted && !heaps.slots.is_empty() {
            // What happens all the time on such a line; the rest is for its first packet, and for mixtures.
            heaps.slots.push(leave.0, ());
            self.last = self.last.max(leave);
            self.next = self.next.min(leave);
            return self.append(pool, handle, leave);
        }
        if order == Order::Free {
            // It holds up nobody until another delay wants order again.
            self.last = self.last.max(leave);
            return self.join_apart(heaps, pool, handle, leave);
        }
        let leave = if order == Order::InOrder { leave.max(self.last) } else { leave };
        if order == Order::Sorted && heaps.slots.is_empty() {
            // The times of those that joined in order are sorted already.
            self.fifo.iter(pool).for_each(|waiting| heaps.slots.push(pool.meta(waiting).leave, ()));
        }
        if order == Order::Sorted || !heaps.slots.is_empty() {
            self.irregular = true;
            heaps.slots.push(leave.0, ());
        }
        self.last = self.last.max(leave);
        self.next = self.next.min(leave);
        self.append(pool, handle, leave);
    }

    /// Adds a packet that leaves at `leave` whatever the others do, nor do they mind it.
    pub(crate) fn join_apart(&mut self, heaps: &mut Heaps, pool: &mut Pool, handle: Handle, leave: Nanos) {
        self.irregular = true;
        self.packets += u32::from(pool.meta(handle).segments);
        pool.meta_mut(handle).leave = leave.0;
        heaps.free.push(leave.0, handle);
        self.next = self.next.min(leave);
    }

    /// From now on packets that are sorted leave after all that are on their way.
    pub(crate) fn part(&self, heaps: &mut Heaps) {
        heaps.floor = self.last;
    }

    /// Whether [`Line::join`] and [`Line::take`] will not do.
    #[inline]
    pub(crate) fn is_irregular(&self) -> bool {
        self.irregular
    }

    /// Takes the packet that leaves next, with `Meta::leave` set.
    #[inline]
    pub(crate) fn take(&mut self, pool: &mut Pool) -> Option<Handle> {
        let handle = self.fifo.pop(pool)?;
        self.packets -= u32::from(pool.meta(handle).segments);
        self.next = match self.fifo.first() {
            Some(first) => Nanos(pool.meta(first).leave),
            None => Nanos::NEVER,
        };
        Some(handle)
    }

    /// The same for a line with heaps.
    #[inline(never)]
    pub(crate) fn take_heaps(&mut self, heaps: &mut Heaps, pool: &mut Pool) -> Option<Handle> {
        let listed = self.next_listed(heaps, pool);
        let free = heaps.free.first().unwrap_or(u64::MAX);
        let handle = if listed <= free && !self.fifo.is_empty() {
            heaps.slots.pop();
            let handle = self.fifo.pop(pool)?;
            pool.meta_mut(handle).leave = listed;
            handle
        } else {
            heaps.free.pop()?.1
        };
        if let Some(soon) = heaps.free.soon() {
            pool.prefetch(soon);
        }
        if let Some(first) = self.fifo.first() {
            pool.prefetch(first);
        }
        self.packets -= u32::from(pool.meta(handle).segments);
        self.irregular = !heaps.slots.is_empty() || !heaps.free.is_empty();
        let free = heaps.free.first().unwrap_or(u64::MAX);
        self.next = Nanos(self.next_listed(heaps, pool).min(free));
        Some(handle)
    }

    /// Takes all packets out: a run ends.
    pub(crate) fn drain(&mut self, heaps: Option<&mut Heaps>, pool: &mut Pool) -> Fifo {
        let mut all = std::mem::take(self).fifo;
        if let Some(heaps) = heaps {
            heaps.slots.drain();
            heaps.free.drain().into_iter().for_each(|(_, handle)| all.push(pool, handle));
        }
        all
    }

    /// When the first packet of the list leaves.
    fn next_listed(&self, heaps: &Heaps, pool: &Pool) -> u64 {
        match (heaps.slots.first(), self.fifo.first()) {
            (Some(slot), _) => slot,
            (None, Some(first)) => pool.meta(first).leave,
            (None, None) => u64::MAX,
        }
    }

    #[inline]
    fn append(&mut self, pool: &mut Pool, handle: Handle, leave: Nanos) {
        let meta = pool.meta_mut(handle);
        meta.leave = leave.0;
        self.packets += u32::from(meta.segments);
        self.fifo.push(pool, handle);
    }
}
