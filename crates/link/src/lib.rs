//! The emulated link, stage by stage in the order a packet meets them:
//! classify → filter → impair → queue → transmit → delay.
//!
//! Each folder is a stage, each file in it a block. A block has a row in its folder's list, and everything else
//! (scenario keys, help, schema, contract tests) follows from that row.
#![forbid(unsafe_code)]

mod agenda;
mod background;
mod blocks;
mod change;
pub mod classify;
mod counters;
mod decided;
pub mod delay;
mod fifo;
pub mod filter;
mod front;
mod has;
pub mod impair;
mod judge;
mod line;
mod link;
mod links;
mod medium;
mod opportunity;
mod plain;
mod profile;
pub mod queue;
mod registry;
mod ring;
mod sending;
mod simulated;
mod train;
pub mod transmit;
mod wire;

pub use counters::{Histogram, LinkStats};
pub use fifo::Fifo;
pub use judge::Judge;
pub use links::{Arrival, ChangeError, Links};
pub use medium::{MEDIA, check_medium, medium_profiles, medium_rate};
pub use plain::{Firsts, Passed, Stop};
pub use registry::{LinkConfig, NONE, registry, without};
pub use simulated::Lead;
