//! What must hold for any bytes at all; shared by the property tests, the replay of the corpora and the fuzz
//! targets.

pub mod frame;
pub mod virtio;
