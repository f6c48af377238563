//! A worker's steps of a rewiring.

use super::{Order, Worker};
use crate::rewiring_step::RewiringStep;
use longwire_units::Nanos;
use std::mem::swap;

impl Worker {
    /// Takes links in, takes the map over, and lets links go. What is no longer needed is left in `step`.
    pub(crate) fn rewire(&mut self, step: &mut RewiringStep, now: Nanos) {
        if let Some(joining) = &mut step.joining {
            if self.observing.on {
                self.observe_joining(joining.slots());
            }
            self.emulation.join(joining, step.wheel.as_mut(), now);
        }
        if let Some(map) = &mut step.map {
            swap(&mut self.map, map);
            self.nodes.verdicts.forget_all();
            if self.observing.on {
                self.observe_by_new_map();
            }
        }
        for &link in &step.leaving {
            self.schedules.links.forget(link);
            self.emulation.leave(&mut self.pool, link, now, step.drained);
        }
        if step.exact {
            self.order = Order::Exact;
        }
    }
}
