//! Arbitrary bytes as an object file of programs.
#![no_main]

#[path = "../../crates/program/tests/exercise/program.rs"]
mod program;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    program::object(bytes);
});
