//! Flows in the order of their turns.

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
        let turn = backlog.flow_mut(flow).turn_of_mut(STAGE);
        (turn.active, turn.next) = (true, NONE);
        backlog.note_busy(flow);
        if self.first == NONE {
            self.first = flow;
        } else {
            backlog.flow_mut(self.last).turn_of_mut(STAGE).next = flow;
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
        let turn = backlog.flow_mut(first).turn_of_mut(STAGE);
        turn.active = false;
        self.first = turn.next;
        self.len -= 1;
        self.read_ahead(backlog);
    }

    /// Reads ahead the flow after the next, and the packet of the next, which was read ahead itself when the turn before ended.
    #[inline]
    fn read_ahead(&self, backlog: &Backlog) {
        if STAGE == 0 && self.first != NONE {
            backlog.prefetch_flow(backlog.flow(self.first).turn.next);
            backlog.prefetch_head(self.first);
        }
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
            next = backlog.flow(flow).turn_of(STAGE).next;
            flow
        })
    }
}
