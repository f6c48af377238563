//! Cost measurement in real runs.

use longwire_units::Nanos;

/// Cost measurement in real runs.
#[derive(Debug, Clone, Copy)]
pub struct Meter {
    /// Reads the processor's cycle counter, or another steady counter.
    pub cycles: fn() -> u64,
    /// Its counts per microsecond, 1 to 1 000 000.
    pub per_microsecond: u32,
    /// The engine's time.
    pub now: fn() -> Nanos,
}
