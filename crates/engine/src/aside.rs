//! What leaves a link otherwise than at its end: packets that a filter sends to another link, and what a link answers
//! to the sender of a packet that it did not take.

use crate::worker::Worker;
use longwire_block::path::{NOWHERE, UNDECIDED};
use longwire_packet::{Handle, Meta};
use std::collections::HashMap;

/// The paths of packets that a filter sends to another link.
#[derive(Debug, Clone, Default)]
pub struct Steered {
    paths: HashMap<(u32, u8), u32>,
}

impl Steered {
    /// Packets on `path`, which stand before the link that a filter sends them away from, go on by `instead` if it
    /// names its target number `target`.
    pub fn add(&mut self, path: u32, target: u8, instead: u32) {
        self.paths.insert((path, target), instead);
    }

    /// Where a packet goes on that stood at `path`; nowhere if the plan knows no way over its target.
    fn path(&self, path: u32, target: u8) -> u32 {
        self.paths.get(&(path, target)).copied().unwrap_or(NOWHERE)
    }
}

impl Worker {
    /// Sees to what leaves a link otherwise than at its end: what a filter sends to another link, and what a link answers
    /// to the sender of a packet.
    #[cold]
    pub(crate) fn leave_aside(&mut self, handle: Handle) {
        let meta = self.pool.meta_mut(handle);
        let flags = meta.flags;
        meta.flags &= !Meta::ASIDE;
        if flags & Meta::STEERED != 0 {
            let target = std::mem::replace(&mut meta.band, Meta::NO_BAND);
            meta.path = self.map.steered.path(meta.path, target);
            meta.arrival = meta.leave;
            return self.enter(handle);
        }
        // An answer: it goes back out of the port by which the packet came, past all links.
        self.flow.made += 1;
        let meta = self.pool.meta_mut(handle);
        if self.map.joints.routed(meta.in_port) {
            // It is for who sent the packet before the router did: the router knows the way.
            meta.path = UNDECIDED;
            return self.enter(handle);
        }
        self.egress(handle);
    }
}
