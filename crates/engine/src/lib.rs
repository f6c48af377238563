//! The engine.
pub mod wheel;
