//! Builds an engine from a checked plan, and computes the resources that the plan needs.
//!
//! [`build`] makes the engine. [`price`] computes the memory and packet rate that a plan needs, [`predict`]
//! the load of each worker and port at the measured costs of the machine's stages.
#![forbid(unsafe_code)]

mod build;
mod capacity;
mod price;

pub use build::{
    BuildError, BuiltEngine, CantRewire, FixedDifference, Layout, Levels, LevelsError, PlanChange,
    TO_THE_END, are_joined_alike, build, change_router, fixed_differences, is_at_start, known_neighbours,
    measure_processors, port_workers, rewire, rewirings, tolerance,
};
pub use capacity::{Capacity, LinkWork, PlaceWork, PortLoad, WHOLE, WorkerLoad, place_work, predict};
pub use price::{Calibration, Pricing, Shortfall, fit_pool, price};
