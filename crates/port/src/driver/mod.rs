//! The drivers, one module each.

pub mod af_packet;
pub mod af_xdp;
pub mod memory;
pub mod pcap;
pub mod reopening;
pub mod source;
pub mod tap;
mod wire_frames;
