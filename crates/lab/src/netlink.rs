//! Links, addresses and routes through the kernel's routing netlink (rtnetlink(7)), as little of it as a lab needs.
//!
//! A socket belongs to the namespace of the thread that opened it, so everything here is used inside
//! [`crate::Namespace::run`].
#![allow(unsafe_code)]

use std::ffi::CString;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use crate::{Cidr, Mac, Route};

const HEADER: usize = size_of::<libc::nlmsghdr>();
/// Length of `struct rtmsg`.
const ROUTE_HEADER: usize = 12;
const VETH_INFO_PEER: u16 = 1;
const NLMSGERR_ATTR_MSG: u16 = 1;
const NLA_TYPE_MASK: u16 = 0x3fff;

/// One end of a new veth pair.
pub struct VethEnd<'a> {
    pub name: &'a str,
    pub mac: Option<Mac>,
    pub mtu: u32,
    /// The namespace the end is made in; `None` for the socket's own.
    pub namespace: Option<BorrowedFd<'a>>,
}

/// What to change of a link; `None` leaves as it is.
#[derive(Default)]
pub struct LinkChange<'a> {
    pub name: Option<&'a str>,
    pub mac: Option<Mac>,
    pub mtu: Option<u32>,
    pub namespace: Option<BorrowedFd<'a>>,
    pub up: bool,
}

/// A netlink socket in one namespace.
pub struct Netlink {
    socket: OwnedFd,
    sequence: u32,
}

impl Netlink {
    /// Opens a socket in the calling thread's namespace.
    pub fn open() -> io::Result<Self> {
        // SAFETY: no pointers; the result is checked before it becomes an owned descriptor.
        let fd = unsafe {
            libc::socket(libc::AF_NETLINK, libc::SOCK_RAW | libc::SOCK_CLOEXEC, libc::NETLINK_ROUTE)
        };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: `fd` is a new descriptor that nothing else owns.
        let socket = unsafe { OwnedFd::from_raw_fd(fd) };
        // Asks the kernel to say in words what it refuses; without it errors are bare numbers.
        for option in [libc::NETLINK_EXT_ACK, libc::NETLINK_CAP_ACK] {
            let one: libc::c_int = 1;
            // SAFETY: the option's value is a live c_int of the length given.
            unsafe {
                libc::setsockopt(
                    socket.as_raw_fd(),
                    libc::SOL_NETLINK,
                    option,
                    (&raw const one).cast(),
                    size_of::<libc::c_int>() as libc::socklen_t,
                );
            }
        }
        Ok(Self { socket, sequence: 0 })
    }

    /// Makes a veth pair.
    pub fn create_veth(&mut self, a: &VethEnd<'_>, b: &VethEnd<'_>) -> io::Result<()> {
        let mut m = Message::new(libc::RTM_NEWLINK, libc::NLM_F_CREATE | libc::NLM_F_EXCL);
        m.link_header(0, 0, 0);
        m.veth_end(a);
        m.nested(libc::IFLA_LINKINFO, |m| {
            m.attribute(libc::IFLA_INFO_KIND, b"veth");
            m.nested(libc::IFLA_INFO_DATA, |m| {
                m.nested(VETH_INFO_PEER, |m| {
                    m.link_header(0, 0, 0);
                    m.veth_end(b);
                });
            });
        });
        self.request(m)
    }

    /// Changes a link. A move and a new name in one change take effect together.
    pub fn change_link(&mut self, index: u32, change: &LinkChange<'_>) -> io::Result<()> {
        let up = if change.up { libc::IFF_UP as u32 } else { 0 };
        let mut m = Message::new(libc::RTM_NEWLINK, 0);
        m.link_header(index, up, up);
        if let Some(name) = change.name {
            m.string(libc::IFLA_IFNAME, name);
        }
        if let Some(mac) = change.mac {
            m.attribute(libc::IFLA_ADDRESS, &mac.0);
        }
        if let Some(mtu) = change.mtu {
            m.attribute(libc::IFLA_MTU, &mtu.to_ne_bytes());
        }
        if let Some(namespace) = change.namespace {
            m.attribute(libc::IFLA_NET_NS_FD, &namespace.as_raw_fd().to_ne_bytes());
        }
        self.request(m)
    }

    /// Removes a link; a veth's other end goes with it.
    pub fn delete_link(&mut self, index: u32) -> io::Result<()> {
        let mut m = Message::new(libc::RTM_DELLINK, 0);
        m.link_header(index, 0, 0);
        self.request(m)
    }

    /// Gives a link an address, usable at once (no duplicate address detection).
    pub fn add_address(&mut self, index: u32, address: Cidr) -> io::Result<()> {
        let mut m = Message::new(libc::RTM_NEWADDR, libc::NLM_F_CREATE | libc::NLM_F_EXCL);
        m.bytes(&[family(address.address()), address.prefix(), libc::IFA_F_NODAD as u8, 0]);
        m.bytes(&index.to_ne_bytes());
        m.address(libc::IFA_LOCAL, address.address());
        m.address(libc::IFA_ADDRESS, address.address());
        self.request(m)
    }

    /// Adds a route to the main table, by way of a link.
    pub fn add_route(&mut self, index: u32, route: Route) -> io::Result<()> {
        let to = route.to.network();
        let scope = if route.via.is_some() { libc::RT_SCOPE_UNIVERSE } else { libc::RT_SCOPE_LINK };
        let mut m = Message::new(libc::RTM_NEWROUTE, libc::NLM_F_CREATE | libc::NLM_F_EXCL);
        m.bytes(&[family(to.address()), to.prefix(), 0, 0]);
        m.bytes(&[libc::RT_TABLE_MAIN, libc::RTPROT_STATIC, scope, libc::RTN_UNICAST]);
        m.bytes(&0u32.to_ne_bytes());
        m.address(libc::RTA_DST, to.address());
        if let Some(via) = route.via {
            m.address(libc::RTA_GATEWAY, via);
        }
        m.attribute(libc::RTA_OIF, &index.to_ne_bytes());
        self.request(m)
    }

    /// The destinations of every route in every table, those of the machine's own addresses included.
    pub fn route_destinations(&mut self) -> io::Result<Vec<Cidr>> {
        let mut m = Message::new(libc::RTM_GETROUTE, libc::NLM_F_DUMP);
        m.bytes(&[0; ROUTE_HEADER]);
        let sequence = self.send(m)?;
        let mut found = Vec::new();
        self.replies(sequence, |kind, body| {
            if kind == libc::RTM_NEWROUTE {
                found.extend(destination(body));
            }
        })?;
        Ok(found)
    }

    fn request(&mut self, mut m: Message) -> io::Result<()> {
        m.add_flags(libc::NLM_F_ACK);
        let sequence = self.send(m)?;
        self.replies(sequence, |_, _| {})
    }

    fn send(&mut self, m: Message) -> io::Result<u32> {
        self.sequence += 1;
        let bytes = m.finish(self.sequence);
        // SAFETY: pointer and length describe a live buffer; an unconnected netlink socket sends to the kernel.
        let sent = unsafe { libc::send(self.socket.as_raw_fd(), bytes.as_ptr().cast(), bytes.len(), 0) };
        if sent < 0 { Err(io::Error::last_os_error()) } else { Ok(self.sequence) }
    }

    /// Hands every reply to `each`, up to the acknowledgement or the end of the dump.
    fn replies(&mut self, sequence: u32, mut each: impl FnMut(u16, &[u8])) -> io::Result<()> {
        let mut buffer = vec![0u8; 64 * 1024];
        loop {
            // SAFETY: pointer and length describe a live buffer.
            let n =
                unsafe { libc::recv(self.socket.as_raw_fd(), buffer.as_mut_ptr().cast(), buffer.len(), 0) };
            let n = usize::try_from(n).map_err(|_| io::Error::last_os_error())?;
            let mut rest = &buffer[..n];
            while let Some((reply, tail)) = split_reply(rest) {
                rest = tail;
                if reply.sequence != sequence {
                    continue;
                }
                match libc::c_int::from(reply.kind) {
                    libc::NLMSG_ERROR => return acknowledgement(reply.flags, reply.body),
                    libc::NLMSG_DONE => return Ok(()),
                    _ => each(reply.kind, reply.body),
                }
            }
        }
    }
}

/// The index of an interface in the calling thread's namespace.
pub fn interface_index(name: &str) -> io::Result<u32> {
    let name = CString::new(name).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
    // SAFETY: a live string with its closing zero.
    let index = unsafe { libc::if_nametoindex(name.as_ptr()) };
    if index == 0 { Err(io::Error::last_os_error()) } else { Ok(index) }
}

const fn family(address: IpAddr) -> u8 {
    match address {
        IpAddr::V4(_) => libc::AF_INET as u8,
        IpAddr::V6(_) => libc::AF_INET6 as u8,
    }
}

/// One message of a datagram.
struct Reply<'a> {
    kind: u16,
    flags: u16,
    sequence: u32,
    body: &'a [u8],
}

/// The first message of a datagram, and what follows it.
fn split_reply(bytes: &[u8]) -> Option<(Reply<'_>, &[u8])> {
    let length = u32_at(bytes, 0)? as usize;
    let body = bytes.get(HEADER..length)?;
    let tail = bytes.get(length.next_multiple_of(4)..).unwrap_or(&[]);
    let (kind, flags, sequence) = (u16_at(bytes, 4)?, u16_at(bytes, 6)?, u32_at(bytes, 8)?);
    Some((Reply { kind, flags, sequence, body }, tail))
}

/// (type, value) of each attribute.
fn attributes(mut bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let length = u16_at(bytes, 0)? as usize;
        let value = bytes.get(4..length)?;
        let kind = u16_at(bytes, 2)? & NLA_TYPE_MASK;
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or(&[]);
        Some((kind, value))
    })
}

fn acknowledgement(flags: u16, body: &[u8]) -> io::Result<()> {
    let code = u32_at(body, 0).ok_or(io::ErrorKind::UnexpectedEof)?.cast_signed();
    if code == 0 {
        return Ok(());
    }
    let error = io::Error::from_raw_os_error(-code);
    // With NETLINK_CAP_ACK only the header of the request is echoed before the attributes.
    let has_words = i32::from(flags) & libc::NLM_F_ACK_TLVS != 0;
    let words = body.get(4 + HEADER..).filter(|_| has_words).and_then(|a| {
        let (_, text) = attributes(a).find(|(kind, _)| *kind == NLMSGERR_ATTR_MSG)?;
        Some(String::from_utf8_lossy(text).trim_end_matches('\0').to_owned())
    });
    // The words replace the number only where the number carries no more meaning for a caller.
    match words {
        Some(words) if code == -libc::EINVAL => Err(io::Error::new(io::ErrorKind::InvalidInput, words)),
        _ => Err(error),
    }
}

fn destination(route: &[u8]) -> Option<Cidr> {
    let (&family, &prefix) = (route.first()?, route.get(1)?);
    let value = attributes(route.get(ROUTE_HEADER..)?)
        .find(|(kind, _)| *kind == libc::RTA_DST)
        .map(|(_, value)| value);
    let address = match (libc::c_int::from(family), value) {
        (libc::AF_INET, Some(v)) => IpAddr::V4(Ipv4Addr::from(<[u8; 4]>::try_from(v).ok()?)),
        (libc::AF_INET6, Some(v)) => IpAddr::V6(Ipv6Addr::from(<[u8; 16]>::try_from(v).ok()?)),
        (libc::AF_INET, None) => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
        (libc::AF_INET6, None) => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
        _ => return None,
    };
    Cidr::new(address, prefix).ok()
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

/// A request being written: header, fixed part, attributes.
struct Message {
    bytes: Vec<u8>,
}

impl Message {
    fn new(kind: u16, flags: libc::c_int) -> Self {
        let mut m = Self { bytes: vec![0; HEADER] };
        m.bytes[4..6].copy_from_slice(&kind.to_ne_bytes());
        m.add_flags(flags | libc::NLM_F_REQUEST);
        m
    }

    fn add_flags(&mut self, flags: libc::c_int) {
        let flags = u16::from_ne_bytes([self.bytes[6], self.bytes[7]]) | flags as u16;
        self.bytes[6..8].copy_from_slice(&flags.to_ne_bytes());
    }

    fn finish(mut self, sequence: u32) -> Vec<u8> {
        let length = self.bytes.len() as u32;
        self.bytes[0..4].copy_from_slice(&length.to_ne_bytes());
        self.bytes[8..12].copy_from_slice(&sequence.to_ne_bytes());
        self.bytes
    }

    /// Every fixed part is a multiple of four bytes long, so attributes that follow stay aligned.
    fn bytes(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// `struct ifinfomsg`.
    fn link_header(&mut self, index: u32, flags: u32, mask: u32) {
        self.bytes(&[libc::AF_UNSPEC as u8, 0, 0, 0]);
        self.bytes(&index.to_ne_bytes());
        self.bytes(&flags.to_ne_bytes());
        self.bytes(&mask.to_ne_bytes());
    }

    fn veth_end(&mut self, end: &VethEnd<'_>) {
        self.string(libc::IFLA_IFNAME, end.name);
        self.attribute(libc::IFLA_MTU, &end.mtu.to_ne_bytes());
        if let Some(mac) = end.mac {
            self.attribute(libc::IFLA_ADDRESS, &mac.0);
        }
        if let Some(namespace) = end.namespace {
            self.attribute(libc::IFLA_NET_NS_FD, &namespace.as_raw_fd().to_ne_bytes());
        }
    }

    fn address(&mut self, kind: u16, address: IpAddr) {
        match address {
            IpAddr::V4(a) => self.attribute(kind, &a.octets()),
            IpAddr::V6(a) => self.attribute(kind, &a.octets()),
        }
    }

    fn string(&mut self, kind: u16, text: &str) {
        let mut value = text.as_bytes().to_vec();
        value.push(0);
        self.attribute(kind, &value);
    }

    fn attribute(&mut self, kind: u16, value: &[u8]) {
        self.nested(kind, |m| m.bytes(value));
    }

    fn nested(&mut self, kind: u16, content: impl FnOnce(&mut Self)) {
        let start = self.bytes.len();
        self.bytes(&[0; 4]);
        content(self);
        // Names are at most 15 bytes and everything else is of fixed size: a length always fits 16 bits.
        let length = (self.bytes.len() - start) as u16;
        self.bytes[start..start + 2].copy_from_slice(&length.to_ne_bytes());
        self.bytes[start + 2..start + 4].copy_from_slice(&kind.to_ne_bytes());
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_are_padded_and_nested() {
        let mut m = Message::new(libc::RTM_NEWLINK, libc::NLM_F_CREATE);
        m.nested(7, |m| m.attribute(9, b"abc"));
        let bytes = m.finish(5);
        let (reply, tail) = split_reply(&bytes).unwrap();
        assert_eq!((reply.kind, reply.sequence, tail), (libc::RTM_NEWLINK, 5, &[][..]));
        assert_eq!(i32::from(reply.flags), libc::NLM_F_CREATE | libc::NLM_F_REQUEST);
        let outer: Vec<_> = attributes(reply.body).collect();
        assert_eq!(outer.len(), 1);
        assert_eq!(outer[0].0, 7);
        assert_eq!(attributes(outer[0].1).collect::<Vec<_>>(), [(9, &b"abc"[..])]);
    }

    #[test]
    fn cut_short_replies_are_not_read_past_their_end() {
        let mut m = Message::new(libc::RTM_NEWROUTE, 0);
        m.bytes(&[libc::AF_INET as u8, 24, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        m.attribute(libc::RTA_DST, &[10, 1, 2, 0]);
        let bytes = m.finish(1);
        for length in 0..bytes.len() {
            assert!(split_reply(&bytes[..length]).is_none());
            destination(&bytes[..length]);
            let _ = acknowledgement(u16::MAX, &bytes[..length]);
        }
        let route = destination(&bytes[HEADER..]).unwrap();
        assert_eq!(route.to_string(), "10.1.2.0/24");
    }

    #[test]
    fn the_loopback_routes_are_listed() {
        let mut netlink = Netlink::open().unwrap();
        let routes = netlink.route_destinations().unwrap();
        let loopback: IpAddr = [127, 0, 0, 1].into();
        assert!(routes.iter().any(|r| r.prefix() > 0 && r.contains(loopback)), "{routes:?}");
    }
}
