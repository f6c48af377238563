//! Limits of verification.

/// Most visits of instructions with a state, counting each round of a loop, and what takes as long as visits:
/// a hostile program is refused within seconds.
pub const MAX_STEPS: usize = 400_000;

/// Most nested loops in a function.
pub const MAX_NESTED: usize = 8;

/// Maximum distance of an address from its origin in bytes, so that addresses of one region never get into
/// another.
pub const FURTHEST: i64 = 1 << 29;
