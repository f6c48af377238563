//! Invariants for arbitrary text and frames; shared by the property tests, the replay of the corpus and the
//! fuzz target.

pub mod expression;
