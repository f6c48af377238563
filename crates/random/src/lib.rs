//! Randomness with a shape: distributions as quantile tables, and the processes by which packets come.
#![forbid(unsafe_code)]

pub mod math;
pub mod process;
pub mod quantile;
