//! Addresses of interfaces (linux/if_addr.h).

use crate::message::{Malformed, Message, attribute, family, ip, u32_at, width, zero};
use std::net::IpAddr;

/// Bytes of `struct ifaddrmsg`.
const HEADER: usize = 8;

/// An address of an interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Address {
    /// The interface's index.
    pub index: u32,
    /// The address.
    pub address: IpAddr,
    /// Prefix length.
    pub prefix: u8,
}

/// Request to add an address, usable at once (no duplicate address detection).
pub fn add(own: &Address) -> Message {
    let mut m = Message::new(libc::RTM_NEWADDR, libc::NLM_F_CREATE | libc::NLM_F_EXCL);
    m.bytes(&[family(own.address), own.prefix, libc::IFA_F_NODAD as u8, 0]);
    m.bytes(&own.index.to_ne_bytes());
    m.ip(libc::IFA_LOCAL, own.address);
    m.ip(libc::IFA_ADDRESS, own.address);
    m
}

/// Request to list all addresses.
pub fn list() -> Message {
    let mut m = Message::new(libc::RTM_GETADDR, 0);
    m.bytes(&[0; HEADER]);
    m
}

impl Address {
    /// Parses a message's body. None if the family is not IP.
    ///
    /// # Errors
    /// If it is too short or has invalid values.
    pub fn read(body: &[u8]) -> Result<Option<Self>, Malformed> {
        let header = body.get(..HEADER).ok_or(Malformed)?;
        let (family, prefix, index) = (header[0], header[1], u32_at(header, 4).ok_or(Malformed)?);
        let Some(zero) = zero(family) else { return Ok(None) };
        if prefix > width(zero) {
            return Err(Malformed);
        }
        let of = |kind| attribute(&body[HEADER..], kind).map(|value| ip(family, value)).transpose();
        // On point-to-point links IFA_LOCAL is the interface's own address; IPv6 has only IFA_ADDRESS.
        let address = of(libc::IFA_LOCAL)?.or(of(libc::IFA_ADDRESS)?).ok_or(Malformed)?;
        Ok(Some(Self { index, address, prefix }))
    }
}
