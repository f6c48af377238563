//! Links (linux/if_link.h): settings in requests, and the kernel's description of a link.

use crate::message::{Malformed, Message, attributes, number, u16_at, u32_at};
use crate::socket::Socket;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// Bytes of `struct ifinfomsg`.
const HEADER: usize = 16;
const VETH_INFO_PEER: u16 = 1;
const IFF_LOWER_UP: u32 = 1 << 16;

/// Settings of a link in a request. None leaves a setting unchanged, or to the kernel.
#[derive(Debug, Clone, Copy, Default)]
pub struct LinkSettings<'a> {
    /// Its name.
    pub name: Option<&'a str>,
    /// Its hardware address.
    pub mac: Option<[u8; 6]>,
    /// The longest IP packet, in bytes.
    pub mtu: Option<u32>,
    /// Group number, by which links can be removed together; 0 is the default group.
    pub group: Option<u32>,
    /// Length of its transmit queue in packets.
    pub queue_length: Option<u32>,
    /// Whether it has a carrier; not every kind of link accepts this.
    pub carrier: Option<bool>,
    /// The namespace in which to create it, or to which to move it.
    pub namespace: Option<BorrowedFd<'a>>,
    /// Whether to set it up.
    pub up: bool,
    /// Whether to keep it from asking for neighbours' hardware addresses, and from joining the groups in
    /// which they ask for its own.
    pub without_arp: bool,
}

impl LinkSettings<'_> {
    fn write(&self, m: &mut Message, index: u32) {
        let up = if self.up { libc::IFF_UP as u32 } else { 0 };
        let without_arp = if self.without_arp { libc::IFF_NOARP as u32 } else { 0 };
        header(m, index, up | without_arp);
        if let Some(name) = self.name {
            m.string(libc::IFLA_IFNAME, name);
        }
        if let Some(mac) = self.mac {
            m.attribute(libc::IFLA_ADDRESS, &mac);
        }
        if let Some(carrier) = self.carrier {
            m.attribute(libc::IFLA_CARRIER, &[u8::from(carrier)]);
        }
        let numbers = [
            (libc::IFLA_MTU, self.mtu),
            (libc::IFLA_GROUP, self.group),
            (libc::IFLA_TXQLEN, self.queue_length),
            (libc::IFLA_NET_NS_FD, self.namespace.map(|fd| fd.as_raw_fd().cast_unsigned())),
        ];
        for (kind, value) in numbers {
            if let Some(value) = value {
                m.number(kind, value);
            }
        }
    }
}

/// Request to create a veth pair.
pub fn new_veth(near: &LinkSettings<'_>, far: &LinkSettings<'_>) -> Message {
    let mut m = Message::new(libc::RTM_NEWLINK, libc::NLM_F_CREATE | libc::NLM_F_EXCL);
    near.write(&mut m, 0);
    m.nested(libc::IFLA_LINKINFO, |m| {
        m.attribute(libc::IFLA_INFO_KIND, b"veth");
        m.nested(libc::IFLA_INFO_DATA, |m| m.nested(VETH_INFO_PEER, |m| far.write(m, 0)));
    });
    m
}

/// Request to change a link. Moving and renaming in one request is atomic.
pub fn change(index: u32, settings: &LinkSettings<'_>) -> Message {
    let mut m = Message::new(libc::RTM_NEWLINK, 0);
    settings.write(&mut m, index);
    m
}

/// Request to remove a link; a veth's other end is removed with it.
pub fn delete(index: u32) -> Message {
    let mut m = Message::new(libc::RTM_DELLINK, 0);
    header(&mut m, index, 0);
    m
}

/// Request to remove all links of a group in one step, at the cost of one removal.
pub fn delete_group(group: u32) -> Message {
    let mut m = delete(0);
    m.number(libc::IFLA_GROUP, group);
    m
}

/// Removes an interface of the calling thread's namespace; see [`unless_gone`].
///
/// # Errors
/// If the kernel refuses.
pub fn remove(name: &str) -> io::Result<()> {
    unless_gone(interface_index(name).and_then(|index| Socket::route()?.request(delete(index))))
}

/// Result of removing links. It is no error that a link is already gone: a veth's other end may remove it at
/// any moment.
///
/// # Errors
/// All other errors.
pub fn unless_gone(removed: io::Result<()>) -> io::Result<()> {
    match removed {
        Err(e) if e.raw_os_error() == Some(libc::ENODEV) => Ok(()),
        other => other,
    }
}

/// Request for one link.
pub fn ask(index: u32) -> Message {
    let mut m = Message::new(libc::RTM_GETLINK, 0);
    header(&mut m, index, 0);
    m
}

/// Request to list all links.
pub fn list() -> Message {
    ask(0)
}

/// The kernel's description of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Link {
    /// Its index.
    pub index: u32,
    /// Kind of hardware (`ARPHRD_…`).
    pub hardware: u16,
    /// Its flags (`IFF_…`).
    pub flags: u32,
    /// Longest IP packet, in bytes; 0 if the kernel does not report it.
    pub mtu: u32,
    /// Index of the link that it is tied to, such as a veth's other end; 0 if none.
    pub peer: u32,
    /// Whether `peer` is an index in another namespace.
    pub peer_is_elsewhere: bool,
    /// Number of receive queues; 0 if the kernel does not report it.
    pub receive_queues: u32,
    /// Number of transmit queues; 0 if the kernel does not report it.
    pub transmit_queues: u32,
}

impl Link {
    /// Parses a message's body. None if it describes a bridge port, whose messages have the same type.
    ///
    /// # Errors
    /// If it is too short or has invalid values.
    pub fn read(body: &[u8]) -> Result<Option<Self>, Malformed> {
        let header = body.get(..HEADER).ok_or(Malformed)?;
        if header[0] != libc::AF_UNSPEC as u8 {
            return Ok(None);
        }
        let (index, flags) = (u32_at(header, 4).ok_or(Malformed)?, u32_at(header, 8).ok_or(Malformed)?);
        let hardware = u16_at(header, 2).ok_or(Malformed)?;
        let mut link = Self { index, hardware, flags, ..Self::default() };
        for (kind, value) in attributes(&body[HEADER..]) {
            match kind {
                libc::IFLA_MTU => link.mtu = number(value)?,
                libc::IFLA_LINK => link.peer = number(value)?,
                libc::IFLA_NUM_RX_QUEUES => link.receive_queues = number(value)?,
                libc::IFLA_NUM_TX_QUEUES => link.transmit_queues = number(value)?,
                libc::IFLA_LINK_NETNSID => link.peer_is_elsewhere = true,
                _ => {}
            }
        }
        Ok(Some(link))
    }

    /// Whether it is administratively up.
    pub const fn is_up(&self) -> bool {
        self.flags & libc::IFF_UP as u32 != 0
    }

    /// Whether it has a carrier, by the flag that the kernel uses for next hops.
    pub const fn has_carrier(&self) -> bool {
        self.flags & (libc::IFF_RUNNING as u32 | IFF_LOWER_UP) != 0
    }
}

/// The index of an interface in the calling thread's namespace.
///
/// # Errors
/// If there is none of this name.
pub fn interface_index(name: &str) -> io::Result<u32> {
    Ok(rustix::net::netdevice::name_to_index(Socket::route()?, name)?)
}

/// The name of an interface in the calling thread's namespace.
///
/// # Errors
/// If there is none with this index.
pub fn interface_name(index: u32) -> io::Result<String> {
    Ok(rustix::net::netdevice::index_to_name(Socket::route()?, index)?)
}

/// `struct ifinfomsg`: family, padding, type, index, flags, and the mask of flags to change.
fn header(m: &mut Message, index: u32, flags: u32) {
    m.bytes(&[libc::AF_UNSPEC as u8, 0, 0, 0]);
    m.bytes(&index.to_ne_bytes());
    m.bytes(&flags.to_ne_bytes());
    m.bytes(&flags.to_ne_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_cut_short_is_read_no_further() {
        let mut m = Message::part();
        header(&mut m, 3, 1);
        m.string(libc::IFLA_IFNAME, "ab");
        m.number(libc::IFLA_MTU, 1400);
        m.number(libc::IFLA_LINK, 77);
        m.number(libc::IFLA_NUM_TX_QUEUES, 3);
        m.number(libc::IFLA_NUM_RX_QUEUES, 4);
        m.number(libc::IFLA_LINK_NETNSID, 0);
        let bytes = m.into_bytes();
        let link = Link {
            index: 3,
            hardware: 0,
            flags: 1,
            mtu: 1400,
            peer: 77,
            peer_is_elsewhere: true,
            receive_queues: 4,
            transmit_queues: 3,
        };
        assert_eq!(Link::read(&bytes), Ok(Some(link)));
        for length in 0..bytes.len() {
            let read = Link::read(&bytes[..length]);
            assert_eq!(read.is_err(), length < HEADER, "{length}");
            assert_ne!(read, Ok(Some(link)), "{length}");
        }
        let two_bytes = [&bytes[..HEADER], &[6, 0, libc::IFLA_LINK as u8, 0, 1, 0, 0, 0]].concat();
        assert_eq!(Link::read(&two_bytes), Err(Malformed));
    }

    #[test]
    fn the_loopback_has_a_name_and_an_index() {
        assert_eq!(interface_index("lo").unwrap(), 1);
        assert_eq!(interface_name(1).unwrap(), "lo");
        for name in ["", "no-such", "a name that is far too long", "nul\0"] {
            assert_eq!(interface_index(name).unwrap_err().raw_os_error(), Some(libc::ENODEV), "{name:?}");
        }
        assert!(interface_name(1 << 30).is_err());
    }
}
