//! How a real run measures what packets cost.

use longwire_units::Nanos;

/// How a real run measures what packets cost.
#[derive(Debug, Clone, Copy)]
pub struct Meter {
    /// The processor's cycle counter, or what else goes on steadily.
    pub cycles: fn() -> u64,
    /// How many of these a microsecond has, 1 to 1 000 000.
    pub per_microsecond: u32,
    /// The engine's time.
    pub now: fn() -> Nanos,
}
