//! The interface of drivers whose ports lead out of the process.

use super::reopening::Reopening;
use longwire_block::{Port, Values};
use longwire_drivers::Netns;
use std::error::Error;

/// Why a port can't be opened; the message says what to do.
pub type OpenFault = Box<dyn Error + Send + Sync>;

/// A port to be opened.
#[derive(Debug, Clone, Copy)]
pub struct PortRequest<'a> {
    /// Its name in the scenario.
    pub name: &'a str,
    /// Its interface; empty if the driver has none.
    pub interface: &'a str,
    /// The namespace of its interface or socket, which is the calling thread's.
    pub netns: &'a Netns,
    /// Number of queues, each of which becomes a port.
    pub queues: u16,
    /// All its settings, in the order of the driver's declaration.
    pub values: &'a Values,
}

/// The engine's end of a test host's wire, to be opened.
#[derive(Debug, Clone)]
pub struct HostEnd<'a> {
    /// The host's name.
    pub name: &'a str,
    /// This end of the veth pair, or the name of the device to create as the host's interface.
    pub interface: String,
    /// The host's hardware address.
    pub mac: [u8; 6],
    /// The host's MTU in bytes.
    pub mtu: u32,
}

/// Opens ports of a driver, in the calling thread's network namespace.
pub trait Open: Sync {
    /// Opens the ports of one worker in one namespace, in order: for each a port per queue. They continue
    /// when their interface was gone and is back.
    ///
    /// # Errors
    /// The first one that can't be opened.
    fn ports(&self, wanted: &[PortRequest<'_>]) -> Result<Vec<Vec<Box<dyn Port>>>, OpenFault>;

    /// Opens the ends of hosts' wires that one worker serves in this namespace, in order. Not called for
    /// drivers that serve no hosts.
    ///
    /// # Errors
    /// The first one that can't be opened.
    fn hosts(&self, ends: &[HostEnd<'_>]) -> Result<Vec<Box<dyn Port>>, OpenFault> {
        ends.first()
            .map_or(Ok(Vec::new()), |end| Err(format!("no host such as \"{}\" is served", end.name).into()))
    }
}

/// Boxes the queues of a port for the engine.
pub(super) fn boxed(queues: Vec<Reopening>) -> Vec<Box<dyn Port>> {
    queues.into_iter().map(|port| Box::new(port) as Box<dyn Port>).collect()
}
