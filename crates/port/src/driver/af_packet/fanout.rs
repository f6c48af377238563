//! Several sockets on one interface, each of which receives some of the flows: `PACKET_FANOUT`.
//!
//! The kernel chooses the socket by a hash that is the same for both directions of a flow. Without
//! `PACKET_FANOUT_FLAG_DEFRAG` it does not reassemble fragments for that: an emulator must see the packets
//! that were sent. All fragments of a datagram have one hash, that of their addresses.

use super::set_option;
use crate::interface::{Claim, Interface, OffloadGuard, OpenError};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
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
        set_option(socket, libc::PACKET_FANOUT, &value).map_err(failed)?;
        self.0 = Some(number(socket).map_err(failed)?);
        Ok(())
    }
}

/// The number of a socket's group.
fn number(socket: BorrowedFd<'_>) -> io::Result<u16> {
    let mut value = 0u32;
    let mut length = size_of::<u32>() as libc::socklen_t;
    let (fd, place) = (socket.as_raw_fd(), (&raw mut value).cast());
    // SAFETY: `place` points to an int of `length` bytes, which is what the option writes.
    match unsafe { libc::getsockopt(fd, libc::SOL_PACKET, libc::PACKET_FANOUT, place, &raw mut length) } {
        0 => Ok(value as u16),
        _ => Err(io::Error::last_os_error()),
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
        set_filter(socket, libc::SO_ATTACH_FILTER, &program)?;
        Ok(Self(socket))
    }

    pub(super) fn unmute(self) -> io::Result<()> {
        set_filter(self.0, libc::SO_DETACH_FILTER, &0i32)
    }
}

fn set_filter<T>(socket: BorrowedFd<'_>, option: libc::c_int, value: &T) -> io::Result<()> {
    let (fd, length) = (socket.as_raw_fd(), size_of::<T>() as libc::socklen_t);
    // SAFETY: `value` has `length` bytes, and what it points to outlives the call; the kernel copies it.
    match unsafe { libc::setsockopt(fd, libc::SOL_SOCKET, option, std::ptr::from_ref(value).cast(), length) }
    {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
