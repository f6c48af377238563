//! Parses the kernel's messages about links, addresses, routes and neighbours (rtnetlink(7)), without parts
//! irrelevant for a router.

use crate::change::Destination;
use longwire_netlink::{Address, Hop, Link, Malformed, Neighbour, Route};
use longwire_router::Confirmation;
use std::net::IpAddr;

/// A message of the kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KernelMessage {
    /// An interface exists.
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
    /// An interface has gained or lost an address.
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
        route: KernelRoute,
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
        mac: Option<([u8; 6], Confirmation)>,
        /// Whether its resolution failed.
        failed: bool,
    },
}

/// A route of the kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KernelRoute {
    /// The destination.
    pub to: Destination,
    /// Whether it is in the table of local addresses, which is looked up first.
    pub is_local_table: bool,
    /// Of several to one destination the lowest metric wins.
    pub metric: u32,
    /// The destination of packets.
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
pub(crate) const RTNLGRP_NEXTHOP: u32 = 32;

/// The metric of the kernel's entry for "no route".
const NO_ROUTE: u32 = u32::MAX;

/// Parses a message of type `kind` with these flags and the body after its header. None if it is irrelevant
/// for a router.
///
/// # Errors
/// It is too short, or has impossible contents.
pub fn read(kind: u16, flags: u16, body: &[u8]) -> Result<Option<KernelMessage>, Malformed> {
    match kind {
        libc::RTM_NEWLINK | libc::RTM_DELLINK => link(kind == libc::RTM_NEWLINK, body),
        libc::RTM_NEWADDR | libc::RTM_DELADDR => address(kind == libc::RTM_NEWADDR, body),
        libc::RTM_NEWROUTE | libc::RTM_DELROUTE => {
            let replaces = i32::from(flags) & libc::NLM_F_REPLACE != 0;
            let there = kind == libc::RTM_NEWROUTE;
            Ok(match route(body)? {
                // It exists but is unused; the one it replaced is gone.
                Some(route) if there && is_dead(&route) => replaces.then_some(KernelMessage::RoutesUncertain),
                route => {
                    route.map(|route| KernelMessage::Route { route, there, replaces: there && replaces })
                }
            })
        }
        libc::RTM_NEWNEIGH | libc::RTM_DELNEIGH => neighbour(kind == libc::RTM_NEWNEIGH, body),
        RTM_DELNEXTHOP => Ok(Some(KernelMessage::RoutesUncertain)),
        _ => Ok(None),
    }
}

fn link(there: bool, body: &[u8]) -> Result<Option<KernelMessage>, Malformed> {
    let told = |link: Link| match (there, link.index) {
        (true, index) => KernelMessage::Link { index, up: link.is_up(), carrier: link.has_carrier() },
        (false, index) => KernelMessage::LinkGone { index },
    };
    Ok(Link::read(body)?.map(told))
}

fn address(there: bool, body: &[u8]) -> Result<Option<KernelMessage>, Malformed> {
    let told = |Address { index, address, prefix }| KernelMessage::Address { index, address, prefix, there };
    Ok(Address::read(body)?.map(told))
}

fn route(body: &[u8]) -> Result<Option<KernelRoute>, Malformed> {
    let Some(Route { to, prefix, table, kind, metric, hops, .. }) = Route::read(body)?.filter(is_plain)
    else {
        return Ok(None);
    };
    let to = Destination::new(to, prefix).ok_or(Malformed)?;
    let is_local_table = table == u32::from(libc::RT_TABLE_LOCAL);
    if !is_local_table && table != u32::from(libc::RT_TABLE_MAIN) || is_within_link(&to) {
        return Ok(None);
    }
    let metric = metric.unwrap_or(0);
    let hop = match kind {
        libc::RTN_LOCAL | libc::RTN_ANYCAST => KernelHop::Local,
        libc::RTN_BROADCAST => KernelHop::Broadcast,
        libc::RTN_UNREACHABLE | libc::RTN_PROHIBIT if metric == NO_ROUTE => return Ok(None),
        libc::RTN_BLACKHOLE | libc::RTN_UNREACHABLE | libc::RTN_PROHIBIT => KernelHop::Discard,
        libc::RTN_UNICAST if !hops.is_empty() => KernelHop::Via(live(&hops)),
        _ => return Ok(None),
    };
    Ok(Some(KernelRoute { to, is_local_table, metric, hop }))
}

/// Whether packets take it by their destination alone, and it is not a clone of another route.
fn is_plain(route: &Route) -> bool {
    route.source_prefix == 0 && route.tos == 0 && !route.is_cloned
}

/// The next hops that are not dead.
fn live(hops: &[Hop]) -> Vec<KernelMember> {
    let member = |&Hop { index, gateway, weight, .. }: &Hop| KernelMember { index, gateway, weight };
    hops.iter().filter(|hop| !hop.is_dead).map(member).collect()
}

/// Whether all next hops of a route are dead.
fn is_dead(route: &KernelRoute) -> bool {
    matches!(&route.hop, KernelHop::Via(live) if live.is_empty())
}

/// Traffic that routers handle themselves: addresses within a link, groups, and the loopback.
fn is_within_link(to: &Destination) -> bool {
    match to.address() {
        IpAddr::V4(address) => to.prefix() > 3 && (address.is_loopback() || address.octets()[0] >= 224),
        IpAddr::V6(address) => {
            to.prefix() >= 8
                && (address.is_loopback() || address.is_unicast_link_local() || address.is_multicast())
        }
    }
}

fn neighbour(there: bool, body: &[u8]) -> Result<Option<KernelMessage>, Malformed> {
    let Some(Neighbour { index, address, mac, state }) = Neighbour::read(body)? else { return Ok(None) };
    if address.is_multicast() || state & libc::NUD_NOARP != 0 {
        return Ok(None);
    }
    let known = match state {
        state if state & libc::NUD_PERMANENT != 0 => Some(Confirmation::Permanent),
        state if state & libc::NUD_REACHABLE != 0 => Some(Confirmation::Answered),
        state if state & (libc::NUD_STALE | libc::NUD_DELAY | libc::NUD_PROBE) != 0 => {
            Some(Confirmation::Doubtful)
        }
        _ => None,
    };
    let is_station = |mac: &[u8; 6]| mac[0] & 1 == 0 && *mac != [0; 6];
    let mac = mac.filter(|mac| there && is_station(mac)).zip(known);
    let failed = there && state & libc::NUD_FAILED != 0;
    Ok(Some(KernelMessage::Neighbour { index, address, mac, failed }))
}
