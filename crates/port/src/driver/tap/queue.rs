//! Queues of a TAP interface: descriptors of `/dev/net/tun`.

use crate::interface::{OpenError, Request};
use crate::system::{checked, owned};
use crate::vnet;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

/// Opens a queue of the interface, which must not exist if this is the `first`. Also returns the interface's
/// name.
pub(super) fn open_queue(
    interface: &str,
    several: bool,
    first: bool,
) -> Result<(OwnedFd, String), OpenError> {
    let failed = |action| move |source| OpenError::System { name: interface.into(), action, source };
    let flags = libc::O_RDWR | libc::O_CLOEXEC | libc::O_NONBLOCK;
    // SAFETY: the path is a C string; nothing else owns the returned descriptor.
    let queue = unsafe { owned(libc::open(c"/dev/net/tun".as_ptr(), flags)) };
    let queue = queue.map_err(failed("open /dev/net/tun"))?;
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
    checked(unsafe { libc::ioctl(queue.as_raw_fd(), libc::TUNSETVNETHDRSZ, &raw const length) })
        .map_err(failed("set the length of its virtio header"))?;
    accept_offloads(queue.as_fd()).map_err(failed("set its offloads"))?;
    Ok((queue, request.name()))
}

/// Lets the host send partial checksums and whole trains, as far as this kernel supports it: UDP since Linux
/// 6.2.
fn accept_offloads(queue: BorrowedFd<'_>) -> io::Result<usize> {
    let tcp = libc::TUN_F_CSUM | libc::TUN_F_TSO4 | libc::TUN_F_TSO6 | libc::TUN_F_TSO_ECN;
    let accept = |offloads| {
        let offloads = libc::c_ulong::from(offloads);
        // SAFETY: TUNSETOFFLOAD takes the flags themselves, no pointer.
        checked(unsafe { libc::ioctl(queue.as_raw_fd(), libc::TUNSETOFFLOAD, offloads) })
    };
    accept(tcp | libc::TUN_F_USO4 | libc::TUN_F_USO6).or_else(|_| accept(tcp))
}

/// The network namespace of the interface of `queue`.
pub(super) fn namespace_of(queue: BorrowedFd<'_>) -> io::Result<OwnedFd> {
    // SAFETY: TUNGETDEVNETNS takes no argument; nothing else owns the descriptor that it returns.
    unsafe { owned(libc::ioctl(queue.as_raw_fd(), libc::TUNGETDEVNETNS)) }
}
