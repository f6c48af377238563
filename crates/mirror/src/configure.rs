//! Configuration of a new namespace from the scenario's router: interfaces up, with addresses and routes.

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
    /// Next hops that share the flows; if there are none, packets are dropped.
    pub hops: Vec<HopSpec>,
}

/// A next hop of a route.
#[derive(Debug, Clone)]
pub struct HopSpec {
    /// The gateway.
    pub via: Option<IpAddr>,
    /// The name of the interface.
    pub port: String,
    /// Its share of the flows: 1 to 256; more is treated as 256.
    pub weight: u16,
}

/// The default metric of IPv6 routes; zero would mean the default, too.
const METRIC: u32 = 1024;

/// The gateway is on the link, regardless of the addresses (linux/rtnetlink.h, RTNH_F_ONLINK).
const ONLINK: u8 = 4;

/// Configures the calling thread's namespace, and returns the interfaces' indices in order.
///
/// # Errors
/// The kernel's refusal, with the request.
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
        let hops = one.hops.iter().map(|hop| Ok((hop, interface_index(&hop.port)?)));
        requests.push(route(one.to, &hops.collect::<io::Result<Vec<_>>>()?));
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

fn route(to: Cidr, hops: &[(&HopSpec, u32)]) -> Message {
    let to = to.network();
    let on_link = hops.iter().all(|(hop, _)| hop.via.is_none());
    let (scope, kind) = match (hops.is_empty(), to.address()) {
        (true, _) => (libc::RT_SCOPE_UNIVERSE, libc::RTN_BLACKHOLE),
        (false, IpAddr::V4(_)) if on_link => (libc::RT_SCOPE_LINK, libc::RTN_UNICAST),
        (false, _) => (libc::RT_SCOPE_UNIVERSE, libc::RTN_UNICAST),
    };
    let flags = match hops {
        [(HopSpec { via: Some(_), .. }, _)] => ONLINK,
        _ => 0,
    };
    let mut m = Message::new(libc::RTM_NEWROUTE, libc::NLM_F_CREATE | libc::NLM_F_EXCL);
    m.bytes(&[family(to.address()), to.prefix(), 0, 0]);
    m.bytes(&[libc::RT_TABLE_MAIN, libc::RTPROT_STATIC, scope, kind]);
    m.bytes(&u32::from(flags).to_ne_bytes());
    ip(&mut m, libc::RTA_DST, to.address());
    match hops {
        [] => {}
        [(hop, index)] => {
            if let Some(via) = hop.via {
                ip(&mut m, libc::RTA_GATEWAY, via);
            }
            m.attribute(libc::RTA_OIF, &index.to_ne_bytes());
        }
        several => m.attribute(libc::RTA_MULTIPATH, &several.iter().flat_map(next_hop).collect::<Vec<_>>()),
    }
    if to.address().is_ipv6() {
        m.attribute(libc::RTA_PRIORITY, &METRIC.to_ne_bytes());
    }
    m
}

/// One of several next hops (linux/rtnetlink.h, `struct rtnexthop`): length, flags, weight minus one,
/// interface, gateway.
fn next_hop((hop, index): &(&HopSpec, u32)) -> Vec<u8> {
    const HEADER: u16 = 8;
    const ATTRIBUTE: u16 = 4;
    let gateway = hop.via.map(|via| match via {
        IpAddr::V4(via) => via.octets().to_vec(),
        IpAddr::V6(via) => via.octets().to_vec(),
    });
    let attribute = gateway.as_ref().map_or(0, |gateway| ATTRIBUTE + gateway.len() as u16);
    let flags = if gateway.is_some() { ONLINK } else { 0 };
    let weight = (hop.weight.max(1) - 1).min(u8::MAX.into()) as u8;
    let mut bytes =
        [&(HEADER + attribute).to_ne_bytes()[..], &[flags, weight], &index.to_ne_bytes()].concat();
    if let Some(gateway) = gateway {
        bytes.extend(
            attribute.to_ne_bytes().into_iter().chain(libc::RTA_GATEWAY.to_ne_bytes()).chain(gateway),
        );
    }
    bytes
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
