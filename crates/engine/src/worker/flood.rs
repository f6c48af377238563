//! Flooded packets: they follow a tree that contains each link once, and are copied where paths diverge.

use super::Worker;
use crate::order::PIECES;
use crate::walk::NextStep;
use longwire_block::DropReason;
use longwire_block::path::{Branch, DIRECT, Fork};
use longwire_packet::Handle;

impl Worker {
    /// Sends a packet to every port of its node but the input port. Copies are made here for paths that have
    /// no common first link or are selected by addresses.
    pub(crate) fn flood(&mut self, node: usize, handle: Handle) {
        let in_port = self.pool.meta(handle).in_port;
        if let Some(&fork) = self.map.floods.get(&in_port)
            && !self.map.classifier.is_by_addresses(&self.pool, handle)
        {
            return self.split(handle, fork, |worker, copy, branch| {
                worker.pool.meta_mut(copy).path = branch.path;
                worker.grant_requested_link(copy);
                worker.intake.ready.push(copy);
            });
        }
        let ports = self.nodes.all[node].ports();
        let count = ports.len();
        let others: usize = count - usize::from(ports.binary_search(&in_port).is_ok());
        if others == 0 {
            return self.drop(handle, DropReason::NoRoute);
        }
        let mut left = others;
        for at in 0..count {
            let port = self.nodes.all[node].ports()[at];
            if port == in_port {
                continue;
            }
            left -= 1;
            let Some(copy) = self.copy_unless(left == 0, handle) else { continue };
            let meta = self.pool.meta_mut(copy);
            (meta.out_port, meta.seq) = (port, meta.seq + (u64::from(port) + 1) * PIECES);
            self.map.classifier.classify_one(&mut self.pool, copy);
            self.grant_requested_link(copy);
            self.intake.ready.push(copy);
        }
    }

    /// Sends a flooded packet that has left a link over every branch from there; `enter` lets its copies into
    /// their next links.
    #[cold]
    pub(crate) fn fork(&mut self, handle: Handle, enter: fn(&mut Self, Handle)) {
        let Some(fork) = self.map.paths.fork_after(self.pool.meta(handle).path) else {
            return self.drop(handle, DropReason::NoRoute);
        };
        self.split(handle, fork, |worker, copy, branch| {
            let meta = worker.pool.meta_mut(copy);
            if branch.path == DIRECT {
                // Its path remains that of the link that it left, where its lateness is recorded.
                return worker.walk(NextStep::Egress, copy);
            }
            (meta.path, meta.arrival) = (branch.path, meta.leave());
            enter(worker, copy);
        });
    }

    /// Passes one packet for each branch of `fork` to `then`.
    fn split(&mut self, handle: Handle, fork: Fork, then: impl Fn(&mut Self, Handle, Branch)) {
        let count = self.map.paths.branches(fork).len();
        for at in 0..count {
            let branch = self.map.paths.branches(fork)[at];
            let Some(copy) = self.copy_unless(at + 1 == count, handle) else { continue };
            let meta = self.pool.meta_mut(copy);
            (meta.out_port, meta.seq) = (branch.port, meta.seq + (u64::from(branch.first) + 1) * PIECES);
            then(self, copy, branch);
        }
    }

    /// The packet itself if it is the last one needed, else a copy, or none if the pool is full.
    fn copy_unless(&mut self, last: bool, handle: Handle) -> Option<Handle> {
        if last {
            return Some(handle);
        }
        let segments = u64::from(self.pool.meta(handle).segments);
        self.counters.flow.made += segments;
        let copy = self.pool.duplicate(handle);
        if copy.is_none() {
            self.counters.count_drop(DropReason::PoolFull, segments);
        }
        copy
    }
}
