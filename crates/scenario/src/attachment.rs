//! Attachments of ports; no other module matches on the variants.

use longwire_block::{Setting, Values};
use longwire_drivers::{Driver, InterfaceName, Netns};
use std::sync::Arc;

/// The attachment of a port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Attachment {
    /// A host, by index.
    Host(u32),
    /// A port driver.
    Driven(DriverSettings),
    /// The control plane of a router: an interface in its namespace.
    Control(ControlEnd),
    /// Another node: packets sent here arrive at the port with the place `far`.
    Inner {
        /// Place of the far port.
        far: u16,
    },
    /// Nothing: the port was removed while the scenario ran, and others keep their places.
    Vacant(PortSide),
}

/// Which of two ports that share a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PortSide {
    /// The one that the scenario names.
    Near,
    /// The far side of a router's own port, on a bridge.
    Far,
}

/// A driver with its settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DriverSettings {
    /// The driver.
    pub driver: &'static Driver,
    /// Its settings.
    pub values: Values,
}

/// A port to a router's control plane, beside one of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ControlEnd {
    /// Index of the router.
    pub router: u32,
    /// Index of that port among the router's ports.
    pub port: u32,
}

impl Attachment {
    /// Index of the host, if it is one.
    pub const fn host(&self) -> Option<u32> {
        match self {
            Self::Host(host) => Some(*host),
            _ => None,
        }
    }

    /// Place of the far port at another node.
    pub const fn far(&self) -> Option<u16> {
        match self {
            Self::Inner { far } => Some(*far),
            _ => None,
        }
    }

    /// The control plane, if it leads to one.
    pub const fn control(&self) -> Option<ControlEnd> {
        match self {
            Self::Control(end) => Some(*end),
            _ => None,
        }
    }

    /// The driver, if the scenario names one; hosts have theirs.
    pub const fn driven(&self) -> Option<&DriverSettings> {
        match self {
            Self::Driven(driven) => Some(driven),
            _ => None,
        }
    }

    /// Whether packets enter and leave the emulation here, unlike between nodes or to a control plane.
    pub const fn is_outer(&self) -> bool {
        matches!(self, Self::Host(_) | Self::Driven(_))
    }
}

impl DriverSettings {
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
