//! The competitor in the paper (section 4.2): one deficit round robin before the processors, another before
//! the port.

use super::turns::{Turns, rounds_for};
use super::{Discipline, Spec};
use crate::Settings;
use crate::backlog::{Backlog, Slot};

/// DRR on estimated processor time, then DRR on bytes. They are independent.
///
/// Both follow Shreedhar and Varghese: a flow's turn gives it its quantum once, it is served while its head
/// costs no more than its deficit, and the rest is kept for its next turn unless its queue is empty.
///
/// A limit of ready packets applies to each flow: with a shared queue, the first round robin would decide
/// whose packets the second one finds, and flows would share the port as they share the processors. A flow at
/// its limit is left out of the first round until the port takes one of its packets.
#[derive(Debug)]
pub(crate) struct SeparateDrr {
    processors: Turns<0>,
    ports: Vec<Turns<1>>,
    quantum: i64,
    quantum_bytes: i64,
}

impl Discipline for SeparateDrr {
    const SPEC: Spec = Spec {
        name: "separate-drr",
        summary: "Deficit round robin on estimated processor time, then deficit round robin on bytes.",
        source: "Shreedhar & Varghese, Efficient Fair Queuing using Deficit Round Robin (SIGCOMM 1995), as \
            Sabrina & Jha set two of them up (UNSW-CSE-TR-0505, section 4.2)",
        quantum: Some("ns of a processor; on the port `quantum_bytes` counts, in bytes"),
        constant_time: true,
        dominant: false,
        apart: true,
    };

    const STAGES: usize = 2;

    fn build(settings: &Settings) -> Self {
        Self {
            processors: Turns::default(),
            ports: vec![Turns::default(); settings.ports.into()],
            quantum: settings.quantum.0 as i64,
            quantum_bytes: settings.quantum_bytes.into(),
        }
    }

    #[inline]
    fn arrived(&mut self, backlog: &mut Backlog, slot: u32, first: bool) {
        let flow = backlog.slot(slot).flow;
        let turn = &backlog.flow(flow).turn;
        if first && !turn.active && !turn.parked {
            backlog.flow_mut(flow).turn.credit = 0;
            self.processors.join(backlog, flow);
        }
    }

    #[inline]
    fn next(&mut self, backlog: &mut Backlog) -> Option<u32> {
        let quantum = self.quantum;
        deficit(&mut self.processors, backlog, quantum, head_to_process, |slot| slot.cost, Backlog::pop)
    }

    #[inline]
    fn due(&self) -> u64 {
        self.processors.due()
    }

    #[inline]
    fn processed(&mut self, backlog: &mut Backlog, slot: u32) {
        let (flow, port) = (backlog.slot(slot).flow, backlog.port_of(slot));
        let place = &mut backlog.flows[flow as usize];
        place.leaving.push(&mut backlog.slots, slot);
        if !place.later_turn.active {
            place.later_turn.credit = 0;
            self.ports[port].join(backlog, flow);
        }
    }

    #[inline]
    fn next_for_port(&mut self, backlog: &mut Backlog, port: u16) -> Option<u32> {
        let (quantum, turns) = (self.quantum_bytes, &mut self.ports[usize::from(port)]);
        let head = |backlog: &mut Backlog, flow| backlog.flow(flow).leaving.first();
        let pop = |backlog: &mut Backlog, flow: u32| {
            let Backlog { flows, slots, .. } = backlog;
            flows[flow as usize].leaving.pop(slots)
        };
        deficit(turns, backlog, quantum, head, |slot| slot.bytes, pop)
    }

    #[inline]
    fn left(&mut self, backlog: &mut Backlog, slot: u32) {
        let flow = backlog.slot(slot).flow;
        let place = backlog.flow_mut(flow);
        if std::mem::take(&mut place.turn.parked) && place.waiting_packets > 0 {
            place.turn.credit = 0;
            self.processors.join(backlog, flow);
        }
    }

    fn reweighted(&mut self, backlog: &mut Backlog, flow: u32, _: u32) {
        Turns::<0>::cap(backlog, flow, self.quantum);
        Turns::<1>::cap(backlog, flow, self.quantum_bytes);
    }
}

/// The head of a flow's queue before the processors. A flow at its limit is parked, and has none.
#[inline]
fn head_to_process(backlog: &mut Backlog, flow: u32) -> Option<u32> {
    let head = backlog.head(flow)?;
    let has_enough = backlog.has_enough(flow);
    backlog.flow_mut(flow).turn.parked = has_enough;
    (!has_enough).then_some(head)
}

/// The next packet by deficit round robin over the queues accessed by `head` and `pop`.
#[inline]
fn deficit<const STAGE: usize>(
    turns: &mut Turns<STAGE>,
    backlog: &mut Backlog,
    quantum: i64,
    head: impl Fn(&mut Backlog, u32) -> Option<u32>,
    cost: impl Fn(&Slot) -> u32,
    pop: impl Fn(&mut Backlog, u32) -> Option<u32>,
) -> Option<u32> {
    loop {
        let (flow, rounds) = turns.front(backlog)?;
        let Some(slot) = head(backlog, flow) else {
            // All waiting packets were invalid, or the flow is parked.
            turns.retire(backlog);
            continue;
        };
        let quantum = quantum * i64::from(backlog.flow(flow).weight);
        let price = cost(backlog.slot(slot));
        let cost = i64::from(price);
        let turn = Turns::<STAGE>::turn(backlog, flow);
        turn.credit = turn.credit.saturating_add(quantum.saturating_mul(rounds as i64));
        if cost > turn.credit {
            let lack = cost - turn.credit;
            turns.pass(backlog, rounds_for(lack, quantum));
            continue;
        }
        turn.credit -= cost;
        pop(backlog, flow);
        turns.serve(price);
        if head(backlog, flow).is_none() {
            turns.retire(backlog);
        }
        return Some(slot);
    }
}
