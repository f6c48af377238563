//! First come, first served: the baseline.

use super::{Discipline, Spec};
use crate::Settings;
use crate::backlog::Backlog;
use std::collections::VecDeque;

/// Prefetch distance in flows.
const AHEAD: usize = 4;

/// Packets in order of arrival, regardless of cost.
#[derive(Debug)]
pub(crate) struct Fifo(VecDeque<u32>);

impl Discipline for Fifo {
    const SPEC: Spec = Spec {
        name: "fifo",
        summary: "Packets are processed and sent in the order in which they came.",
        source: "none",
        quantum: None,
        constant_time: true,
        dominant: false,
        apart: false,
    };

    fn build(settings: &Settings) -> Self {
        Self(VecDeque::with_capacity(settings.packets as usize))
    }

    #[inline]
    fn arrived(&mut self, backlog: &mut Backlog, slot: u32, _: bool) {
        self.0.push_back(backlog.slot(slot).flow);
    }

    #[inline]
    fn next(&mut self, backlog: &mut Backlog) -> Option<u32> {
        if let Some(&flow) = self.0.get(AHEAD) {
            backlog.prefetch_flow(flow);
        }
        if let Some(&flow) = self.0.get(AHEAD / 2) {
            backlog.prefetch_head(flow);
        }
        // The queue has as many entries of a flow as the flow has packets, in order. With one queue for all,
        // the first packet for a full port blocks all others.
        while let Some(&flow) = self.0.front() {
            if backlog.is_full(backlog.flow(flow).port) {
                return None;
            }
            self.0.pop_front();
            if let Some(slot) = backlog.pop(flow) {
                return Some(slot);
            }
        }
        None
    }
}
