//! What leaves a link otherwise than at its end: packets that a filter sends to another link, and what a link answers
//! to the sender of a packet that it did not take.

use crate::walk::Next;
use crate::worker::Worker;
use longwire_block::path::{DIRECT, NOWHERE, UNDECIDED};
use longwire_packet::{Handle, Meta};
use std::collections::HashMap;

/// The paths of packets that are sent to another link than their path begins with.
#[derive(Debug, Clone, Default)]
pub struct Steered {
    paths: HashMap<(u32, u16), u32>,
}

impl Steered {
    /// Packets on `path`, which stand before the link that a filter or a node sends them away from, go on by `instead` if it
    /// names target number `target`.
    pub fn add(&mut self, path: u32, target: u16, instead: u32) {
        self.paths.insert((path, target), instead);
    }

    /// Where a packet goes on that stood at `path`, if the plan knows a way over its target.
    fn path(&self, path: u32, target: u16) -> Option<u32> {
        self.paths.get(&(path, target)).copied()
    }
}

impl Worker {
    /// Lets a packet whose path was just chosen take the link that its node wishes, if that begins where the path does. Where the path leads past
    /// all links from a router to its port's far side, the wish holds there.
    #[inline]
    pub(crate) fn grant_wish(&mut self, handle: Handle) {
        let meta = self.pool.meta_mut(handle);
        let Some(link) = meta.wish() else { return };
        let joints = &self.map.joints;
        if meta.path == DIRECT && joints.routed(meta.in_port) && joints.far_side(meta.out_port).is_some() {
            return;
        }
        meta.clear_wish();
        meta.path = self.map.wished.path(meta.path, link).unwrap_or(meta.path);
    }

    /// Sees to what leaves a link otherwise than at its end: what a filter sends to another link, and what a link answers
    /// to the sender of a packet.
    #[cold]
    pub(crate) fn leave_aside(&mut self, handle: Handle) {
        let meta = self.pool.meta_mut(handle);
        let target = meta.take_target();
        meta.flags &= !Meta::ASIDE;
        if let Some(target) = target {
            meta.path = self.map.steered.path(meta.path, target.into()).unwrap_or(NOWHERE);
            meta.arrival = meta.leave();
            return self.walk(Next::Enter, handle);
        }
        // An answer: it goes back out of the port by which the packet came, past all links.
        self.books.flow.made += 1;
        let meta = self.pool.meta_mut(handle);
        if self.map.joints.routed(meta.in_port) {
            // It is for who sent the packet before the router did: the router knows the way.
            meta.path = UNDECIDED;
            return self.walk(Next::Enter, handle);
        }
        self.walk(Next::Egress, handle);
    }
}
