//! Prefetching for packets to come: hints without effect on results.

use crate::backlog::Backlog;
use crate::table::NONE;
use longwire_packet::prefetch;

/// Number of flows, of 256 bytes each, that exceeds the part of the innermost cache left by other work.
const CACHED: usize = 256;

impl Backlog {
    /// Whether there are enough flows for prefetching to pay off.
    #[inline]
    pub(crate) fn is_large(&self) -> bool {
        self.flows.len() >= CACHED
    }

    /// Prefetches the data for an arriving packet of a flow.
    #[inline]
    pub(crate) fn prefetch_entry(&self, flow: u32) {
        if let Some(flow) = self.flows.get(flow as usize) {
            prefetch(flow);
        }
    }

    /// Prefetches the data for processing and sending a packet of a flow.
    #[inline]
    pub(crate) fn prefetch_flow(&self, flow: u32) {
        if let Some(flow) = self.flows.get(flow as usize) {
            prefetch(flow);
            prefetch(&flow.taken_turn);
            if !self.links[1].is_empty() {
                prefetch(&flow.later_turn);
            }
        }
    }

    /// Prefetches the tail of a flow's queue. The flow must be loaded.
    #[inline]
    pub(crate) fn prefetch_tail(&self, flow: u32) {
        let waiting = &self.flow(flow).waiting;
        if waiting.first != NONE
            && let Some(slot) = self.slots.get(waiting.last as usize)
        {
            prefetch(slot);
        }
    }

    /// Prefetches the head of a flow's queue. The flow must be loaded.
    #[inline]
    pub(crate) fn prefetch_head(&self, flow: u32) {
        let head = self.flows.get(flow as usize).and_then(|flow| flow.waiting.first());
        if let Some(slot) = head.and_then(|head| self.slots.get(head as usize)) {
            prefetch(slot);
        }
    }

    /// Prefetches the packet behind the head of a flow's queue. Flow and head must be loaded.
    #[inline]
    pub(crate) fn prefetch_second(&self, flow: u32) {
        let head = self.flows.get(flow as usize).and_then(|flow| flow.waiting.first());
        let head = head.and_then(|head| self.slots.get(head as usize));
        if let Some(second) = head.and_then(|head| self.slots.get(head.next as usize)) {
            prefetch(second);
        }
    }
}
