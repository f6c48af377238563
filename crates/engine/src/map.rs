//! The data that workers forward by.

use crate::turns::InnerPorts;
use longwire_block::path::{Fork, Paths};
use longwire_link::classify::Classifier;
use std::collections::HashMap;

/// Shared, constant data of all workers.
pub struct Map {
    /// Chooses paths.
    pub classifier: Classifier,
    /// Paths of more than one link.
    pub paths: Paths,
    /// Indexed by a port's place in the plan.
    pub port_locations: Vec<PortLocation>,
    /// Flooding trees, by the input port's place in the plan, where paths begin with the same link.
    pub floods: HashMap<u16, Fork>,
    /// Paths of packets steered to other links by filters.
    pub steered: SteeredPaths,
    /// Paths of packets steered by nodes, by the numbers of
    /// [`Meta::requested_link`](longwire_packet::Meta::requested_link).
    pub requested: SteeredPaths,
    /// Ports that connect nodes.
    pub inner_ports: InnerPorts,
}

impl Map {
    /// A map of ports that lead outside, on whose paths nothing is flooded or steered.
    pub fn new(classifier: Classifier, paths: Paths, port_locations: Vec<PortLocation>) -> Self {
        Self {
            classifier,
            paths,
            port_locations,
            floods: HashMap::new(),
            steered: SteeredPaths::default(),
            requested: SteeredPaths::default(),
            inner_ports: InnerPorts::default(),
        }
    }
}

/// Paths of packets that are steered to another link than the first of their path.
#[derive(Debug, Clone, Default)]
pub struct SteeredPaths {
    paths: HashMap<(u32, u16), u32>,
}

impl SteeredPaths {
    /// Adds a rule: a packet on `path`, in front of the link from which a filter or a node steers it to
    /// target number `target`, continues on `instead`.
    pub fn add(&mut self, path: u32, target: u16, instead: u32) {
        self.paths.insert((path, target), instead);
    }

    /// The new path of a packet steered at `path`, if the plan has a path over its target.
    pub(crate) fn path(&self, path: u32, target: u16) -> Option<u32> {
        self.paths.get(&(path, target)).copied()
    }
}

/// The workers that have a port, and its index there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PortLocation {
    /// The worker, or the first of several with a queue of the port each.
    pub worker: u32,
    /// Index among the worker's ports, the same at each worker.
    pub slot: u32,
    /// Number of consecutive workers with the port: one, unless it has several queues.
    pub queues: u32,
}

impl PortLocation {
    /// The location of a port with one worker.
    pub const fn single(worker: u32, slot: u32) -> Self {
        Self { worker, slot, queues: 1 }
    }

    /// The worker that transmits packets released by `worker`: `worker` itself if it has a queue of the port,
    /// else a fixed one, so that packets of a link keep their order.
    pub const fn exit_of(&self, worker: u32) -> u32 {
        self.worker + worker.wrapping_sub(self.worker) % self.queues
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_worker_without_a_queue_always_sends_by_the_same() {
        let exits = |home: PortLocation| (0..7).map(|worker| home.exit_of(worker)).collect::<Vec<_>>();
        assert_eq!(exits(PortLocation::single(3, 0)), [3; 7]);
        assert_eq!(exits(PortLocation { worker: 0, slot: 1, queues: 3 }), [0, 1, 2, 0, 1, 2, 0]);
    }
}
