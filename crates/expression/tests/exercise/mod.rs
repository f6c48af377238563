//! What must hold for any text and any frame; shared by the property tests, the replay of the corpus and the
//! fuzz target.

pub mod expression;
