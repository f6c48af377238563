//! Ports on interfaces through AF_XDP: frames bypass the kernel's stack, between the driver and shared
//! memory.
//!
//! All ports of a worker share one memory area. Every receive queue of an interface has a socket, because
//! frames of a queue without one go to the kernel's stack. A port has all of them, or shares them with other
//! ports of the interface that are opened with it; its first one sends, so that frames keep their order.
//! Zero-copy is tried before copying, and native XDP before generic XDP; [`AfXdpPort::describe`] reports the
//! result.
//!
//! Frames are copied into the packet pool when they arrive, and out of it when they leave: otherwise a frame
//! waiting in a link would hold a page of the shared memory, and which frames wait is unknown until they are
//! classified.
#![allow(unsafe_code)]

mod assemble;
mod error;
mod far_end;
mod open;
mod program;
mod ring;
mod sender;
mod socket;
mod umem;

pub use error::AfXdpError;
pub use far_end::FarEnd;
pub use open::Opener;

use super::InterfaceState;
use super::wire_frames::each_frame;
use crate::interface::{Claim, Interface, OffloadGuard};
use far_end::LostFrames;
use longwire_block::{Port, PortError, PortStats, Stamp};
use longwire_clock::monotonic;
use longwire_packet::{BATCH_BYTES, Batch, MAX_FRAME, Pool};
use longwire_units::Nanos;
use longwire_wire::l3_offset;
use program::Redirect;
use ring::Ring;
use sender::Sender;
use socket::Socket;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;
use umem::{FRAME, Umem};

/// The largest MTU, if kernel and driver support frames in several buffers; else it is 3506.
pub const MAX_MTU: u32 = 65521;

/// Shortest valid frame: an Ethernet header.
const MIN_FRAME: usize = 14;
/// Interval at which an idle port checks its interface.
const CHECK: Nanos = Nanos::from_millis(10);

/// Specification of a port.
#[derive(Debug)]
pub struct AfXdpPlan {
    /// Its name in the scenario.
    pub name: String,
    /// The interface, in the calling thread's network namespace.
    pub interface: String,
    /// The other end, if the interface belongs to a veth pair.
    pub far_end: FarEnd,
    /// Slots of each ring, and frames of 4 KiB for each receive queue and for sending: a power of two, 64 to
    /// 32768.
    pub ring: u32,
    /// Number of ports n to create: the first has the receive queues 0, n, 2n, …, and so on.
    pub queues: u16,
}

impl AfXdpPlan {
    /// A port named after its interface, with rings of 2048 slots.
    pub fn on(interface: &str) -> Self {
        Self {
            name: interface.into(),
            interface: interface.into(),
            far_end: FarEnd::Find,
            ring: 2048,
            queues: 1,
        }
    }
}

/// A port on AF_XDP sockets.
///
/// Dropping the last port of an interface first detaches the program, so that the machine's own stack takes
/// over, and restores the offloads last.
pub struct AfXdpPort {
    name: String,
    description: String,
    _shared: Arc<SharedState>,
    /// One per receive queue; the first one sends.
    sockets: Vec<Socket>,
    sender: Sender,
    umem: Arc<Umem>,
    readable: OwnedFd,
    interface: Interface,
    /// Losses before all sockets of the interface, in one of its ports only.
    lost: Option<LostFrames>,
    mtu: u32,
    /// The largest MTU that it can carry as opened.
    max_mtu: u32,
    /// The queue that is polled first, in turn.
    turn: usize,
    check_at: Nanos,
    state: InterfaceState,
    stats: PortStats,
}

/// State shared by all ports of an interface, dropped with the last one.
struct SharedState {
    _redirect: Redirect,
    _guards: Vec<OffloadGuard>,
    _claim: Claim,
}

/// The state of the interface according to the result of a system call on a socket.
fn state_by(result: &io::Result<()>) -> InterfaceState {
    match result.as_ref().err().and_then(io::Error::raw_os_error) {
        Some(libc::ENETDOWN) => InterfaceState::Down,
        // The kernel has unbound the socket.
        Some(libc::ENXIO | libc::ENODEV | libc::EBADF) => InterfaceState::Gone,
        _ => InterfaceState::Up,
    }
}

impl AfXdpPort {
    /// Opens ports, in order, on one memory area: those of one worker, or those of one interface for several.
    ///
    /// # Errors
    /// One of them can't be opened; all changes are undone.
    pub fn open_all(plans: Vec<AfXdpPlan>) -> Result<Vec<Self>, AfXdpError> {
        assemble::open_all(plans)
    }

    /// Opens a port on a memory area of its own.
    ///
    /// # Errors
    /// As for [`AfXdpPort::open_all`].
    pub fn open(plan: AfXdpPlan) -> Result<Self, AfXdpError> {
        let interface = plan.interface.clone();
        let ports = Self::open_all(vec![plan])?;
        ports.into_iter().next().ok_or_else(|| crate::OpenError::Missing { name: interface }.into())
    }

    fn usable(&self) -> Result<(), PortError> {
        match self.state {
            InterfaceState::Up => Ok(()),
            InterfaceState::Down => Err(PortError::down(&*self.name, self.interface.name())),
            InterfaceState::Gone => Err(PortError::Vanished { port: self.name.clone() }),
        }
    }

    /// Checks the interface from time to time.
    fn check(&mut self, now: Nanos) {
        self.check_at = now + CHECK;
        if let Some(socket) = self.sockets.first() {
            let state = state_by(&socket.wake_receive());
            self.turn_to(state);
        }
        if let Ok(mtu) = self.interface.link_mtu() {
            self.mtu = mtu.min(self.max_mtu);
        }
    }

    fn turn_to(&mut self, state: InterfaceState) {
        self.state = state;
        if state == InterfaceState::Gone
            && let Some(socket) = self.sockets.first_mut()
        {
            self.stats.out_down += self.sender.abandon(socket);
        }
    }

    fn receive_from(&mut self, queue: usize, pool: &mut Pool, batch: &mut Batch) {
        let Some(socket) = self.sockets.get_mut(queue) else { return };
        if socket.receive.filled(1) == 0 {
            return;
        }
        // Not the time of the poll: a frame that arrived after it must not leave early.
        let arrival = monotonic().0;
        // Rejected frames count too, so that a flood of bad ones can't keep the loop running.
        let enough = self.stats.in_bytes + BATCH_BYTES;
        for _ in 0..batch.room() {
            let pieces = pieces(&mut socket.receive);
            if pieces == 0 || self.stats.in_bytes >= enough {
                break;
            }
            let len = (0..pieces).map(|piece| socket.receive.ahead(piece).len as usize).sum();
            let handle = if (MIN_FRAME..=MAX_FRAME).contains(&len) {
                let handle = pool.alloc(len);
                self.stats.in_pool_full += u64::from(handle.is_none());
                handle
            } else {
                self.stats.in_bad += 1;
                None
            };
            let mut room = handle.map_or(&mut [][..], |handle| pool.data_mut(handle));
            for _ in 0..pieces {
                let slot = socket.receive.take();
                // SAFETY: the kernel has given us this frame, until we offer it again below.
                let data = unsafe { self.umem.bytes(slot.addr, slot.len as usize) }.unwrap_or_default();
                let (piece, rest) = room.split_at_mut(data.len().min(room.len()));
                piece.copy_from_slice(&data[..piece.len()]);
                room = rest;
                // There are as many frames as slots.
                socket.fill.put(slot.addr & !(FRAME as u64 - 1));
            }
            if let Some(handle) = handle {
                pool.meta_mut(handle).arrival = arrival;
                self.stats.in_frames += 1;
                self.stats.in_bytes += len as u64;
                batch.push(handle);
            }
        }
        socket.receive.publish_taken();
        socket.fill.publish_filled();
        if socket.fill.wants_wakeup() {
            // `check` finds out about the interface.
            let _ = socket.wake_receive();
        }
    }

    /// Makes the kernel send the frames in the ring.
    fn kick(&mut self) {
        let Some(socket) = self.sockets.first_mut() else { return };
        let result = self.sender.kick(socket);
        self.sender.reap(socket);
        let state = state_by(&result);
        if state != InterfaceState::Up {
            self.turn_to(state);
        }
    }
}

impl Port for AfXdpPort {
    fn name(&self) -> &str {
        &self.name
    }

    fn describe(&self) -> String {
        self.description.clone()
    }

    fn stamp(&self) -> Stamp {
        Stamp::Poll
    }

    fn receive(&mut self, pool: &mut Pool, now: Nanos, batch: &mut Batch) -> Result<(), PortError> {
        if self.sender.is_stuck() {
            self.kick();
        }
        let queues = self.sockets.len();
        let before = batch.len();
        for step in 0..queues {
            self.receive_from((self.turn + step) % queues, pool, batch);
        }
        self.turn = (self.turn + 1) % queues.max(1);
        if now >= self.check_at {
            self.check(now);
        }
        if batch.len() > before { Ok(()) } else { self.usable() }
    }

    fn transmit(&mut self, pool: &mut Pool, batch: &Batch) -> Result<(), PortError> {
        let Self { sockets, sender, umem, stats, mtu, state, .. } = self;
        let Some(socket) = sockets.first_mut() else { return Ok(()) };
        sender.reap(socket);
        for &handle in batch.as_slice() {
            stats.out_full += each_frame(pool, handle, |_, data| {
                if *state != InterfaceState::Up {
                    stats.out_down += 1;
                } else if data.len() - l3_offset(data) > *mtu as usize {
                    stats.out_oversize += 1;
                } else {
                    match sender.put(socket, umem, data) {
                        Ok(true) => {}
                        Ok(false) => stats.out_full += 1,
                        Err(error) => {
                            *state = state_by(&Err(error));
                            stats.out_down += 1;
                        }
                    }
                }
            });
            pool.free(handle);
        }
        self.kick();
        self.usable()
    }

    fn readable_fd(&self) -> Option<i32> {
        Some(self.readable.as_raw_fd())
    }

    fn stats(&self) -> PortStats {
        let in_sockets: u64 = self.sockets.iter().map(Socket::lost).sum();
        PortStats {
            out_frames: self.sender.sent.frames,
            out_bytes: self.sender.sent.bytes,
            out_full: self.stats.out_full + self.sender.dropped,
            in_missed: in_sockets + self.lost.as_ref().map_or(0, LostFrames::since_opening),
            ..self.stats
        }
    }
}

/// Number of buffers of the next frame; zero if there is no complete one.
fn pieces(receive: &mut Ring<libc::xdp_desc>) -> u32 {
    let mut count = 0;
    while receive.filled(count + 1) > count {
        count += 1;
        if receive.ahead(count - 1).options & libc::XDP_PKT_CONTD == 0 {
            return count;
        }
    }
    0
}

#[cfg(test)]
mod tests;
