//! What a link has whose delay comes before the queue, or came.

use crate::delay::{Delay, Order};
use crate::line::{Heaps, Line};
use longwire_packet::{Handle, Pool};
use longwire_units::Nanos;

/// What a link has whose delay comes before the queue, or came.
#[derive(Debug)]
pub(crate) struct Front {
    /// The link's delay, if it comes before the queue, else none; what comes behind the queue is the other of the two.
    pub delay: Delay,
    /// Whether it is the link's.
    pub holds: bool,
    pub line: Line,
    /// When the last of those comes to the queue that keep their places, or has come.
    pub last: Nanos,
    pub heaps: Heaps,
}

impl Front {
    /// When the last of those comes to the queue that keep their places, or has come.
    pub(crate) fn last(&self) -> Nanos {
        self.last
    }

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
