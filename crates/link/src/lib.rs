//! The emulated link, stage by stage in the order a packet meets them: classify → filter → impair → queue →
//! transmit → delay.
//!
//! Each folder is a stage, each file in it a block. A block has a row in its folder's list; everything else
//! (scenario keys, help, schema, contract tests) follows from that row.
#![forbid(unsafe_code)]

mod agenda;
mod asked;
mod background;
mod before;
mod blocks;
mod chain;
mod change;
pub mod classify;
mod counters;
mod decided;
pub mod delay;
mod events;
mod fate;
mod fifo;
pub mod filter;
mod foresight;
mod front;
mod has;
pub mod impair;
mod joining;
mod judge;
mod line;
mod link;
mod links;
mod medium;
mod opportunity;
mod own;
mod phantoms;
mod piece;
mod plain;
mod profile;
pub mod queue;
mod rare;
mod registry;
mod ring;
mod sending;
mod simulated;
mod stage;
mod stations;
mod train;
pub mod transmit;
mod wire;

pub use change::ChangeError;
pub use counters::LinkStats;
pub use fate::Arrival;
pub use fifo::Fifo;
pub use joining::{GONE, Joining};
pub use judge::Judge;
pub use links::Links;
pub use medium::{MEDIA, check_medium, medium_profiles, medium_rate};
pub use plain::{Departed, Firsts, Stop};
pub use registry::{LinkConfig, NONE, registry, without};
pub use simulated::Lead;
