//! The control plane of a router: a network namespace in which routing protocols run as on any Linux machine.
//! The kernel's state there (links, addresses, routes, neighbours) is mirrored into the router's tables while
//! packets flow.
//!
//! - [`configure`] gives the namespace's interfaces, one for each port of the router, the scenario's
//!   addresses and routes.
//! - A [`Mirror`] listens to the kernel: first a dump of everything, then changes, and another dump when
//!   messages were lost.
//! - Each message is [`read`] once, with every length checked, into [`KernelMessage`]. A [`View`] keeps the
//!   current state and derives the router's.
//! - [`Carriers`] switch off the carrier of an interface whose link is down.
//! - Differences to the router's state become [`Change`]s, which a [`Target`] applies a few at a time between
//!   two batches of packets.
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
pub use message::{KernelHop, KernelMember, KernelMessage, KernelRoute, read};
pub use stats::MirrorStats;
pub use view::View;
