//! Construction data of a machine: its scheduler, and the rings between its parts.

use crate::Settings;
use longwire_units::Nanos;

/// A machine. The paper's figure 3 has rings 1 to 4; with `separate-drr` (figure 4) the fourth leads to the
/// second scheduler, and a fifth from it to the port.
#[derive(Debug, Clone)]
pub struct Setup {
    /// The scheduler's name.
    pub scheduler: String,
    /// Its settings; the machine also uses processors, their clock, the port's cost of a byte and the budget.
    pub settings: Settings,
    /// Ring 1, from the input to the scheduler, in messages.
    pub input_ring: usize,
    /// Ring 2, from the scheduler to the processors.
    pub request_ring: usize,
    /// Ring 3, from processors to the scheduler, for measurements.
    pub feedback_ring: usize,
    /// Ring 4, from the processors to each port; with `separate-drr` the queues before the port. Processors
    /// wait while it is full, unless the settings have a [`ready_limit`](Settings::ready_limit).
    pub ready_ring: u32,
    /// Ring 5, from the second scheduler to each port; with 0 the port takes packets itself when it is free.
    pub transmit_ring: usize,
    /// Duration of one turn of a scheduler thread: an enqueue, a dequeue, a feedback.
    pub step: Nanos,
    /// Whether packets are dropped if ring 1 is full; otherwise the input waits.
    pub drop_at_input: bool,
    /// Whether the scheduler knows the cost of each packet, as in
    /// [`Estimator::Exact`](crate::Estimator::Exact).
    pub known: bool,
}

impl Setup {
    /// A machine with a router's rings, whose scheduler's threads take no time.
    pub fn new(scheduler: &str, settings: Settings) -> Self {
        Self {
            scheduler: scheduler.into(),
            settings,
            input_ring: 4096,
            request_ring: 1,
            feedback_ring: 128,
            ready_ring: 128,
            transmit_ring: 0,
            step: Nanos::ZERO,
            drop_at_input: true,
            known: false,
        }
    }
}
