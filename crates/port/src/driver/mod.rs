//! The drivers, one module each.

pub mod memory;
pub mod pcap;
pub mod source;
mod wire_frames;
