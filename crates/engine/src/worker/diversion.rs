//! Handling of packets that leave a link before its end.

use super::Worker;
use crate::walk::NextStep;
use longwire_block::path::{DIRECT, NOWHERE, UNDECIDED};
use longwire_packet::{Handle, Meta};

impl Worker {
    /// Applies a node's request for a link, if that begins where the packet's path begins. If the path leads
    /// directly from a router to its port's far side, the request is applied there.
    #[inline]
    pub(crate) fn grant_requested_link(&mut self, handle: Handle) {
        let meta = self.pool.meta_mut(handle);
        let Some(link) = meta.requested_link() else { return };
        let inner_ports = &self.map.inner_ports;
        if meta.path == DIRECT
            && inner_ports.routed(meta.in_port)
            && inner_ports.far_side(meta.out_port).is_some()
        {
            return;
        }
        meta.clear_requested_link();
        meta.path = self.map.requested.path(meta.path, link).unwrap_or(meta.path);
    }

    /// Handles a packet that leaves a link before its end: steered by a filter, or a reply of the link to the
    /// sender.
    #[cold]
    pub(crate) fn divert(&mut self, handle: Handle) {
        let meta = self.pool.meta_mut(handle);
        let target = meta.take_target();
        meta.flags &= !Meta::DIVERTED;
        if let Some(target) = target {
            meta.path = self.map.steered.path(meta.path, target.into()).unwrap_or(NOWHERE);
            meta.arrival = meta.leave();
            return self.walk(NextStep::Enter, handle);
        }
        // A reply leaves by the input port of its packet, without links.
        self.counters.flow.made += 1;
        let meta = self.pool.meta_mut(handle);
        if self.map.inner_ports.routed(meta.in_port) {
            // It is addressed to the sender behind the router, which has the route.
            meta.path = UNDECIDED;
            return self.walk(NextStep::Enter, handle);
        }
        self.walk(NextStep::Egress, handle);
    }
}
