//! What a worker has to know to send packets their way.

use crate::aside::Steered;
use crate::turns::Joints;
use longwire_block::path::{Fork, Paths};
use longwire_link::classify::Classifier;
use std::collections::HashMap;

/// What all workers know and none changes.
pub struct Map {
    /// Chooses paths.
    pub classifier: Classifier,
    /// Paths of more than one link.
    pub paths: Paths,
    /// By a port's place in the plan: the worker that owns it, and its place there.
    pub homes: Vec<Home>,
    /// By the port that a flooded packet came in by, by place in the plan: the tree that it takes, where ways begin together.
    pub floods: HashMap<u16, Fork>,
    /// Where packets go that filters send to other links.
    pub steered: Steered,
    /// The same where nodes do, by the numbers of [`Meta::wish`](longwire_packet::Meta::wish).
    pub wished: Steered,
    /// Ports that lead to other nodes.
    pub joints: Joints,
}

/// Where a port lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Home {
    /// The worker.
    pub worker: u32,
    /// Place among the worker's ports.
    pub slot: u32,
}
