//! State of a link whose delay comes, or came, before the queue.

use crate::delay::{Delay, Order};
use crate::line::{Heaps, Line};
use longwire_packet::{Handle, Pool};
use longwire_units::Nanos;

/// State of a link whose delay comes, or came, before the queue.
#[derive(Debug)]
pub(crate) struct Front {
    /// The link's delay, if it comes before the queue, else none; the other of the two comes after the queue.
    pub delay: Delay,
    /// Whether `delay` is the link's own.
    pub holds: bool,
    pub line: Line,
    /// Arrival at the queue of the last packet in order.
    pub last: Nanos,
    pub heaps: Heaps,
}

impl Front {
    pub(crate) fn join(&mut self, pool: &mut Pool, handle: Handle, now: Nanos) {
        let (leave, order) = (now + self.delay.travel(now), self.delay.order());
        if order == Order::InOrder && !self.line.is_irregular() {
            return self.line.join(&mut self.last, pool, handle, leave);
        }
        self.line.join_heaps((&mut self.heaps, &mut self.last), pool, handle, (leave, order));
    }

    pub(crate) fn take(&mut self, pool: &mut Pool) -> Option<Handle> {
        if self.line.is_irregular() {
            self.line.take_heaps(&mut self.heaps, pool)
        } else {
            self.line.take(pool)
        }
    }
}
