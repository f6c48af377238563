//! Disciplines of a scheduler's classes.
//!
//! A class passes its packets to its own queue, made of the same rows as a link's. The queue counts the
//! class's backlog, and works in a context with the class's records; its drops and marks are counted for the
//! link.

use super::{Admission, Next, Queue, QueueContext, Waiting, WaitingList};
use crate::fifo::Fifo;
use longwire_block::{Dice, Spec, Values, Verdict};
use longwire_packet::{Handle, Pool};
use longwire_units::Nanos;

/// A class's discipline with parameters.
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

/// The parameter with classes, which a class's discipline can't have.
pub(super) const CLASSES: &str = "classes";

/// The rows of disciplines that a class can have: those without classes that always have a packet to send
/// while one waits.
pub(super) fn rows() -> impl Iterator<Item = &'static Spec> {
    Queue::SPECS.iter().copied().filter(|spec| spec.params[0].name != CLASSES)
}

/// A class's discipline.
///
/// A scheduler needs the size of a class's next packet. So the packet is taken out when the previous one
/// begins to be sent: a discipline that decides when sending decides at that time.
#[derive(Debug)]
pub(super) struct Leaf {
    queue: Queue,
    waiting: Waiting,
    books: WaitingList,
    /// The class's next packet; none if it is empty.
    next: Handle,
}

impl Leaf {
    pub(super) fn new(plan: &LeafPlan, dice: Dice) -> Option<Box<Self>> {
        let queue = Queue::build(plan.spec, &plan.values, || dice)?;
        Some(Box::new(Self {
            queue,
            waiting: Waiting::default(),
            books: WaitingList::default(),
            next: Handle::NONE,
        }))
    }

    /// Bytes of memory.
    pub(super) fn memory_bytes(&self) -> usize {
        size_of::<Self>() + self.queue.record_bytes() + self.queue.memory_bytes()
    }

    /// Asks the discipline about a packet, and adds or drops it. Returns whether it makes the class busy.
    pub(super) fn join(&mut self, context: &mut QueueContext<'_>, handle: Handle) -> bool {
        let meta = context.pool.meta(handle);
        let verdict = self.queue.admit(&Admission {
            now: context.now,
            bytes: meta.counted(),
            packets_waiting: u64::from(self.waiting.packets),
            bytes_waiting: self.waiting.bytes,
            rate: context.rate,
            idle_since: self.books.idle_since,
            packet: Some((&*context.pool, handle)),
            band: meta.band(),
        });
        match verdict {
            Verdict::Pass => {}
            Verdict::Mark => {
                context.mark(handle);
            }
            Verdict::Drop(reason) => {
                context.drop(handle, reason);
                return false;
            }
        }
        let was_empty = self.next.is_none();
        let Self { queue, waiting, books, next } = self;
        waiting.queue(context.pool.meta(handle));
        let mut context = context.of_class(waiting, books);
        queue.push(&mut context, handle);
        if was_empty {
            *next = chosen(queue, &mut context);
        }
        was_empty && !self.next.is_none()
    }

    /// Takes over packets that waited elsewhere.
    pub(super) fn adopt(&mut self, context: &mut QueueContext<'_>, packets: Fifo) {
        let Self { queue, waiting, books, next } = self;
        packets.iter(context.pool).for_each(|handle| waiting.queue(context.pool.meta(handle)));
        let mut context = context.of_class(waiting, books);
        queue.adopt(&mut context, packets);
        *next = chosen(queue, &mut context);
    }

    /// Bytes of its next packet, if it has one.
    pub(super) fn head(&self, pool: &Pool) -> Option<u64> {
        (!self.next.is_none()).then(|| pool.meta(self.next).counted())
    }

    /// Takes its next packet, which is still counted as waiting.
    pub(super) fn take(&mut self, context: &mut QueueContext<'_>) -> Option<Handle> {
        let taken = std::mem::replace(&mut self.next, Handle::NONE);
        if taken.is_none() {
            return None;
        }
        self.next = chosen(&mut self.queue, &mut context.of_class(&mut self.waiting, &mut self.books));
        Some(taken)
    }

    /// Records that these packets and bytes, taken last, were sent.
    pub(super) fn settle(&mut self, (packets, bytes): (u64, u64), now: Nanos) {
        self.waiting.packets -= packets as u32;
        self.waiting.bytes -= bytes;
        if self.waiting.packets == 0 {
            self.books.idle_since = now;
        }
    }

    /// Removes all its packets, in a possible order of transmission.
    pub(super) fn drain(&mut self, pool: &mut Pool) -> Fifo {
        let mut all = Fifo::EMPTY;
        let next = std::mem::replace(&mut self.next, Handle::NONE);
        if !next.is_none() {
            all.push(pool, next);
        }
        for list in [self.books.list.take(), self.queue.drain(pool)] {
            all.append(pool, list);
        }
        self.waiting = Waiting::default();
        all
    }
}

/// The discipline's next packet: none of these disciplines ever waits.
fn chosen(queue: &mut Queue, context: &mut QueueContext<'_>) -> Handle {
    match queue.pop(context) {
        Next::Packet(handle) => handle,
        Next::Later(_) | Next::Empty => Handle::NONE,
    }
}
