//! Full IP: everything that minimal IP leaves, looked at from the beginning. It decides about a packet as RFC 1812 (section 5.2) and RFC 8200 say.

use crate::classify::{ETHERNET, Why, is_link_local, is_link_local_v4};
use crate::hops::{NextHop, v4_key};
use crate::minimal::{longest_packet, lower_hop_limit, lower_ttl};
use crate::police::Work;
use crate::state::{Core, Fate};
use longwire_block::{DropReason, Outbox};
use longwire_packet::{Handle, Pool};
use longwire_units::Nanos;
use longwire_wire::checksum::Sum;
use longwire_wire::{
    Ethernet, Ipv4, Ipv4Options, Ipv6, Ipv6Options, ethertype, icmp_kind, icmpv6_kind, option_kind, protocol,
    unreachable, unreachable_v6,
};

/// Don't fragment, in the flags of an IPv4 header.
const DONT_FRAGMENT: u8 = 0x40;

/// Which option a packet fails by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BadOption {
    /// Where in the header it goes wrong.
    Parameter(u8),
    /// Routes chosen by senders are not followed (RFC 7126, 4.3 and 4.4).
    SourceRoute,
}

impl Core {
    /// Decides about a packet that minimal IP did not.
    #[cold]
    #[inline(never)]
    pub fn exceptional(&mut self, pool: &mut Pool, handle: Handle, why: Why, out: &mut Outbox) -> Fate {
        self.counts.exceptions[why as usize] += u64::from(pool.meta(handle).segments);
        out.because_of(pool.meta(handle));
        let in_port = pool.meta(handle).in_port;
        if let Some(reason) = too_much(why)
            && !self.is_for_control(pool, handle, why)
            && !self.allows(in_port, Work::Exceptions, out)
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
            return self.broadcast(pool, handle, destination, out);
        }
        if is_link_local_v4(source) || is_link_local_v4(destination) {
            let own = self.ports.at(in_port).is_some_and(|port| port.has_v4(destination));
            return if own { self.local_v4(pool, handle, out) } else { Fate::Dropped(DropReason::Martian) };
        }
        let (place, neighbour, is_gateway) = match self.one_way(pool, handle, self.fib.way_v4(destination)) {
            None => {
                self.error_v4(pool, handle, (icmp_kind::UNREACHABLE, unreachable::NETWORK, 0), out);
                return Fate::Dropped(DropReason::NoRoute);
            }
            Some(NextHop::Local) => return self.local_v4(pool, handle, out),
            Some(NextHop::Broadcast) => return Fate::Dropped(DropReason::Group),
            Some(NextHop::Discard | NextHop::Group(_)) => return Fate::Dropped(DropReason::Discard),
            Some(NextHop::Gateway { port, gateway }) => (port, gateway, true),
            Some(NextHop::Direct { port }) => (port, v4_key(destination), false),
        };
        if ttl <= 1 {
            self.error_v4(pool, handle, (icmp_kind::TIME_EXCEEDED, 0, 0), out);
            return Fate::Dropped(DropReason::HopLimit);
        }
        if has_options && let Some(reason) = self.refuse_options(pool, handle, place, out) {
            return Fate::Dropped(reason);
        }
        if let Some(reason) = self.refuse_long_v4(pool, handle, place, out) {
            return Fate::Dropped(reason);
        }
        lower_ttl(pool.data_mut(handle));
        self.resolve(pool, handle, (place, neighbour, is_gateway), out)
    }

    /// Where a packet goes whose route leads to `routed`: by the way that it is bound to, of several by that of its flow.
    fn one_way(&self, pool: &Pool, handle: Handle, routed: Option<NextHop>) -> Option<NextHop> {
        self.bound_way(routed).map(|hop| self.chosen(hop, pool.data(handle)))
    }

    /// What all stations of a link are sent: only what is for all hosts of a network there is anybody's (RFC 1122, 3.3.6).
    fn broadcast(&mut self, pool: &Pool, handle: Handle, destination: u32, out: &Outbox) -> Fate {
        let punted = match self.fib.way_v4(destination) {
            Some(NextHop::Broadcast) => self.punt(pool, handle, out),
            _ => None,
        };
        punted.unwrap_or(Fate::Dropped(DropReason::Group))
    }

    /// Sees to the options of a packet that goes out of the port at `place`.
    fn refuse_options(
        &mut self,
        pool: &mut Pool,
        handle: Handle,
        place: u16,
        out: &mut Outbox,
    ) -> Option<DropReason> {
        let in_port = pool.meta(handle).in_port;
        if !self.allows(in_port, Work::Options, out) {
            return Some(DropReason::SlowPath);
        }
        let own = self.ports.source_v4(place).unwrap_or_default();
        match write_options(pool.data_mut(handle), own, out.time()) {
            Ok(()) => return None,
            Err(BadOption::Parameter(at)) => {
                self.error_v4(pool, handle, (icmp_kind::PARAMETER, 0, u32::from(at) << 24), out);
            }
            Err(BadOption::SourceRoute) => {
                let message = (icmp_kind::UNREACHABLE, unreachable::SOURCE_ROUTE, 0);
                self.error_v4(pool, handle, message, out);
            }
        }
        Some(DropReason::Options)
    }

    /// Refuses a packet that is too long for the port at `place` and must not, or can't, be fragmented.
    fn refuse_long_v4(
        &mut self,
        pool: &mut Pool,
        handle: Handle,
        place: u16,
        out: &mut Outbox,
    ) -> Option<DropReason> {
        let mtu = self.ports.at(place)?.mtu;
        let meta = *pool.meta(handle);
        if longest_packet(&meta) <= mtu {
            return None;
        }
        if pool.data(handle)[ETHERNET + 6] & DONT_FRAGMENT != 0 {
            self.error_v4(pool, handle, (icmp_kind::UNREACHABLE, unreachable::TOO_BIG, mtu), out);
            return Some(DropReason::Mtu);
        }
        // A train would have to be taken apart first, and what a capture cut short can't be.
        if meta.is_train() || meta.wire_len != meta.len {
            return Some(DropReason::Mtu);
        }
        (!self.allows(meta.in_port, Work::Fragments, out)).then_some(DropReason::SlowPath)
    }

    fn full_v6(&mut self, pool: &mut Pool, handle: Handle, out: &mut Outbox) -> Fate {
        let (frame, in_port) = (pool.data(handle), pool.meta(handle).in_port);
        let Ok(ip) = Ipv6::check(&frame[ETHERNET..]) else { return Fate::Dropped(DropReason::BadHeader) };
        let (source, destination) = (ip.source(), ip.destination());
        let (hop_limit, next_header) = (ip.hop_limit(), ip.next_header());
        if frame[0] & 1 == 1 || destination >> 120 == 0xff {
            let read = self.discovery(pool, handle, out);
            let is_group = destination >> 120 == 0xff;
            let fate = read.or_else(|| if is_group { self.punt(pool, handle, out) } else { None });
            return fate.unwrap_or(Fate::Dropped(DropReason::Group));
        }
        if is_link_local(source) || is_link_local(destination) {
            let own = self.ports.at(in_port).is_some_and(|port| port.has_v6(destination));
            return if own { self.local_v6(pool, handle, out) } else { Fate::Dropped(DropReason::Martian) };
        }
        let (place, neighbour, is_gateway) = match self.one_way(pool, handle, self.fib.way_v6(destination)) {
            None => {
                self.error_v6(pool, handle, (icmpv6_kind::UNREACHABLE, unreachable_v6::NO_ROUTE, 0), out);
                return Fate::Dropped(DropReason::NoRoute);
            }
            Some(NextHop::Local) => return self.local_v6(pool, handle, out),
            Some(NextHop::Broadcast) => return Fate::Dropped(DropReason::Group),
            Some(NextHop::Discard | NextHop::Group(_)) => return Fate::Dropped(DropReason::Discard),
            Some(NextHop::Gateway { port, gateway }) => (port, gateway, true),
            Some(NextHop::Direct { port }) => (port, destination, false),
        };
        if hop_limit <= 1 {
            self.error_v6(pool, handle, (icmpv6_kind::TIME_EXCEEDED, 0, 0), out);
            return Fate::Dropped(DropReason::HopLimit);
        }
        if next_header == protocol::HOP_BY_HOP {
            if !self.allows(in_port, Work::Options, out) {
                return Fate::Dropped(DropReason::SlowPath);
            }
            if !self.may_pass_hop_by_hop(pool, handle, out) {
                return Fate::Dropped(DropReason::Options);
            }
        }
        let mtu = self.ports.at(place).map_or(0, |port| port.mtu);
        if longest_packet(pool.meta(handle)) > mtu {
            self.error_v6(pool, handle, (icmpv6_kind::TOO_BIG, 0, mtu), out);
            return Fate::Dropped(DropReason::Mtu);
        }
        lower_hop_limit(pool.data_mut(handle));
        self.resolve(pool, handle, (place, neighbour, is_gateway), out)
    }

    /// Whether the hop-by-hop options of a packet let it pass; if not, its sender is told as they want (RFC 8200, 4.2).
    fn may_pass_hop_by_hop(&mut self, pool: &mut Pool, handle: Handle, out: &mut Outbox) -> bool {
        const ROUTER_ALERT: u8 = 5;
        const FIXED: usize = 40;
        let packet = &pool.data(handle)[ETHERNET..];
        let Ok(options) = Ipv6Options::check(&packet[FIXED..]) else { return false };
        let known = |kind| kind == ROUTER_ALERT;
        let mut wanted = options
            .filter(|option| option.is_err() || option.is_ok_and(|it| !known(it.kind) && it.kind >> 6 != 0));
        match wanted.next() {
            None => true,
            Some(Ok(option)) if option.kind >> 6 >= 2 => {
                const UNKNOWN_OPTION: u8 = 2;
                let at = (FIXED + option.offset) as u32;
                self.error_v6(pool, handle, (icmpv6_kind::PARAMETER, UNKNOWN_OPTION, at), out);
                false
            }
            Some(_) => false,
        }
    }

    /// An IPv4 packet for the router itself.
    fn local_v4(&mut self, pool: &mut Pool, handle: Handle, out: &mut Outbox) -> Fate {
        let Ok(ip) = Ipv4::check(&pool.data(handle)[ETHERNET..]) else {
            return Fate::Dropped(DropReason::BadHeader);
        };
        let is_own = ip.protocol() == protocol::ICMP && !ip.is_fragment();
        if !is_own && let Some(fate) = self.punt(pool, handle, out) {
            return fate;
        }
        // There is no reassembly: what comes in parts is not served.
        if ip.is_fragment() {
            return Fate::Dropped(DropReason::Unserved);
        }
        let code = match ip.protocol() {
            protocol::ICMP => return self.local_icmp_v4(pool, handle, out),
            protocol::TCP | protocol::UDP => unreachable::PORT,
            _ => unreachable::PROTOCOL,
        };
        self.error_v4(pool, handle, (icmp_kind::UNREACHABLE, code, 0), out);
        Fate::Dropped(DropReason::Unserved)
    }

    /// An IPv6 packet for the router itself.
    fn local_v6(&mut self, pool: &mut Pool, handle: Handle, out: &mut Outbox) -> Fate {
        let packet = &pool.data(handle)[ETHERNET..];
        let transport = Ipv6::check(packet).ok().and_then(|ip| ip.transport());
        let whole = transport.filter(|transport| !transport.is_fragment && !transport.is_routed);
        let is_own = whole.as_ref().is_some_and(|transport| transport.protocol == protocol::ICMPV6);
        if !is_own && let Some(fate) = self.punt(pool, handle, out) {
            return fate;
        }
        let Some(transport) = whole else {
            return Fate::Dropped(DropReason::Unserved);
        };
        let message = match transport.protocol {
            protocol::ICMPV6 => return self.local_icmp_v6(pool, handle, transport.offset, out),
            protocol::TCP | protocol::UDP => (icmpv6_kind::UNREACHABLE, unreachable_v6::PORT, 0),
            // The field that names the protocol stands in the fixed header, if no other header follows.
            _ if transport.offset == 40 => (icmpv6_kind::PARAMETER, 1, 6),
            _ => return Fate::Dropped(DropReason::Unserved),
        };
        self.error_v6(pool, handle, message, out);
        Fate::Dropped(DropReason::Unserved)
    }

    /// Whether one more piece of work may be done because of a packet that came in by the port at `place`.
    pub fn allows(&mut self, place: u16, work: Work, out: &Outbox) -> bool {
        let number = self.ports.number(place);
        number.is_some_and(|number| self.police.allows(number, work, out.time()))
    }
}

/// Why a packet is dropped unseen when there is too much to do; none for those that are policed by what is in them.
const fn too_much(why: Why) -> Option<DropReason> {
    match why {
        Why::Arp | Why::Group | Why::LinkLocal => None,
        Why::NoRoute => Some(DropReason::NoRoute),
        Why::Expired => Some(DropReason::HopLimit),
        _ => Some(DropReason::SlowPath),
    }
}

/// Writes the router's `own` address and the time into the options that want it (RFC 791, 3.1; RFC 1812, 5.2.4 and 5.3.13).
fn write_options(frame: &mut [u8], own: u32, now: Nanos) -> Result<(), BadOption> {
    const FIXED: usize = 20;
    let end = ETHERNET + usize::from(frame[ETHERNET] & 15) * 4;
    let header = &mut frame[ETHERNET..end];
    let mut at = 0;
    while let Some(option) = Ipv4Options::new(&header[FIXED + at..]).next() {
        let option = option.map_err(|_| BadOption::Parameter((FIXED + at) as u8))?;
        let start = FIXED + at + option.offset;
        let bytes = &mut header[start..start + option.len];
        let written = match option.kind {
            option_kind::LOOSE_ROUTE | option_kind::STRICT_ROUTE => return Err(BadOption::SourceRoute),
            option_kind::RECORD_ROUTE => record_route(bytes, own),
            option_kind::TIMESTAMP => stamp(bytes, own, now),
            _ => Some(()),
        };
        written.ok_or(BadOption::Parameter((start + 2) as u8))?;
        at += option.offset + option.len;
    }
    header[10..12].fill(0);
    let checksum = Sum::ZERO.bytes(header).checksum();
    header[10..12].copy_from_slice(&checksum.to_be_bytes());
    Ok(())
}

/// None if the option is malformed; full is not. Its third byte points, counting from one, at the next free place.
fn record_route(option: &mut [u8], own: u32) -> Option<()> {
    let pointer = usize::from(*option.get(2)?);
    if pointer < 4 || !pointer.is_multiple_of(4) {
        return None;
    }
    if let Some(place) = option.get_mut(pointer - 1..pointer + 3) {
        place.copy_from_slice(&own.to_be_bytes());
        option[2] += 4;
    }
    Some(())
}

/// Milliseconds of the engine's clock, marked as not being those since midnight.
fn stamp(option: &mut [u8], own: u32, now: Nanos) -> Option<()> {
    const NOT_STANDARD: u32 = 1 << 31;
    const ADDRESSES: u8 = 1;
    const PRESCRIBED: u8 = 3;
    let (pointer, flags) = (usize::from(*option.get(2)?), *option.get(3)?);
    let kind = flags & 15;
    let size = match kind {
        0 => 4,
        ADDRESSES | PRESCRIBED => 8,
        _ => return None,
    };
    if pointer < 5 || !(pointer - 1).is_multiple_of(4) {
        return None;
    }
    let Some(place) = option.get_mut(pointer - 1..pointer - 1 + size) else {
        // One more that found no room; there may be fifteen.
        option[3] = flags.checked_add(0x10)?;
        return Some(());
    };
    if kind == PRESCRIBED && place[..4] != own.to_be_bytes() {
        return Some(());
    }
    if kind == ADDRESSES {
        place[..4].copy_from_slice(&own.to_be_bytes());
    }
    let time = (now.0 / 1_000_000) as u32 | NOT_STANDARD;
    place[size - 4..].copy_from_slice(&time.to_be_bytes());
    option[2] += size as u8;
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::support::{frame_v4, mend};

    /// What becomes of options in a header, or by what they fail.
    fn options(bytes: &[u8]) -> Result<Vec<u8>, BadOption> {
        let mut frame = frame_v4([10, 0, 0, 9], [10, 0, 1, 9], 64, bytes);
        frame[14] = 0x45 + (bytes.len() / 4) as u8;
        mend(&mut frame);
        write_options(&mut frame, 0x0a00_0101, Nanos(7_000_000))?;
        assert_eq!(Sum::ZERO.bytes(&frame[14..34 + bytes.len()]).checksum(), 0);
        Ok(frame[34..].to_vec())
    }

    #[test]
    fn routes_are_recorded_while_there_is_room() {
        let record = |pointer| vec![1, 7, 11, pointer, 0, 0, 0, 0, 0, 0, 0, 0];
        let mut first = record(8);
        (first[3], first[4..8].as_mut()).1.copy_from_slice(&[10, 0, 1, 1]);
        assert_eq!(options(&record(4)), Ok(first));
        let mut second = record(12);
        second[8..].copy_from_slice(&[10, 0, 1, 1]);
        assert_eq!(options(&record(8)), Ok(second));
        assert_eq!(options(&record(12)), Ok(record(12)), "full");
        for pointer in [0, 3, 5] {
            assert_eq!(options(&record(pointer)), Err(BadOption::Parameter(23)), "{pointer}");
        }
    }

    #[test]
    fn time_stamps_are_written() {
        let stamped = [0x80, 0, 0, 7];
        let empty = |flags| vec![68, 12, 5, flags, 0, 0, 0, 0, 0, 0, 0, 0];
        let times = options(&empty(0)).unwrap();
        assert_eq!((times[2], &times[4..8]), (9, &stamped[..]));
        let both = options(&empty(1)).unwrap();
        assert_eq!((both[2], &both[4..8], &both[8..]), (13, &[10, 0, 1, 1][..], &stamped[..]));
        assert_eq!(options(&empty(3)), Ok(empty(3)), "prescribed to another");
        let full = [68, 4, 5, 0xe0];
        assert_eq!(options(&full), Ok(vec![68, 4, 5, 0xf0]));
        assert_eq!(options(&[68, 4, 5, 0xf0]), Err(BadOption::Parameter(22)), "sixteen found no room");
    }

    #[test]
    fn some_options_are_refused() {
        assert_eq!(options(&[131, 7, 4, 10, 0, 0, 1, 0]), Err(BadOption::SourceRoute));
        assert_eq!(options(&[1, 137, 3, 4]), Err(BadOption::SourceRoute));
        assert_eq!(options(&[7, 9, 4, 0]), Err(BadOption::Parameter(20)), "longer than the header");
        assert_eq!(options(&[148, 4, 0, 0]), Ok(vec![148, 4, 0, 0]), "router alert");
    }
}
