//! Disciplines of classes: what a class of a scheduler holds its packets by.
//!
//! A class gives its packets to a queue of its own, made of the same rows as a link's. It counts what waits in the class, and
//! works in a hall whose books are the class's; what it drops and marks counts as the link's.

use super::{Admission, Books, Hall, Next, Queue, Waiting};
use crate::fifo::Fifo;
use longwire_block::{Dice, Spec, Values, Verdict};
use longwire_packet::{Handle, Pool};
use longwire_units::Nanos;

/// A discipline and its parameters, as a class has them.
#[derive(Debug, Clone)]
pub(super) struct LeafPlan {
    pub spec: &'static Spec,
    pub values: Values,
}

impl PartialEq for LeafPlan {
    fn eq(&self, other: &Self) -> bool {
        self.spec.is(other.spec) && self.values == other.values
    }
}

impl Eq for LeafPlan {}

/// The parameter with classes: those of a class have none.
pub(super) const CLASSES: &str = "classes";

/// What became of a packet that came to a lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Joined {
    /// It found no room.
    Dropped,
    /// No other waits there.
    First,
    /// Others wait before it.
    Behind,
}

/// The rows of the disciplines that a class can have: those that need no classes of their own, which always have a packet to send
/// while one waits.
pub(super) fn rows() -> impl Iterator<Item = &'static Spec> {
    Queue::SPECS.iter().copied().filter(|spec| spec.params[0].name != CLASSES)
}

/// A class's discipline at work.
///
/// A scheduler has to know how long a class's next packet is. So it is taken when the one before it begins to be sent: that is when a
/// discipline that decides then decides about it.
#[derive(Debug)]
pub(super) struct Leaf {
    queue: Queue,
    waiting: Waiting,
    books: Books,
    /// The packet that the class sends next; none if it has none.
    next: Handle,
}

impl Leaf {
    pub(super) fn new(plan: &LeafPlan, dice: Dice) -> Option<Box<Self>> {
        let queue = Queue::build(plan.spec, &plan.values, || dice)?;
        Some(Box::new(Self {
            queue,
            waiting: Waiting::default(),
            books: Books::default(),
            next: Handle::NONE,
        }))
    }

    /// Bytes that it takes.
    pub(super) fn memory_bytes(&self) -> usize {
        size_of::<Self>() + self.queue.record_bytes() + self.queue.memory_bytes()
    }

    /// Asks the discipline to let a packet in, and adds it, or drops it.
    pub(super) fn join(&mut self, hall: &mut Hall<'_>, handle: Handle) -> Joined {
        let meta = hall.pool.meta(handle);
        let verdict = self.queue.admit(&Admission {
            now: hall.now,
            bytes: meta.counted(),
            packets_waiting: u64::from(self.waiting.packets),
            bytes_waiting: self.waiting.bytes,
            rate: hall.rate,
            idle_since: self.books.idle_since,
            packet: Some((&*hall.pool, handle)),
            band: meta.band(),
        });
        match verdict {
            Verdict::Pass => {}
            Verdict::Mark => {
                hall.mark(handle);
            }
            Verdict::Drop(reason) => {
                hall.drop(handle, reason);
                return Joined::Dropped;
            }
        }
        let was_empty = self.next.is_none();
        let Self { queue, waiting, books, next } = self;
        waiting.queue(hall.pool.meta(handle));
        let mut hall = hall.of_class(waiting, books);
        queue.push(&mut hall, handle);
        if was_empty {
            *next = chosen(queue, &mut hall);
        }
        match (was_empty, self.next.is_none()) {
            (_, true) => Joined::Dropped,
            (true, false) => Joined::First,
            (false, false) => Joined::Behind,
        }
    }

    /// Takes over packets that waited elsewhere.
    pub(super) fn adopt(&mut self, hall: &mut Hall<'_>, packets: Fifo) {
        let Self { queue, waiting, books, next } = self;
        packets.iter(hall.pool).for_each(|handle| waiting.queue(hall.pool.meta(handle)));
        let mut hall = hall.of_class(waiting, books);
        queue.adopt(&mut hall, packets);
        *next = chosen(queue, &mut hall);
    }

    /// Bytes of the packet that it sends next, if it has one.
    pub(super) fn head(&self, pool: &Pool) -> Option<u64> {
        (!self.next.is_none()).then(|| pool.meta(self.next).counted())
    }

    /// Takes the packet that it sends next. It goes on counting as waiting.
    pub(super) fn take(&mut self, hall: &mut Hall<'_>) -> Option<Handle> {
        let taken = std::mem::replace(&mut self.next, Handle::NONE);
        if taken.is_none() {
            return None;
        }
        self.next = chosen(&mut self.queue, &mut hall.of_class(&mut self.waiting, &mut self.books));
        Some(taken)
    }

    /// What was taken last has been sent: so many packets and bytes.
    pub(super) fn settle(&mut self, (packets, bytes): (u64, u64), now: Nanos) {
        self.waiting.packets -= packets as u32;
        self.waiting.bytes -= bytes;
        if self.waiting.packets == 0 {
            self.books.idle_since = now;
        }
    }

    /// All its packets, in an order in which they could be sent.
    pub(super) fn drain(&mut self, pool: &mut Pool) -> Fifo {
        let mut all = Fifo::EMPTY;
        let next = std::mem::replace(&mut self.next, Handle::NONE);
        if !next.is_none() {
            all.push(pool, next);
        }
        for mut list in [self.books.list.take(), self.queue.drain(pool)] {
            while let Some(handle) = list.pop(pool) {
                all.push(pool, handle);
            }
        }
        self.waiting = Waiting::default();
        all
    }
}

/// What a discipline lets go of next: none of them ever waits.
fn chosen(queue: &mut Queue, hall: &mut Hall<'_>) -> Handle {
    match queue.pop(hall) {
        Next::Packet(handle) => handle,
        Next::Later(_) | Next::Empty => Handle::NONE,
    }
}
