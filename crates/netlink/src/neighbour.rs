//! Neighbours (linux/neighbour.h): hardware addresses of IP addresses on a link.

use crate::message::{Malformed, Message, attribute, family, ip, u16_at, u32_at, zero};
use std::net::IpAddr;

/// Bytes of `struct ndmsg`: family, padding, interface, state, flags, type.
const HEADER: usize = 12;

/// A neighbour entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Neighbour {
    /// The interface's index.
    pub index: u32,
    /// The neighbour's address.
    pub address: IpAddr,
    /// Its hardware address, if known and an Ethernet address.
    pub mac: Option<[u8; 6]>,
    /// Its state (`NUD_…`).
    pub state: u16,
}

/// Request to add or replace a neighbour.
pub fn set(neighbour: &Neighbour) -> Message {
    let mut m = Message::new(libc::RTM_NEWNEIGH, libc::NLM_F_CREATE | libc::NLM_F_REPLACE);
    m.bytes(&[family(neighbour.address), 0, 0, 0]);
    m.bytes(&neighbour.index.to_ne_bytes());
    m.bytes(&neighbour.state.to_ne_bytes());
    m.bytes(&[0, libc::RTN_UNICAST]);
    m.ip(libc::NDA_DST, neighbour.address);
    if let Some(mac) = neighbour.mac {
        m.attribute(libc::NDA_LLADDR, &mac);
    }
    m
}

/// Request to list all neighbours.
pub fn list() -> Message {
    let mut m = Message::new(libc::RTM_GETNEIGH, 0);
    m.bytes(&[0; HEADER]);
    m
}

impl Neighbour {
    /// Parses a message's body. None if the family is not IP.
    ///
    /// # Errors
    /// If it is too short or has invalid values.
    pub fn read(body: &[u8]) -> Result<Option<Self>, Malformed> {
        let header = body.get(..HEADER).ok_or(Malformed)?;
        let (family, index) = (header[0], u32_at(header, 4).ok_or(Malformed)?);
        let state = u16_at(header, 8).ok_or(Malformed)?;
        if zero(family).is_none() {
            return Ok(None);
        }
        let of = |kind| attribute(&body[HEADER..], kind);
        let address = ip(family, of(libc::NDA_DST).ok_or(Malformed)?)?;
        // Other lengths belong to other kinds of links.
        let mac = of(libc::NDA_LLADDR).and_then(|value| value.try_into().ok());
        Ok(Some(Self { index, address, mac, state }))
    }
}
