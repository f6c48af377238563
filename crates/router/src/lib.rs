//! Nodes: bridges and routers.
#![forbid(unsafe_code)]

mod bridge;
mod fdb;
pub mod prefix;

pub use bridge::{Bridge, DEFAULT_AGEING, DEFAULT_STATIONS};
