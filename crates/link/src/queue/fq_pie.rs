//! FQ-PIE: every flow has a queue of its own under PIE, and the queues take turns.

use super::fair::Flows;
use super::fq_codel::MEMORY;
use super::pie::{ALPHA, BETA, BURST, TARGET, gain, gains, may_mark, update};
use super::pie_law::{Pie, Settings};
use super::settings::{FLOWS, Limit, QUANTUM, ecn_marks, limit, number, signal};
use super::{Admission, Discipline, Hall, Next};
use crate::fifo::Fifo;
use longwire_block::{Block, Dice, Spec, Values, Verdict};
use longwire_packet::{Handle, Pool};
use longwire_units::Nanos;

/// Fair queueing with PIE on every flow.
///
/// The waiting time of a flow is that of the packet it sent last, and nothing once it has no more: its share of the rate is not known.
/// Each flow has corrections of its own, made up for when it sends or receives. Limits as in FQ-CoDel.
#[derive(Debug)]
pub struct FqPie {
    flows: Flows<State>,
    settings: Settings,
    limit: Limit,
    marks: bool,
    memory: u64,
    dice: Dice,
}

/// What is kept of a flow.
#[derive(Debug, Default)]
struct State {
    law: Pie,
    /// How long its packets wait, in ns.
    waits: u64,
}

impl Block for FqPie {
    const SPEC: Spec = Spec {
        key: "queue",
        kind: "fq-pie",
        summary: "Flows take turns, new ones first; PIE on each of them.",
        source: "RFC 8033; RFC 8290, section 4",
        params: &[
            limit("10240 packets"),
            FLOWS,
            QUANTUM,
            MEMORY,
            TARGET,
            update("15 ms"),
            BURST,
            gain("alpha", "0.125", ALPHA),
            gain("beta", "1.25", BETA),
            ecn_marks("no"),
        ],
    };

    fn build(values: &Values, mut dice: Dice) -> Self {
        let mut block = Self {
            flows: Flows::new(Dice::seeded(dice.draw())),
            settings: Settings::default(),
            limit: Limit::Packets(0),
            marks: false,
            memory: 0,
            dice,
        };
        block.change(values);
        block
    }

    /// Takes new parameters. With another number of flows, they and their probabilities begin anew.
    fn change(&mut self, values: &Values) {
        self.limit = Limit::read(values, 0);
        self.flows.set(number(values, 1), number(values, 2));
        self.memory = number(values, 3);
        self.settings = Settings { gains: gains(values, 4, 1), burst: Nanos(number(values, 6)) };
        self.marks = number(values, 9) == 1;
    }
}

impl Discipline for FqPie {
    #[inline]
    fn admit(&mut self, packet: &Admission<'_>) -> Verdict {
        let flow = self.flows.find(packet.frame());
        let flow = self.flows.flow(flow);
        let backlog = flow.backlog();
        let State { law, waits } = &mut flow.state;
        law.catch_up(&self.settings, packet.now, || *waits);
        if law.chooses(&self.settings, backlog, &mut self.dice) {
            return signal(self.marks && may_mark(law), packet);
        }
        Verdict::Pass
    }

    #[inline]
    fn push(&mut self, hall: &mut Hall<'_>, handle: Handle) {
        self.flows.join(hall, handle, [self.limit, Limit::Bytes(self.memory)]);
    }

    /// The first packet of each flow says how long that one's wait.
    fn adopt(&mut self, hall: &mut Hall<'_>, mut waiting: Fifo) {
        while let Some(handle) = waiting.pop(hall.pool) {
            let number = self.flows.find(hall.pool.data(handle));
            let flow = self.flows.flow(number);
            if flow.backlog() == 0 {
                let waits = hall.now.since(Nanos(hall.pool.meta(handle).arrival)).0;
                flow.state.waits = waits;
                flow.state.law.take_over(&self.settings, hall.now, waits);
            }
            self.flows.push(hall.pool, number, handle);
        }
    }

    fn resettle(&mut self, hall: &mut Hall<'_>) {
        if self.flows.is_stale() {
            let waiting = self.flows.drain(hall.pool);
            self.adopt(hall, waiting);
        }
    }

    #[inline]
    fn pop(&mut self, hall: &mut Hall<'_>) -> Next {
        let settings = &self.settings;
        let taken = self.flows.pop(|flow| {
            let (handle, bytes) = flow.pop(hall.pool)?;
            let empty = flow.backlog() == 0;
            let State { law, waits } = &mut flow.state;
            law.catch_up(settings, hall.now, || *waits);
            let waited = hall.now.since(Nanos(hall.pool.meta(handle).arrival)).0;
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
