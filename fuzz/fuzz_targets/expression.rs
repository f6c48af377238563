//! Arbitrary text as an expression, arbitrary bytes as a frame.
#![no_main]

#[path = "../../crates/expression/tests/exercise/expression.rs"]
mod exercise;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| exercise::run(bytes));
