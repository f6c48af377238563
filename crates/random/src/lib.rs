//! Shaped randomness: distributions as quantile tables, arrival processes, and the parts of capture files
//! that they need.
#![forbid(unsafe_code)]

pub mod math;
pub mod pcapng;
pub mod process;
pub mod quantile;
