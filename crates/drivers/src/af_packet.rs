//! Packet sockets.

use crate::driver::prices;
use crate::interface::{INTERFACE, InterfaceName, NETNS, Netns, QUEUES};
use crate::{Backend, Driver, Wire};
use longwire_settings::Settings;
use std::sync::Arc;

/// An interface of this machine, through packet sockets.
#[derive(Debug, Settings)]
#[settings(key = "port", kind = "af_packet", source = "packet(7)")]
pub struct AfPacket {
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

/// Its row.
pub const DRIVER: Driver = Driver {
    spec: AfPacket::SPEC,
    backend: Backend::Interface,
    host: Some(Wire::Veth { offload: true }),
    prices: prices!("af_packet", receive: 250_000 + 100 a byte, transmit: 450_000 + 100 a byte),
    lighter: Some("af_xdp"),
};
