//! Arbitrary bytes as a trace.
#![no_main]

#[path = "../../crates/trace/tests/exercise/trace.rs"]
mod exercise;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| exercise::run(bytes));
