//! The protocol of tunnels between instances: frames with the times at which they left, sealed with a shared
//! key, and the offset between the clocks of both machines. `PROTOCOL.md`, beside this
//! crate's manifest, is its specification.
//!
//! This crate has no sockets and no clock. Times are nanoseconds on each machine's own clock; callers pass
//! them. All state is bounded, and no message of anybody else makes any.
#![forbid(unsafe_code)]

mod clock_offset;
mod endpoint;
mod message;
mod session;

pub use clock_offset::{ClockOffset, Exchange};
pub use endpoint::{Counters, Endpoint, MessageEvent, Status};
pub use message::{Message, OVERHEAD, Probe, VERSION};
