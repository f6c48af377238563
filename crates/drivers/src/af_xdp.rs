//! AF_XDP sockets.

use crate::driver::prices;
use crate::interface::{INTERFACE, InterfaceName, NETNS, Netns, QUEUES};
use crate::{Backend, Driver, Wire};
use longwire_settings::Settings;
use std::sync::Arc;

/// An interface of this machine, through AF_XDP sockets.
#[derive(Debug, Settings)]
#[settings(key = "port", kind = "af_xdp", source = "Linux, Documentation/networking/af_xdp.rst")]
pub struct AfXdp {
    /// The interface. Default: the port's name.
    #[setting(like = INTERFACE)]
    pub interface: Arc<InterfaceName>,
    /// Network namespace of the interface: a name (`ip netns`), the number of a process in it, or a path.
    /// Default: Longwire's own.
    #[setting(like = NETNS)]
    pub netns: Arc<Netns>,
    /// Number of workers that receive and transmit by it in real time, each by a queue of its own.
    #[setting(like = QUEUES)]
    pub queues: u16,
}

/// Its row. Trains don't fit into its frames: the far end's offloads are off.
pub const DRIVER: Driver = Driver {
    spec: AfXdp::SPEC,
    backend: Backend::Interface,
    host: Some(Wire::Veth { offload: false }),
    prices: prices!("af_xdp", receive: 80_000 + 50 a byte, transmit: 250_000 + 50 a byte),
    lighter: None,
};
