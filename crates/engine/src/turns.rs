//! Nodes whose ports connect to other nodes: they decide about each packet in turn, in the exact order of
//! events.

use longwire_units::Nanos;

/// Ports that connect nodes instead of leaving the engine, and nodes that decide in turn.
#[derive(Debug, Clone, Default)]
pub struct InnerPorts {
    ports: Vec<InnerLink>,
}

#[derive(Debug, Clone, Copy, Default)]
struct InnerLink {
    far: Option<u16>,
    in_turn: bool,
    routed: bool,
}

impl InnerPorts {
    /// Connects `port` to `far`: packets sent by one are received by the other. Both nodes must decide in
    /// turn.
    pub fn join(&mut self, port: u16, far: u16) {
        self.at(port).far = Some(far);
    }

    /// Makes the node of `port` decide in turn: about one packet at a time, after all earlier events. The
    /// links that packets enter after its decision must belong to its worker. If it is a router, replies of
    /// links to packets that it sent come back to it.
    pub fn take_turns(&mut self, port: u16, is_router: bool) {
        let joint = self.at(port);
        (joint.in_turn, joint.routed) = (true, is_router);
    }

    fn at(&mut self, port: u16) -> &mut InnerLink {
        let place = usize::from(port);
        if self.ports.len() <= place {
            self.ports.resize(place + 1, InnerLink::default());
        }
        &mut self.ports[place]
    }

    #[inline]
    pub(crate) fn far_side(&self, port: u16) -> Option<u16> {
        self.ports.get(usize::from(port))?.far
    }

    #[inline]
    pub(crate) fn in_turn(&self, port: u16) -> bool {
        self.ports.get(usize::from(port)).is_some_and(|joint| joint.in_turn)
    }

    pub(crate) fn routed(&self, port: u16) -> bool {
        self.ports.get(usize::from(port)).is_some_and(|joint| joint.routed)
    }
}

/// The nodes of a worker that decide in turn.
#[derive(Debug, Default)]
pub struct InTurn {
    /// Whether each of the worker's nodes decides in turn, and the indices of those that do.
    own: Vec<bool>,
    pub(crate) places: Vec<usize>,
    /// A lower bound on their deadlines.
    pub(crate) next: Nanos,
}

impl InTurn {
    /// Marks those of `nodes` nodes with these indices.
    pub fn new(nodes: usize, in_turn: impl Iterator<Item = usize>) -> Self {
        let mut own = vec![false; nodes];
        in_turn.for_each(|node| own[node] = true);
        let places = (0..nodes).filter(|&node| own[node]).collect();
        Self { own, places, next: Nanos::NEVER }
    }

    /// Another node, which does not decide in turn.
    pub(crate) fn add(&mut self) {
        self.own.push(false);
    }

    /// Whether the node decides in turn.
    #[inline]
    pub(crate) fn has(&self, node: usize) -> bool {
        self.own[node]
    }
}
