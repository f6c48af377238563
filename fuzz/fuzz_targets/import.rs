//! Arbitrary text as something to import.
#![no_main]

#[path = "../../crates/import/tests/exercise/import.rs"]
mod exercise;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| exercise::run(bytes));
