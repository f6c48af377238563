//! What a `[[router]]` section says of processors that flows share, as it is written.

use crate::file_forwarder::ForwarderKey;
use crate::processor_terms::{Cycles, Weighing};
use crate::written::{Name, Whole, Written};
use longwire_units::Nanos;
use schemars::JsonSchema;
use serde::Deserialize;

/// A flow with a name.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct NamedFlow {
    /// Its name in reports.
    pub(crate) name: Written<Name>,
    /// Its packets; of several matching flows, the one with the fewest wildcards gets a packet.
    pub(crate) key: ForwarderKey,
    /// Its share compared with others', 1 to 65535. Default 1.
    pub(crate) weight: Option<Written<Weighing>>,
    /// Cost of its packets in virtual time. Default: as for all.
    pub(crate) cycles: Option<Written<Cycles>>,
}

/// Capacity of the rings between stages in messages, and the scheduler's time per message. Real time has
/// `ready`, and with several processors `requests` before each of them.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", expecting = "a table such as { ready = 64 }")]
pub(crate) struct Rings {
    /// From the input to the scheduler: packets are dropped while it is full. Default 128.
    pub(crate) input: Option<Written<Whole>>,
    /// From the scheduler to the processors. Default 1.
    pub(crate) requests: Option<Written<Whole>>,
    /// From the processors back to the estimator. Default 128.
    pub(crate) feedback: Option<Written<Whole>>,
    /// Processed packets before each port: while there are as many, processors take none of its flows'
    /// packets. Default 128.
    pub(crate) ready: Option<Written<Whole>>,
    /// The scheduler's virtual time for a message: to enqueue a packet, to dispatch one, to receive its
    /// cost. Default "0 ns": input and feedback are never full then.
    pub(crate) step: Option<Written<Nanos>>,
}
