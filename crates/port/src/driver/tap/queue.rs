//! Queues of a TAP interface: descriptors of `/dev/net/tun`.

use crate::interface::{OpenError, Request};
use crate::vnet;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

/// Opens a queue of the interface, which must not exist if this is the `first`. Also returns the interface's
/// name.
pub(super) fn open_queue(
    interface: &str,
    several: bool,
    first: bool,
) -> Result<(OwnedFd, String), OpenError> {
    let flags = libc::O_RDWR | libc::O_CLOEXEC | libc::O_NONBLOCK;
    // SAFETY: the path is a C string; nothing else owns the returned descriptor.
    let queue = unsafe {
        match libc::open(c"/dev/net/tun".as_ptr(), flags) {
            fd if fd >= 0 => OwnedFd::from_raw_fd(fd),
            _ => return Err(tun_error(interface, "open /dev/net/tun")),
        }
    };
    let mut flags = libc::IFF_TAP | libc::IFF_NO_PI | libc::IFF_VNET_HDR;
    flags |= if several { libc::IFF_MULTI_QUEUE } else { 0 };
    flags |= if first { libc::IFF_TUN_EXCL } else { 0 };
    let mut request = Request::named(interface)?;
    request.data[..2].copy_from_slice(&(flags as u16).to_ne_bytes());
    request.call(queue.as_fd(), libc::TUNSETIFF).map_err(|e| match e.raw_os_error() {
        Some(libc::EBUSY | libc::EEXIST) if first => OpenError::Exists { name: interface.into() },
        _ => OpenError::from_io(interface, "make it", e),
    })?;
    let length = vnet::LEN as libc::c_int;
    // SAFETY: TUNSETVNETHDRSZ reads an int.
    if unsafe { libc::ioctl(queue.as_raw_fd(), libc::TUNSETVNETHDRSZ, &raw const length) } != 0 {
        return Err(tun_error(interface, "set the length of its virtio header"));
    }
    accept_offloads(queue.as_fd(), interface)?;
    Ok((queue, request.name()))
}

/// Lets the host send partial checksums and whole trains, as far as this kernel supports it: UDP since Linux
/// 6.2.
fn accept_offloads(queue: BorrowedFd<'_>, interface: &str) -> Result<(), OpenError> {
    let tcp = libc::TUN_F_CSUM | libc::TUN_F_TSO4 | libc::TUN_F_TSO6 | libc::TUN_F_TSO_ECN;
    for offloads in [tcp | libc::TUN_F_USO4 | libc::TUN_F_USO6, tcp] {
        // SAFETY: TUNSETOFFLOAD takes the flags themselves, no pointer.
        if unsafe { libc::ioctl(queue.as_raw_fd(), libc::TUNSETOFFLOAD, libc::c_ulong::from(offloads)) } == 0
        {
            return Ok(());
        }
    }
    Err(tun_error(interface, "set its offloads"))
}

fn tun_error(interface: &str, action: &'static str) -> OpenError {
    OpenError::System { name: interface.into(), action, source: io::Error::last_os_error() }
}

/// The network namespace of the interface of `queue`.
pub(super) fn namespace_of(queue: BorrowedFd<'_>) -> io::Result<OwnedFd> {
    // SAFETY: TUNGETDEVNETNS takes no argument; nothing else owns the descriptor that it returns.
    unsafe {
        match libc::ioctl(queue.as_raw_fd(), libc::TUNGETDEVNETNS) {
            fd if fd >= 0 => Ok(OwnedFd::from_raw_fd(fd)),
            _ => Err(io::Error::last_os_error()),
        }
    }
}
