//! Flows in the order of their turns.
//!
//! Successors are in a separate array, 4 bytes per flow, which stays in the cache even if flows and packets
//! do not. A ring therefore knows the flow several turns ahead without reading a flow, and can prefetch its
//! data. With many flows that is most of a packet's cost.

use crate::backlog::Backlog;
use crate::table::NONE;

/// A list of flows, linked through their turns number `STAGE`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ring<const STAGE: usize> {
    first: u32,
    last: u32,
    len: u32,
}

impl<const STAGE: usize> Default for Ring<STAGE> {
    fn default() -> Self {
        Self { first: NONE, last: NONE, len: 0 }
    }
}

impl<const STAGE: usize> Ring<STAGE> {
    #[inline]
    pub(super) const fn len(&self) -> u32 {
        self.len
    }

    #[inline]
    pub(super) fn front(&self) -> Option<u32> {
        (self.first != NONE).then_some(self.first)
    }

    #[inline]
    pub(super) fn push(&mut self, backlog: &mut Backlog, flow: u32) {
        backlog.flow_mut(flow).turn_of_mut(STAGE).active = true;
        backlog.note_busy(flow);
        let links = &mut backlog.links[STAGE];
        links[flow as usize] = NONE;
        if self.first == NONE {
            self.first = flow;
        } else {
            links[self.last as usize] = flow;
        }
        self.last = flow;
        self.len += 1;
    }

    /// Takes the first one out.
    #[inline]
    pub(super) fn pop(&mut self, backlog: &mut Backlog) -> Option<u32> {
        let flow = self.front()?;
        self.take_first(backlog, flow);
        backlog.note_idle(flow);
        Some(flow)
    }

    #[inline]
    fn take_first(&mut self, backlog: &mut Backlog, first: u32) {
        backlog.flow_mut(first).turn_of_mut(STAGE).active = false;
        self.first = backlog.links[STAGE][first as usize];
        self.len -= 1;
        if STAGE == 0 && backlog.is_large() {
            self.read_ahead(backlog);
        }
    }

    /// Prefetches a flow with a later turn, and the packet of one with an earlier turn, which has been
    /// prefetched itself.
    #[inline]
    fn read_ahead(&mut self, backlog: &Backlog) {
        let links = &backlog.links[STAGE];
        let follower = |flow: u32| links.get(flow as usize).copied().unwrap_or(NONE);
        let next = follower(self.first);
        backlog.prefetch_second(next);
        let near = follower(follower(next));
        backlog.prefetch_head(near);
        let far = follower(follower(near));
        backlog.prefetch_flow(far);
    }

    /// Moves the first flow to the end.
    #[inline]
    pub(super) fn rotate(&mut self, backlog: &mut Backlog) {
        if self.len > 1
            && let Some(flow) = self.front()
        {
            self.take_first(backlog, flow);
            self.push(backlog, flow);
        }
    }

    /// All of them, first to last.
    pub(super) fn iter<'a>(&self, backlog: &'a Backlog) -> impl Iterator<Item = u32> + 'a {
        let mut next = self.first;
        (0..self.len).map(move |_| {
            let flow = next;
            next = backlog.links[STAGE][flow as usize];
            flow
        })
    }
}
