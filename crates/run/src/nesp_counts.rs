//! Counters of the NESP server of a run.

use crate::threads::lock;
use longwire_nesp::Counters;
use longwire_port::nesp::Intake;
use longwire_report::Row;
use std::sync::{Arc, Mutex};

/// Counters of messages, for reports.
#[derive(Debug, Clone)]
pub struct NespCounts {
    pub(crate) messages: Arc<Mutex<Counters>>,
    pub(crate) intakes: Vec<Arc<Intake>>,
}

impl NespCounts {
    /// The report's row.
    pub fn row(&self) -> Row {
        let counted = *lock(&self.messages);
        let sum = |count: fn(&Intake) -> u64| self.intakes.iter().map(|intake| count(intake)).sum::<u64>();
        Row::new("nesp", "requests")
            .measured(counted.requests)
            .extra("kind", "nesp")
            .extra("hellos", counted.hellos)
            .extra("repeated", counted.repeated)
            .extra("replayed", counted.replayed)
            .extra("bad_authenticator", counted.bad_authenticator)
            .extra("unknown_session", counted.unknown_session)
            .extra("malformed", counted.malformed)
            .extra("frames", sum(Intake::taken))
            .extra("rate_limited", sum(Intake::limited))
    }
}
