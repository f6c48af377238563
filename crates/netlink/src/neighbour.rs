//! Neighbours (linux/neighbour.h): which hardware address an IP address has on a link.

use crate::message::{Malformed, Message, attributes, family, ip, u16_at, u32_at, zero};
use std::net::IpAddr;

/// Bytes of `struct ndmsg`: family, padding, interface, state, flags, type.
const HEADER: usize = 12;

/// What is known of a neighbour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Neighbour {
    /// The interface's index.
    pub index: u32,
    /// The neighbour's address.
    pub address: IpAddr,
    /// Its hardware address, if it is known and one of Ethernet.
    pub mac: Option<[u8; 6]>,
    /// How it is known (`NUD_…`).
    pub state: u16,
}

/// Tells the kernel what is known of a neighbour, in place of what it knows.
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

/// Asks for all neighbours.
pub fn list() -> Message {
    let mut m = Message::new(libc::RTM_GETNEIGH, 0);
    m.bytes(&[0; HEADER]);
    m
}

impl Neighbour {
    /// Reads a message's body. None if it is about something else than IP.
    ///
    /// # Errors
    /// It is too short, or says what can't be.
    pub fn read(body: &[u8]) -> Result<Option<Self>, Malformed> {
        let header = body.get(..HEADER).ok_or(Malformed)?;
        let (family, index) = (header[0], u32_at(header, 4).ok_or(Malformed)?);
        let state = u16_at(header, 8).ok_or(Malformed)?;
        if zero(family).is_none() {
            return Ok(None);
        }
        let (mut address, mut mac) = (None, None);
        for (kind, value) in attributes(&body[HEADER..]) {
            match kind {
                libc::NDA_DST => address = Some(ip(family, value)?),
                // Other lengths are those of other kinds of links.
                libc::NDA_LLADDR => mac = value.try_into().ok(),
                _ => {}
            }
        }
        Ok(Some(Self { index, address: address.ok_or(Malformed)?, mac, state }))
    }
}
