//! The kernel's messages about links, addresses, routes and neighbours (rtnetlink(7)), each parsed once.
//! Nothing in them is trusted: impossible contents are [`Malformed`], and messages without use for a router
//! are ignored.

use crate::change::Destination;
use longwire_lab::netlink::{attributes, u16_at, u32_at};
use longwire_router::Known;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// A message that is too short, or has impossible contents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Malformed;

/// What the kernel says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Told {
    /// An interface is there.
    Link {
        /// Its index.
        index: u32,
        /// Administrative state.
        up: bool,
        /// Whether it has a carrier.
        carrier: bool,
    },
    /// An interface was removed.
    LinkGone {
        /// Its index.
        index: u32,
    },
    /// An interface has got or lost an address.
    Address {
        /// The interface's index.
        index: u32,
        /// The address.
        address: IpAddr,
        /// Prefix length of its network.
        prefix: u8,
        /// Whether it exists.
        there: bool,
    },
    /// A route was added or removed.
    Route {
        /// The route.
        route: Route,
        /// Whether it exists.
        there: bool,
        /// Whether it replaces those with the same destination and metric.
        replaces: bool,
    },
    /// Routes may have changed without individual messages.
    RoutesUncertain,
    /// A neighbour's state.
    Neighbour {
        /// The interface's index.
        index: u32,
        /// The neighbour's address.
        address: IpAddr,
        /// Its link address with its state; none if it is no longer known.
        mac: Option<([u8; 6], Known)>,
        /// Whether its resolution failed.
        failed: bool,
    },
}

/// A route of the kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Route {
    /// Where to.
    pub to: Destination,
    /// Whether it is in the table of local addresses, which is looked up first.
    pub is_local_table: bool,
    /// Of several to one destination the lowest metric wins.
    pub metric: u32,
    /// Where packets go.
    pub hop: KernelHop,
}

/// The target of a kernel route.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KernelHop {
    /// To the machine itself.
    Local,
    /// Broadcast to all hosts of a network.
    Broadcast,
    /// Dropped: blackhole, unreachable or prohibited.
    Discard,
    /// Out of an interface, or of several that share the flows. Empty for a removed route whose next hops
    /// were dead.
    Via(Vec<KernelMember>),
}

/// One of the next hops of a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KernelMember {
    /// The interface's index.
    pub index: u32,
    /// The gateway; none if the destination is a neighbour itself.
    pub gateway: Option<IpAddr>,
    /// Its share of the flows, 1 to 256.
    pub weight: u16,
}

/// Removal of a next-hop object (linux/nexthop.h, linux/rtnetlink.h), which removes its routes without
/// individual messages.
pub(crate) const RTM_DELNEXTHOP: u16 = 105;
pub(crate) const RTNLGRP_NEXTHOP: libc::c_int = 32;

const IFINFO_LEN: usize = 16;
const IFADDR_LEN: usize = 8;
const ROUTE_LEN: usize = 12;
const NEIGHBOUR_LEN: usize = 12;
/// `struct rtnexthop`: length, flags, weight, interface.
const NEXTHOP_LEN: usize = 8;
const RTA_VIA: u16 = 18;
const RTM_F_CLONED: u32 = 0x200;
/// A dead next hop, also for a route with only one: its interface is down, or has no carrier and that
/// matters.
const RTNH_F_DEAD: u8 = 1;
/// Flags of which either means a carrier for the kernel's next hops: IFF_RUNNING and IFF_LOWER_UP
/// (linux/if.h).
const CARRIER: u32 = libc::IFF_RUNNING as u32 | 1 << 16;
/// The metric of the kernel's entry for "no route".
const NO_ROUTE: u32 = u32::MAX;

/// Parses a message of type `kind` with these flags and the body after its header. None if it is irrelevant
/// for a router.
///
/// # Errors
/// It is too short, or has impossible contents.
pub fn read(kind: u16, flags: u16, body: &[u8]) -> Result<Option<Told>, Malformed> {
    match kind {
        libc::RTM_NEWLINK | libc::RTM_DELLINK => link(kind == libc::RTM_NEWLINK, body),
        libc::RTM_NEWADDR | libc::RTM_DELADDR => address(kind == libc::RTM_NEWADDR, body),
        libc::RTM_NEWROUTE | libc::RTM_DELROUTE => {
            let replaces = i32::from(flags) & libc::NLM_F_REPLACE != 0;
            let there = kind == libc::RTM_NEWROUTE;
            Ok(match route(body)? {
                // It exists but is unused; what it has replaced is gone.
                Some(route) if there && is_dead(&route) => replaces.then_some(Told::RoutesUncertain),
                route => route.map(|route| Told::Route { route, there, replaces: there && replaces }),
            })
        }
        libc::RTM_NEWNEIGH | libc::RTM_DELNEIGH => neighbour(kind == libc::RTM_NEWNEIGH, body),
        RTM_DELNEXTHOP => Ok(Some(Told::RoutesUncertain)),
        _ => Ok(None),
    }
}

fn link(there: bool, body: &[u8]) -> Result<Option<Told>, Malformed> {
    let header = body.get(..IFINFO_LEN).ok_or(Malformed)?;
    // Messages of bridges about their ports have the same type.
    if header[0] != libc::AF_UNSPEC as u8 {
        return Ok(None);
    }
    let (index, flags) = (u32_at(header, 4).ok_or(Malformed)?, u32_at(header, 8).ok_or(Malformed)?);
    if !there {
        return Ok(Some(Told::LinkGone { index }));
    }
    Ok(Some(Told::Link { index, up: flags & libc::IFF_UP as u32 != 0, carrier: flags & CARRIER != 0 }))
}

fn address(there: bool, body: &[u8]) -> Result<Option<Told>, Malformed> {
    let header = body.get(..IFADDR_LEN).ok_or(Malformed)?;
    let (family, prefix, index) = (header[0], header[1], u32_at(header, 4).ok_or(Malformed)?);
    let Some(width) = width(family) else { return Ok(None) };
    if prefix > width {
        return Err(Malformed);
    }
    let (mut local, mut other) = (None, None);
    for (kind, value) in attributes(&body[IFADDR_LEN..]) {
        match kind {
            libc::IFA_LOCAL => local = Some(ip(family, value)?),
            libc::IFA_ADDRESS => other = Some(ip(family, value)?),
            _ => {}
        }
    }
    // On a point-to-point link the interface's address is the local one; IPv6 has only the other.
    let address = local.or(other).ok_or(Malformed)?;
    Ok(Some(Told::Address { index, address, prefix, there }))
}

fn route(body: &[u8]) -> Result<Option<Route>, Malformed> {
    let header = body.get(..ROUTE_LEN).ok_or(Malformed)?;
    let (family, prefix, from, tos) = (header[0], header[1], header[2], header[3]);
    let (mut table, kind, flags) = (u32::from(header[4]), header[7], u32_at(header, 8).ok_or(Malformed)?);
    let Some(width) = width(family) else { return Ok(None) };
    if prefix > width {
        return Err(Malformed);
    }
    let zero =
        if width == 32 { IpAddr::V4(Ipv4Addr::UNSPECIFIED) } else { IpAddr::V6(Ipv6Addr::UNSPECIFIED) };
    let (mut to, mut metric, mut index, mut gateway, mut several) = (zero, 0, None, None, None);
    for (attribute, value) in attributes(&body[ROUTE_LEN..]) {
        match attribute {
            libc::RTA_DST => to = ip(family, value)?,
            libc::RTA_PRIORITY => metric = number(value)?,
            libc::RTA_OIF => index = Some(number(value)?),
            libc::RTA_GATEWAY => gateway = Some(ip(family, value)?),
            libc::RTA_TABLE => table = number(value)?,
            libc::RTA_MULTIPATH => several = Some(next_hops(family, value)?),
            RTA_VIA => gateway = Some(via(value)?),
            _ => {}
        }
    }
    let is_local_table = table == u32::from(libc::RT_TABLE_LOCAL);
    let known = is_local_table || table == u32::from(libc::RT_TABLE_MAIN);
    let to = Destination::new(to, prefix).ok_or(Malformed)?;
    if !known || from != 0 || tos != 0 || flags & RTM_F_CLONED != 0 || is_within_link(&to) {
        return Ok(None);
    }
    let hop = match kind {
        libc::RTN_LOCAL | libc::RTN_ANYCAST => KernelHop::Local,
        libc::RTN_BROADCAST => KernelHop::Broadcast,
        libc::RTN_UNREACHABLE | libc::RTN_PROHIBIT if metric == NO_ROUTE => return Ok(None),
        libc::RTN_BLACKHOLE | libc::RTN_UNREACHABLE | libc::RTN_PROHIBIT => KernelHop::Discard,
        libc::RTN_UNICAST => match (several, index) {
            (Some(several), _) => KernelHop::Via(several),
            (None, Some(_)) if flags & u32::from(RTNH_F_DEAD) != 0 => KernelHop::Via(Vec::new()),
            (None, Some(index)) => KernelHop::Via(vec![KernelMember { index, gateway, weight: 1 }]),
            (None, None) => return Ok(None),
        },
        _ => return Ok(None),
    };
    Ok(Some(Route { to, is_local_table, metric, hop }))
}

/// Whether all next hops of a route are dead.
fn is_dead(route: &Route) -> bool {
    matches!(&route.hop, KernelHop::Via(live) if live.is_empty())
}

/// Traffic that routers handle by themselves: addresses within a link, groups, and the loopback.
fn is_within_link(to: &Destination) -> bool {
    match to.address() {
        IpAddr::V4(address) => to.prefix() > 3 && (address.is_loopback() || address.octets()[0] >= 224),
        IpAddr::V6(address) => {
            to.prefix() >= 8
                && (address.is_loopback() || address.is_unicast_link_local() || address.is_multicast())
        }
    }
}

/// The next hops that are not dead.
fn next_hops(family: u8, mut list: &[u8]) -> Result<Vec<KernelMember>, Malformed> {
    let mut live = Vec::new();
    while !list.is_empty() {
        let length = usize::from(u16_at(list, 0).ok_or(Malformed)?);
        let one = list.get(..length).filter(|_| length >= NEXTHOP_LEN).ok_or(Malformed)?;
        let index = u32_at(one, 4).ok_or(Malformed)?;
        let mut gateway = None;
        for (kind, value) in attributes(&one[NEXTHOP_LEN..]) {
            match kind {
                libc::RTA_GATEWAY => gateway = Some(ip(family, value)?),
                RTA_VIA => gateway = Some(via(value)?),
                _ => {}
            }
        }
        if one[2] & RTNH_F_DEAD == 0 {
            // Encoded minus one.
            live.push(KernelMember { index, gateway, weight: u16::from(one[3]) + 1 });
        }
        list = list.get(length.next_multiple_of(4)..).unwrap_or(&[]);
    }
    Ok(live)
}

/// A gateway of the other family (RFC 8950).
fn via(value: &[u8]) -> Result<IpAddr, Malformed> {
    let family = u16_at(value, 0).and_then(|family| u8::try_from(family).ok()).ok_or(Malformed)?;
    ip(family, &value[2..])
}

fn neighbour(there: bool, body: &[u8]) -> Result<Option<Told>, Malformed> {
    let header = body.get(..NEIGHBOUR_LEN).ok_or(Malformed)?;
    let (family, index) = (header[0], u32_at(header, 4).ok_or(Malformed)?);
    let state = u16_at(header, 8).ok_or(Malformed)?;
    if width(family).is_none() {
        return Ok(None);
    }
    let (mut address, mut mac) = (None, None);
    for (kind, value) in attributes(&body[NEIGHBOUR_LEN..]) {
        match kind {
            libc::NDA_DST => address = Some(ip(family, value)?),
            // Other lengths belong to other kinds of links.
            libc::NDA_LLADDR => mac = <[u8; 6]>::try_from(value).ok(),
            _ => {}
        }
    }
    let address = address.ok_or(Malformed)?;
    if address.is_multicast() || state & libc::NUD_NOARP != 0 {
        return Ok(None);
    }
    let known = match state {
        state if state & libc::NUD_PERMANENT != 0 => Some(Known::Permanent),
        state if state & libc::NUD_REACHABLE != 0 => Some(Known::Answered),
        state if state & (libc::NUD_STALE | libc::NUD_DELAY | libc::NUD_PROBE) != 0 => Some(Known::Doubtful),
        _ => None,
    };
    let is_station = |mac: &[u8; 6]| mac[0] & 1 == 0 && *mac != [0; 6];
    let mac = mac.filter(|mac| there && is_station(mac)).zip(known);
    let failed = there && state & libc::NUD_FAILED != 0;
    Ok(Some(Told::Neighbour { index, address, mac, failed }))
}

/// Bits of an address of the family.
const fn width(family: u8) -> Option<u8> {
    match family as libc::c_int {
        libc::AF_INET => Some(32),
        libc::AF_INET6 => Some(128),
        _ => None,
    }
}

fn ip(family: u8, value: &[u8]) -> Result<IpAddr, Malformed> {
    match libc::c_int::from(family) {
        libc::AF_INET => <[u8; 4]>::try_from(value).map(IpAddr::from).map_err(|_| Malformed),
        libc::AF_INET6 => <[u8; 16]>::try_from(value).map(IpAddr::from).map_err(|_| Malformed),
        _ => Err(Malformed),
    }
}

fn number(value: &[u8]) -> Result<u32, Malformed> {
    <[u8; 4]>::try_from(value).map(u32::from_ne_bytes).map_err(|_| Malformed)
}
