//! How far a program is followed, and what of it is too much.

/// Most states of all instructions together, each round of a loop by itself: so that a hostile program is
/// refused in about a second.
pub const MAX_STEPS: usize = 400_000;

/// Most loops within each other in a function.
pub const MAX_NESTED: usize = 8;

/// Furthest that an address may be from where it began, in bytes: so that addresses of one region never get
/// into another's.
pub const FURTHEST: i64 = 1 << 29;
