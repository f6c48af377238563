//! What Longwire can do on this machine, measured: each bench prints a median with its spread beside its target.
#![deny(unsafe_code)]

pub mod engine;
mod sample;

pub use sample::Sample;
