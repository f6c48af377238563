//! The control plane beside a router: a system that runs routing protocols, and has a port of its own beside each of the router's. It is given
//! what is for the router itself, policed by what it is, and what it sends goes out as it is.

use crate::classify::{ETHERNET, Why};
use crate::hops::{NextHop, neighbour_key, v4_key};
use crate::police::Work;
use crate::ports::{InterfaceAddress, PortsError};
use crate::router::Router;
use crate::state::{Core, Fate};
use longwire_block::{DropReason, Outbox};
use longwire_packet::{Handle, Pool};
use longwire_units::Nanos;
use longwire_wire::{Arp, Discovery, Ipv4, Ipv6, ethertype, icmp_kind, icmpv6_kind, protocol};
use std::net::IpAddr;

/// A router's port and the port beside it, to the control plane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ControlPort {
    /// The place in the plan of the router's port.
    pub port: u16,
    /// The place of the port beside it.
    pub control: u16,
}

/// How the control plane knows a neighbour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Known {
    /// It was told of it, or has not heard of it for a while.
    Doubtful,
    /// It has answered just now.
    Answered,
    /// It was written down for good.
    Permanent,
}

/// Classes of packets for the control plane, in the order of their counters.
pub(crate) const PUNTED: [Work; 4] =
    [Work::ControlRouting, Work::ControlPing, Work::ControlOptions, Work::ControlOther];

/// Questions of the control plane for neighbours whose answers are waited for.
const AWAITED: usize = 64;
/// How long an answer is waited for: what the kernel takes between two questions (RFC 4861, 10), three times.
const PATIENCE: Nanos = Nanos::from_secs(3);

/// Protocols of routing over IP: EIGRP (RFC 7868), OSPF (RFC 2328, 5340), PIM (RFC 7761), VRRP (RFC 9568).
const ROUTING_PROTOCOLS: [u8; 4] = [88, 89, 103, 112];
/// Over TCP: BGP (RFC 4271), LDP (RFC 5036).
const ROUTING_TCP: [u16; 2] = [179, 646];
/// Over UDP: RIP (RFC 2453), RIPng (RFC 2080), LDP, BFD (RFC 5881, 5883).
const ROUTING_UDP: [u16; 6] = [520, 521, 646, 3784, 3785, 4784];

#[derive(Debug, Clone, Copy)]
struct Awaited {
    until: Nanos,
    port: u16,
    neighbour: u128,
}

/// What a router knows of its control plane.
#[derive(Debug)]
pub(crate) struct Control {
    ports: Vec<ControlPort>,
    awaited: [Awaited; AWAITED],
    next: usize,
    /// Packets given to it, in the order of [`PUNTED`].
    pub punted: [u64; PUNTED.len()],
    /// Packets that came from it.
    pub sent: u64,
}

impl Control {
    pub fn new(ports: Vec<ControlPort>) -> Self {
        let none = Awaited { until: Nanos::ZERO, port: 0, neighbour: 0 };
        Self { ports, awaited: [none; AWAITED], next: 0, punted: [0; PUNTED.len()], sent: 0 }
    }

    /// The port of the control plane beside the router's port at `place`.
    fn beside(&self, place: u16) -> Option<u16> {
        self.ports.iter().find(|pair| pair.port == place).map(|pair| pair.control)
    }

    fn port_of(&self, control: u16) -> Option<u16> {
        self.ports.iter().find(|pair| pair.control == control).map(|pair| pair.port)
    }

    fn await_answer(&mut self, port: u16, neighbour: u128, now: Nanos) {
        self.awaited[self.next] = Awaited { until: now + PATIENCE, port, neighbour };
        self.next = (self.next + 1) % AWAITED;
    }

    /// Whether the control plane has asked for this neighbour. One question lets one answer through.
    fn take_answer(&mut self, port: u16, neighbour: u128, now: Nanos) -> bool {
        let asked = self
            .awaited
            .iter_mut()
            .find(|asked| asked.until > now && (asked.port, asked.neighbour) == (port, neighbour));
        asked.map(|asked| asked.until = Nanos::ZERO).is_some()
    }
}

impl Core {
    /// What a packet is that came in by no port of the router's: from the control plane, or from nobody.
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
        // It goes the way of what the router makes itself.
        pool.meta_mut(handle).in_port = place;
        self.settle(pool, handle, Fate::Out(place), out);
        Fate::Kept
    }

    /// Gives a packet for the router itself to the control plane, if there is one.
    pub fn punt(&mut self, pool: &Pool, handle: Handle, out: &Outbox) -> Option<Fate> {
        let meta = pool.meta(handle);
        let control = self.control.as_deref()?.beside(meta.in_port)?;
        let work = class(pool.data(handle));
        if !self.allows(meta.in_port, work, out) {
            return Some(Fate::Dropped(DropReason::SlowPath));
        }
        let at = PUNTED.iter().position(|known| *known == work);
        if let (Some(at), Some(own)) = (at, self.control.as_deref_mut()) {
            own.punted[at] += u64::from(meta.segments);
        }
        Some(Fate::Out(control))
    }

    /// Whether a packet that full IP was given goes on to the control plane and is policed there by what it is, so that no flood of other
    /// exceptional packets takes its place. Routing protocols often send with a single hop to go.
    pub fn is_for_control(&self, pool: &Pool, handle: Handle, why: Why) -> bool {
        let may_be =
            self.control.is_some() && matches!(why, Why::Local | Why::Expired | Why::Options | Why::HopByHop);
        may_be && (why == Why::Local || self.is_local(pool.data(handle))) && !is_echo(pool.data(handle))
    }

    /// Whether a packet's destination is the router itself.
    fn is_local(&self, frame: &[u8]) -> bool {
        let Some(packet) = frame.get(ETHERNET..) else { return false };
        let way = match (Ipv4::check(packet), Ipv6::check(packet)) {
            (Ok(ip), _) => self.fib.way_v4(ip.destination()),
            (_, Ok(ip)) => self.fib.way_v6(ip.destination()),
            _ => None,
        };
        way == Some(NextHop::Local)
    }

    /// Whether a neighbour's answer is one that the control plane has asked for.
    pub fn is_awaited(&mut self, place: u16, neighbour: u128, now: Nanos) -> bool {
        self.control.as_deref_mut().is_some_and(|control| control.take_answer(place, neighbour, now))
    }

    /// Where a neighbour's answer goes that the router has read: to the control plane too, if there is one.
    pub fn answered(&self, place: u16) -> Fate {
        let control = self.control.as_deref().and_then(|control| control.beside(place));
        control.map_or(Fate::Consumed, Fate::Out)
    }
}

/// What a packet for the router itself is.
fn class(frame: &[u8]) -> Work {
    let Some((ethernet, packet)) = frame.split_first_chunk::<ETHERNET>() else { return Work::ControlOther };
    match u16::from_be_bytes([ethernet[12], ethernet[13]]) {
        ethertype::IPV4 => class_v4(packet).unwrap_or(Work::ControlOther),
        ethertype::IPV6 => class_v6(packet).unwrap_or(Work::ControlOther),
        _ => Work::ControlOther,
    }
}

fn class_v4(packet: &[u8]) -> Option<Work> {
    let ip = Ipv4::check(packet).ok()?;
    if !ip.options().is_empty() {
        return Some(Work::ControlOptions);
    }
    (!ip.is_later_fragment()).then(|| transport_class(ip.protocol(), ip.payload()))
}

fn class_v6(packet: &[u8]) -> Option<Work> {
    let ip = Ipv6::check(packet).ok()?;
    if ip.next_header() == protocol::HOP_BY_HOP {
        return Some(Work::ControlOptions);
    }
    let transport = ip.transport()?;
    Some(transport_class(transport.protocol, packet.get(transport.offset..)?))
}

fn transport_class(number: u8, payload: &[u8]) -> Work {
    let ports = payload.first_chunk::<4>().map(|[a, b, c, d]| [[*a, *b], [*c, *d]].map(u16::from_be_bytes));
    let any = |known: &[u16]| ports.is_some_and(|ports| ports.iter().any(|port| known.contains(port)));
    match number {
        protocol::ICMP | protocol::ICMPV6 => Work::ControlPing,
        protocol::TCP if any(&ROUTING_TCP) => Work::ControlRouting,
        protocol::UDP if any(&ROUTING_UDP) => Work::ControlRouting,
        number if ROUTING_PROTOCOLS.contains(&number) => Work::ControlRouting,
        _ => Work::ControlOther,
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

/// The neighbour whose link address a frame asks for.
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

/// What the control plane says of itself.
impl<C> Router<C> {
    /// Whether there is a control plane.
    pub fn has_control(&self) -> bool {
        self.core().control.is_some()
    }

    /// Gives a port other addresses; routes to them and their networks are changed apart. What it had before is answered, to be freed where
    /// there is time for it; the link-local address among it is what stays.
    ///
    /// # Errors
    /// There is no such port, or an address can't be a port's; nothing has changed then.
    #[expect(clippy::type_complexity, reason = "two lists, of two families")]
    pub fn set_addresses(
        &mut self,
        port: u16,
        v4: Vec<InterfaceAddress<u32>>,
        v6: Vec<InterfaceAddress<u128>>,
    ) -> Result<(Vec<InterfaceAddress<u32>>, Vec<InterfaceAddress<u128>>), PortsError> {
        self.core_mut().ports.set_addresses(port, v4, v6)
    }

    /// Sets a port up or down. What would go out of, or has come in by, a port that is down is dropped. False if there is no such port.
    pub fn set_up(&mut self, port: u16, up: bool) -> bool {
        self.core_mut().ports.set_up(port, up)
    }

    /// Notes a neighbour as the control plane knows it. False if there is no room, or no such port.
    pub fn note_neighbour(
        &mut self,
        port: u16,
        address: IpAddr,
        mac: [u8; 6],
        known: Known,
        now: Nanos,
    ) -> bool {
        let core = self.core_mut();
        core.ports.is_port(port) && core.neighbours.note(port, neighbour_key(address), mac, known, now)
    }

    /// Forgets a neighbour, unless packets wait for it. Whether it was known.
    pub fn forget_neighbour(&mut self, port: u16, address: IpAddr) -> bool {
        self.core_mut().neighbours.forget(port, neighbour_key(address))
    }
}
