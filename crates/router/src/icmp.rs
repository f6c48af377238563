//! ICMP of routers: errors (RFC 792; RFC 1812, 4.3; RFC 4443, 3) and echo replies.

use crate::classify::ETHERNET;
use crate::next_hop::{NextHop, NextNeighbour, key_v4, v4_key};
use crate::options::{BadOption, echoed, write_checksum};
use crate::police::PolicedWork;
use crate::ports::{is_link_local, is_link_local_v4};
use crate::state::{Core, Fate};
use longwire_block::{DropReason, Outbox};
use longwire_packet::{Handle, Pool};
use longwire_wire::checksum::{Sum, pseudo_v6};
use longwire_wire::{
    Icmp, Ipv4, Ipv4Header, Ipv6, Ipv6Header, ethertype, icmp_kind, icmpv6_kind, is_icmp_error,
    is_icmpv6_error, protocol,
};

/// Maximum bytes of an ICMPv4 error packet (RFC 1812, 4.3.2.3), and of an ICMPv6 one (RFC 4443, 2.4 c).
const LONGEST_V4: usize = 576;
const LONGEST_V6: usize = 1280;
const V4: usize = 20;
const V6: usize = 40;
const ICMP: usize = 8;
const HOPS: u8 = 64;
/// Code of [`icmpv6_kind::PARAMETER`]: an unknown option (RFC 4443, 3.4).
pub(crate) const UNKNOWN_OPTION: u8 = 2;
/// Precedence 6, internetwork control, for errors (RFC 1812, 4.3.2.5).
const INTERNETWORK: u8 = 0xc0;

/// Type, code, and the four bytes after the checksum.
type Message = (u8, u8, u32);

/// Addresses and options of an IPv4 packet that the router originates.
#[derive(Debug, Clone, Copy)]
struct ReplyHeader<'a> {
    /// The address that was asked; without one, the address of the output port.
    source: Option<u32>,
    destination: u32,
    options: &'a [u8],
}

impl Core {
    /// Sends an ICMP error to the sender of a packet, if it may receive one (RFC 1812, 4.3.2.7). The packet
    /// is to be dropped; its original bytes are restored.
    pub fn error_v4(&mut self, pool: &mut Pool, cause: Handle, message: Message, out: &mut Outbox) {
        self.before.restore(pool, cause);
        let (frame, place) = (pool.data(cause), pool.meta(cause).in_port);
        let Ok(ip) = Ipv4::check(&frame[ETHERNET..]) else { return };
        let (source, len) = (ip.source(), usize::from(ip.total_len()).min(frame.len() - ETHERNET));
        let to_many = frame[0] & 1 == 1 || ip.destination() >= 0xe000_0000;
        if to_many || ip.is_later_fragment() || is_icmp_error(&ip) || !self.is_elsewhere_v4(source) {
            return;
        }
        let asked = self.asked_v4(place, ip.destination());
        if self.ports.source_v4(place).is_none() || !self.allows(place, PolicedWork::Errors, out) {
            return;
        }
        let quoted = len.min(LONGEST_V4 - V4 - ICMP);
        let Some(handle) = self.make(pool, place, ETHERNET + V4 + ICMP + quoted, out) else { return };
        pool.copy(cause, ETHERNET..ETHERNET + quoted, handle, ETHERNET + V4 + ICMP);
        self.counts.errors += 1;
        let ends = ReplyHeader { source: asked, destination: source, options: &[] };
        self.send_icmp_v4(pool, handle, &ends, message, INTERNETWORK, out);
    }

    /// Sends an ICMPv6 error about a packet (RFC 4443, 2.4 e).
    pub fn error_v6(&mut self, pool: &mut Pool, cause: Handle, message: Message, out: &mut Outbox) {
        self.before.restore(pool, cause);
        let (frame, place) = (pool.data(cause), pool.meta(cause).in_port);
        let packet = &frame[ETHERNET..];
        let Ok(ip) = Ipv6::check(packet) else { return };
        let (source, len) = (ip.source(), (usize::from(ip.payload_len()) + V6).min(packet.len()));
        // Errors about unknown options are sent even for multicast packets (RFC 4443, 2.4 e.3).
        let is_of_option = (message.0, message.1) == (icmpv6_kind::PARAMETER, UNKNOWN_OPTION);
        let to_many = (frame[0] & 1 == 1 || ip.destination() >> 120 == 0xff) && !is_of_option;
        if to_many || is_icmpv6_error(&ip, packet) || !self.is_elsewhere_v6(source) {
            return;
        }
        let asked = self.asked_v6(place, ip.destination());
        if !self.allows(place, PolicedWork::Errors, out) {
            return;
        }
        let quoted = len.min(LONGEST_V6 - V6 - ICMP);
        let Some(handle) = self.make(pool, place, ETHERNET + V6 + ICMP + quoted, out) else { return };
        pool.copy(cause, ETHERNET..ETHERNET + quoted, handle, ETHERNET + V6 + ICMP);
        self.counts.errors += 1;
        self.send_icmp_v6(pool, handle, (asked, source), message, out);
    }

    /// An ICMP message for the router itself: echo requests are answered, all others consumed.
    pub fn local_icmp_v4(&mut self, pool: &mut Pool, handle: Handle, out: &mut Outbox) -> Fate {
        let (frame, meta) = (pool.data(handle), *pool.meta(handle));
        let Ok(ip) = Ipv4::check(&frame[ETHERNET..]) else { return Fate::Dropped(DropReason::BadHeader) };
        let payload = ip.payload();
        let Ok(icmp) = Icmp::check(payload) else { return Fate::Dropped(DropReason::BadHeader) };
        let whole = usize::from(ip.total_len()) - ip.header_len();
        if icmp.kind() != icmp_kind::ECHO {
            return self.punt(pool, handle, out).unwrap_or(Fate::Consumed);
        }
        let (from, to, rest) = (ip.destination(), ip.source(), icmp.rest_of_header());
        let (start, class) = (ETHERNET + ip.header_len() + ICMP, ip.traffic_class());
        if !self.allows(meta.in_port, PolicedWork::Echo, out) {
            return Fate::Dropped(DropReason::SlowPath);
        }
        if meta.is_train() || payload.len() < whole || Sum::ZERO.bytes(payload).checksum() != 0 {
            return Fate::Dropped(DropReason::BadHeader);
        }
        let (options, len) = match echoed(ip.options(), from, out.time()) {
            Ok((options, len)) => (options, len),
            Err(BadOption::Parameter(at)) => {
                self.error_v4(pool, handle, (icmp_kind::PARAMETER, 0, u32::from(at) << 24), out);
                return Fate::Dropped(DropReason::Options);
            }
            Err(BadOption::SourceRoute) => return Fate::Dropped(DropReason::Options),
        };
        let ends = ReplyHeader { source: Some(from), destination: to, options: &options[..len] };
        let (echoed, before) = (whole - ICMP, ETHERNET + V4 + len + ICMP);
        if let Some(reply) = self.make(pool, meta.in_port, before + echoed, out) {
            pool.copy(handle, start..start + echoed, reply, before);
            self.send_icmp_v4(pool, reply, &ends, (icmp_kind::ECHO_REPLY, 0, rest), class, out);
        }
        Fate::Consumed
    }

    /// Processes ICMPv6 for the router itself; the message begins at `offset` from the IPv6 header's first
    /// byte.
    pub fn local_icmp_v6(
        &mut self,
        pool: &mut Pool,
        handle: Handle,
        offset: usize,
        out: &mut Outbox,
    ) -> Fate {
        if let Some(fate) = self.discovery(pool, handle, out) {
            return fate;
        }
        let (packet, meta) = (&pool.data(handle)[ETHERNET..], *pool.meta(handle));
        let Ok(ip) = Ipv6::check(packet) else { return Fate::Dropped(DropReason::BadHeader) };
        let end = V6 + usize::from(ip.payload_len());
        let Some(payload) = packet.get(offset..end) else { return Fate::Dropped(DropReason::BadHeader) };
        let Ok(icmp) = Icmp::check(payload) else { return Fate::Dropped(DropReason::BadHeader) };
        if icmp.kind() != icmpv6_kind::ECHO {
            return self.punt(pool, handle, out).unwrap_or(Fate::Consumed);
        }
        let (asked, to, rest) = (ip.destination(), ip.source(), icmp.rest_of_header());
        let echoed = payload.len() - ICMP;
        let sum = pseudo_v6(to, asked, protocol::ICMPV6, payload.len() as u32).bytes(payload);
        let from = self.asked_v6(meta.in_port, asked);
        let intact = !meta.is_train() && sum.checksum() == 0;
        if !self.allows(meta.in_port, PolicedWork::Echo, out) {
            return Fate::Dropped(DropReason::SlowPath);
        }
        if !intact {
            return Fate::Dropped(DropReason::BadHeader);
        }
        if let Some(reply) = self.make(pool, meta.in_port, ETHERNET + V6 + ICMP + echoed, out) {
            let start = ETHERNET + offset + ICMP;
            pool.copy(handle, start..start + echoed, reply, ETHERNET + V6 + ICMP);
            self.send_icmp_v6(pool, reply, (from, to), (icmpv6_kind::ECHO_REPLY, 0, rest), out);
        }
        Fate::Consumed
    }

    /// The source address for an answer to a packet to `destination` at this port, if that is one of the
    /// router's: errors come from the address to which the packet was sent (RFC 1122, 3.2.1.3; RFC 4443, 2.2
    /// a).
    fn asked_v4(&self, place: u16, destination: u32) -> Option<u32> {
        let own = match is_link_local_v4(destination) {
            true => self.ports.at(place).is_some_and(|port| port.has_v4(destination)),
            false => self.fib.way_v4(destination) == Some(NextHop::Local),
        };
        own.then_some(destination)
    }

    fn asked_v6(&self, place: u16, destination: u128) -> Option<u128> {
        let own = match is_link_local(destination) {
            true => self.ports.at(place).is_some_and(|port| port.has_v6(destination)),
            false => self.fib.way_v6(destination) == Some(NextHop::Local),
        };
        own.then(|| self.ports.answers_for(destination))
    }

    /// Whether an address is a host's to which errors may be sent: unicast, and not the router's own.
    fn is_elsewhere_v4(&self, address: u32) -> bool {
        let way = self.fib.way_v4(address);
        is_link_local_v4(address)
            || matches!(way, Some(NextHop::Gateway { .. } | NextHop::Direct { .. } | NextHop::Group(_)))
    }

    fn is_elsewhere_v6(&self, address: u128) -> bool {
        let way = self.fib.way_v6(address);
        is_link_local(address)
            || matches!(way, Some(NextHop::Gateway { .. } | NextHop::Direct { .. } | NextHop::Group(_)))
    }

    /// Writes headers before echoed or quoted data, and sends the packet.
    fn send_icmp_v4(
        &mut self,
        pool: &mut Pool,
        handle: Handle,
        ends: &ReplyHeader<'_>,
        message: Message,
        traffic_class: u8,
        out: &mut Outbox,
    ) {
        let ReplyHeader { source, destination, options } = *ends;
        let place = pool.meta(handle).in_port;
        let frame = pool.data_mut(handle);
        // Until their length is set, the header's options are treated as payload.
        let payload_len = (frame.len() - ETHERNET - V4) as u16;
        let (id, protocol) = (self.id, protocol::ICMP);
        self.id = self.id.wrapping_add(1);
        let asked = source.unwrap_or_default();
        let header =
            Ipv4Header { source: asked, destination, protocol, ttl: HOPS, traffic_class, id, payload_len };
        frame[12..ETHERNET].copy_from_slice(&ethertype::IPV4.to_be_bytes());
        frame[ETHERNET..ETHERNET + V4].copy_from_slice(&header.bytes());
        // A link-local address is behind the ingress port of the request.
        let link = is_link_local_v4(destination);
        let way = if link { Some(NextHop::Direct { port: place }) } else { self.fib.way_v4(destination) };
        let hop = way.and_then(|hop| self.chosen(hop, pool.data(handle)).neighbour(v4_key(destination)));
        let frame = pool.data_mut(handle);
        if source.is_none()
            && let Some(hop) = hop
        {
            let neighbour = key_v4(hop.address).unwrap_or(destination);
            let source = self.ports.source_v4_to(hop.port, neighbour).unwrap_or_default();
            frame[ETHERNET..ETHERNET + V4].copy_from_slice(&Ipv4Header { source, ..header }.bytes());
        }
        let end = ETHERNET + V4 + options.len();
        if !options.is_empty() {
            frame[ETHERNET + V4..end].copy_from_slice(options);
            frame[ETHERNET] = 0x40 | ((V4 + options.len()) / 4) as u8;
            write_checksum(&mut frame[ETHERNET..end]);
        }
        write_message(&mut frame[end..], message, Sum::ZERO);
        self.send_own(pool, handle, hop, out);
    }

    /// Writes headers as for IPv4. Without a source, the packet gets the output port's address.
    fn send_icmp_v6(
        &mut self,
        pool: &mut Pool,
        handle: Handle,
        (source, destination): (Option<u128>, u128),
        message: Message,
        out: &mut Outbox,
    ) {
        let place = pool.meta(handle).in_port;
        let frame = pool.data_mut(handle);
        let payload_len = (frame.len() - ETHERNET - V6) as u16;
        let next_header = protocol::ICMPV6;
        let asked = source.unwrap_or_default();
        let header = Ipv6Header { source: asked, destination, next_header, hop_limit: HOPS, payload_len };
        frame[12..ETHERNET].copy_from_slice(&ethertype::IPV6.to_be_bytes());
        frame[ETHERNET..ETHERNET + V6].copy_from_slice(&header.bytes());
        let link = is_link_local(destination);
        let way = if link { Some(NextHop::Direct { port: place }) } else { self.fib.way_v6(destination) };
        let hop = way.and_then(|hop| self.chosen(hop, pool.data(handle)).neighbour(destination));
        let leaving = hop.and_then(|hop| self.ports.source_v6_to(hop.port, hop.address, destination));
        let source = source.or(leaving).unwrap_or_default();
        let frame = pool.data_mut(handle);
        frame[ETHERNET..ETHERNET + V6].copy_from_slice(&Ipv6Header { source, ..header }.bytes());
        let pseudo = pseudo_v6(source, destination, next_header, payload_len.into());
        write_message(&mut frame[ETHERNET + V6..], message, pseudo);
        self.send_own(pool, handle, hop, out);
    }

    /// Sends a packet that the router originates from its own outbox.
    fn send_own(&mut self, pool: &mut Pool, handle: Handle, hop: Option<NextNeighbour>, out: &mut Outbox) {
        let fate = match hop {
            Some(next) => {
                pool.meta_mut(handle).in_port = next.port;
                self.resolve(pool, handle, next, out)
            }
            None => Fate::Dropped(DropReason::NoRoute),
        };
        self.settle(pool, handle, fate, out);
    }
}

fn write_message(bytes: &mut [u8], (kind, code, rest): Message, sum: Sum) {
    (bytes[0], bytes[1]) = (kind, code);
    bytes[2..4].fill(0);
    bytes[4..8].copy_from_slice(&rest.to_be_bytes());
    let checksum = sum.bytes(bytes).checksum();
    bytes[2..4].copy_from_slice(&checksum.to_be_bytes());
}
