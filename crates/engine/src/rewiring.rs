//! Rewiring of a running engine: links, ports, nodes and traffic sources join and leave, and workers get a
//! new map, between two batches.
//!
//! The calling thread allocates what workers need for it and frees what they no longer need.

use crate::bell::waker;
use crate::inner_port::InnerPort;
use crate::map::Map;
use crate::ports::{GONE_PORT, PortSlot};
use crate::remote::{Command, Remote, RemoteError};
use crate::retired::RetiredNode;
use crate::rewiring_step::{AtNode, PartSource, RewiringStep};
use crate::setup::PortSetup;
use crate::turns::InTurn;
use crate::wheel::Wheel;
use longwire_block::path::LinkRef;
use longwire_block::{Node, PortError};
use longwire_link::{Joining, LinkStats};
use longwire_units::Nanos;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

/// The changes of a rewiring.
pub struct Rewiring {
    /// The map afterwards. It extends the paths of the map before.
    pub map: Map,
    /// With several workers, which do not change at one instant: the map before, with the paths of the one
    /// afterwards.
    pub before: Option<Map>,
    /// What each worker does.
    pub parts: Vec<Part>,
}

/// What one worker does.
#[derive(Default)]
pub struct Part {
    /// Links that join, and the places of all of its links.
    pub joining: Option<Joining>,
    /// Capacity of its new timing wheel, in links, if a larger one is needed.
    pub wheel: Option<usize>,
    /// Indices of links that leave.
    pub leaving: Vec<u32>,
    /// Whether their packets are sent rather than dropped.
    pub drained: bool,
    /// Whether links have to be served in exact order from now on.
    pub exact: bool,
    /// Number of its ports, with those that were removed.
    pub ports_before: u32,
    /// Ports that join or replace one, by index; those behind all others last, in order.
    pub ports: Vec<(u32, PortSetup)>,
    /// Nodes that join its own or replace one, by index: those behind all others last, in order.
    pub nodes: Vec<(u32, Box<dyn Node>)>,
    /// Nodes that leave, by index, and what takes their places.
    pub retiring: Vec<(u32, Box<RetiredNode>)>,
    /// Ports that get another node: the index of each, and that of its node.
    pub moves: Vec<(u32, u32)>,
    /// The nodes that decide in turn from now on, if that may change.
    pub in_turn: Option<InTurn>,
    /// Actions on its nodes.
    pub acts: Vec<(u32, AtNode)>,
    /// Indices of traffic sources that leave.
    pub sources_leaving: Vec<u32>,
    /// Traffic sources that join, by index: those behind all others last, in order.
    pub sources: Vec<(u32, PartSource)>,
}

/// The outcome of a rewiring for what it has removed.
#[derive(Debug, Default)]
pub struct Removed {
    /// The errors of ports.
    pub errors: Vec<PortError>,
    /// The last counters of links, with what they dropped.
    pub links: Vec<(LinkRef, LinkStats)>,
}

impl Rewiring {
    /// The steps of each worker, round by round: a single worker does everything in one.
    pub(crate) fn rounds(self) -> Vec<Vec<RewiringStep>> {
        let Self { map, before, parts } = self;
        let (map, before) = (Arc::new(map), before.map(Arc::new));
        let mut rounds: [Vec<RewiringStep>; 3] = Default::default();
        let together = parts.len() == 1;
        for (worker, part) in (0..).zip(parts) {
            let Part { joining, wheel, leaving, drained, exact, ports_before, ports, .. } = part;
            let Part { nodes, retiring, moves, in_turn, acts, sources_leaving, sources, .. } = part;
            let mut steps: [RewiringStep; 3] = Default::default();
            let [first, second, third] = if together { [0; 3] } else { [0, 1, 2] };
            steps[first].joining = joining;
            steps[first].wheel = wheel.map(|links| Wheel::new(links, Nanos::ZERO));
            if let Some(before) = &before {
                steps[first].take_map(before, worker);
            }
            steps[first].exact = exact;
            // What other workers send to a new port before its worker knows it is dropped.
            let closed = || PortSetup { place: GONE_PORT, node: 0, port: Box::new(InnerPort::removed()) };
            let from = ports_before as usize;
            let new = ports.iter().filter(|(slot, _)| !together && *slot as usize >= from);
            steps[first].ports = new.map(|(slot, _)| (*slot, Some(PortSlot::new(closed())))).collect();
            let ports = ports.into_iter().map(|(slot, setup)| (slot, Some(PortSlot::new(setup))));
            steps[second].ports.extend(ports);
            let nodes = nodes.into_iter().map(|(place, node)| (place, Some(node)));
            steps[first].nodes = nodes.collect();
            let retiring = retiring.into_iter().map(|(place, stand_in)| (place, Some(stand_in)));
            steps[second].retiring = retiring.collect();
            (steps[second].in_turn, steps[second].moves, steps[second].acts) = (in_turn, moves, acts);
            (steps[second].sources_leaving, steps[second].sources) = (sources_leaving, sources);
            steps[second].take_map(&map, worker);
            (steps[third].leaving, steps[third].drained) = (leaving, drained);
            rounds.iter_mut().zip(steps).for_each(|(round, step)| round.push(step));
        }
        rounds.into_iter().take(if together { 1 } else { 3 }).collect()
    }
}

impl Remote {
    /// Rewires the engine: a single worker at one instant. Several add what is new, take the map, and remove
    /// links, each step after all have done the one before. A report that counts links in parts ends first.
    /// Returns the outcome for what has left. It waits as long as the workers run: one that is late does
    /// its step all the same, and no rewiring may be half made.
    ///
    /// # Errors
    /// If a worker has ended.
    ///
    /// # Panics
    /// If there is not one part for each worker.
    pub fn rewire(&self, mut rewiring: Rewiring) -> Result<Removed, RemoteError> {
        assert_eq!(rewiring.parts.len(), self.inboxes.len(), "a part for each worker");
        for (worker, part) in (0..).zip(&mut rewiring.parts) {
            let waker = waker(&self.bells, worker);
            part.nodes.iter_mut().for_each(|(_, node)| node.set_waker(&waker));
        }
        let _alone = self.rewiring.write().unwrap_or_else(PoisonError::into_inner);
        let mut removed = Removed::default();
        for round in rewiring.rounds() {
            let steps = (0..).zip(round.into_iter().map(Box::new)).collect();
            let done = self.ask_each(steps, Duration::MAX, |step, reply| Command::Rewire { step, reply })?;
            // What workers return is freed here, and ports that have left end here.
            for (worker, mut step) in (0..).zip(done) {
                removed.errors.extend(step.finish_ports());
                let links = step.leaving.iter().map(|&link| LinkRef::new(worker, link));
                removed.links.extend(links.zip(step.left.drain(..)));
            }
        }
        Ok(removed)
    }
}
