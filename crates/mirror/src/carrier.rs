//! The carriers of a namespace's interfaces: what a program there sees of the wire.

use longwire_lab::{LabError, Namespace};
use longwire_netlink::{LinkSettings, Socket, link};
use std::io;

/// Takes carriers off a namespace's interfaces, and puts them back.
#[derive(Debug)]
pub struct Carriers(Socket);

impl Carriers {
    /// Those of `namespace`.
    ///
    /// # Errors
    /// The namespace can't be entered.
    pub fn of(namespace: &Namespace) -> Result<Self, LabError> {
        let doing = |source| LabError::System { doing: "reaching a router's namespace".into(), source };
        namespace.run(Socket::route)?.map(Self).map_err(doing)
    }

    /// Gives the interface with this index a carrier, or takes it away (linux/if_link.h, `IFLA_CARRIER`). Whether it is up by its owner's will
    /// stays as it is.
    ///
    /// # Errors
    /// What the kernel refuses: there is no such interface, or it is of a kind whose carrier is its own business.
    pub fn set(&self, index: u32, on: bool) -> io::Result<()> {
        self.0.request(link::change(index, &LinkSettings { carrier: Some(on), ..LinkSettings::default() }))
    }
}
