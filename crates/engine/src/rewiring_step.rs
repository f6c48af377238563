//! A step of a rewiring, as a worker makes it.

use crate::map::Map;
use crate::wheel::Wheel;
use longwire_link::Joining;
use longwire_units::Nanos;
use std::sync::Arc;

/// A step of a rewiring at one worker; afterwards it has what is to be freed.
pub(crate) struct RewiringStep {
    pub joining: Option<Joining>,
    pub wheel: Option<Wheel>,
    pub map: Option<Arc<Map>>,
    pub leaving: Vec<u32>,
    pub drained: bool,
    pub exact: bool,
}

impl RewiringStep {
    pub const fn new() -> Self {
        Self { joining: None, wheel: None, map: None, leaving: Vec::new(), drained: false, exact: false }
    }

    /// What a worker takes in, before packets can come to it.
    pub fn take_in(&mut self, joining: Joining, wheel: Option<usize>) {
        self.wheel = wheel.map(|links| Wheel::new(links, Nanos::ZERO));
        self.joining = Some(joining);
    }
}
