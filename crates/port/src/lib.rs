//! Where frames come in and go out: drivers for real interfaces, captures and memory, and the offload
//! settings of interfaces with their restoring.
//!
//! Each driver is a [`longwire_block::Port`] in a file of its own under [`driver`].

mod bpf;
pub mod driver;
pub mod interface;
pub mod nesp;
pub mod raw;
mod vnet;
pub mod wrapped;

pub use driver::af_packet::{AfPacket, AfPacketOptions};
pub use driver::tap::{Tap, TapOptions};
pub use interface::{Feature, Interface, OffloadGuard, OpenError};
