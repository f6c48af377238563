//! Arbitrary bytes as NESP messages.
#![no_main]

#[path = "../../crates/nesp/tests/exercise/nesp.rs"]
mod exercise;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| exercise::run(bytes));
