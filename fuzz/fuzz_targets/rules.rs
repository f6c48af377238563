//! Arbitrary text as rules, classes and lists of a link's parameters.
#![no_main]

#[path = "../../crates/link/tests/exercise/rules.rs"]
mod exercise;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| exercise::run(bytes));
