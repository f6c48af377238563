//! Nodes whose ports lead to other nodes: they decide about each packet in its turn, in the exact order of
//! what happens.

use longwire_units::Nanos;

/// Which ports lead to other nodes instead of out of the engine, and whose nodes decide in their turn. Empty
/// if there are none.
#[derive(Debug, Clone, Default)]
pub struct Joints {
    ports: Vec<Joint>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Joint {
    far: Option<u16>,
    in_turn: bool,
    routed: bool,
}

impl Joints {
    /// What goes out by `port` comes in by `far`. The nodes of both must decide in their turn.
    pub fn join(&mut self, port: u16, far: u16) {
        self.at(port).far = Some(far);
    }

    /// The node of `port` decides in its turn: about one packet at a time, after everything that happens
    /// before that packet comes. The links that packets enter after its decision must be its worker's. Links'
    /// answers to what it sent come back to it if it is a router.
    pub fn take_turns(&mut self, port: u16, is_router: bool) {
        let joint = self.at(port);
        (joint.in_turn, joint.routed) = (true, is_router);
    }

    fn at(&mut self, port: u16) -> &mut Joint {
        let place = usize::from(port);
        if self.ports.len() <= place {
            self.ports.resize(place + 1, Joint::default());
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

/// The nodes of a worker that decide in their turn.
#[derive(Debug, Default)]
pub(crate) struct Turns {
    /// By place among the worker's nodes, and the places of those that do.
    own: Vec<bool>,
    pub places: Vec<usize>,
    /// A time before which none of them wants to be told the time.
    pub next: Nanos,
}

impl Turns {
    /// Of `nodes` nodes those with these places.
    pub fn new(nodes: usize, in_turn: impl Iterator<Item = usize>) -> Self {
        let mut own = vec![false; nodes];
        in_turn.for_each(|node| own[node] = true);
        let places = (0..nodes).filter(|&node| own[node]).collect();
        Self { own, places, next: Nanos::NEVER }
    }

    /// Whether the node decides in its turn.
    #[inline]
    pub fn has(&self, node: usize) -> bool {
        self.own[node]
    }
}
