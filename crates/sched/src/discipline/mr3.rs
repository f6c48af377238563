//! MR³, multi-resource round robin: elastic round robin on dominant cost, limited by progress on the last
//! resource.
//!
//! In a round a flow is served while its balance is not negative. The balance begins with the largest excess
//! of any flow in the previous round, minus its own; service beyond that is its excess. No quantum is needed,
//! and each flow sends at least one packet a round. A flow's next round begins only when the last resource
//! has begun with its packets of the previous round, so that the resources' progress differs by at most a
//! round; with several processors, by a round for each.
//!
//! Only the paper's abstract and introduction were available: packets are scheduled "in a way similar to
//! Elastic Round Robin", in O(1). The details follow Elastic Round Robin and what is known of the paper.
//! Weights, which it treats separately, work as in weighted Elastic Round Robin: excesses are compared per
//! weight. Choices: debt of a flow with an empty queue is not forgotten, but paid by the rounds that pass
//! without it. A flow that is limited though its port is idle, because processors still have its packets, is
//! parked, so that it does not block others. It gets the missed credit later.

use super::progress::Progress;
use super::ring::Ring;
use super::{Discipline, Spec};
use crate::Settings;
use crate::backlog::Backlog;

/// Multi-resource round robin.
#[derive(Debug, Default)]
pub(crate) struct Mr3 {
    ring: Ring<0>,
    /// Flows whose turn is still to come in this round.
    left: u32,
    /// The largest excess per weight, of the previous round and of this one.
    before: i64,
    now: i64,
    /// Whether the first flow has begun its turn, and whether a packet was taken in it.
    begun: bool,
    has_served: bool,
    /// In ns of the dominant resource per weight.
    progress: Progress,
}

impl Discipline for Mr3 {
    const SPEC: Spec = Spec {
        name: "mr3",
        summary: "Elastic round robin on the dominant resource, a round ahead of the port at the most.",
        source: "Wang, Li & Liang, Multi-Resource Round Robin (ICNP 2013); Kanhere, Sethu & Parekh, Elastic \
            Round Robin (TPDS 2002)",
        quantum: None,
        constant_time: true,
        dominant: true,
        apart: true,
    };

    const LIMITED: bool = true;

    fn build(_: &Settings) -> Self {
        Self::default()
    }

    /// Adds a flow from the next round on.
    #[inline]
    fn join(&mut self, backlog: &mut Backlog, flow: u32) {
        let time = self.progress.start();
        let place = backlog.flow_mut(flow);
        let weight = place.weight.into();
        place.turn.begin_anew(time, weight, 0);
        self.ring.push(backlog, flow);
    }

    #[inline]
    fn next(&mut self, backlog: &mut Backlog) -> Option<u32> {
        loop {
            let Some(flow) = self.ring.front() else {
                self.progress.begin(self.due());
                (self.before, self.now, self.left) = (0, 0, 0);
                return None;
            };
            if self.left == 0 {
                self.progress.begin(self.due());
                (self.left, self.before, self.now) = (self.ring.len(), self.now, 0);
            }
            if !self.begun && super::is_ahead(backlog, flow, self.ring.len() == 1) {
                if !super::is_with_processors(backlog, flow) {
                    return None;
                }
                self.end(backlog, false);
                backlog.flow_mut(flow).turn.parked = true;
                continue;
            }
            let place = backlog.flow_mut(flow);
            if !self.begun {
                (self.begun, self.has_served) = (true, false);
                // The credit was minus the excess.
                place.turn.credit += self.before.saturating_mul(place.weight.into());
            }
            let (balance, weight) = (place.turn.credit, i64::from(place.weight));
            let Some(slot) = backlog.head(flow) else {
                self.end(backlog, false);
                continue;
            };
            if balance < 0 {
                self.excess(balance, weight);
                self.end(backlog, true);
                continue;
            }
            let cost = backlog.slot(slot).cost;
            self.progress.charge(cost);
            let balance = balance - i64::from(cost);
            super::take_in_turn(backlog, flow, slot, !self.has_served);
            self.has_served = true;
            backlog.flow_mut(flow).turn.credit = balance;
            if backlog.head(flow).is_none() {
                self.excess(balance, weight);
                self.end(backlog, false);
            }
            return Some(slot);
        }
    }

    /// A round gives each flow the largest excess of the previous one.
    #[inline]
    fn due(&self) -> u64 {
        if self.left == 0 { self.progress.start().wrapping_add(self.now as u64) } else { self.progress.now() }
    }

    /// Charges the cost of a packet beyond its estimate once it is known.
    #[inline]
    fn measured(&mut self, backlog: &mut Backlog, slot: u32, measured: u32) {
        super::charge_later(backlog, slot, measured, |_| 0);
    }

    /// The rest of a turn shrinks with the weight.
    fn reweighted(&mut self, backlog: &mut Backlog, flow: u32, before: u32) {
        let place = backlog.flow_mut(flow);
        let (credit, weight) = (place.turn.credit, place.weight);
        if credit > 0 && weight < before {
            place.turn.credit = (i128::from(credit) * i128::from(weight) / i128::from(before)) as i64;
        }
    }
}

impl Mr3 {
    /// Records an excess per weight, rounded up, so that no next balance is negative.
    #[inline]
    fn excess(&mut self, balance: i64, weight: i64) {
        let excess = (-balance).max(0);
        let excess = if weight == 1 { excess } else { (excess + weight - 1) / weight };
        self.now = self.now.max(excess);
    }

    /// Ends the first flow's turn. It stays, or its queue is empty and it loses its balance, but not its
    /// excess.
    #[inline]
    fn end(&mut self, backlog: &mut Backlog, stays: bool) {
        if stays {
            self.ring.rotate(backlog);
        } else if let Some(flow) = self.ring.pop(backlog) {
            backlog.flow_mut(flow).turn.round = self.progress.start();
        }
        self.left -= 1;
        self.begun = false;
    }
}
