//! Arbitrary text as a scenario.
#![no_main]

#[path = "../../crates/assemble/tests/exercise/scenario.rs"]
mod exercise;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| exercise::run(bytes));
