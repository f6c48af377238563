//! Arbitrary bytes as a frame for a router.
#![no_main]

#[path = "../../crates/router/tests/router/exercise.rs"]
mod exercise;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| exercise::run(bytes));
