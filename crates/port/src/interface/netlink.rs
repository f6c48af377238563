//! One question to the kernel's routing netlink and its answer.
//!
//! The kernel puts the answer to these messages in the queue before the call that asks returns, so nothing waits.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

/// Bytes of `struct nlmsghdr`.
pub(super) const HEADER: usize = 16;

/// A socket that also stands for the calling thread's network namespace.
pub(super) fn socket() -> io::Result<OwnedFd> {
    let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC;
    // SAFETY: socket takes no pointers; the descriptor it returns is owned by nobody else.
    unsafe {
        match libc::socket(libc::AF_NETLINK, kind, libc::NETLINK_ROUTE) {
            fd if fd >= 0 => Ok(OwnedFd::from_raw_fd(fd)),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

/// Fills in the header of `message`: the whole of it, of this type and with these flags besides the request's.
pub(super) fn head(message: &mut [u8], kind: u16, flags: i32) {
    let length = message.len() as u32;
    message[..4].copy_from_slice(&length.to_ne_bytes());
    message[4..6].copy_from_slice(&kind.to_ne_bytes());
    message[6..8].copy_from_slice(&((flags | libc::NLM_F_REQUEST) as u16).to_ne_bytes());
}

/// Asks and gives the length of the answer. Not for two threads at once on the same socket.
pub(super) fn exchange(netlink: BorrowedFd<'_>, question: &[u8], answer: &mut [u8]) -> io::Result<usize> {
    let fd = netlink.as_raw_fd();
    // SAFETY: the slices are valid for their lengths.
    unsafe {
        if libc::send(fd, question.as_ptr().cast(), question.len(), libc::MSG_DONTWAIT) < 0 {
            return Err(io::Error::last_os_error());
        }
        match libc::recv(fd, answer.as_mut_ptr().cast(), answer.len(), libc::MSG_DONTWAIT) {
            length if length >= 0 => Ok(length as usize),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

/// Asks for something to be done, with NLM_F_ACK, and gives the kernel's verdict.
pub(super) fn command(netlink: BorrowedFd<'_>, question: &[u8]) -> io::Result<()> {
    let mut answer = [0u8; 256];
    let length = exchange(netlink, question, &mut answer)?;
    let (header, body) = answer[..length].split_at(HEADER.min(length));
    let is_verdict = header.get(4..6) == Some(&(libc::NLMSG_ERROR as u16).to_ne_bytes());
    match body.first_chunk::<4>() {
        Some(&code) if is_verdict => match i32::from_ne_bytes(code) {
            0 => Ok(()),
            code => Err(io::Error::from_raw_os_error(-code)),
        },
        _ => Err(io::ErrorKind::InvalidData.into()),
    }
}
