//! Shaped randomness: distributions as quantile tables, arrival processes, and the frames of captures.
#![forbid(unsafe_code)]

pub mod frames;
pub mod math;
mod pcapng;
pub mod process;
pub mod quantile;
