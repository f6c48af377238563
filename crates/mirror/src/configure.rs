//! A new namespace as a scenario describes the router: interfaces up, with addresses and routes.

use longwire_lab::netlink::{Message, Socket};
use longwire_lab::{Cidr, interface_index};
use std::io;
use std::net::IpAddr;

/// An interface of the namespace, beside a port of the router.
#[derive(Debug, Clone)]
pub struct PortSpec {
    /// Its name.
    pub name: String,
    /// Its addresses.
    pub addresses: Vec<Cidr>,
}

/// A route of the namespace.
#[derive(Debug, Clone)]
pub struct RouteSpec {
    /// Where to.
    pub to: Cidr,
    /// The neighbour that knows the way.
    pub via: Option<IpAddr>,
    /// The name of the interface; none if packets are dropped.
    pub port: Option<String>,
}

/// The metric that IPv6 routes have if nothing is said; zero would mean that, too.
const METRIC: u32 = 1024;

/// The gateway is on the link, whatever the addresses say (linux/rtnetlink.h, RTNH_F_ONLINK).
const ONLINK: u32 = 4;

/// Sets up what there is in the calling thread's namespace, and answers the interfaces' indices in order.
///
/// # Errors
/// What the kernel refuses, with what was asked for.
pub fn configure(ports: &[PortSpec], routes: &[RouteSpec]) -> io::Result<Vec<u32>> {
    let mut socket = Socket::open(libc::NETLINK_ROUTE)?;
    let mut indices = Vec::with_capacity(ports.len());
    for port in ports {
        let index = interface_index(&port.name)?;
        socket.request(up(index)).map_err(telling(&format!("bringing {} up", port.name)))?;
        for own in &port.addresses {
            let what = format!("giving {} the address {own}", port.name);
            socket.request(address(index, *own)).map_err(telling(&what))?;
        }
        indices.push(index);
    }
    let mut requests = Vec::with_capacity(routes.len());
    for one in routes {
        let index = one.port.as_ref().map(|name| interface_index(name)).transpose()?;
        requests.push(route(one, index));
    }
    let refused = socket.requests(requests)?.into_iter().zip(routes).find_map(|(end, one)| Some((end?, one)));
    match refused {
        Some((error, one)) => Err(telling(&format!("adding the route to {}", one.to))(error)),
        None => Ok(indices),
    }
}

fn telling(what: &str) -> impl FnOnce(io::Error) -> io::Error {
    let what = what.to_owned();
    move |error| io::Error::new(error.kind(), format!("{what}: {error}"))
}

fn up(index: u32) -> Message {
    let flag = (libc::IFF_UP as u32).to_ne_bytes();
    let mut m = Message::new(libc::RTM_NEWLINK, 0);
    m.bytes(&[libc::AF_UNSPEC as u8, 0, 0, 0]);
    m.bytes(&index.to_ne_bytes());
    m.bytes(&flag);
    m.bytes(&flag);
    m
}

fn address(index: u32, own: Cidr) -> Message {
    let mut m = Message::new(libc::RTM_NEWADDR, libc::NLM_F_CREATE | libc::NLM_F_EXCL);
    m.bytes(&[family(own.address()), own.prefix(), libc::IFA_F_NODAD as u8, 0]);
    m.bytes(&index.to_ne_bytes());
    ip(&mut m, libc::IFA_LOCAL, own.address());
    ip(&mut m, libc::IFA_ADDRESS, own.address());
    m
}

fn route(route: &RouteSpec, index: Option<u32>) -> Message {
    let to = route.to.network();
    let scope = match (route.via, to.address()) {
        (None, IpAddr::V4(_)) if index.is_some() => libc::RT_SCOPE_LINK,
        _ => libc::RT_SCOPE_UNIVERSE,
    };
    let kind = if index.is_some() { libc::RTN_UNICAST } else { libc::RTN_BLACKHOLE };
    let flags: u32 = if route.via.is_some() { ONLINK } else { 0 };
    let mut m = Message::new(libc::RTM_NEWROUTE, libc::NLM_F_CREATE | libc::NLM_F_EXCL);
    m.bytes(&[family(to.address()), to.prefix(), 0, 0]);
    m.bytes(&[libc::RT_TABLE_MAIN, libc::RTPROT_STATIC, scope, kind]);
    m.bytes(&flags.to_ne_bytes());
    ip(&mut m, libc::RTA_DST, to.address());
    if let Some(via) = route.via {
        ip(&mut m, libc::RTA_GATEWAY, via);
    }
    if let Some(index) = index {
        m.attribute(libc::RTA_OIF, &index.to_ne_bytes());
    }
    if to.address().is_ipv6() {
        m.attribute(libc::RTA_PRIORITY, &METRIC.to_ne_bytes());
    }
    m
}

fn ip(m: &mut Message, kind: u16, address: IpAddr) {
    match address {
        IpAddr::V4(address) => m.attribute(kind, &address.octets()),
        IpAddr::V6(address) => m.attribute(kind, &address.octets()),
    }
}

const fn family(address: IpAddr) -> u8 {
    match address {
        IpAddr::V4(_) => libc::AF_INET as u8,
        IpAddr::V6(_) => libc::AF_INET6 as u8,
    }
}
