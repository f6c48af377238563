//! From a checked plan to an engine that is ready to start, and what the plan takes of a machine.
//!
//! [`build`] makes the engine. [`price`] computes the memory and packets a second that a plan needs,
//! [`predict`] the load of each worker and port at what the machine's stages cost.
#![forbid(unsafe_code)]

mod build;
mod capacity;
mod price;

pub use build::{
    BuildError, Built, Levels, LevelsError, TO_THE_END, build, change_router, measure_processors,
    port_workers, tolerance,
};
pub use capacity::{Capacity, PortLoad, WHOLE, WorkerLoad, predict};
pub use price::{Calibration, Pricing, Shortfall, fit_pool, price};
