//! Limits of verification.

/// Most states of all instructions together, counting each round of a loop: a hostile program is refused in
/// about a second.
pub const MAX_STEPS: usize = 400_000;

/// Most nested loops in a function.
pub const MAX_NESTED: usize = 8;

/// Maximum distance of an address from its origin in bytes, so that addresses of one region never get into
/// another.
pub const FURTHEST: i64 = 1 << 29;
