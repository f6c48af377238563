//! Attachments of ports, and their properties: no other module matches on the variants.

use longwire_block::{Setting, Values};
use longwire_drivers::{Driver, InterfaceName, Netns};
use std::sync::Arc;

/// The attachment of a port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Attachment {
    /// A host, by index.
    Host(u32),
    /// What a driver drives.
    Driven(Driven),
    /// The control plane of a router: an interface in its namespace.
    Control(ControlEnd),
    /// Another node: what goes out by it comes in by the port with the place `far`.
    Inner {
        /// Its far side.
        far: u16,
    },
    /// Nothing: the port was removed while the scenario ran, and others keep their places.
    Vacant,
}

/// A driver with its settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Driven {
    /// The driver.
    pub driver: &'static Driver,
    /// Its settings.
    pub values: Values,
}

/// The end of a router's control plane beside one of its ports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ControlEnd {
    /// Index of the router.
    pub router: u32,
    /// Its port beside this one, by its place among the router's ports.
    pub port: u32,
}

impl Attachment {
    /// The index of its host.
    pub const fn host(&self) -> Option<u32> {
        match self {
            Self::Host(host) => Some(*host),
            _ => None,
        }
    }

    /// The place of its far side at another node.
    pub const fn far(&self) -> Option<u16> {
        match self {
            Self::Inner { far } => Some(*far),
            _ => None,
        }
    }

    /// The router's control plane that it is.
    pub const fn control(&self) -> Option<ControlEnd> {
        match self {
            Self::Control(end) => Some(*end),
            _ => None,
        }
    }

    /// The driver that the scenario names for it; none for a host.
    pub const fn driven(&self) -> Option<&Driven> {
        match self {
            Self::Driven(driven) => Some(driven),
            _ => None,
        }
    }

    /// Whether packets come in and go out here: it is not between nodes, nor a control plane's.
    pub const fn is_outer(&self) -> bool {
        matches!(self, Self::Host(_) | Self::Driven(_))
    }
}

impl Driven {
    /// The setting of this name, if the driver has it.
    pub fn setting<T: Setting>(&self, name: &str) -> Option<T> {
        self.driver.setting(&self.values, name)
    }

    /// The name of its interface, if it has one.
    pub fn interface(&self) -> Option<String> {
        self.setting::<Arc<InterfaceName>>("interface").map(|name| name.0.clone())
    }

    /// The namespace of its interface.
    pub fn netns(&self) -> Netns {
        self.setting::<Arc<Netns>>("netns").map(|netns| (*netns).clone()).unwrap_or_default()
    }
}
