//! FQ-PIE: every flow has its own queue under PIE, and the queues take turns.

use super::fair::Flows;
use super::fq_codel::MEMORY;
use super::pie::{ALPHA, BETA, BURST, TARGET, UPDATE};
use super::pie_law::{Gains, Pie, Terms};
use super::settings::{ECN, FLOWS, LIMIT, Limit, QUANTUM, signal};
use super::{Admission, Discipline, Next, QueueContext};
use crate::fifo::Fifo;
use longwire_block::{Block, Dice, Verdict};
use longwire_packet::{Handle, Pool};
use longwire_settings::{Millionths, Settings};
use longwire_units::{Bytes, Nanos};

/// Fair queueing with PIE on every flow.
///
/// The delay of a flow is that of the packet it sent last, and zero when it is empty, because its share of
/// the rate is unknown. Each flow has its own updates, executed when it sends or receives. Limits as in
/// FQ-CoDel.
#[derive(Debug)]
pub struct FqPie {
    flows: Flows<FlowState>,
    /// The flow of the last packet, or segment, that asked for admission, until it joins.
    admitted: Option<usize>,
    terms: Terms,
    marks: bool,
    dice: Dice,
}

/// State of a flow.
#[derive(Debug, Default)]
struct FlowState {
    law: Pie,
    /// Delay of its packets, in ns.
    waits: u64,
}

/// Flows take turns, new ones first; PIE on each of them.
#[derive(Debug, Settings)]
#[settings(key = "queue", kind = "fq-pie", source = "RFC 8033; RFC 8290, section 4", live)]
pub struct FqPieSettings {
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
    #[setting(like = UPDATE)]
    update: Nanos,
    #[setting(like = BURST)]
    burst: Nanos,
    #[setting(like = ALPHA)]
    alpha: Millionths,
    #[setting(like = BETA)]
    beta: Millionths,
    #[setting(like = ECN)]
    ecn: bool,
}

impl Block for FqPie {
    type Settings = FqPieSettings;

    fn build(settings: FqPieSettings, mut dice: Dice) -> Self {
        let flows = Flows::new(Dice::seeded(dice.draw()));
        Self { flows, admitted: None, terms: Terms::default(), marks: false, dice }.with(settings)
    }

    /// Applies new parameters. With another number of flows, they and their probabilities start fresh.
    fn change(&mut self, settings: FqPieSettings) {
        self.flows.set(settings.flows, settings.quantum.0);
        (self.flows.limit, self.flows.memory) = (settings.limit, settings.memory.0);
        let gains = Gains::new(settings.target, settings.update, settings.alpha, settings.beta);
        self.terms = Terms { gains, burst: settings.burst };
        self.marks = settings.ecn;
    }
}

impl Discipline for FqPie {
    #[inline]
    fn admit(&mut self, packet: &Admission<'_>) -> Verdict {
        let number = self.flows.find(packet.frame());
        self.admitted = Some(number);
        let flow = self.flows.flow(number);
        let backlog = flow.packets.bytes;
        let FlowState { law, waits } = &mut flow.state;
        if backlog == 0 {
            // Its last packet may have been dropped to make room.
            *waits = 0;
        }
        law.catch_up(&self.terms, packet.now, || *waits);
        if law.chooses(&self.terms, backlog, &mut self.dice) {
            return signal(self.marks && law.may_mark(), packet);
        }
        Verdict::Pass
    }

    #[inline]
    fn push(&mut self, context: &mut QueueContext<'_>, handle: Handle) {
        let flow = self.admitted.take().unwrap_or_else(|| self.flows.find(context.pool.data(handle)));
        debug_assert_eq!(flow, self.flows.find(context.pool.data(handle)));
        self.flows.join(context, flow, handle);
    }

    /// The first packet of each flow gives its delay.
    fn adopt(&mut self, context: &mut QueueContext<'_>, mut waiting: Fifo) {
        while let Some(handle) = waiting.pop(context.pool) {
            let number = self.flows.find(context.pool.data(handle));
            let flow = self.flows.flow(number);
            if flow.packets.bytes == 0 {
                let waits = context.now.since(Nanos(context.pool.meta(handle).arrival)).0;
                flow.state.waits = waits;
                flow.state.law.take_over(&self.terms, context.now, waits);
            }
            self.flows.push(context.pool, number, handle);
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
            let (handle, bytes) = flow.pop(context.pool)?;
            let empty = flow.packets.bytes == 0;
            let FlowState { law, waits } = &mut flow.state;
            law.catch_up(settings, context.now, || *waits);
            let waited = context.now.since(Nanos(context.pool.meta(handle).arrival)).0;
            *waits = if empty { 0 } else { waited };
            Some((handle, bytes))
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
