//! Invariants for arbitrary text and frames, shared by the property tests and the fuzz target.

pub mod expression;
