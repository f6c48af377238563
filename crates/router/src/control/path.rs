//! Packets to and from the control plane.

use crate::classify::{ETHERNET, FullIpReason};
use crate::next_hop::{NextHop, v4_key};
use crate::police::PolicedWork;
use crate::state::{Core, Fate};
use longwire_block::{DropReason, Outbox};
use longwire_packet::{Handle, Pool};
use longwire_units::Nanos;
use longwire_wire::{Arp, Discovery, Ipv4, Ipv6, ethertype, icmp_kind, icmpv6_kind, protocol};

/// IP protocols for routing: EIGRP (RFC 7868), OSPF (RFC 2328, 5340), PIM (RFC 7761), VRRP (RFC 9568).
const ROUTING_PROTOCOLS: [u8; 4] = [88, 89, 103, 112];
/// TCP ports: BGP (RFC 4271), LDP (RFC 5036).
const ROUTING_TCP: [u16; 2] = [179, 646];
/// UDP ports: RIP (RFC 2453), RIPng (RFC 2080), LDP, BFD (RFC 5881, 5883).
const ROUTING_UDP: [u16; 6] = [520, 521, 646, 3784, 3785, 4784];

impl Core {
    /// The fate of a packet that did not enter at a port of the router: from the control plane, or invalid.
    #[cold]
    pub fn send_for_control(&mut self, pool: &mut Pool, handle: Handle, out: &mut Outbox) -> Fate {
        let meta = *pool.meta(handle);
        let Some(control) = self.control.as_deref_mut() else { return Fate::Dropped(DropReason::PortDown) };
        let place = control.port_of(meta.in_port).filter(|place| self.ports.at(*place).is_some());
        let Some(place) = place else { return Fate::Dropped(DropReason::PortDown) };
        if !Self::may_make(out) {
            return Fate::Dropped(DropReason::SlowPath);
        }
        control.sent += u64::from(meta.segments);
        if let Some(neighbour) = asked_for(pool.data(handle)) {
            control.await_answer(place, neighbour, Nanos(meta.arrival));
        }
        out.because_of(&meta);
        // It is treated as originated by the router.
        pool.meta_mut(handle).in_port = place;
        self.settle(pool, handle, Fate::Out(place), out);
        Fate::Kept
    }

    /// Passes a packet for the router itself to the control plane, if there is one.
    pub fn punt(&mut self, pool: &Pool, handle: Handle, out: &Outbox) -> Option<Fate> {
        let meta = pool.meta(handle);
        let control = self.control.as_deref()?.beside(meta.in_port)?;
        let work = class(pool.data(handle)).unwrap_or(PolicedWork::ControlOther);
        if !self.allows(meta.in_port, work, out) {
            return Some(Fate::Dropped(DropReason::SlowPath));
        }
        if let Some(own) = self.control.as_deref_mut() {
            own.punted[work as usize] += u64::from(meta.segments);
        }
        Some(Fate::Out(control))
    }

    /// Whether an exceptional packet goes on to the control plane and is policed there by its kind, so that a
    /// flood of other exceptional packets does not displace it. Routing protocols often send with TTL 1.
    pub fn is_for_control(&self, pool: &Pool, handle: Handle, why: FullIpReason) -> bool {
        let may_be = self.control.is_some()
            && matches!(
                why,
                FullIpReason::Local | FullIpReason::HopLimit | FullIpReason::Options | FullIpReason::HopByHop
            );
        may_be
            && (why == FullIpReason::Local || self.is_local(pool.data(handle)))
            && !is_echo(pool.data(handle))
    }

    /// Whether a packet is addressed to the router itself.
    fn is_local(&self, frame: &[u8]) -> bool {
        let Some(packet) = frame.get(ETHERNET..) else { return false };
        let way = match (Ipv4::check(packet), Ipv6::check(packet)) {
            (Ok(ip), _) => self.fib.way_v4(ip.destination()),
            (_, Ok(ip)) => self.fib.way_v6(ip.destination()),
            _ => None,
        };
        way == Some(NextHop::Local)
    }

    /// Whether a neighbour's answer belongs to a request of the control plane.
    pub fn is_awaited(&mut self, place: u16, neighbour: u128, now: Nanos) -> bool {
        self.control.as_deref_mut().is_some_and(|control| control.take_answer(place, neighbour, now))
    }

    /// The fate of a neighbour's answer that the router has processed: it also goes to the control plane, if
    /// any.
    pub fn answered(&self, place: u16) -> Fate {
        let control = self.control.as_deref().and_then(|control| control.beside(place));
        control.map_or(Fate::Consumed, Fate::Out)
    }
}

/// The kind of a packet for the router itself; none for other packets.
fn class(frame: &[u8]) -> Option<PolicedWork> {
    let (ethernet, packet) = frame.split_first_chunk::<ETHERNET>()?;
    match u16::from_be_bytes([ethernet[12], ethernet[13]]) {
        ethertype::IPV4 => class_v4(packet),
        ethertype::IPV6 => class_v6(packet),
        _ => None,
    }
}

fn class_v4(packet: &[u8]) -> Option<PolicedWork> {
    let ip = Ipv4::check(packet).ok()?;
    if !ip.options().is_empty() {
        return Some(PolicedWork::ControlOptions);
    }
    (!ip.is_later_fragment()).then(|| transport_class(ip.protocol(), ip.payload()))
}

fn class_v6(packet: &[u8]) -> Option<PolicedWork> {
    let ip = Ipv6::check(packet).ok()?;
    if ip.next_header() == protocol::HOP_BY_HOP {
        return Some(PolicedWork::ControlOptions);
    }
    let transport = ip.transport()?;
    Some(transport_class(transport.protocol, packet.get(transport.offset..)?))
}

fn transport_class(number: u8, payload: &[u8]) -> PolicedWork {
    let ports = payload.first_chunk::<4>().map(|[a, b, c, d]| [[*a, *b], [*c, *d]].map(u16::from_be_bytes));
    let any = |known: &[u16]| ports.is_some_and(|ports| ports.iter().any(|port| known.contains(port)));
    match number {
        protocol::ICMP | protocol::ICMPV6 => PolicedWork::ControlPing,
        protocol::TCP if any(&ROUTING_TCP) => PolicedWork::ControlRouting,
        protocol::UDP if any(&ROUTING_UDP) => PolicedWork::ControlRouting,
        number if ROUTING_PROTOCOLS.contains(&number) => PolicedWork::ControlRouting,
        _ => PolicedWork::ControlOther,
    }
}

/// Whether a packet is a ping, which the router answers itself.
fn is_echo(frame: &[u8]) -> bool {
    let Some(packet) = frame.get(ETHERNET..) else { return false };
    if let Ok(ip) = Ipv4::check(packet) {
        return ip.protocol() == protocol::ICMP && ip.payload().first() == Some(&icmp_kind::ECHO);
    }
    let transport = Ipv6::check(packet).ok().and_then(|ip| ip.transport());
    transport.is_some_and(|it| {
        it.protocol == protocol::ICMPV6 && packet.get(it.offset) == Some(&icmpv6_kind::ECHO)
    })
}

/// The neighbour whose MAC address a frame requests.
fn asked_for(frame: &[u8]) -> Option<u128> {
    const REQUEST: u16 = 1;
    let (ethernet, packet) = frame.split_first_chunk::<ETHERNET>()?;
    match u16::from_be_bytes([ethernet[12], ethernet[13]]) {
        ethertype::ARP => {
            let arp = Arp::check(packet).ok()?;
            (arp.operation() == REQUEST).then(|| v4_key(arp.target().1))
        }
        ethertype::IPV6 => {
            let ip = Ipv6::check(packet).ok()?;
            let transport = ip.transport().filter(|it| it.protocol == protocol::ICMPV6)?;
            (packet.get(transport.offset) == Some(&icmpv6_kind::SOLICITATION)).then_some(())?;
            Discovery::read(&ip, packet, transport.offset).map(|message| message.target)
        }
        _ => None,
    }
}
