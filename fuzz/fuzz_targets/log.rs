//! Arbitrary bytes as a packet log.
#![no_main]

#[path = "../../crates/run/tests/exercise/log.rs"]
mod log;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| log::run(bytes));
