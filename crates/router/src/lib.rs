//! Nodes: bridges, and later routers.
#![forbid(unsafe_code)]

mod bridge;
mod fdb;

pub use bridge::{Bridge, DEFAULT_AGEING, DEFAULT_STATIONS};
