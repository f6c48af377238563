//! Services on the slow path, in Rust.

use crate::layout::{Facts, Verdict};

/// A packet for a service.
#[derive(Debug)]
pub struct PuntedPacket<'a> {
    facts: Facts,
    bytes: &'a mut [u8],
    is_changed: bool,
}

impl<'a> PuntedPacket<'a> {
    pub(crate) fn new(facts: Facts, bytes: &'a mut [u8]) -> Self {
        Self { facts, bytes, is_changed: false }
    }

    /// Its metadata.
    pub const fn facts(&self) -> &Facts {
        &self.facts
    }

    /// Its frame, from the Ethernet header on.
    pub const fn bytes(&self) -> &[u8] {
        self.bytes
    }

    /// Its frame, mutable; its length is fixed.
    pub const fn bytes_mut(&mut self) -> &mut [u8] {
        self.is_changed = true;
        self.bytes
    }

    pub(crate) const fn is_changed(&self) -> bool {
        self.is_changed
    }
}

/// New packets of a service.
#[derive(Debug, Default)]
pub struct ServiceOutput(Vec<(u16, Box<[u8]>)>);

impl ServiceOutput {
    /// Sends a frame of 14 to [`crate::MAX_FRAME`] bytes out of the port at `port` in the plan. An invalid
    /// one is not sent.
    pub fn send(&mut self, port: u16, frame: &[u8]) {
        self.0.push((port, frame.into()));
    }

    pub(crate) fn take(&mut self) -> impl Iterator<Item = (u16, Box<[u8]>)> + '_ {
        self.0.drain(..)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// A service that handles packets one by one. If it panics it is cut off, and the default forwarder takes its
/// packets.
pub trait Service: Send {
    /// Decides about a packet.
    fn handle(&mut self, packet: &mut PuntedPacket<'_>, made: &mut ServiceOutput) -> Verdict;
}
