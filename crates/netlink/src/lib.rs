//! The kernel's netlink (netlink(7)): sockets, messages with nested attributes, acknowledgements, dumps, and
//! atomic batches.
//!
//! [`link`], [`address`], [`route`] and [`neighbour`] write requests and parse the kernel's messages
//! (rtnetlink(7)). Every length is checked; an invalid message is [`Malformed`].
//!
//! ```
//! use longwire_netlink::{Link, Socket, link};
//! # fn main() -> std::io::Result<()> {
//! Socket::route()?.dump(link::list(), |_, body| {
//!     if let Ok(Some(link)) = Link::read(body) {
//!         println!("{} is {}", link.index, if link.is_up() { "up" } else { "down" });
//!     }
//! })?;
//! # Ok(())
//! # }
//! ```
#![forbid(unsafe_code)]

pub mod address;
pub mod link;
mod message;
pub mod neighbour;
pub mod route;
mod socket;

pub use address::Address;
pub use link::{Link, LinkSettings, interface_index, interface_name};
pub use message::{
    Malformed, Message, Reply, attribute, attribute_text, attributes, split_reply, u16_at, u32_at,
};
pub use neighbour::Neighbour;
pub use route::{Hop, Route};
pub use socket::{LONGEST, Socket};
