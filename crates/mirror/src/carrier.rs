//! The carriers of a namespace's interfaces: what a program there sees of the wire.

use longwire_lab::netlink::{Message, Socket};
use longwire_lab::{LabError, Namespace};
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
        namespace.run(|| Socket::open(libc::NETLINK_ROUTE))?.map(Self).map_err(doing)
    }

    /// Gives the interface with this index a carrier, or takes it away (linux/if_link.h, `IFLA_CARRIER`).
    /// Whether it is up by its owner's will stays as it is.
    ///
    /// # Errors
    /// What the kernel refuses: there is no such interface, or it is of a kind whose carrier is its own
    /// business.
    pub fn set(&mut self, index: u32, on: bool) -> io::Result<()> {
        let mut m = Message::new(libc::RTM_NEWLINK, 0);
        m.bytes(&[libc::AF_UNSPEC as u8, 0, 0, 0]);
        m.bytes(&index.to_ne_bytes());
        m.bytes(&[0; 8]);
        m.attribute(libc::IFLA_CARRIER, &[u8::from(on)]);
        self.0.request(m)
    }
}
