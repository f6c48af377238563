//! Places of ports in a plan that runs: ports of the same name keep them in the plan that follows.

use crate::plan::{Plan, Port};
use std::collections::HashMap;

/// Which of two ports that share a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Side {
    /// The one that the scenario names.
    Near,
    /// The far side of a router's own port, on a bridge.
    Far,
}

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct KeptPlaces {
    by_name: HashMap<(Box<str>, Side), u16>,
    /// By place, those of removed ports included.
    pub(super) names: Vec<Box<str>>,
}

impl KeptPlaces {
    /// The places in `plan`.
    pub(crate) fn of(plan: &Plan) -> Self {
        let side = |port: &Port| match port.attachment.far() {
            Some(_) if port.router.is_none() => Side::Far,
            _ => Side::Near,
        };
        let all = (0..).zip(&plan.ports);
        let by_name = all.map(|(place, port)| ((port.name.clone(), side(port)), place)).collect();
        Self { by_name, names: plan.ports.iter().map(|port| port.name.clone()).collect() }
    }

    /// The place of a port.
    pub(super) fn get(&self, name: &str, side: Side) -> Option<u16> {
        self.by_name.get(&(name.into(), side)).copied()
    }
}
