//! Arbitrary bytes as an object or a program, compiled.
#![no_main]

#[path = "../../crates/program/jit/tests/exercise/compiled.rs"]
mod exercise;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    exercise::run(bytes);
});
