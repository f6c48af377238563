//! CoDel: drops packets after delays above the target for too long.

use super::codel_law::{Codel as Law, Terms};
use super::counted::CountedFifo;
use super::settings::{ECN, LIMIT, Limit};
use super::{Admission, Ahead, Discipline, Foresight, Next, QueueContext};
use crate::fifo::Fifo;
use longwire_block::{Block, Dice, DropReason, Fallback, Param, ParamKind, Verdict};
use longwire_packet::{Handle, Pool};
use longwire_settings::Settings;
use longwire_units::{Nanos, Rate};

/// The parameter `target` of CoDel.
pub(super) const TARGET: Param = Param {
    name: "target",
    kind: ParamKind::Time { min: Nanos::ZERO, max: Nanos::from_secs(10) },
    default: Fallback::Value("5 ms"),
    help: "waiting time below which the queue is held, up to 10 s; at least the transmission time of one \
        packet",
    live: true,
};

/// The parameter `interval` of CoDel.
pub(super) const INTERVAL: Param = Param {
    name: "interval",
    kind: ParamKind::Time { min: Nanos::ZERO, max: Nanos::from_secs(100) },
    default: Fallback::Value("100 ms"),
    help: "how long the wait may exceed the target before a packet is dropped: a typical round-trip \
        time, up to 100 s",
    live: true,
};

/// A first-in-first-out queue under CoDel.
///
/// A packet waits from its arrival until the transmitter takes it. A queue with no more waiting than the
/// longest packet so far is not controlled. The RFC (section 5.3) uses the interface's MTU there, which a
/// link does not have.
#[derive(Debug, Default)]
pub struct Codel {
    law: Law,
    terms: Terms,
    /// The packets behind the one taken last.
    queue: CountedFifo,
    limit: Limit,
}

/// Controlled delay: drops at the head when the waiting time has been too high for too long.
#[derive(Debug, Settings)]
#[settings(key = "queue", kind = "codel", source = "RFC 8289", live)]
pub struct CodelSettings {
    #[setting(like = LIMIT)]
    limit: Limit,
    #[setting(like = TARGET)]
    target: Nanos,
    #[setting(like = INTERVAL)]
    interval: Nanos,
    #[setting(like = ECN)]
    ecn: bool,
}

impl Block for Codel {
    type Settings = CodelSettings;

    fn build(settings: CodelSettings, _: Dice) -> Self {
        Self::default().with(settings)
    }

    /// Applies new parameters; a dropping state continues.
    fn change(&mut self, settings: CodelSettings) {
        self.limit = settings.limit;
        self.terms.target = settings.target;
        self.terms.interval = settings.interval;
        self.terms.marks = settings.ecn;
    }
}

impl Discipline for Codel {
    #[inline]
    fn admit(&mut self, packet: &Admission<'_>) -> Verdict {
        self.terms.longest = self.terms.longest.max(packet.bytes);
        if self.limit.has_room(packet) { Verdict::Pass } else { Verdict::Drop(DropReason::QueueFull) }
    }

    #[inline]
    fn foresees(&self) -> bool {
        true
    }

    /// A packet that waits for less than the target is passed, whatever comes until then. Until the first one
    /// that waits for longer there is no dropping state: the queue was empty when the link began to decide,
    /// which ended it.
    #[inline]
    fn foresee(&mut self, packet: &Ahead<'_>, rate: impl FnOnce() -> Rate) -> Foresight {
        self.terms.longest = self.terms.longest.max(packet.bytes);
        if packet.waits_for(self.terms.target) {
            return Foresight::Waits;
        }
        if self.limit.surely_allows(packet, rate) { Foresight::Passes } else { Foresight::Counts }
    }

    fn take_back(&mut self, pool: &mut Pool, _: Handle, mut waiting: Fifo) -> Fifo {
        while let Some(handle) = waiting.pop(pool) {
            self.queue.push(pool, handle);
        }
        Fifo::EMPTY
    }

    #[inline]
    fn push(&mut self, context: &mut QueueContext<'_>, handle: Handle) {
        self.queue.push(context.pool, handle);
    }

    /// Packets keep their waiting times. A dropping state begins an interval from now at the earliest.
    fn adopt(&mut self, context: &mut QueueContext<'_>, mut waiting: Fifo) {
        while let Some(handle) = waiting.pop(context.pool) {
            self.terms.longest = self.terms.longest.max(context.pool.meta(handle).counted());
            self.push(context, handle);
        }
    }

    #[inline(always)]
    fn pop(&mut self, context: &mut QueueContext<'_>) -> Next {
        self.law.dequeue(&self.terms, context, &mut self.queue).map_or(Next::Empty, Next::Packet)
    }

    fn drain(&mut self, _: &mut Pool) -> Fifo {
        std::mem::take(&mut self.queue).fifo
    }

    /// A packet that finds the transmitter idle has not waited, and the last check of the empty queue ended
    /// any dropping state.
    #[inline]
    fn direct(&self) -> bool {
        true
    }
}
