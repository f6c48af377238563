//! Arbitrary bytes as two captures of a path.
#![no_main]

#[path = "../../crates/distill/tests/exercise/distill.rs"]
mod exercise;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| exercise::run(bytes));
