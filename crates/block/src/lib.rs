//! The contract between the engine and the stages of a packet's path.
//!
//! Stages of a link, ports and nodes are told the time and given their dice; they never read a clock or a
//! global generator. The engine depends on nothing but this contract.
#![forbid(unsafe_code)]

pub mod change;
mod decision;
pub mod dice;
mod drop;
pub mod flow;
mod node;
mod node_stats;
mod outbox;
pub mod path;
mod port;
mod stage;
pub mod stations;

pub use decision::{CONSUMED, FLOOD, KEPT, MAX_PORTS, REFUSED, refusal, refuse};
pub use dice::Dice;
pub use drop::{DropCounts, DropReason};
pub use longwire_settings::{
    Choice, Fallback, Form, Grammar, Limit, Millionths, Param, ParamKind, Parsed, Reading, Setting, Settings,
    Spec, SpecError, Value, Values,
};
pub use node::Node;
pub use node_stats::{AttachmentStats, FlowStats, NodeStats, ProcessorStats};
pub use outbox::{OUTBOX, Outbox};
pub use port::{JoiningSource, Port, PortError, PortStats, Stamp, Underlay};
pub use stage::{Block, Effects, Flips, Offer, Stateless, Verdict};
pub use stations::Stations;
