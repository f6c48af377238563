//! From a next hop to a frame: neighbour resolution (RFC 826; RFC 4861, 7.2), and transmission.

use crate::classify::ETHERNET;
use crate::minimal::{Hops, longest_packet, trim_packet};
use crate::neighbour::{AnswerFlags, DueWork, Resolution, Waiting};
use crate::next_hop::{NextNeighbour, key_v4, v4_key};
use crate::police::PolicedWork;
use crate::state::{Core, Fate};
use longwire_block::{DropReason, Outbox};
use longwire_packet::{Handle, Pool};
use longwire_units::Nanos;
use longwire_wire::{
    Arp, DISCOVERY_LEN, Discovery, Ipv6, Ipv6Header, arp_message, ethernet_header, ethertype, icmp_kind,
    icmpv6_kind, multicast_mac, protocol, solicited_node, unreachable, unreachable_v6,
};

const REQUEST: u16 = 1;
const REPLY: u16 = 2;
const BROADCAST: [u8; 6] = [0xff; 6];
const ARP_LEN: usize = 28;

impl Core {
    /// Sends a packet to a neighbour; it waits while the MAC address is unknown. TTL is decremented already,
    /// and the outbox knows the cause.
    pub fn resolve(
        &mut self,
        pool: &mut Pool,
        handle: Handle,
        next: NextNeighbour,
        out: &mut Outbox,
    ) -> Fate {
        let NextNeighbour { port: place, address: neighbour, is_gateway } = next;
        // Nobody can be asked there, and errors about neighbours would be wrong.
        if self.ports.at(place).is_none() {
            return Fate::Dropped(DropReason::PortDown);
        }
        let now = out.time();
        match self.neighbours.find(place, neighbour, now) {
            Resolution::Known(mac) => self.transmit(pool, handle, (place, mac), out),
            Resolution::Doubtful(mac) => {
                if self.neighbours.probe(place, neighbour, now) {
                    self.ask(pool, (place, neighbour, Some(mac)), is_gateway, out);
                }
                self.transmit(pool, handle, (place, mac), out)
            }
            Resolution::Unknown => {
                match self.neighbours.keep(pool, (place, neighbour, is_gateway), handle, now) {
                    None => return Fate::Dropped(DropReason::NeighbourFull),
                    Some(true) => self.ask(pool, (place, neighbour, None), is_gateway, out),
                    Some(false) => {}
                }
                self.before.hold(handle);
                Fate::Kept
            }
        }
    }

    /// Writes the Ethernet addresses of a packet that leaves by the port `place`. A packet that is too long
    /// is fragmented, which is allowed for it.
    fn transmit(
        &mut self,
        pool: &mut Pool,
        handle: Handle,
        (place, mac): (u16, [u8; 6]),
        out: &mut Outbox,
    ) -> Fate {
        let Some(port) = self.ports.at(place) else { return Fate::Dropped(DropReason::PortDown) };
        let mtu = port.mtu;
        if let Some(ethernet) = pool.data_mut(handle).first_chunk_mut::<ETHERNET>() {
            ethernet[..6].copy_from_slice(&mac);
            ethernet[6..12].copy_from_slice(&port.mac);
        }
        let frame = pool.data(handle);
        if longest_packet(pool.meta(handle), frame, Hops::of(frame)) > mtu {
            return self.fragment(pool, handle, place, mtu, out);
        }
        trim_packet(pool, handle);
        Fate::Out(place)
    }

    /// Sends packets that waited for a neighbour.
    fn send_waiting(&mut self, pool: &mut Pool, mut waiting: Waiting, hop: (u16, [u8; 6]), out: &mut Outbox) {
        while let Some(handle) = waiting.pop(pool) {
            self.neighbours.release(pool.meta(handle).segments);
            self.before.resume(handle);
            let fate = self.transmit(pool, handle, hop, out);
            self.settle(pool, handle, fate, out);
        }
    }

    /// Sends a request for a neighbour's MAC address: to all stations, or to the neighbour itself if it was
    /// known. Requests for known neighbours and gateways are few, and independent of those that strangers
    /// cause.
    fn ask(
        &mut self,
        pool: &mut Pool,
        (place, neighbour, mac): (u16, u128, Option<[u8; 6]>),
        is_gateway: bool,
        out: &mut Outbox,
    ) {
        if mac.is_none() && !is_gateway && !self.allows(place, PolicedWork::Requests, out) {
            return;
        }
        let Some(port) = self.ports.at(place) else { return };
        let own_mac = port.mac;
        let Some(target) = key_v4(neighbour) else {
            let destination = if mac.is_some() { neighbour } else { solicited_node(neighbour) };
            let source = port.link_local();
            let message = Discovery::solicit(source, destination, neighbour, own_mac);
            let to = mac.unwrap_or(multicast_mac(destination));
            return self.send_discovery(pool, place, (to, own_mac), (source, destination), &message, out);
        };
        let near = port.v4.iter().find(|own| own.is_neighbour(target)).or(port.v4.first());
        let Some(source) = near.map(|own| own.address) else { return };
        let message = arp_message(REQUEST, (own_mac, source), ([0; 6], target));
        self.send_arp(pool, place, (mac.unwrap_or(BROADCAST), own_mac), &message, out);
    }

    fn send_arp(
        &mut self,
        pool: &mut Pool,
        place: u16,
        (to, from): ([u8; 6], [u8; 6]),
        message: &[u8; ARP_LEN],
        out: &mut Outbox,
    ) {
        let Some(handle) = self.make(pool, place, ETHERNET + ARP_LEN, out) else { return };
        let frame = pool.data_mut(handle);
        frame[..ETHERNET].copy_from_slice(&ethernet_header(to, from, ethertype::ARP));
        frame[ETHERNET..].copy_from_slice(message);
        self.settle(pool, handle, Fate::Out(place), out);
    }

    fn send_discovery(
        &mut self,
        pool: &mut Pool,
        place: u16,
        (to, from): ([u8; 6], [u8; 6]),
        (source, destination): (u128, u128),
        message: &[u8; DISCOVERY_LEN],
        out: &mut Outbox,
    ) {
        const IP: usize = 40;
        let Some(handle) = self.make(pool, place, ETHERNET + IP + DISCOVERY_LEN, out) else { return };
        let header = Ipv6Header {
            source,
            destination,
            next_header: protocol::ICMPV6,
            hop_limit: 255,
            payload_len: DISCOVERY_LEN as u16,
        };
        let frame = pool.data_mut(handle);
        frame[..ETHERNET].copy_from_slice(&ethernet_header(to, from, ethertype::IPV6));
        frame[ETHERNET..ETHERNET + IP].copy_from_slice(&header.bytes());
        frame[ETHERNET + IP..].copy_from_slice(message);
        self.settle(pool, handle, Fate::Out(place), out);
    }

    /// An ARP message.
    pub fn arp(&mut self, pool: &mut Pool, handle: Handle, out: &mut Outbox) -> Fate {
        let (frame, place) = (pool.data(handle), pool.meta(handle).in_port);
        let Ok(arp) = Arp::check(&frame[ETHERNET..]) else { return Fate::Dropped(DropReason::BadHeader) };
        let Some(port) = self.ports.at(place) else { return Fate::Dropped(DropReason::PortDown) };
        let ((mac, address), (_, target), operation) = (arp.sender(), arp.target(), arp.operation());
        let (own_mac, own) = (port.mac, port.has_v4(target));
        let plausible = mac[0] & 1 == 0 && mac != [0; 6] && !port.has_v4(address);
        let near = port.v4.iter().any(|own| own.is_neighbour(address));
        let key = v4_key(address);
        let solicited = operation == REPLY && self.neighbours.is_asked(place, key);
        let awaited = operation == REPLY && self.is_awaited(place, key, out.time());
        if !solicited && !awaited && !self.allows(place, PolicedWork::Neighbours, out) {
            return Fate::Dropped(DropReason::SlowPath);
        }
        if !plausible {
            return Fate::Dropped(DropReason::Martian);
        }
        let flags = AnswerFlags { solicited, overrides: true, creates: own && near && operation == REQUEST };
        let waiting = self.neighbours.learn(place, key, mac, flags, out.time());
        self.send_waiting(pool, waiting, (place, mac), out);
        if own && operation == REQUEST {
            let message = arp_message(REPLY, (own_mac, target), (mac, address));
            self.send_arp(pool, place, (mac, own_mac), &message, out);
        }
        if operation == REPLY { self.answered(place) } else { Fate::Consumed }
    }

    /// A neighbour solicitation or advertisement; none if the packet is neither.
    pub fn discovery(&mut self, pool: &mut Pool, handle: Handle, out: &mut Outbox) -> Option<Fate> {
        let (packet, place) = (&pool.data(handle)[ETHERNET..], pool.meta(handle).in_port);
        let ip = Ipv6::check(packet).ok()?;
        let transport = ip.transport().filter(|it| it.protocol == protocol::ICMPV6)?;
        let kind = *packet.get(transport.offset)?;
        if !matches!(kind, icmpv6_kind::SOLICITATION | icmpv6_kind::ADVERTISEMENT) {
            return None;
        }
        let source = ip.source();
        // Fragmented neighbour messages are ignored, even atomic fragments (RFC 6980, 5).
        let read = Discovery::read(&ip, packet, transport.offset).filter(|_| !transport.is_fragment);
        let Some(message) = read else { return Some(Fate::Dropped(DropReason::BadHeader)) };
        let port = self.ports.at(place)?;
        // The router's own address answers for its network's anycast address.
        let any = port.behind_anycast(message.target);
        let (own_mac, own) = (port.mac, any.is_some() || port.has_v6(message.target));
        let address = if message.is_solicitation { source } else { message.target };
        let near = port.v6.iter().any(|own| own.is_neighbour(address));
        let plausible = !port.has_v6(address) && message.link_address.is_none_or(|mac| mac[0] & 1 == 0);
        let asked = !message.is_solicitation && self.neighbours.is_asked(place, address);
        let solicited = asked && message.is_solicited;
        let awaited = !message.is_solicitation && self.is_awaited(place, address, out.time());
        if !asked && !awaited && !self.allows(place, PolicedWork::Neighbours, out) {
            return Some(Fate::Dropped(DropReason::SlowPath));
        }
        if !plausible {
            return Some(Fate::Dropped(DropReason::Martian));
        }
        // A solicited answer without a link address confirms the known one (RFC 4861, 7.2.5).
        let known = self.neighbours.find(place, address, out.time()).mac().filter(|_| solicited);
        if let Some(mac) = message.link_address.or(known).filter(|_| address != 0) {
            let creates = message.is_solicitation && own && near;
            let flags =
                AnswerFlags { solicited, overrides: message.is_solicitation || message.overrides, creates };
            let waiting = self.neighbours.learn(place, address, mac, flags, out.time());
            self.send_waiting(pool, waiting, (place, mac), out);
        }
        if message.is_solicitation && own {
            // A sender without an address is answered through the all-nodes group (RFC 4861, 7.2.4).
            const ALL_NODES: u128 = 0xff02 << 112 | 1;
            let (to, destination) = match message.link_address {
                Some(mac) if source != 0 => (mac, source),
                _ if source != 0 => (frame_source(pool.data(handle)), source),
                _ => (multicast_mac(ALL_NODES), ALL_NODES),
            };
            let target = message.target;
            let from = any.unwrap_or(target);
            let answer = Discovery::advertise(from, destination, target, own_mac, source != 0);
            self.send_discovery(pool, place, (to, own_mac), (from, destination), &answer, out);
        }
        let is_answer = !message.is_solicitation;
        Some(if is_answer { self.answered(place) } else { Fate::Consumed })
    }

    /// Does what is due by `now`: repeats requests, or gives up neighbours that do not answer and reports
    /// errors to the senders.
    pub fn tick(&mut self, pool: &mut Pool, now: Nanos, out: &mut Outbox) {
        out.at(now);
        while let Some(due) = self.neighbours.next_due(now) {
            match due {
                DueWork::Ask { port, address, mac, is_gateway } => {
                    self.ask(pool, (port, address, mac), is_gateway, out);
                }
                DueWork::Noted { port, mac, waiting } => {
                    self.send_waiting(pool, waiting, (port, mac), out);
                    self.before.clear();
                }
                DueWork::GivenUp { mut waiting, .. } => {
                    while let Some(handle) = waiting.pop(pool) {
                        self.neighbours.release(pool.meta(handle).segments);
                        self.before.resume(handle);
                        let v4 = pool.data(handle).get(12..ETHERNET) == Some(&ethertype::IPV4.to_be_bytes());
                        if v4 {
                            let message = (icmp_kind::UNREACHABLE, unreachable::HOST, 0);
                            self.error_v4(pool, handle, message, out);
                        } else {
                            let message = (icmpv6_kind::UNREACHABLE, unreachable_v6::ADDRESS, 0);
                            self.error_v6(pool, handle, message, out);
                        }
                        self.settle(pool, handle, Fate::Dropped(DropReason::NoNeighbour), out);
                        self.before.clear();
                    }
                }
            }
        }
    }
}

fn frame_source(frame: &[u8]) -> [u8; 6] {
    let mut mac = [0; 6];
    mac.copy_from_slice(&frame[6..12]);
    mac
}
