//! Port drivers for real interfaces, captures and memory, and the offload settings of interfaces.
//!
//! Each driver is a [`longwire_block::Port`] in its own module under [`driver`].

mod bpf;
pub mod driver;
pub mod intercepted;
pub mod interface;
pub mod nesp;
pub mod raw;
mod system;
mod vnet;

pub use driver::af_packet::{AfPacket, AfPacketOptions};
pub use driver::tap::{Tap, TapOptions};
pub use interface::{Feature, Interface, OffloadGuard, OpenError};
