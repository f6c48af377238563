//! Any lines as requests about a router's programs, packets, and time that passes.
#![no_main]

#[path = "../../crates/run/tests/exercise/install.rs"]
mod exercise;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    exercise::run(bytes);
});
