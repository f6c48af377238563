//! The control plane of a router: a network namespace in which routing protocols run as on any Linux machine. What the kernel there knows (link
//! state, addresses, routes, neighbours) is mirrored into the router's tables while packets flow.
//!
//! - [`configure`] gives the namespace's interfaces, one for each port of the router, the addresses and routes that the scenario gives the router;
//! - a [`Mirror`] listens to the kernel from then on: first a dump of everything, then what changes, and a dump again when messages were lost;
//! - what it hears is [`read`] once, with every length checked, into [`Told`]; a [`View`] keeps what holds and says what the router is to know;
//! - [`Carriers`] take the carrier off an interface whose link is down;
//! - differences to what the router knows become [`Change`]s, a few at a time, that a [`Target`] carries out between two batches of packets.
#![forbid(unsafe_code)]

mod carrier;
mod change;
mod configure;
mod follow;
mod message;
mod stats;
mod view;

pub use carrier::Carriers;
pub use change::{Change, Destination, Target, routes_of};
pub use configure::{HopSpec, PortSpec, RouteSpec, configure};
pub use follow::{Mirror, Pair};
pub use message::{KernelHop, KernelMember, KernelRoute, Told, read};
pub use stats::MirrorStats;
pub use view::View;
