//! Routes (linux/rtnetlink.h).

use crate::message::{Malformed, Message, attributes, family, ip, number, u16_at, u32_at, width, zero};
use std::net::IpAddr;

/// Bytes of `struct rtmsg`.
const HEADER: usize = 12;
/// Bytes of `struct rtnexthop`: length, flags, weight, interface.
const HOP_HEADER: usize = 8;
const RTA_VIA: u16 = 18;

/// Flag of a next hop: unused, because its interface is down or has lost its carrier.
const RTNH_F_DEAD: u8 = 1;
/// Flag of a next hop: on-link, regardless of its addresses.
const RTNH_F_ONLINK: u8 = 4;
/// Flag of a route: cloned from another for one destination.
const RTM_F_CLONED: u32 = 0x200;

/// A route.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Route {
    /// The destination.
    pub to: IpAddr,
    /// Prefix length of the destination.
    pub prefix: u8,
    /// Prefix length required of packets' sources.
    pub source_prefix: u8,
    /// Required type of service; 0 for any.
    pub tos: u8,
    /// The routing table that contains it.
    pub table: u32,
    /// Treatment of packets (`RTN_…`).
    pub kind: u8,
    /// Of several routes to a destination, the one with the lowest metric is used; none leaves it to the
    /// kernel.
    pub metric: Option<u32>,
    /// Whether it was cloned from another for one destination.
    pub is_cloned: bool,
    /// The next hops, among which flows are divided.
    pub hops: Vec<Hop>,
}

/// A next hop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hop {
    /// The interface's index.
    pub index: u32,
    /// The gateway; none if the destination is on the link.
    pub gateway: Option<IpAddr>,
    /// Its share of the flows, 1 to 256.
    pub weight: u16,
    /// Whether the gateway is on-link, regardless of addresses.
    pub is_on_link: bool,
    /// Whether it is unused, because its interface is down or has lost its carrier.
    pub is_dead: bool,
}

impl Hop {
    /// A single next hop through an interface.
    pub const fn new(index: u32, gateway: Option<IpAddr>) -> Self {
        Self { index, gateway, weight: 1, is_on_link: false, is_dead: false }
    }

    const fn flags(&self) -> u8 {
        let on_link = if self.is_on_link { RTNH_F_ONLINK } else { 0 };
        on_link | if self.is_dead { RTNH_F_DEAD } else { 0 }
    }

    const fn with_flags(self, flags: u8) -> Self {
        Self { is_on_link: flags & RTNH_F_ONLINK != 0, is_dead: flags & RTNH_F_DEAD != 0, ..self }
    }

    /// Writes `struct rtnexthop` and the gateway.
    fn write(&self, m: &mut Message) {
        m.measured(|m| {
            // The kernel stores the weight minus one.
            m.bytes(&[self.flags(), (self.weight.clamp(1, 256) - 1) as u8]);
            m.bytes(&self.index.to_ne_bytes());
            if let Some(gateway) = self.gateway {
                m.ip(libc::RTA_GATEWAY, gateway);
            }
        });
    }

    fn read_all(family: u8, mut list: &[u8]) -> Result<Vec<Self>, Malformed> {
        let mut hops = Vec::new();
        while !list.is_empty() {
            let length = usize::from(u16_at(list, 0).ok_or(Malformed)?);
            let one = list.get(..length).filter(|_| length >= HOP_HEADER).ok_or(Malformed)?;
            let index = u32_at(one, 4).ok_or(Malformed)?;
            let mut gateway = None;
            for (kind, value) in attributes(&one[HOP_HEADER..]) {
                match kind {
                    libc::RTA_GATEWAY => gateway = Some(ip(family, value)?),
                    RTA_VIA => gateway = Some(via(value)?),
                    _ => {}
                }
            }
            hops.push(Self { weight: u16::from(one[3]) + 1, ..Self::new(index, gateway).with_flags(one[2]) });
            list = list.get(length.next_multiple_of(4)..).unwrap_or(&[]);
        }
        Ok(hops)
    }
}

impl Route {
    /// A route of the main table; packets are dropped if there are no next hops.
    pub fn new(to: IpAddr, prefix: u8, hops: Vec<Hop>) -> Self {
        let kind = if hops.is_empty() { libc::RTN_BLACKHOLE } else { libc::RTN_UNICAST };
        let table = libc::RT_TABLE_MAIN.into();
        Self { to, prefix, source_prefix: 0, tos: 0, table, kind, metric: None, is_cloned: false, hops }
    }

    /// Parses a message's body. None if the family is not IP.
    ///
    /// # Errors
    /// If it is too short or has invalid values.
    pub fn read(body: &[u8]) -> Result<Option<Self>, Malformed> {
        let header = body.get(..HEADER).ok_or(Malformed)?;
        let (family, prefix, flags) = (header[0], header[1], u32_at(header, 8).ok_or(Malformed)?);
        let Some(to) = zero(family) else { return Ok(None) };
        if prefix > width(to) {
            return Err(Malformed);
        }
        let (source_prefix, tos, kind) = (header[2], header[3], header[7]);
        let (mut to, mut table, mut metric) = (to, u32::from(header[4]), None);
        let (mut index, mut gateway, mut several) = (None, None, None);
        for (attribute, value) in attributes(&body[HEADER..]) {
            match attribute {
                libc::RTA_DST => to = ip(family, value)?,
                libc::RTA_PRIORITY => metric = Some(number(value)?),
                libc::RTA_OIF => index = Some(number(value)?),
                libc::RTA_GATEWAY => gateway = Some(ip(family, value)?),
                libc::RTA_TABLE => table = number(value)?,
                libc::RTA_MULTIPATH => several = Some(Hop::read_all(family, value)?),
                RTA_VIA => gateway = Some(via(value)?),
                _ => {}
            }
        }
        // A single next hop's flags are among the route's.
        let single = || index.map(|index| Hop::new(index, gateway).with_flags(flags as u8));
        let hops = several.unwrap_or_else(|| single().into_iter().collect());
        let is_cloned = flags & RTM_F_CLONED != 0;
        Ok(Some(Self { to, prefix, source_prefix, tos, table, kind, metric, is_cloned, hops }))
    }
}

/// Request to add a permanent route. It fails if there is a route to this destination with this metric.
pub fn add(route: &Route) -> Message {
    let on_link = !route.hops.is_empty() && route.hops.iter().all(|hop| hop.gateway.is_none());
    let scope = if on_link { libc::RT_SCOPE_LINK } else { libc::RT_SCOPE_UNIVERSE };
    let flags = match &route.hops[..] {
        [hop] => hop.flags().into(),
        _ => 0u32,
    };
    let mut m = Message::new(libc::RTM_NEWROUTE, libc::NLM_F_CREATE | libc::NLM_F_EXCL);
    m.bytes(&[family(route.to), route.prefix, route.source_prefix, route.tos]);
    m.bytes(&[libc::RT_TABLE_UNSPEC, libc::RTPROT_STATIC, scope, route.kind]);
    m.bytes(&flags.to_ne_bytes());
    m.number(libc::RTA_TABLE, route.table);
    m.ip(libc::RTA_DST, route.to);
    match &route.hops[..] {
        [] => {}
        [hop] => {
            if let Some(gateway) = hop.gateway {
                m.ip(libc::RTA_GATEWAY, gateway);
            }
            m.number(libc::RTA_OIF, hop.index);
        }
        several => m.nested(libc::RTA_MULTIPATH, |m| several.iter().for_each(|hop| hop.write(m))),
    }
    if let Some(metric) = route.metric {
        m.number(libc::RTA_PRIORITY, metric);
    }
    m
}

/// Request to list all routes of all tables.
pub fn list() -> Message {
    let mut m = Message::new(libc::RTM_GETROUTE, 0);
    m.bytes(&[0; HEADER]);
    m
}

/// A gateway of another address family (RFC 8950).
fn via(value: &[u8]) -> Result<IpAddr, Malformed> {
    let family = u16_at(value, 0).and_then(|family| u8::try_from(family).ok()).ok_or(Malformed)?;
    ip(family, &value[2..])
}
