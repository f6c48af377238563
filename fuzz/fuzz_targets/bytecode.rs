//! Arbitrary bytes as a program, run unverified.
#![no_main]

#[path = "../../crates/program/tests/exercise/program.rs"]
mod program;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    program::bytecode(bytes);
});
