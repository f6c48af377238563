//! Links, addresses and routes (rtnetlink(7)), as little of it as a lab needs.
//!
//! Everything here acts on the namespace of the calling thread, and is used inside [`crate::Namespace::run`].
#![allow(unsafe_code)]

use std::ffi::CString;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::{AsRawFd, BorrowedFd};

use crate::netlink::{Message, Socket, attributes};
use crate::{Cidr, Mac, Route};

/// Length of `struct rtmsg`.
const ROUTE_HEADER: usize = 12;
const VETH_INFO_PEER: u16 = 1;

/// One end of a new veth pair.
pub struct VethEnd<'a> {
    pub name: &'a str,
    /// A number by which links can be removed together; 0 for none.
    pub group: u32,
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

/// The kernel's routing part, as seen from one namespace.
pub struct Links {
    socket: Socket,
}

impl Links {
    /// Opens a socket in the calling thread's namespace.
    pub fn open() -> io::Result<Self> {
        Ok(Self { socket: Socket::open(libc::NETLINK_ROUTE)? })
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
        self.socket.request(m)
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
        self.socket.request(m)
    }

    /// Removes a link; a veth's other end goes with it. One that is gone already is no error.
    pub fn delete_link(&mut self, index: u32) -> io::Result<()> {
        let mut m = Message::new(libc::RTM_DELLINK, 0);
        m.link_header(index, 0, 0);
        self.remove(m)
    }

    /// Removes all links of a group in one step, at the cost of one; a veth's other end goes with it. A group
    /// without links is no error.
    pub fn delete_group(&mut self, group: u32) -> io::Result<()> {
        let mut m = Message::new(libc::RTM_DELLINK, 0);
        m.link_header(0, 0, 0);
        m.attribute(libc::IFLA_GROUP, &group.to_ne_bytes());
        self.remove(m)
    }

    fn remove(&mut self, m: Message) -> io::Result<()> {
        match self.socket.request(m) {
            // Gone already: the other end's namespace may be ending at this moment, and takes the pair with it.
            Err(e) if e.raw_os_error() == Some(libc::ENODEV) => Ok(()),
            other => other,
        }
    }

    /// Gives a link an address, usable at once (no duplicate address detection).
    pub fn add_address(&mut self, index: u32, address: Cidr) -> io::Result<()> {
        let mut m = Message::new(libc::RTM_NEWADDR, libc::NLM_F_CREATE | libc::NLM_F_EXCL);
        m.bytes(&[family(address.address()), address.prefix(), libc::IFA_F_NODAD as u8, 0]);
        m.bytes(&index.to_ne_bytes());
        m.address(libc::IFA_LOCAL, address.address());
        m.address(libc::IFA_ADDRESS, address.address());
        self.socket.request(m)
    }

    /// Tells a link, for good, at which hardware address a neighbour is: nobody is asked for it over the link.
    pub fn add_neighbour(&mut self, index: u32, address: IpAddr, mac: Mac) -> io::Result<()> {
        let mut m = Message::new(libc::RTM_NEWNEIGH, libc::NLM_F_CREATE | libc::NLM_F_REPLACE);
        // `struct ndmsg`: family, padding, interface, state, flags, type.
        m.bytes(&[family(address), 0, 0, 0]);
        m.bytes(&index.to_ne_bytes());
        m.bytes(&libc::NUD_PERMANENT.to_ne_bytes());
        m.bytes(&[0, libc::RTN_UNICAST]);
        m.address(libc::NDA_DST, address);
        m.attribute(libc::NDA_LLADDR, &mac.0);
        self.socket.request(m)
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
        self.socket.request(m)
    }

    /// The destinations of every route in every table, those of the machine's own addresses included.
    pub fn route_destinations(&mut self) -> io::Result<Vec<Cidr>> {
        let mut m = Message::new(libc::RTM_GETROUTE, 0);
        m.bytes(&[0; ROUTE_HEADER]);
        let mut found = Vec::new();
        self.socket.dump(m, |kind, body| {
            if kind == libc::RTM_NEWROUTE {
                found.extend(destination(body));
            }
        })?;
        Ok(found)
    }
}

/// The index of an interface in the calling thread's namespace.
///
/// # Errors
/// When there is none of this name.
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

impl Message {
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
        self.attribute(libc::IFLA_GROUP, &end.group.to_ne_bytes());
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
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn destinations_are_read_and_cut_short_ones_are_not() {
        let mut route = vec![libc::AF_INET as u8, 24, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        assert_eq!(destination(&route).unwrap().to_string(), "0.0.0.0/24");
        route.extend_from_slice(&[8, 0, libc::RTA_DST as u8, 0, 10, 1, 2, 0]);
        assert_eq!(destination(&route).unwrap().to_string(), "10.1.2.0/24");
        for length in 0..ROUTE_HEADER {
            assert!(destination(&route[..length]).is_none());
        }
        route[1] = 33;
        assert!(destination(&route).is_none());
    }

    #[test]
    fn the_loopback_routes_are_listed() {
        let routes = Links::open().unwrap().route_destinations().unwrap();
        let loopback: IpAddr = [127, 0, 0, 1].into();
        assert!(routes.iter().any(|r| r.prefix() > 0 && r.contains(loopback)), "{routes:?}");
    }
}
