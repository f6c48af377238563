//! The driver's function, in a phrase.

use crate::driver::prices;
use crate::interface::{INTERFACE, InterfaceName, NETNS, Netns, QUEUES};
use crate::{Backend, Driver};
use longwire_settings::Settings;
use std::sync::Arc;

/// An interface of this machine, by the driver's method.
#[derive(Debug, Settings)]
#[settings(key = "port", kind = "template", source = "the manual page or document that defines it")]
pub struct Template {
    /// The interface. Default: the port's name.
    #[setting(like = INTERFACE)]
    pub interface: Arc<InterfaceName>,
    /// Network namespace of the interface: a name (`ip netns`), the number of a process in it, or a path.
    /// Default: Longwire's own.
    #[setting(like = NETNS)]
    pub netns: Arc<Netns>,
    /// Number of workers that receive and transmit in real time, each by its own queue.
    #[setting(like = QUEUES)]
    pub queues: u16,
}

/// Its row. A driver for test hosts describes their wiring.
pub const DRIVER: Driver = Driver {
    spec: Template::SPEC,
    backend: Backend::Interface,
    host: None,
    prices: prices!("template", receive: 300_000 + 100 a byte, transmit: 500_000 + 100 a byte),
    lighter: None,
};
