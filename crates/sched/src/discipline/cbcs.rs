//! CBCS, the composite bandwidth and CPU scheduler, after section 4 of UNSW-CSE-TR-0505.
//!
//! A packet's combined resource requirement, processor ns as estimated plus port ns, is computed when it
//! arrives and stays fixed. In each round a backlogged flow's credit grows by the quantum, and that of an
//! idle one becomes 0. A flow is served while its credit and its queue are positive, so that the last packet
//! may make the credit negative (surplus round robin); then it is the next flow's turn.
//!
//! Choices where the paper is open:
//! - The order of flows is that in which they became backlogged, not that of their numbers: keys are any 32
//!   bits, and idle flows cost nothing. A flow that becomes backlogged has its first turn in the next round.
//! - Idleness is detected when a flow's turn comes, as in figure 6. A flow whose queue has become empty stays
//!   in the round until then: if packets come before, it keeps its credit or debt.
//! - The quantum and the first estimate are parameters. Weights, which are not in the paper, multiply the
//!   quantum.
//! - Rounds in which no flow has credit are skipped in one step, with the same result.

use super::turns::{Turns, rounds_for};
use super::{Discipline, Spec};
use crate::Settings;
use crate::backlog::Backlog;
use crate::cost::Prices;

/// With `NORMALISED`, both costs are divided by their capacities, and the port's real cost is used: the sum
/// of two shares.
#[derive(Debug)]
pub(crate) struct Cbcs<const NORMALISED: bool> {
    turns: Turns<0>,
    quantum: i64,
}

impl<const NORMALISED: bool> Discipline for Cbcs<NORMALISED> {
    const SPEC: Spec = Spec {
        name: if NORMALISED { "cbcs-normalised" } else { "cbcs" },
        summary: if NORMALISED {
            "CBCS with processor time divided by the number of processors, and the port's own time."
        } else {
            "Surplus round robin on the sum of estimated processor time and transmission time."
        },
        source: "Sabrina & Jha, A Scheduler Architecture for Intel's IXP2400 Network Processor \
            (UNSW-CSE-TR-0505, 2005), section 4",
        quantum: Some(if NORMALISED {
            "ns of a processor over the number of processors, plus ns of the port"
        } else {
            "ns of a processor, plus what is charged for each byte"
        }),
        constant_time: true,
        dominant: false,
        apart: true,
    };

    fn build(settings: &Settings) -> Self {
        Self { turns: Turns::default(), quantum: settings.quantum.0 as i64 }
    }

    #[inline]
    fn cost(prices: &Prices, processor: u32, bytes: u32) -> u32 {
        if NORMALISED {
            let cost = prices.normalised(processor, bytes);
            return cost.processor.saturating_add(cost.port);
        }
        prices.combined(processor, bytes)
    }

    #[inline]
    fn arrived(&mut self, backlog: &mut Backlog, slot: u32, _: bool) {
        let flow = backlog.slot(slot).flow;
        if !backlog.flow(flow).turn.active {
            backlog.flow_mut(flow).turn.credit = 0;
            self.turns.join(backlog, flow);
        }
    }

    #[inline]
    fn next(&mut self, backlog: &mut Backlog) -> Option<u32> {
        loop {
            let (flow, rounds) = self.turns.front(backlog)?;
            let quantum = self.quantum * i64::from(backlog.flow(flow).weight);
            let head = backlog.head(flow);
            let turn = Turns::<0>::turn(backlog, flow);
            if rounds > 0 {
                if head.is_none() {
                    self.turns.retire(backlog);
                    continue;
                }
                turn.credit = turn.credit.saturating_add(quantum.saturating_mul(rounds as i64));
            }
            let credit = turn.credit;
            let Some(slot) = head.filter(|_| credit > 0) else {
                // An idle flow leaves in the next round: none is skipped.
                let rounds = if head.is_some() { rounds_for(1 - credit, quantum) } else { 1 };
                self.turns.pass(backlog, rounds);
                continue;
            };
            let cost = backlog.slot(slot).cost;
            backlog.pop(flow);
            Turns::<0>::turn(backlog, flow).credit = credit - i64::from(cost);
            self.turns.serve(cost);
            if backlog.head(flow).is_none() {
                self.turns.pass(backlog, 1);
            }
            return Some(slot);
        }
    }

    #[inline]
    fn due(&self) -> u64 {
        self.turns.due()
    }

    fn reweighted(&mut self, backlog: &mut Backlog, flow: u32, _: u32) {
        Turns::<0>::cap(backlog, flow, self.quantum);
    }
}
