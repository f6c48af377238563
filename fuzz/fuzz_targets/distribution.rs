//! Arbitrary bytes as a distribution.
#![no_main]

#[path = "../../crates/random/tests/exercise/distribution.rs"]
mod exercise;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| exercise::run(bytes));
