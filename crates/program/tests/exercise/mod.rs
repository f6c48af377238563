//! Invariants for arbitrary bytes, shared by tests and fuzzer.

pub mod program;
