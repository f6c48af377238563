//! What leaves a link otherwise than at its end goes its own way.

use super::Worker;
use crate::walk::Next;
use longwire_block::path::{DIRECT, NOWHERE, UNDECIDED};
use longwire_packet::{Handle, Meta};

impl Worker {
    /// Lets a packet whose path was just chosen take the link that its node wishes, if that begins where the
    /// path does. Where the path leads past all links from a router to its port's far side, the wish holds
    /// there.
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

    /// Sees to what leaves a link otherwise than at its end: what a filter sends to another link, and what a
    /// link answers to the sender of a packet.
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
