//! First in, first out; the oldest packets are dropped to make room for arrivals.

use super::settings::{LIMIT, Limit};
use super::{Admission, Discipline, QueueContext};
use crate::fifo::Fifo;
use longwire_block::{DropReason, Stateless, Verdict};
use longwire_packet::Handle;
use longwire_settings::Settings;

/// First in, first out; drops the oldest packet to make room for arrivals.
///
/// An arrival that exceeds the limit joins, and packets are dropped from the head until the limit holds; the
/// packet being sent stays. Senders notice the loss earlier than with tail drop, by the queueing delay. After
/// the limit was lowered, an arrival drops no more than it adds.
#[derive(Debug, Settings)]
#[settings(
    key = "queue",
    kind = "head-drop",
    source = "Lakshman, Neidhardt & Ott, The drop from front strategy in TCP and in TCP over ATM, INFOCOM \
        1996",
    live
)]
pub struct HeadDrop {
    #[setting(like = LIMIT)]
    limit: Limit,
}

impl Stateless for HeadDrop {}

impl Discipline for HeadDrop {
    /// Drops only packets that would not fit into an empty queue.
    #[inline]
    fn admit(&mut self, packet: &Admission<'_>) -> Verdict {
        let alone = Admission { packets_waiting: 0, bytes_waiting: 0, ..*packet };
        if self.limit.has_room(&alone) { Verdict::Pass } else { Verdict::Drop(DropReason::QueueFull) }
    }

    #[inline]
    fn push(&mut self, context: &mut QueueContext<'_>, handle: Handle) {
        let before = context.waiting_without(handle);
        context.append(handle);
        while self.limit.is_overrun(context, before)
            && let Some(oldest) = context.first()
        {
            context.drop(oldest, DropReason::QueueFull);
        }
    }

    fn adopt(&mut self, context: &mut QueueContext<'_>, waiting: Fifo) {
        context.books.list.append(context.pool, waiting);
    }

    #[inline]
    fn direct(&self) -> bool {
        true
    }
}
