//! The drivers, one module each.

pub mod memory;
pub mod source;
