//! Carriers of a namespace's interfaces: the link state that programs there see.

use longwire_lab::{LabError, Namespace};
use longwire_netlink::{LinkSettings, Socket, link};
use std::io;

/// Control over the carriers of a namespace's interfaces.
#[derive(Debug)]
pub struct Carriers(Socket);

impl Carriers {
    /// Opens the interfaces of `namespace`.
    ///
    /// # Errors
    /// The namespace can't be entered.
    pub fn of(namespace: &Namespace) -> Result<Self, LabError> {
        let doing = |source| LabError::System { doing: "reaching a router's namespace".into(), source };
        namespace.run(Socket::route)?.map(Self).map_err(doing)
    }

    /// Sets the carrier of the interface with this index on or off (linux/if_link.h, `IFLA_CARRIER`). Its
    /// administrative state is not changed.
    ///
    /// # Errors
    /// The kernel's refusal: there is no such interface, or its kind controls its own carrier.
    pub fn set(&self, index: u32, on: bool) -> io::Result<()> {
        self.0.request(link::change(index, &LinkSettings { carrier: Some(on), ..LinkSettings::default() }))
    }
}
