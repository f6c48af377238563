//! Several sockets on one interface, each of which receives some of the flows: `PACKET_FANOUT`.
//!
//! The kernel chooses the socket by a hash that is the same for both directions of a flow. Without
//! `PACKET_FANOUT_FLAG_DEFRAG` it does not reassemble fragments for that: an emulator must see the packets
//! that were sent. All fragments of a datagram have one hash, that of their addresses.

use crate::interface::{Claim, Interface, OffloadGuard, OpenError};
use crate::system::{read_option, set_option};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::AtomicU64;

/// State shared by all sockets on an interface, dropped with the last one.
pub(super) struct SharedState {
    /// Number of sockets.
    pub(super) queues: u16,
    /// Received frames that are also in the kernel's counter of lost ones.
    pub(super) unhandled: AtomicU64,
    pub(super) offloads: OffloadGuard,
    pub(super) _claim: Claim,
}

/// A group of sockets, once the first has joined it.
#[derive(Default)]
pub(super) struct Group(Option<u16>);

/// Since Linux 6.4; before, the kernel recognises own frames by the sending socket.
const IGNORE_OUTGOING: u32 = 0x4000;

impl Group {
    /// Restricts a socket that receives all frames of the interface to its flows. The first socket creates
    /// the group.
    pub(super) fn join(&mut self, socket: BorrowedFd<'_>, interface: &Interface) -> Result<(), OpenError> {
        let failed = |e| OpenError::from_io(interface.name(), "share its frames among sockets", e);
        let kind = libc::PACKET_FANOUT_HASH | IGNORE_OUTGOING;
        let value = match self.0 {
            None => (kind | libc::PACKET_FANOUT_FLAG_UNIQUEID) << 16,
            Some(number) => kind << 16 | u32::from(number),
        };
        let fanout = (libc::SOL_PACKET, libc::PACKET_FANOUT);
        set_option(socket, fanout, &value).map_err(failed)?;
        let [value] = read_option(socket, fanout).map_err(failed)?;
        // The number of the group, below its kind.
        self.0 = Some(value as u16);
        Ok(())
    }
}

/// A socket that receives nothing while this lives: between binding and joining a group it would also receive
/// the frames of the group's other sockets.
pub(super) struct MutedSocket<'s>(BorrowedFd<'s>);

impl<'s> MutedSocket<'s> {
    pub(super) fn new(socket: &'s impl AsFd) -> io::Result<Self> {
        // Accepts no byte of any frame.
        let mut nothing = libc::sock_filter { code: 0x06, jt: 0, jf: 0, k: 0 };
        let program = libc::sock_fprog { len: 1, filter: &raw mut nothing };
        let socket = socket.as_fd();
        set_option(socket, (libc::SOL_SOCKET, libc::SO_ATTACH_FILTER), &program)?;
        Ok(Self(socket))
    }

    pub(super) fn unmute(self) -> io::Result<()> {
        set_option(self.0, (libc::SOL_SOCKET, libc::SO_DETACH_FILTER), &0i32)
    }
}
