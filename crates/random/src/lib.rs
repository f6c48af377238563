//! Randomness with a shape: distributions as quantile tables, and the processes by which packets come, with
//! what they need of captures.
#![forbid(unsafe_code)]

pub mod math;
pub mod pcapng;
pub mod process;
pub mod quantile;
