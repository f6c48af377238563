//! Invariants for arbitrary bytes, shared by the property tests, the replay of the corpora and the fuzz
//! targets.

pub mod frame;
pub mod virtio;
