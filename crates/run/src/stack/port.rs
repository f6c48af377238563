//! A port of the engine whose far side is an end in this process.
//!
//! Frames cross in the rings of a [`MemoryPort`]. Beside each direction there is an event of the kernel's, so
//! that neither the worker nor the end has to look again and again.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;

use longwire_block::{Port, PortError, PortStats, Stamp};
use longwire_packet::{Batch, Pool};
use longwire_port::driver::memory::{FarEnd, MemoryPort};
use longwire_units::Nanos;
use rustix::event::{EventfdFlags, eventfd};
use smoltcp::phy::{Device, DeviceCapabilities, Medium, RxToken, TxToken};
use smoltcp::time::Instant;

use super::sequence::Sequences;

/// Frames under way between an end and its port, each way.
const FRAMES: usize = 2048;
/// Their bytes.
const BYTES: usize = 4 << 20;
/// Bytes of an Ethernet header.
const HEADER: usize = 14;
/// Longest IP packet.
pub const MTU: usize = 1500;
/// EtherType of IPv4, in network order.
const IPV4: [u8; 2] = [0x08, 0x00];

/// The engine's side.
pub struct StackPort {
    inner: MemoryPort,
    /// Readable when the end has sent.
    came: Arc<OwnedFd>,
    /// Becomes readable when the port has sent.
    sent: Arc<OwnedFd>,
}

/// The end's side.
pub struct Wire {
    frames: Frames,
    to_port: Arc<OwnedFd>,
    from_port: Arc<OwnedFd>,
    received: Vec<u8>,
    is_full: bool,
}

/// The frames of a wire, and what is needed to send another.
struct Frames {
    ring: FarEnd,
    /// The frame that is being written, which begins with the Ethernet header of every frame.
    buffer: Vec<u8>,
    sequences: Sequences,
    has_sent: bool,
}

impl StackPort {
    /// The port `name` and its wire. The end has the hardware address `own`, and sends to `other`.
    ///
    /// # Errors
    /// When the process is out of file descriptors.
    pub fn pair(name: &str, own: [u8; 6], other: [u8; 6]) -> io::Result<(Self, Wire)> {
        let (inner, ring) = MemoryPort::pair(name, Stamp::Poll, FRAMES, BYTES);
        let buffer = [&other[..], &own, &IPV4].concat();
        let frames = Frames { ring, buffer, sequences: Sequences::default(), has_sent: false };
        let event =
            || Ok::<_, io::Error>(Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?));
        let (came, sent) = (event()?, event()?);
        let wire = Wire {
            frames,
            to_port: Arc::clone(&came),
            from_port: Arc::clone(&sent),
            received: Vec::new(),
            is_full: false,
        };
        Ok((Self { inner, came, sent }, wire))
    }
}

/// Makes an event readable.
fn ring(event: &OwnedFd) {
    // It can only fail when the count is already huge, and then the event is readable.
    let _ = rustix::io::write(event, &1u64.to_ne_bytes());
}

/// Makes it unreadable.
fn silence(event: &OwnedFd) {
    // It fails if it is unreadable already.
    let _ = rustix::io::read(event, &mut [0; 8]);
}

impl Port for StackPort {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn describe(&self) -> String {
        "TCP/IP of this process".into()
    }

    fn stamp(&self) -> Stamp {
        self.inner.stamp()
    }

    fn receive(&mut self, pool: &mut Pool, now: Nanos, batch: &mut Batch) -> Result<(), PortError> {
        let before = batch.len();
        self.inner.receive(pool, now, batch)?;
        if batch.len() > before {
            return Ok(());
        }
        // A frame that comes between both calls is seen by the second; a later one rings again.
        silence(&self.came);
        self.inner.receive(pool, now, batch)
    }

    fn transmit(&mut self, pool: &mut Pool, batch: &Batch) -> Result<(), PortError> {
        let sent = self.inner.transmit(pool, batch);
        ring(&self.sent);
        sent
    }

    fn readable_fd(&self) -> Option<i32> {
        Some(self.came.as_raw_fd())
    }

    fn stats(&self) -> PortStats {
        self.inner.stats()
    }
}

impl Wire {
    /// Readable when frames have come.
    pub(crate) fn bell(&self) -> Arc<OwnedFd> {
        Arc::clone(&self.from_port)
    }

    /// Says that all frames that came so far are about to be taken.
    pub(crate) fn silence(&self) {
        silence(&self.from_port);
    }

    /// Wakes the port if anything was sent since.
    pub(crate) fn flush(&mut self) {
        if std::mem::take(&mut self.frames.has_sent) {
            ring(&self.to_port);
        }
    }

    /// Whether a packet had to wait because there was no room; asking clears it.
    pub(crate) fn was_full(&mut self) -> bool {
        std::mem::take(&mut self.is_full)
    }
}

/// A packet that has come.
pub struct ReceivedPacket<'a>(&'a [u8]);

/// Room for one that goes.
pub struct Sending<'a>(&'a mut Frames);

impl RxToken for ReceivedPacket<'_> {
    fn consume<R, F: FnOnce(&[u8]) -> R>(self, f: F) -> R {
        f(self.0)
    }
}

impl TxToken for Sending<'_> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, len: usize, f: F) -> R {
        let Frames { ring, buffer, sequences, has_sent } = self.0;
        buffer.resize(HEADER + len, 0);
        let result = f(&mut buffer[HEADER..]);
        sequences.correct(&mut buffer[HEADER..]);
        // There is room: it was looked at before.
        *has_sent |= ring.push(buffer);
        result
    }
}

impl Device for Wire {
    type RxToken<'a> = ReceivedPacket<'a>;
    type TxToken<'a> = Sending<'a>;

    fn receive(&mut self, _now: Instant) -> Option<(ReceivedPacket<'_>, Sending<'_>)> {
        // A packet may be answered at once.
        if !self.frames.ring.has_room(HEADER + MTU) {
            self.is_full = true;
            return None;
        }
        loop {
            self.frames.ring.take_into(&mut self.received)?;
            // Whatever else has come was damaged on its way.
            if self.received.get(HEADER - 2..HEADER) == Some(&IPV4) {
                break;
            }
        }
        Some((ReceivedPacket(&self.received[HEADER..]), Sending(&mut self.frames)))
    }

    fn transmit(&mut self, _now: Instant) -> Option<Sending<'_>> {
        if !self.frames.ring.has_room(HEADER + MTU) {
            self.is_full = true;
            return None;
        }
        Some(Sending(&mut self.frames))
    }

    fn capabilities(&self) -> DeviceCapabilities {
        let mut capabilities = DeviceCapabilities::default();
        capabilities.medium = Medium::Ip;
        capabilities.max_transmission_unit = MTU;
        capabilities
    }
}
