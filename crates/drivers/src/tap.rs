//! TAP devices.

use crate::driver::prices;
use crate::interface::{INTERFACE, InterfaceName, NETNS, Netns, QUEUES};
use crate::{Backend, Driver, Wire};
use longwire_settings::Settings;
use std::sync::Arc;

/// A TAP device that Longwire makes.
#[derive(Debug, Settings)]
#[settings(key = "port", kind = "tap", source = "Linux, Documentation/networking/tuntap.rst")]
pub struct Tap {
    /// The name of the device to make. Default: the port's name.
    #[setting(like = INTERFACE)]
    pub interface: Arc<InterfaceName>,
    /// Network namespace in which the device is made: a name (`ip netns`), the number of a process in it, or
    /// a path. Default: Longwire's own.
    #[setting(like = NETNS)]
    pub netns: Arc<Netns>,
    /// Number of workers that receive and transmit by it in real time, each by a queue of its own.
    #[setting(like = QUEUES)]
    pub queues: u16,
}

/// Its row.
pub const DRIVER: Driver = Driver {
    spec: Tap::SPEC,
    backend: Backend::Interface,
    host: Some(Wire::Tap),
    prices: prices!("tap", receive: 400_000 + 100 a byte, transmit: 600_000 + 100 a byte),
    lighter: Some("af_xdp"),
};
