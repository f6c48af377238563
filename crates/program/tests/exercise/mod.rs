//! What the tests and the fuzzer do with any bytes.

pub mod program;
