//! Invariants for arbitrary bytes, shared by the property tests and the fuzz targets.

pub mod frame;
pub mod virtio;
