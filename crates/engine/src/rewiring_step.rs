//! A worker's step of a rewiring.

use crate::events::SourceSetup;
use crate::map::Map;
use crate::ports::{PortSlot, Ports};
use crate::retired::RetiredNode;
use crate::turns::InTurn;
use crate::wheel::Wheel;
use longwire_block::{JoiningSource, Node, PortError};
use longwire_link::{Joining, LinkStats};
use longwire_units::Nanos;
use std::sync::Arc;

/// An action on a node between two batches, with the current time.
pub type AtNode = Box<dyn FnOnce(&mut dyn Node, Nanos) + Send>;

/// A traffic source that joins.
pub struct PartSource {
    /// Its port and name.
    pub setup: SourceSetup,
    /// What is added to the port; none if others send in its place.
    pub flow: Option<JoiningSource>,
}

/// A step of a rewiring at one worker; afterwards it holds what is to be freed.
#[derive(Default)]
pub(crate) struct RewiringStep {
    pub joining: Option<Joining>,
    pub wheel: Option<Wheel>,
    pub map: Option<Arc<Map>>,
    pub leaving: Vec<u32>,
    /// The last counters of the links that have left, in the order of `leaving`.
    pub left: Vec<LinkStats>,
    pub drained: bool,
    pub exact: bool,
    pub ports: Vec<(u32, Option<PortSlot>)>,
    pub nodes: Vec<(u32, Option<Box<dyn Node>>)>,
    pub retiring: Vec<(u32, Option<Box<RetiredNode>>)>,
    pub moves: Vec<(u32, u32)>,
    /// The nodes that decide in turn, if that may change.
    pub in_turn: Option<InTurn>,
    pub acts: Vec<(u32, AtNode)>,
    pub sources_leaving: Vec<u32>,
    pub sources: Vec<(u32, PartSource)>,
    /// Where packets leave by the new map.
    pub exits: Box<[u32]>,
}

impl RewiringStep {
    /// Whether it adds traffic sources that send.
    pub fn adds_sources(&self) -> bool {
        self.sources.iter().any(|(_, source)| source.flow.is_some())
    }

    /// Ends the ports that have left; returns their errors.
    pub fn finish_ports(&mut self) -> impl Iterator<Item = PortError> {
        self.ports.iter_mut().filter_map(|(_, slot)| slot.as_mut()?.port.finish().err())
    }

    /// Sets the worker's new map.
    pub fn take_map(&mut self, map: &Arc<Map>, worker: u32) {
        self.exits = Ports::exits_of(map, worker, false);
        self.map = Some(Arc::clone(map));
    }
}
