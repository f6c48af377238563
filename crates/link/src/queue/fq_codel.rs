//! FQ-CoDel: every flow has its own queue under CoDel, and the queues take turns.

use super::codel::{INTERVAL, TARGET};
use super::codel_law::{Codel, Terms};
use super::fair::Flows;
use super::settings::{ECN, FLOWS, LIMIT, Limit, QUANTUM};
use super::{Admission, Ahead, Discipline, Foresight, Meeting, Next, QueueContext};
use crate::fifo::Fifo;
use longwire_block::{Block, Dice, Fallback, Param, ParamKind, Verdict};
use longwire_packet::{Handle, Pool};
use longwire_settings::Settings;
use longwire_units::{Bytes, Nanos, Rate};

/// The parameter `memory` of disciplines with flow queues.
pub(super) const MEMORY: Param = Param {
    name: "memory",
    kind: ParamKind::Size { min: Bytes(0), max: Bytes(1 << 40) },
    default: Fallback::Value("32 MB"),
    help: "bytes that may wait, up to 1 TiB; beyond that, the flow with the most loses packets",
    live: true,
};

/// Fair queueing with CoDel on every flow.
///
/// Every arrival joins. If the queue exceeds `limit` or `memory`, the flow with most bytes loses packets from
/// its head, half of its bytes (as in Linux; the RFC has half of its packets) but at most 64 packets; after a
/// limit was lowered, an arrival drops no more than it adds. CoDel does not control a flow's queue with no
/// more waiting than the longest packet so far. About 64 bytes for each flow are allocated with the link.
#[derive(Debug)]
pub struct FqCodel {
    flows: Flows<Codel>,
    terms: Terms,
    meeting: Meeting,
}

/// Flows take turns, new ones first; CoDel on each of them.
#[derive(Debug, Settings)]
#[settings(key = "queue", kind = "fq-codel", source = "RFC 8290", live)]
pub struct FqCodelSettings {
    #[setting(like = LIMIT, default = "10240 packets")]
    limit: Limit,
    #[setting(like = FLOWS)]
    flows: u64,
    #[setting(like = QUANTUM)]
    quantum: Bytes,
    #[setting(like = MEMORY)]
    memory: Bytes,
    #[setting(like = TARGET)]
    target: Nanos,
    #[setting(like = INTERVAL)]
    interval: Nanos,
    #[setting(like = ECN, default = "yes")]
    ecn: bool,
}

impl Block for FqCodel {
    type Settings = FqCodelSettings;

    fn build(settings: FqCodelSettings, dice: Dice) -> Self {
        Self { flows: Flows::new(dice), terms: Terms::default(), meeting: Meeting::default() }.with(settings)
    }

    /// Applies new parameters. With another number of flows, they and their dropping states start fresh.
    fn change(&mut self, settings: FqCodelSettings) {
        self.flows.set(settings.flows, settings.quantum.0);
        (self.flows.limit, self.flows.memory) = (settings.limit, settings.memory.0);
        self.terms.target = settings.target;
        self.terms.interval = settings.interval;
        self.terms.marks = settings.ecn;
    }
}

impl Discipline for FqCodel {
    #[inline]
    fn admit(&mut self, packet: &Admission<'_>) -> Verdict {
        self.terms.longest = self.terms.longest.max(packet.bytes);
        Verdict::Pass
    }

    #[inline]
    fn foresees(&self) -> bool {
        true
    }

    #[inline]
    fn begins_to_decide(&mut self) -> bool {
        self.meeting.is_over()
    }

    /// While one flow waits, it is served like CoDel's queue.
    #[inline(always)]
    fn foresee(&mut self, packet: &Ahead<'_>, rate: impl FnOnce() -> Rate) -> Foresight {
        self.terms.longest = self.terms.longest.max(packet.bytes);
        if !self.flows.is_alone(packet) {
            self.meeting.begin();
            return Foresight::Waits;
        }
        if packet.waits_for(self.terms.target)
            || packet.waiting.bytes + packet.bytes > self.flows.memory
            || !self.flows.limit.surely_allows(packet, rate)
        {
            return Foresight::Waits;
        }
        self.flows.join_alone(packet);
        Foresight::Passes
    }

    fn take_back(&mut self, pool: &mut Pool, sending: Handle, waiting: Fifo) -> Fifo {
        self.flows.take_back(pool, sending, waiting);
        Fifo::EMPTY
    }

    #[inline]
    fn push(&mut self, context: &mut QueueContext<'_>, handle: Handle) {
        let flow = self.flows.find(context.pool.data(handle));
        self.flows.join(context, flow, handle);
    }

    /// As in CoDel.
    fn adopt(&mut self, context: &mut QueueContext<'_>, mut waiting: Fifo) {
        while let Some(handle) = waiting.pop(context.pool) {
            self.terms.longest = self.terms.longest.max(context.pool.meta(handle).counted());
            let flow = self.flows.find(context.pool.data(handle));
            self.flows.push(context.pool, flow, handle);
        }
    }

    fn resettle(&mut self, context: &mut QueueContext<'_>) {
        if self.flows.is_stale() {
            let waiting = self.flows.drain(context.pool);
            self.adopt(context, waiting);
        }
    }

    #[inline]
    fn pop(&mut self, context: &mut QueueContext<'_>) -> Next {
        let settings = &self.terms;
        let taken = self.flows.pop(|flow| {
            let handle = flow.state.dequeue(settings, context, &mut flow.packets)?;
            Some((handle, context.pool.meta(handle).counted()))
        });
        taken.map_or(Next::Empty, Next::Packet)
    }

    fn drain(&mut self, pool: &mut Pool) -> Fifo {
        self.flows.drain(pool)
    }

    fn memory_bytes(&self) -> usize {
        self.flows.memory_bytes()
    }
}
