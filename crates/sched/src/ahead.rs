//! Reading ahead what packets will need: hints without effect on results.

use crate::backlog::Backlog;
use crate::table::NONE;
use longwire_packet::prefetch;

/// So many flows and more, of 256 bytes each, are more than what else goes on leaves in the cache next to the
/// processor.
const CACHED: usize = 256;

impl Backlog {
    /// Whether there are so many flows that reading ahead is worth it.
    #[inline]
    pub(crate) fn is_large(&self) -> bool {
        self.flows.len() >= CACHED
    }

    /// Reads ahead what a packet of a flow needs that comes in.
    #[inline]
    pub(crate) fn prefetch_entry(&self, flow: u32) {
        if let Some(flow) = self.flows.get(flow as usize) {
            prefetch(flow);
        }
    }

    /// Reads ahead what a packet of a flow needs that is processed and sent.
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

    /// Reads ahead the end of a flow's queue. The flow has been read.
    #[inline]
    pub(crate) fn prefetch_tail(&self, flow: u32) {
        let waiting = &self.flow(flow).waiting;
        if waiting.first != NONE
            && let Some(slot) = self.slots.get(waiting.last as usize)
        {
            prefetch(slot);
        }
    }

    /// Reads ahead the head of a flow's queue. The flow has been read.
    #[inline]
    pub(crate) fn prefetch_head(&self, flow: u32) {
        let head = self.flows.get(flow as usize).and_then(|flow| flow.waiting.first());
        if let Some(slot) = head.and_then(|head| self.slots.get(head as usize)) {
            prefetch(slot);
        }
    }

    /// Reads ahead the packet behind the head of a flow's queue. Flow and head have been read.
    #[inline]
    pub(crate) fn prefetch_second(&self, flow: u32) {
        let head = self.flows.get(flow as usize).and_then(|flow| flow.waiting.first());
        let head = head.and_then(|head| self.slots.get(head as usize));
        if let Some(second) = head.and_then(|head| self.slots.get(head.next as usize)) {
            prefetch(second);
        }
    }
}
