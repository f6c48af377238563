//! Full IP: everything beyond minimal IP, from the beginning. It follows RFC 1812 (section 5.2) and RFC 8200.

use crate::classify::{ETHERNET, FullIpReason};
use crate::extension::{BadOptionV6, NotProcessed, Telling, bad_hop_by_hop, open};
use crate::icmp::UNKNOWN_OPTION;
use crate::minimal::{Hops, longest_packet, lower_hop_limit, lower_ttl};
use crate::next_hop::{NextHop, v4_key};
use crate::options::{BadOption, check_options, write_options};
use crate::police::PolicedWork;
use crate::ports::{is_link_local, is_link_local_v4};
use crate::state::{Core, Fate};
use longwire_block::{DropReason, Outbox};
use longwire_packet::{Handle, Pool};
use longwire_wire::{
    Ethernet, Ipv4, Ipv6, ethertype, icmp_kind, icmpv6_kind, protocol, unreachable, unreachable_v6,
};

/// Don't fragment, in the flags of an IPv4 header.
const DONT_FRAGMENT: u8 = 0x40;

impl Core {
    /// Decides about a packet that minimal IP did not.
    #[cold]
    #[inline(never)]
    pub fn exceptional(
        &mut self,
        pool: &mut Pool,
        handle: Handle,
        why: FullIpReason,
        out: &mut Outbox,
    ) -> Fate {
        self.counts.exceptions[why as usize] += u64::from(pool.meta(handle).segments);
        out.because_of(pool.meta(handle));
        let in_port = pool.meta(handle).in_port;
        if let Some(reason) = too_much(why)
            && !self.is_for_control(pool, handle, why)
            && !self.allows(in_port, PolicedWork::Exceptions, out)
        {
            return Fate::Dropped(reason);
        }
        let Ok(ethernet) = Ethernet::check(pool.data(handle)) else {
            return Fate::Dropped(DropReason::BadFrame);
        };
        match ethernet.ethertype() {
            ethertype::ARP => self.arp(pool, handle, out),
            ethertype::IPV4 => self.full_v4(pool, handle, out),
            ethertype::IPV6 => self.full_v6(pool, handle, out),
            _ => Fate::Dropped(DropReason::Unserved),
        }
    }

    fn full_v4(&mut self, pool: &mut Pool, handle: Handle, out: &mut Outbox) -> Fate {
        let (frame, in_port) = (pool.data(handle), pool.meta(handle).in_port);
        let Ok(ip) = Ipv4::check(&frame[ETHERNET..]) else { return Fate::Dropped(DropReason::BadHeader) };
        let (source, destination) = (ip.source(), ip.destination());
        let (ttl, has_options) = (ip.ttl(), !ip.options().is_empty());
        if destination >= 0xe000_0000 {
            return self.punt(pool, handle, out).unwrap_or(Fate::Dropped(DropReason::Group));
        }
        if frame[0] & 1 == 1 {
            // Only broadcasts to all hosts of a network of the router are accepted (RFC 1122, 3.3.6).
            let is_own = self.fib.way_v4(destination) == Some(NextHop::Broadcast);
            let punted = if is_own { self.punt(pool, handle, out) } else { None };
            return punted.unwrap_or(Fate::Dropped(DropReason::Group));
        }
        if is_link_local_v4(source) || is_link_local_v4(destination) {
            let own = self.ports.at(in_port).is_some_and(|port| port.has_v4(destination));
            return if own { self.local_v4(pool, handle, out) } else { Fate::Dropped(DropReason::Martian) };
        }
        let next = match self.one_way(pool, handle, self.fib.way_v4(destination)) {
            None => {
                self.error_v4(pool, handle, (icmp_kind::UNREACHABLE, unreachable::NETWORK, 0), out);
                return Fate::Dropped(DropReason::NoRoute);
            }
            Some(NextHop::Local) => return self.local_v4(pool, handle, out),
            Some(NextHop::Broadcast) => return Fate::Dropped(DropReason::Group),
            Some(hop) => hop.neighbour(v4_key(destination)),
        };
        let Some(next) = next else { return Fate::Dropped(DropReason::Discard) };
        if ttl <= 1 {
            self.error_v4(pool, handle, (icmp_kind::TIME_EXCEEDED, 0, 0), out);
            return Fate::Dropped(DropReason::HopLimit);
        }
        // Errors quote the packet as it came.
        if let Some(reason) = self.refuse_long_v4(pool, handle, next.port, out) {
            return Fate::Dropped(reason);
        }
        if has_options && let Some(reason) = self.refuse_options(pool, handle, next.port, out) {
            return Fate::Dropped(reason);
        }
        lower_ttl(pool.data_mut(handle));
        self.resolve(pool, handle, next, out)
    }

    /// The next hop of a packet whose route leads to `routed`: the one to which it is bound; among several
    /// that of its flow.
    fn one_way(&self, pool: &Pool, handle: Handle, routed: Option<NextHop>) -> Option<NextHop> {
        self.bound_way(routed).map(|hop| self.chosen(hop, pool.data(handle)))
    }

    /// Processes the options of a packet that leaves by this port.
    fn refuse_options(
        &mut self,
        pool: &mut Pool,
        handle: Handle,
        place: u16,
        out: &mut Outbox,
    ) -> Option<DropReason> {
        let in_port = pool.meta(handle).in_port;
        if !self.allows(in_port, PolicedWork::Options, out) {
            return Some(DropReason::SlowPath);
        }
        let own = self.ports.source_v4(place).unwrap_or_default();
        match write_options(pool.data_mut(handle), own, out.time()) {
            Ok(()) => return None,
            Err(BadOption::Parameter(at)) => {
                self.error_v4(pool, handle, parameter_v4(at), out);
            }
            Err(BadOption::SourceRoute) => {
                let message = (icmp_kind::UNREACHABLE, unreachable::SOURCE_ROUTE, 0);
                self.error_v4(pool, handle, message, out);
            }
        }
        Some(DropReason::Options)
    }

    /// Refuses a packet that exceeds this port's MTU and must not, or can't, be fragmented.
    fn refuse_long_v4(
        &mut self,
        pool: &mut Pool,
        handle: Handle,
        place: u16,
        out: &mut Outbox,
    ) -> Option<DropReason> {
        let mtu = self.ports.at(place)?.mtu;
        let meta = *pool.meta(handle);
        if longest_packet(&meta, pool.data(handle), Hops::V4) <= mtu {
            return None;
        }
        if pool.data(handle)[ETHERNET + 6] & DONT_FRAGMENT != 0 {
            self.error_v4(pool, handle, (icmp_kind::UNREACHABLE, unreachable::TOO_BIG, mtu), out);
            return Some(DropReason::Mtu);
        }
        // A train would have to be split first, and a packet cut short by a capture can't be fragmented.
        if meta.is_train() || meta.wire_len != meta.len {
            return Some(DropReason::Mtu);
        }
        (!self.allows(meta.in_port, PolicedWork::Fragments, out)).then_some(DropReason::SlowPath)
    }

    fn full_v6(&mut self, pool: &mut Pool, handle: Handle, out: &mut Outbox) -> Fate {
        let (frame, in_port) = (pool.data(handle), pool.meta(handle).in_port);
        let Ok(ip) = Ipv6::check(&frame[ETHERNET..]) else { return Fate::Dropped(DropReason::BadHeader) };
        let (source, destination) = (ip.source(), ip.destination());
        let (hop_limit, next_header) = (ip.hop_limit(), ip.next_header());
        if frame[0] & 1 == 1 || destination >> 120 == 0xff {
            return self.group_v6(pool, handle, destination, out);
        }
        if is_link_local(source) || is_link_local(destination) {
            let own = self.ports.at(in_port).is_some_and(|port| port.has_v6(destination));
            return if own { self.local_v6(pool, handle, out) } else { Fate::Dropped(DropReason::Martian) };
        }
        let next = match self.one_way(pool, handle, self.fib.way_v6(destination)) {
            None => {
                self.error_v6(pool, handle, (icmpv6_kind::UNREACHABLE, unreachable_v6::NO_ROUTE, 0), out);
                return Fate::Dropped(DropReason::NoRoute);
            }
            Some(NextHop::Local) => return self.local_v6(pool, handle, out),
            Some(NextHop::Broadcast) => return Fate::Dropped(DropReason::Group),
            Some(hop) => hop.neighbour(destination),
        };
        let Some(next) = next else { return Fate::Dropped(DropReason::Discard) };
        if hop_limit <= 1 {
            self.error_v6(pool, handle, (icmpv6_kind::TIME_EXCEEDED, 0, 0), out);
            return Fate::Dropped(DropReason::HopLimit);
        }
        if next_header == protocol::HOP_BY_HOP {
            if !self.allows(in_port, PolicedWork::Options, out) {
                return Fate::Dropped(DropReason::SlowPath);
            }
            if let Some(bad) = bad_hop_by_hop(&pool.data(handle)[ETHERNET..]) {
                return self.refuse_option_v6(pool, handle, bad, out);
            }
        }
        let Some(port) = self.ports.at(next.port) else { return Fate::Dropped(DropReason::PortDown) };
        let mtu = port.mtu;
        if longest_packet(pool.meta(handle), pool.data(handle), Hops::V6) > mtu {
            self.error_v6(pool, handle, (icmpv6_kind::TOO_BIG, 0, mtu), out);
            return Fate::Dropped(DropReason::Mtu);
        }
        lower_hop_limit(pool.data_mut(handle));
        self.resolve(pool, handle, next, out)
    }

    /// Sends an error about an option, if the option asks for it (RFC 8200, 4.2).
    fn refuse_option_v6(
        &mut self,
        pool: &mut Pool,
        handle: Handle,
        bad: BadOptionV6,
        out: &mut Outbox,
    ) -> Fate {
        let to_group =
            Ipv6::check(&pool.data(handle)[ETHERNET..]).is_ok_and(|ip| ip.destination() >> 120 == 0xff);
        let is_told = match bad.telling {
            Telling::Never => false,
            Telling::Always => true,
            Telling::IfUnicast => !to_group,
        };
        if is_told {
            self.error_v6(pool, handle, (icmpv6_kind::PARAMETER, UNKNOWN_OPTION, bad.at), out);
        }
        Fate::Dropped(DropReason::Options)
    }

    /// Processes multicast: read by the router, or passed to the control plane; never forwarded.
    fn group_v6(&mut self, pool: &mut Pool, handle: Handle, destination: u128, out: &mut Outbox) -> Fate {
        let is_group = destination >> 120 == 0xff;
        let place = pool.meta(handle).in_port;
        if is_group {
            let packet = &pool.data(handle)[ETHERNET..];
            let hears =
                self.control.is_some() || self.ports.at(place).is_some_and(|port| port.hears(destination));
            // Destination options do not concern those that are not destinations.
            let bad = if hears {
                open(packet).err().and_then(NotProcessed::option)
            } else {
                bad_hop_by_hop(packet)
            };
            if let Some(bad) = bad {
                return self.refuse_option_v6(pool, handle, bad, out);
            }
            if hears && let Some(offset) = echo_request(packet) {
                return self.local_icmp_v6(pool, handle, offset, out);
            }
        }
        let read = self.discovery(pool, handle, out);
        let fate = read.or_else(|| if is_group { self.punt(pool, handle, out) } else { None });
        fate.unwrap_or(Fate::Dropped(DropReason::Group))
    }

    /// An IPv4 packet for the router itself.
    fn local_v4(&mut self, pool: &mut Pool, handle: Handle, out: &mut Outbox) -> Fate {
        let Ok(ip) = Ipv4::check(&pool.data(handle)[ETHERNET..]) else {
            return Fate::Dropped(DropReason::BadHeader);
        };
        let (protocol, is_fragment) = (ip.protocol(), ip.is_fragment());
        let is_own = protocol == protocol::ICMP && !is_fragment;
        if let Err(bad) = check_options(ip.options()) {
            // No errors about source routes, as with hosts that ignore them (RFC 7126, 4.3.5).
            if let BadOption::Parameter(at) = bad {
                self.error_v4(pool, handle, parameter_v4(at), out);
            }
            return Fate::Dropped(DropReason::Options);
        }
        if !is_own && let Some(fate) = self.punt(pool, handle, out) {
            return fate;
        }
        // There is no reassembly, so fragments are not accepted.
        if is_fragment {
            return Fate::Dropped(DropReason::Unserved);
        }
        let code = match protocol {
            protocol::ICMP => return self.local_icmp_v4(pool, handle, out),
            protocol::TCP | protocol::UDP => unreachable::PORT,
            _ => unreachable::PROTOCOL,
        };
        self.error_v4(pool, handle, (icmp_kind::UNREACHABLE, code, 0), out);
        Fate::Dropped(DropReason::Unserved)
    }

    /// An IPv6 packet for the router itself.
    fn local_v6(&mut self, pool: &mut Pool, handle: Handle, out: &mut Outbox) -> Fate {
        const BAD_FIELD: u8 = 0;
        const UNKNOWN_HEADER: u8 = 1;
        let opened = open(&pool.data(handle)[ETHERNET..]);
        if let Err(NotProcessed::Option(bad)) = opened {
            return self.refuse_option_v6(pool, handle, bad, out);
        }
        let is_own = opened.is_ok_and(|opened| opened.protocol == protocol::ICMPV6);
        if !is_own && let Some(fate) = self.punt(pool, handle, out) {
            return fate;
        }
        let message = match opened {
            // It is no waypoint of source routes (RFC 8200, 4.4; RFC 5095).
            Err(NotProcessed::Routed { kind_at }) => (icmpv6_kind::PARAMETER, BAD_FIELD, kind_at),
            Err(_) => return Fate::Dropped(DropReason::Unserved),
            Ok(opened) => match opened.protocol {
                protocol::ICMPV6 => return self.local_icmp_v6(pool, handle, opened.offset, out),
                protocol::TCP | protocol::UDP => (icmpv6_kind::UNREACHABLE, unreachable_v6::PORT, 0),
                _ => (icmpv6_kind::PARAMETER, UNKNOWN_HEADER, opened.named_at),
            },
        };
        self.error_v6(pool, handle, message, out);
        Fate::Dropped(DropReason::Unserved)
    }

    /// Whether policing allows another operation because of a packet from this port.
    pub fn allows(&mut self, place: u16, work: PolicedWork, out: &Outbox) -> bool {
        let number = self.ports.number(place);
        number.is_some_and(|number| self.police.allows(number, work, out.time()))
    }
}

/// Offset of the echo request in an IPv6 packet, if it is one.
fn echo_request(packet: &[u8]) -> Option<usize> {
    let opened = open(packet).ok().filter(|opened| opened.protocol == protocol::ICMPV6)?;
    (*packet.get(opened.offset)? == icmpv6_kind::ECHO).then_some(opened.offset)
}

/// The drop reason of packets policed before they are parsed; none for those policed by their content.
const fn too_much(why: FullIpReason) -> Option<DropReason> {
    match why {
        FullIpReason::Arp | FullIpReason::Group | FullIpReason::LinkLocal => None,
        FullIpReason::NoRoute => Some(DropReason::NoRoute),
        FullIpReason::HopLimit => Some(DropReason::HopLimit),
        _ => Some(DropReason::SlowPath),
    }
}

/// An error about this byte of the header.
const fn parameter_v4(at: u8) -> (u8, u8, u32) {
    (icmp_kind::PARAMETER, 0, (at as u32) << 24)
}
