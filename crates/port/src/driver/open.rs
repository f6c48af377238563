//! What is asked of a driver whose ports have interfaces.

use super::reopening::Reopening;
use longwire_block::{Port, Values};
use longwire_drivers::Netns;
use std::error::Error;

/// Why a port can't be opened; it says what to do.
pub type OpenFault = Box<dyn Error + Send + Sync>;

/// A port that is to be opened.
#[derive(Debug, Clone, Copy)]
pub struct Wanted<'a> {
    /// Its name in the scenario.
    pub name: &'a str,
    /// Its interface.
    pub interface: &'a str,
    /// The namespace of the interface, which the calling thread is in.
    pub netns: &'a Netns,
    /// By how many ports it is served, each by a queue of its own.
    pub queues: u16,
    /// All its settings, as they were read for the driver's row.
    pub values: &'a Values,
}

/// The engine's end of a test host's wire, which is to be opened.
#[derive(Debug, Clone)]
pub struct HostEnd<'a> {
    /// The host's name.
    pub name: &'a str,
    /// This end of the veth pair, or the device to make, which is the host's interface.
    pub interface: String,
    /// The host's hardware address.
    pub mac: [u8; 6],
    /// The host's MTU in bytes.
    pub mtu: u32,
}

/// Opens ports of a driver, in the calling thread's network namespace.
pub trait Open: Sync {
    /// Opens the ports of one worker in one namespace, in order, each with a port for each of its queues.
    /// They go on when their interface was gone and is back.
    ///
    /// # Errors
    /// The first one that can't be opened.
    fn ports(&self, wanted: &[Wanted<'_>]) -> Result<Vec<Vec<Box<dyn Port>>>, OpenFault>;

    /// Opens the ends of hosts' wires that one worker serves and that are in this namespace, in order. A
    /// driver that serves no hosts is never asked.
    ///
    /// # Errors
    /// The first one that can't be opened.
    fn hosts(&self, ends: &[HostEnd<'_>]) -> Result<Vec<Box<dyn Port>>, OpenFault> {
        ends.first()
            .map_or(Ok(Vec::new()), |end| Err(format!("no host such as \"{}\" is served", end.name).into()))
    }
}

/// The queues of a port as the engine takes them.
pub(super) fn boxed(queues: Vec<Reopening>) -> Vec<Box<dyn Port>> {
    queues.into_iter().map(|port| Box::new(port) as Box<dyn Port>).collect()
}
