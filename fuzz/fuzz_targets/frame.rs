//! Arbitrary bytes as a frame.
#![no_main]

#[path = "../../crates/wire/tests/exercise/frame.rs"]
mod exercise;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| exercise::run(bytes));
