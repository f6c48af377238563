//! Ports without a device: rings in the process for tests, and a generator with its sink for benchmarks.

mod blast;
mod pair;

pub use blast::{Blast, BlastError, BlastPlan, Pair};
pub use pair::{Facts, FarEnd, Frame, MemoryPort};
