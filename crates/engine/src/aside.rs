//! What leaves a link otherwise than at its end: packets that a filter sends to another link, and what a link
//! answers to the sender of a packet that it did not take.

use std::collections::HashMap;

/// The paths of packets that are sent to another link than their path begins with.
#[derive(Debug, Clone, Default)]
pub struct Steered {
    paths: HashMap<(u32, u16), u32>,
}

impl Steered {
    /// Packets on `path`, which stand before the link that a filter or a node sends them away from, go on by
    /// `instead` if it names target number `target`.
    pub fn add(&mut self, path: u32, target: u16, instead: u32) {
        self.paths.insert((path, target), instead);
    }

    /// Where a packet goes on that stood at `path`, if the plan knows a way over its target.
    pub(crate) fn path(&self, path: u32, target: u16) -> Option<u32> {
        self.paths.get(&(path, target)).copied()
    }
}
