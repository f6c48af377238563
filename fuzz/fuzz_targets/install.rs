//! Arbitrary lines as requests about a router's programs, packets, and the passage of time.
#![no_main]

#[path = "../../crates/run/tests/exercise/install.rs"]
mod exercise;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    exercise::run(bytes);
});
