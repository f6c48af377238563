//! Flows in the order of their turns.
//!
//! Who follows whom lies in an array of its own, 4 bytes a flow, which stays in the cache where flows and
//! packets do not: so a ring knows who comes several turns from now without looking at a flow, and has their
//! memory read ahead. With many flows that is most of what a packet costs.

use crate::backlog::Backlog;
use crate::table::NONE;

/// A line of flows, linked through their turns number `STAGE`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ring<const STAGE: usize> {
    first: u32,
    last: u32,
    len: u32,
}

impl<const STAGE: usize> Ring<STAGE> {
    pub(super) const EMPTY: Self = Self { first: NONE, last: NONE, len: 0 };

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

    /// Reads a flow ahead that has its turn later, and the packet of one that has it sooner, which has been
    /// read ahead itself.
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

    /// Puts the first one behind all others.
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
