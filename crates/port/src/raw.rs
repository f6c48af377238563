//! A packet socket for frames of one EtherType, used by NESP clients. It does not change the interface's
//! settings.
#![allow(unsafe_code)]

use crate::system::{checked, owned};
use std::io::{ErrorKind, Result};
use std::os::fd::{AsRawFd, OwnedFd};
use std::time::Duration;

/// A packet socket for frames of one EtherType. It does not change the interface's settings.
#[derive(Debug)]
pub struct RawSocket {
    fd: OwnedFd,
    mac: [u8; 6],
}

impl RawSocket {
    /// Opens a socket on an interface.
    ///
    /// # Errors
    /// There is no such interface, or the privilege (CAP_NET_RAW) is missing.
    pub fn open(interface: &str, ethertype: u16) -> Result<Self> {
        let index = longwire_netlink::interface_index(interface)?;
        // SAFETY: plain numbers; returns a new descriptor or -1.
        let fd = unsafe { owned(libc::socket(libc::AF_PACKET, libc::SOCK_RAW | libc::SOCK_CLOEXEC, 0)) }?;
        // SAFETY: all zeros is an address of no family.
        let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
        address.sll_family = libc::AF_PACKET as u16;
        address.sll_protocol = ethertype.to_be();
        address.sll_ifindex = index as i32;
        let mut length = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
        // SAFETY: reads `length` bytes of `address`, which lives until it returns.
        checked(unsafe { libc::bind(fd.as_raw_fd(), (&raw const address).cast(), length) })?;
        // SAFETY: writes at most `length` bytes of `address`, which lives until it returns.
        checked(unsafe { libc::getsockname(fd.as_raw_fd(), (&raw mut address).cast(), &raw mut length) })?;
        let [a, b, c, d, e, f, ..] = address.sll_addr;
        Ok(Self { fd, mac: [a, b, c, d, e, f] })
    }

    /// The interface's hardware address.
    pub const fn mac(&self) -> [u8; 6] {
        self.mac
    }

    /// Sends a frame.
    ///
    /// # Errors
    /// The system refuses.
    pub fn send(&self, frame: &[u8]) -> Result<()> {
        // SAFETY: reads the frame's bytes, which live until it returns.
        checked(unsafe { libc::send(self.fd.as_raw_fd(), frame.as_ptr().cast(), frame.len(), 0) }).map(drop)
    }

    /// Receives a frame within `wait`, and returns its length; none if there was none.
    ///
    /// # Errors
    /// The system refuses.
    pub fn receive(&self, buffer: &mut [u8], wait: Duration) -> Result<Option<usize>> {
        let mut ready = libc::pollfd { fd: self.fd.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        let wait = i32::try_from(wait.as_millis()).unwrap_or(i32::MAX).saturating_add(1);
        // SAFETY: one entry, which lives until it returns.
        if unsafe { libc::poll(&raw mut ready, 1, wait) } <= 0 {
            return Ok(None);
        }
        let (at, length) = (buffer.as_mut_ptr().cast(), buffer.len());
        // SAFETY: writes at most as many bytes as `buffer` has, which lives until it returns.
        match checked(unsafe { libc::recv(self.fd.as_raw_fd(), at, length, libc::MSG_DONTWAIT) }) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(None),
            result => result.map(Some),
        }
    }
}
