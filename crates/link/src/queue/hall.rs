//! What a queue works in: the pool, the time, and the link's books.

use crate::counters::Counters;
use crate::fifo::Fifo;
use longwire_block::DropReason;
use longwire_packet::{Handle, Meta, Pool};
use longwire_units::{Nanos, Rate};

/// What a link counts, and what waits in it. What is needed when packets leave stands first.
#[derive(Debug, Default)]
#[repr(C)]
pub struct Books {
    /// Bytes of the packets that wait, as the rate counts them.
    pub(crate) queued_bytes: u64,
    /// When the transmitter had nothing more to send the last time.
    pub(crate) idle_since: Nanos,
    /// Packets that wait, the one being sent included.
    pub(crate) queued_packets: u32,
    /// Packets that left later than the run calls faithful. It stands here because there is room.
    pub(crate) late: u32,
    pub(crate) counters: Counters,
    /// Packets that wait in a list, where the discipline has none of its own.
    pub(crate) list: Fifo,
}

impl Books {
    /// Bytes of what is needed when packets leave.
    pub(crate) const LEAVING: usize =
        std::mem::offset_of!(Self, counters) + std::mem::offset_of!(Counters, in_bytes);

    /// Counts a packet as waiting.
    #[inline]
    pub(crate) fn queue(&mut self, meta: &Meta) {
        self.queued_packets += u32::from(meta.segments);
        self.queued_bytes += meta.counted();
    }

    /// Counts a packet as waiting no longer where it waited in a part of the link's queue.
    #[inline]
    pub(crate) fn unqueue_part(&mut self, meta: &Meta) {
        self.queued_packets -= u32::from(meta.segments);
        self.queued_bytes -= meta.counted();
    }

    /// Counts a packet as waiting no longer.
    #[inline]
    pub(crate) fn unqueue(&mut self, meta: &Meta) {
        self.unqueue_part(meta);
        if meta.flags & Meta::PHANTOM != 0 {
            self.unqueue_phantom();
        }
    }
}

/// See the module.
pub struct Hall<'a> {
    /// Where the packets are.
    pub pool: &'a mut Pool,
    /// The time.
    pub now: Nanos,
    /// The rate at which the queue is expected to empty.
    pub rate: Rate,
    pub(crate) books: &'a mut Books,
    /// The link's books, if `books` are those of a class of its queue.
    pub(crate) link: Option<&'a mut Books>,
}

impl Books {
    #[inline(never)]
    fn unqueue_phantom(&mut self) {
        self.counters.rare().phantoms -= 1;
    }
}

impl Hall<'_> {
    /// The same for the discipline of a class, whose books these are.
    pub(crate) fn of_class<'a>(&'a mut self, books: &'a mut Books) -> Hall<'a> {
        let Self { now, rate, .. } = *self;
        Hall { pool: &mut *self.pool, now, rate, books, link: Some(&mut *self.books) }
    }

    /// Adds a packet at the end of the link's list.
    #[inline]
    pub fn append(&mut self, handle: Handle) {
        self.books.list.push(self.pool, handle);
    }

    /// Takes the first packet off the link's list.
    #[inline]
    pub fn first(&mut self) -> Option<Handle> {
        self.books.list.pop(self.pool)
    }

    /// Drops a packet that has joined the queue and has been taken out of it.
    #[inline]
    pub fn drop(&mut self, handle: Handle, reason: DropReason) {
        let meta = self.pool.meta(handle);
        let books = match &mut self.link {
            Some(link) => {
                self.books.unqueue_part(meta);
                link
            }
            None => &mut *self.books,
        };
        books.unqueue(meta);
        books.counters.drop(reason, u64::from(meta.segments));
        self.pool.free(handle);
    }

    /// Marks a packet as having met congestion. Whether it could be: else it is for the discipline to drop it.
    pub fn mark(&mut self, handle: Handle) -> bool {
        let marked = longwire_wire::mark_ce(self.pool.data_mut(handle));
        if marked {
            let books = self.link.as_deref_mut().unwrap_or(self.books);
            books.counters.rare().marked += u64::from(self.pool.meta(handle).segments);
        }
        marked
    }

    /// Packets in the queue, the one being sent included.
    #[inline]
    pub fn packets_waiting(&self) -> u64 {
        self.books.queued_packets.into()
    }

    /// Their bytes, as the link's rate counts them.
    #[inline]
    pub fn bytes_waiting(&self) -> u64 {
        self.books.queued_bytes
    }

    /// Packets and bytes in the queue but for one of them, as before it came.
    #[inline]
    pub(crate) fn waiting_without(&self, handle: Handle) -> (u64, u64) {
        let meta = self.pool.meta(handle);
        (self.packets_waiting() - u64::from(meta.segments), self.bytes_waiting() - meta.counted())
    }
}
