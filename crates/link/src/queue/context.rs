//! The context of a queue: the pool, the time, and the link's records.

use crate::events::{report_drop, report_mark};
use crate::fifo::Fifo;
use crate::rare::Rare;
use longwire_block::DropReason;
use longwire_packet::{Handle, Meta, Pool};
use longwire_units::{Nanos, Rate};

/// Backlog for the transmitter, the packet being sent included. Each segment of a train is counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[repr(C, packed(4))]
pub struct Waiting {
    pub(crate) packets: u32,
    /// Their bytes, as counted by the rate.
    pub(crate) bytes: u64,
}

/// The list of waiting packets, and rare counters.
#[derive(Debug, Default)]
pub struct WaitingList {
    /// Waiting packets, if the discipline has no list of its own.
    pub(crate) list: Fifo,
    /// Time at which the transmitter last became idle.
    pub(crate) idle_since: Nanos,
    /// The time from which on the discipline of a decided link must be informed of packets that are sent.
    pub(crate) due: Nanos,
    /// Allocated when first needed, which is rare among a million links.
    pub(crate) rare: Option<Box<Rare>>,
}

impl Waiting {
    /// Counts a packet as waiting.
    #[inline]
    pub(crate) fn queue(&mut self, meta: &Meta) {
        self.packets += u32::from(meta.segments);
        self.bytes += meta.counted();
    }

    /// Stops counting a packet as waiting.
    #[inline]
    pub(crate) fn unqueue(&mut self, meta: &Meta) {
        self.packets -= u32::from(meta.segments);
        self.bytes -= meta.counted();
    }
}

impl WaitingList {
    #[inline]
    pub(crate) fn rare(&mut self) -> &mut Rare {
        /// Kept out of line, for links that have it already.
        #[cold]
        #[inline(never)]
        fn make(rare: &mut Option<Box<Rare>>) -> &mut Rare {
            rare.insert(Box::default())
        }
        match &mut self.rare {
            Some(rare) => rare,
            none => make(none),
        }
    }

    /// Counts dropped packets.
    #[inline(never)]
    pub(crate) fn drop(&mut self, reason: DropReason, packets: u64) {
        self.rare().drops[reason as usize] += packets;
    }

    /// Stops counting a background packet as waiting.
    #[inline(never)]
    pub(crate) fn unqueue_phantom(&mut self) {
        self.rare().phantoms -= 1;
    }
}

/// See the module.
pub struct QueueContext<'a> {
    /// The pool of the packets.
    pub pool: &'a mut Pool,
    /// The time.
    pub now: Nanos,
    /// The expected departure rate of the queue.
    pub rate: Rate,
    pub(crate) waiting: &'a mut Waiting,
    pub(crate) books: &'a mut WaitingList,
    /// The link's records, if these are those of a class of its queue.
    pub(crate) link: Option<(&'a mut Waiting, &'a mut WaitingList)>,
}

impl QueueContext<'_> {
    /// A copy for rare calls, so that the original can be kept in registers.
    #[inline(always)]
    pub(crate) fn again(&mut self) -> QueueContext<'_> {
        let Self { now, rate, .. } = *self;
        let link = self.link.as_mut().map(|(waiting, books)| (&mut **waiting, &mut **books));
        QueueContext {
            pool: &mut *self.pool,
            now,
            rate,
            waiting: &mut *self.waiting,
            books: &mut *self.books,
            link,
        }
    }

    /// A context for the discipline of a class, with these records.
    pub(crate) fn of_class<'a>(
        &'a mut self,
        waiting: &'a mut Waiting,
        books: &'a mut WaitingList,
    ) -> QueueContext<'a> {
        let Self { now, rate, .. } = *self;
        let link = Some((&mut *self.waiting, &mut *self.books));
        QueueContext { pool: &mut *self.pool, now, rate, waiting, books, link }
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
        self.waiting.unqueue(meta);
        let books = match &mut self.link {
            Some((waiting, books)) => {
                waiting.unqueue(meta);
                books
            }
            None => &mut *self.books,
        };
        if meta.flags & Meta::PHANTOM != 0 {
            books.unqueue_phantom();
        }
        books.drop(reason, u64::from(meta.segments));
        report_drop(self.pool, handle, self.now, reason);
        self.pool.free(handle);
    }

    /// Sets CE on a packet. Returns false if it is not ECN-capable, so that the discipline must drop it.
    pub fn mark(&mut self, handle: Handle) -> bool {
        let marked = longwire_wire::mark_ce(self.pool.data_mut(handle));
        if marked {
            let books = self.link.as_mut().map_or(&mut *self.books, |(_, books)| books);
            books.rare().marked += u64::from(self.pool.meta(handle).segments);
            report_mark(self.pool, handle, self.now);
        }
        marked
    }

    /// Packets in the queue, the one being sent included.
    #[inline]
    pub fn packets_waiting(&self) -> u64 {
        u64::from(self.waiting.packets)
    }

    /// Their bytes, as counted by the link's rate.
    #[inline]
    pub fn bytes_waiting(&self) -> u64 {
        self.waiting.bytes
    }

    /// Packets and bytes in the queue without one of them, as before its arrival.
    #[inline]
    pub(crate) fn waiting_without(&self, handle: Handle) -> (u64, u64) {
        let meta = self.pool.meta(handle);
        (self.packets_waiting() - u64::from(meta.segments), self.bytes_waiting() - meta.counted())
    }
}
