//! What the driver does, in a phrase.

use crate::driver::prices;
use crate::interface::{INTERFACE, InterfaceName, NETNS, Netns, QUEUES};
use crate::{Backend, Driver};
use longwire_settings::Settings;
use std::sync::Arc;

/// An interface of this machine, through what the driver uses.
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
    /// Number of workers that receive and transmit by it in real time, each by a queue of its own.
    #[setting(like = QUEUES)]
    pub queues: u16,
}

/// Its row. A driver that serves test hosts says how they are wired to it.
pub const DRIVER: Driver = Driver {
    spec: Template::SPEC,
    backend: Backend::Interface,
    host: None,
    prices: prices!("template", receive: 300_000 + 100 a byte, transmit: 500_000 + 100 a byte),
    lighter: None,
};
