//! What a queue works in: the pool, the time, and the link's books.

use crate::fifo::Fifo;
use crate::rare::Rare;
use longwire_block::DropReason;
use longwire_packet::{Handle, Meta, Pool};
use longwire_units::{Nanos, Rate};

/// How much waits for the transmitter, the packet being sent included. Segments of a train count one each.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[repr(C, packed(4))]
pub struct Waiting {
    pub(crate) packets: u32,
    /// Their bytes, as the rate counts them.
    pub(crate) bytes: u64,
}

/// Where packets wait, and what few links count.
#[derive(Debug, Default)]
pub struct Books {
    /// Packets that wait in a list, where the discipline has none of its own.
    pub(crate) list: Fifo,
    /// When the transmitter had nothing more to send the last time.
    pub(crate) idle_since: Nanos,
    /// Made when it is first needed: most of a million links never do.
    pub(crate) rare: Option<Box<Rare>>,
}

impl Waiting {
    /// Counts a packet as waiting.
    #[inline]
    pub(crate) fn queue(&mut self, meta: &Meta) {
        self.packets += u32::from(meta.segments);
        self.bytes += meta.counted();
    }

    /// Counts a packet as waiting no longer.
    #[inline]
    pub(crate) fn unqueue(&mut self, meta: &Meta) {
        self.packets -= u32::from(meta.segments);
        self.bytes -= meta.counted();
    }
}

impl Books {
    #[inline]
    pub(crate) fn rare(&mut self) -> &mut Rare {
        /// Out of the way of those that have it.
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

    /// A background packet waits no longer.
    #[inline(never)]
    pub(crate) fn unqueue_phantom(&mut self) {
        self.rare().phantoms -= 1;
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
    pub(crate) waiting: &'a mut Waiting,
    pub(crate) books: &'a mut Books,
    /// The link's, if these are those of a class of its queue.
    pub(crate) link: Option<(&'a mut Waiting, &'a mut Books)>,
}

impl Hall<'_> {
    /// The same once more, for what is seldom called: what only looks into this one can then keep it in
    /// registers.
    #[inline(always)]
    pub(crate) fn again(&mut self) -> Hall<'_> {
        let Self { now, rate, .. } = *self;
        let link = self.link.as_mut().map(|(waiting, books)| (&mut **waiting, &mut **books));
        Hall { pool: &mut *self.pool, now, rate, waiting: &mut *self.waiting, books: &mut *self.books, link }
    }

    /// The same for the discipline of a class, whose books these are.
    pub(crate) fn of_class<'a>(&'a mut self, waiting: &'a mut Waiting, books: &'a mut Books) -> Hall<'a> {
        let Self { now, rate, .. } = *self;
        let link = Some((&mut *self.waiting, &mut *self.books));
        Hall { pool: &mut *self.pool, now, rate, waiting, books, link }
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
        self.pool.free(handle);
    }

    /// Marks a packet as having met congestion. Whether it could be: else it is for the discipline to drop it.
    pub fn mark(&mut self, handle: Handle) -> bool {
        let marked = longwire_wire::mark_ce(self.pool.data_mut(handle));
        if marked {
            let books = self.link.as_mut().map_or(&mut *self.books, |(_, books)| books);
            books.rare().marked += u64::from(self.pool.meta(handle).segments);
        }
        marked
    }

    /// Packets in the queue, the one being sent included.
    #[inline]
    pub fn packets_waiting(&self) -> u64 {
        u64::from(self.waiting.packets)
    }

    /// Their bytes, as the link's rate counts them.
    #[inline]
    pub fn bytes_waiting(&self) -> u64 {
        self.waiting.bytes
    }

    /// Packets and bytes in the queue but for one of them, as before it came.
    #[inline]
    pub(crate) fn waiting_without(&self, handle: Handle) -> (u64, u64) {
        let meta = self.pool.meta(handle);
        (self.packets_waiting() - u64::from(meta.segments), self.bytes_waiting() - meta.counted())
    }
}
