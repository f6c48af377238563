//! Arbitrary bytes as messages of tunnels.
#![no_main]

#[path = "../../crates/tunnel/tests/exercise/tunnel.rs"]
mod exercise;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| exercise::run(bytes));
