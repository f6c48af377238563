//! What a machine is made of: its scheduler, and the rings between its parts.

use crate::Settings;
use longwire_units::Nanos;

/// A machine. The paper's figure 3 has rings 1 to 4; with `separate-drr` (figure 4) the fourth leads to the
/// second scheduler, and a fifth from it to the port.
#[derive(Debug, Clone)]
pub struct Setup {
    /// The scheduler's name.
    pub scheduler: String,
    /// Its settings, of which processors, their clock, the port's cost of a byte and the budget are the
    /// machine's, too.
    pub settings: Settings,
    /// Ring 1, from the input to the scheduler, in messages.
    pub input_ring: usize,
    /// Ring 2, from the scheduler to the processors.
    pub request_ring: usize,
    /// Ring 3, by which processors tell the scheduler what packets took.
    pub feedback_ring: usize,
    /// Ring 4, from the processors to each port; with `separate-drr` the queues before the port. Processors
    /// wait while it is full, unless the settings have a [`ready_limit`](Settings::ready_limit).
    pub ready_ring: u32,
    /// Ring 5, from the second scheduler to each port; with 0 the port takes packets itself when it is free.
    pub transmit_ring: usize,
    /// What one turn of a thread of the scheduler takes: an enqueue, a dequeue, a feedback.
    pub step: Nanos,
    /// Whether packets that find ring 1 full are dropped; else the input waits.
    pub drop_at_input: bool,
    /// The scheduler is told what each packet will cost, as [`Estimator::Exact`](crate::Estimator::Exact) has
    /// it.
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
