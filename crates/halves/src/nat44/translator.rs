//! Decisions about packets that the program leaves to its control half.

use super::entry::{self, BindingUsage};
use super::network::Network4;
use super::packet::{FragmentKey, ICMP, Kind, Packet, ParseError, Side, TCP};
use super::table::{Endpoint, Full, Limits, Table};
use crate::session::Entry;
use std::collections::{HashMap, HashSet, VecDeque};
use std::net::Ipv4Addr;

/// Expiry times of bindings in nanoseconds.
#[derive(Debug, Clone, Copy)]
pub(super) struct Times {
    pub udp: u64,
    pub established: u64,
    pub transitory: u64,
    pub icmp: u64,
}

/// Counters of packets and bindings.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Counts {
    pub made: u64,
    pub ended: u64,
    /// ICMP errors that were translated.
    pub errors: u64,
    /// Translated later fragments.
    pub parts: u64,
    /// Translated packets with options, and packets that arrived before their binding was written.
    pub others: u64,
    /// Packets from inside without a binding, by the exhausted resource.
    pub host: u64,
    pub table: u64,
    pub ports: u64,
    /// Packets from inside that can't be translated.
    pub untranslatable: u64,
}

/// Decision about a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Translation {
    /// It passes unchanged.
    Pass,
    /// It passes rewritten.
    Rewritten,
    /// It passes rewritten, after this binding is written: inside, external, and the TCP note.
    Bound(Endpoint, Endpoint, u16),
    Dropped,
    /// This many bytes are needed.
    Needs(usize),
}

/// Decides about packets, with all bindings.
#[derive(Debug)]
pub(super) struct Translator {
    inside: Vec<Network4>,
    external: Network4,
    times: Times,
    pub table: Table,
    parts: FragmentTable,
    pub counts: Counts,
    /// The time of the last packet of restored bindings, if there are any.
    pub restored: Option<u64>,
}

impl Translator {
    pub fn new(inside: Vec<Network4>, external: Network4, limits: Limits, times: Times, seed: u64) -> Self {
        let (table, parts) = (Table::new(limits, seed), FragmentTable::default());
        Self { inside, external, times, table, parts, counts: Counts::default(), restored: None }
    }

    /// Restores bindings from entries of the program's map. Returns the keys of invalid ones, to be removed.
    pub fn restore(&mut self, entries: &[Entry]) -> Vec<Vec<u8>> {
        let read: Vec<_> = entries.iter().map(entry::read).collect();
        let both: HashSet<(u8, Endpoint, Endpoint)> =
            read.iter().flatten().map(|&(side, from, to, _)| (side, from, to)).collect();
        for &(side, from, to, noted) in read.iter().flatten() {
            if side == 0 && both.contains(&(1, to, from)) && self.is_inside(from.address) {
                self.restored = self.restored.max(Some(noted.last));
                // Their expiry is checked then.
                let look = noted.last.saturating_add(self.first_time(from.protocol));
                self.table.restore(from, to, look);
            }
        }
        let is_kept = |&(side, from, to, _): &(u8, Endpoint, Endpoint, BindingUsage)| match side {
            0 => self.table.external(from) == Some(to),
            _ => self.table.inside(from) == Some(to),
        };
        let stray = entries.iter().zip(&read).filter(|(_, read)| !read.as_ref().is_some_and(is_kept));
        stray.map(|((key, _), _)| key.clone()).collect()
    }

    /// Decides about a packet with these first bytes, or all, and rewrites it. The time is that of its
    /// arrival, in nanoseconds.
    pub fn judge(&mut self, frame: &mut [u8], time: u64) -> Translation {
        let packet = match Packet::read(frame) {
            Ok(packet) => packet,
            Err(ParseError::Needs(count)) => return Translation::Needs(count),
            Err(ParseError::Wrong) => return self.untranslatable(),
        };
        let goes_out = self.is_inside(packet.source) && !self.is_inside(packet.destination);
        let to_external = self.external.contains(packet.destination);
        if !goes_out && !to_external {
            return Translation::Pass;
        }
        match packet.kind {
            Kind::Ports { source, destination, flags } => {
                self.whole(frame, &packet, (goes_out, to_external), (source, Some(destination), flags), time)
            }
            Kind::Query(identifier) if !to_external => {
                self.whole(frame, &packet, (goes_out, false), (identifier, None, 0), time)
            }
            Kind::Answer(identifier) if !goes_out => {
                self.whole(frame, &packet, (false, true), (0, Some(identifier), 0), time)
            }
            Kind::Error { .. } => self.error(frame, &packet, (goes_out, to_external)),
            Kind::Later => self.later(frame, &packet, goes_out, time),
            // A packet for the router itself.
            _ if to_external => Translation::Pass,
            _ => self.untranslatable(),
        }
    }

    /// What the program has noted of a binding, out and back, with the packets that were translated here.
    pub fn usage(&self, inside: Endpoint, noted: [BindingUsage; 2]) -> [BindingUsage; 2] {
        let own = self.table.own(inside);
        [0, 1].map(|way| BindingUsage {
            flags: noted[way].flags,
            packets: noted[way].packets + own.packets[way],
            last: noted[way].last.max(own.last[way]),
        })
    }

    /// The time until which a binding is kept, given the usage of both sides; none if it has expired.
    pub fn keep_until(
        &self,
        inside: Endpoint,
        source: BindingUsage,
        destination: BindingUsage,
        now: u64,
    ) -> Option<u64> {
        let (last, time) = match inside.protocol {
            TCP => (source.last.max(destination.last), self.tcp_time(source.flags, destination.flags)),
            // Refreshed only from inside: outside hosts can't keep it alive (RFC 4787, REQ-6).
            other => (source.last, self.first_time(other)),
        };
        let until = last.saturating_add(time);
        (until > now).then_some(until)
    }

    /// Established if both sides have acknowledged something, not both have finished, and none has reset (RFC
    /// 5382, section 5). With several connections at once, the longest time applies.
    fn tcp_time(&self, source: u8, destination: u8) -> u64 {
        let (both, any) = (source & destination, source | destination);
        let is_open = both & FIN == 0 && any & RST == 0;
        let is_established = both & ACK != 0 && (is_open || any & SEVERAL != 0);
        if is_established { self.times.established } else { self.times.transitory }
    }

    /// Time before the first check of a new binding.
    pub fn first_time(&self, protocol: u8) -> u64 {
        match protocol {
            TCP => self.times.transitory,
            ICMP => self.times.icmp,
            _ => self.times.udp,
        }
    }

    fn is_inside(&self, address: Ipv4Addr) -> bool {
        self.inside.iter().any(|inside| inside.contains(address))
    }

    fn untranslatable(&mut self) -> Translation {
        self.counts.untranslatable += 1;
        Translation::Dropped
    }

    /// Handles a packet with ports or an identifier.
    fn whole(
        &mut self,
        frame: &mut [u8],
        packet: &Packet,
        (goes_out, to_external): (bool, bool),
        (source, destination, flags): (u16, Option<u16>, u8),
        time: u64,
    ) -> Translation {
        let protocol = packet.protocol;
        let mut ruling = Translation::Rewritten;
        let mut to = [None, None];
        if to_external {
            let port = destination.unwrap_or(0);
            let external = Endpoint { address: packet.destination, port, protocol };
            to[1] = self.table.inside(external);
            if to[1].is_none() {
                return Translation::Pass;
            }
        }
        if goes_out {
            let inside = Endpoint { address: packet.source, port: source, protocol };
            to[0] = self.table.external(inside);
            if to[0].is_none() {
                match self.table.bind(inside, time.saturating_add(self.first_time(protocol))) {
                    Ok(external) => {
                        self.counts.made += 1;
                        to[0] = Some(external);
                        let noted = begun(flags, packet.destination, destination.unwrap_or(0));
                        ruling = Translation::Bound(inside, external, noted);
                    }
                    Err(full) => return self.full(full),
                }
            } else {
                self.table.note(inside, 0, time);
            }
        }
        if let Some(inside) = to[1] {
            self.table.note(inside, 1, time);
        }
        rewrite(packet, frame, to);
        if packet.has_more {
            self.counts.parts += 1;
            self.parts.note(packet, to, time);
        } else if ruling == Translation::Rewritten {
            self.counts.others += 1;
        }
        ruling
    }

    fn full(&mut self, full: Full) -> Translation {
        match full {
            Full::Host => self.counts.host += 1,
            Full::Table => self.counts.table += 1,
            Full::Ports => self.counts.ports += 1,
        }
        Translation::Dropped
    }

    /// Handles an ICMP error about a packet that went out, about one that came in, or about one between two
    /// inside hosts (RFC 5508, REQ-7).
    fn error(
        &mut self,
        frame: &mut [u8],
        packet: &Packet,
        (goes_out, to_external): (bool, bool),
    ) -> Translation {
        let Kind::Error { protocol, source, destination } = packet.kind else { return Translation::Pass };
        let endpoint = |(address, port): (Ipv4Addr, u16)| Endpoint { address, port, protocol };
        let mut to = [None, None];
        if to_external {
            to[1] = self.table.inside(endpoint(source));
            if to[1].is_none() {
                return Translation::Pass;
            }
        }
        if goes_out {
            to[0] = self.table.external(endpoint(destination));
            if to[0].is_none() {
                return self.untranslatable();
            }
        }
        let sides = [(Side::Source, Side::Destination), (Side::Destination, Side::Source)];
        for ((outer, inner), to) in sides.into_iter().zip(to) {
            if let Some(to) = to {
                packet.rewrite_inner(frame, inner, to);
                packet.rewrite(frame, outer, to);
            }
        }
        self.counts.errors += 1;
        Translation::Rewritten
    }

    /// Handles a fragment whose first one has arrived.
    fn later(&mut self, frame: &mut [u8], packet: &Packet, goes_out: bool, time: u64) -> Translation {
        let Some(to) = self.parts.find(packet, time) else {
            return if goes_out { self.untranslatable() } else { Translation::Pass };
        };
        rewrite(packet, frame, to);
        self.counts.parts += 1;
        Translation::Rewritten
    }
}

/// Writes the new source and destination into a packet, if there are any.
fn rewrite(packet: &Packet, frame: &mut [u8], to: [Option<Endpoint>; 2]) {
    for (side, to) in [Side::Source, Side::Destination].into_iter().zip(to) {
        if let Some(to) = to {
            packet.rewrite(frame, side, to);
        }
    }
}

/// Flags of TCP (RFC 9293, section 3.1).
const FIN: u8 = 1;
const SYN: u8 = 2;
const RST: u8 = 4;
const ACK: u8 = 16;
/// A further bit of the program's note: several connections at once.
const SEVERAL: u8 = 8;

/// The program's note for the first packet of a connection with this peer: flags, and for a SYN a hash of the
/// peer above them.
fn begun(flags: u8, address: Ipv4Addr, port: u16) -> u16 {
    const PEER: u32 = 5;
    if flags & SYN == 0 {
        return flags.into();
    }
    let (address, port) = (u32::from_le_bytes(address.octets()), u16::from_le_bytes(port.to_be_bytes()));
    let hash = (address ^ u32::from(port)).wrapping_mul(0x9e37_79b1) >> 21;
    u16::from(flags) | (hash << PEER) as u16
}

/// Translations of fragments whose first one has arrived.
#[derive(Debug, Default)]
struct FragmentTable {
    by_packet: HashMap<FragmentKey, (u64, [Option<Endpoint>; 2])>,
    order: VecDeque<FragmentKey>,
}

impl FragmentTable {
    /// Capacity in packets, and lifetime in nanoseconds: as long as a host waits for fragments (RFC 1122,
    /// section 3.3.2, at least 60 s; Linux waits 30 s).
    const MOST: usize = 1024;
    const TIME: u64 = 30_000_000_000;

    fn key(packet: &Packet) -> FragmentKey {
        (packet.source, packet.destination, packet.protocol, packet.identification)
    }

    fn note(&mut self, packet: &Packet, to: [Option<Endpoint>; 2], time: u64) {
        let key = Self::key(packet);
        if self.by_packet.insert(key, (time, to)).is_none() {
            self.order.push_back(key);
        }
        if self.order.len() > Self::MOST
            && let Some(first) = self.order.pop_front()
        {
            self.by_packet.remove(&first);
        }
    }

    fn find(&self, packet: &Packet, time: u64) -> Option<[Option<Endpoint>; 2]> {
        let (since, to) = self.by_packet.get(&Self::key(packet))?;
        (time.saturating_sub(*since) <= Self::TIME).then_some(*to)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nat44::packet::UDP;
    use longwire_wire::checksum::Sum;

    const SECOND: u64 = 1_000_000_000;
    const FAR: [u8; 4] = [198, 51, 100, 7];
    const OWN: [u8; 4] = [192, 0, 2, 1];

    fn translator() -> Translator {
        let network = |text: &str| Network4::read(text).unwrap();
        let limits = Limits { external: vec![OWN.into()], ports: 1024..=65535, bindings: 3, each: 2 };
        let times = Times {
            udp: 300 * SECOND,
            established: 7440 * SECOND,
            transitory: 240 * SECOND,
            icmp: 60 * SECOND,
        };
        Translator::new(vec![network("10.0.0.0/8")], network("192.0.2.1"), limits, times, 1)
    }

    /// A UDP packet without valid checksums.
    fn udp(source: [u8; 4], destination: [u8; 4], ports: [u16; 2]) -> Vec<u8> {
        let head = [0x45, 0, 0, 28, 0, 7, 0, 0, 64, UDP, 0, 0];
        let ports = ports.map(u16::to_be_bytes);
        let parts: [&[u8]; 7] =
            [&[0; 12], &[8, 0], &head, &source, &destination, ports.as_flattened(), &[0, 8, 0, 0]];
        parts.concat()
    }

    /// Addresses and ports of a packet.
    fn ends(frame: &[u8]) -> ([u8; 4], u16, [u8; 4], u16) {
        let port = |at: usize| u16::from_be_bytes([frame[at], frame[at + 1]]);
        (frame[26..30].try_into().unwrap(), port(34), frame[30..34].try_into().unwrap(), port(36))
    }

    #[test]
    fn a_new_flow_is_bound_and_the_next_packet_finds_it() {
        let mut nat = translator();
        let mut out = udp([10, 0, 0, 1], FAR, [5000, 53]);
        let endpoint = |address: [u8; 4], port| Endpoint { address: address.into(), port, protocol: UDP };
        let bound = Translation::Bound(endpoint([10, 0, 0, 1], 5000), endpoint(OWN, 5000), 0);
        assert_eq!(nat.judge(&mut out, 0), bound);
        assert_eq!(ends(&out), (OWN, 5000, FAR, 53));
        let mut again = udp([10, 0, 0, 1], [203, 0, 113, 5], [5000, 9]);
        assert_eq!(nat.judge(&mut again, 0), Translation::Rewritten, "whoever it is sent to");
        assert_eq!(ends(&again), (OWN, 5000, [203, 0, 113, 5], 9));
        let mut back = udp(FAR, OWN, [53, 5000]);
        assert_eq!(nat.judge(&mut back, 0), Translation::Rewritten);
        assert_eq!(ends(&back), (FAR, 53, [10, 0, 0, 1], 5000));
        // Another inside host, by the external address.
        let mut across = udp([10, 0, 0, 2], OWN, [7000, 5000]);
        assert!(matches!(nat.judge(&mut across, 0), Translation::Bound(..)));
        assert_eq!(ends(&across), (OWN, 7000, [10, 0, 0, 1], 5000));
        // A foreign one, or the router's own.
        for (source, destination) in
            [(FAR, OWN), (FAR, [203, 0, 113, 5]), ([10, 0, 0, 1], [10, 9, 9, 9]), ([10, 0, 0, 1], OWN)]
        {
            let sent = udp(source, destination, [1, 2]);
            let mut frame = sent.clone();
            assert_eq!((nat.judge(&mut frame, 0), frame), (Translation::Pass, sent));
        }
        assert_eq!((nat.counts.made, nat.counts.others), (2, 2));
    }

    #[test]
    fn an_error_about_a_packet_between_inside_hosts_reaches_its_sender() {
        let mut nat = translator();
        for (host, port) in [(1, 5000), (2, 6000)] {
            let mut out = udp([10, 0, 0, host], FAR, [port, 53]);
            assert!(matches!(nat.judge(&mut out, 0), Translation::Bound(..)));
        }
        let mut across = udp([10, 0, 0, 1], OWN, [5000, 6000]);
        assert_eq!(nat.judge(&mut across, 0), Translation::Rewritten);
        assert_eq!(ends(&across), (OWN, 5000, [10, 0, 0, 2], 6000));
        // Port unreachable.
        let unreachable = |from: [u8; 4], about: &[u8]| {
            let mut error = [&udp(from, OWN, [0, 0])[..34], &[3, 3, 7, 7, 0, 0, 0, 0], &about[14..]].concat();
            error[23] = ICMP;
            error
        };
        let sent = unreachable([10, 0, 0, 2], &across);
        let mut error = sent.clone();
        assert_eq!((nat.judge(&mut error, 0), nat.counts.errors), (Translation::Rewritten, 1));
        assert_eq!((&error[26..30], &error[30..34]), (&OWN[..], &[10, 0, 0, 1][..]));
        assert_eq!(ends(&error[28..]), ([10, 0, 0, 1], 5000, OWN, 6000), "the packet as it was sent");
        let sum = |frame: &[u8]| Sum::ZERO.bytes(&frame[34..]).folded();
        assert_eq!(sum(&error), sum(&sent), "the checksum still covers the message");
        // About a packet of the router itself.
        let own = unreachable([10, 0, 0, 2], &udp(OWN, [10, 0, 0, 2], [7, 6000]));
        let mut error = own.clone();
        assert_eq!((nat.judge(&mut error, 0), error), (Translation::Pass, own));
    }

    #[test]
    fn what_finds_no_room_is_dropped_and_counted() {
        let mut nat = translator();
        let mut go = |host, port| nat.judge(&mut udp([10, 0, 0, host], FAR, [port, 53]), 0);
        for (host, port) in [(1, 1), (1, 2), (2, 3)] {
            assert!(matches!(go(host, port), Translation::Bound(..)));
        }
        assert_eq!((go(1, 3), go(2, 4)), (Translation::Dropped, Translation::Dropped));
        let mut gre = udp([10, 0, 0, 1], FAR, [1, 1]);
        gre[23] = 47;
        assert_eq!(nat.judge(&mut gre, 0), Translation::Dropped);
        let Counts { host, table, ports, untranslatable, .. } = nat.counts;
        assert_eq!((host, table, ports, untranslatable), (1, 1, 0, 1));
    }

    #[test]
    fn parts_follow_their_first() {
        let mut nat = translator();
        let part = |offset: u16, more: bool| {
            let mut frame = udp([10, 0, 0, 1], FAR, [5000, 53]);
            let field = offset | if more { 0x2000 } else { 0 };
            frame[20..22].copy_from_slice(&field.to_be_bytes());
            frame
        };
        assert_eq!(nat.judge(&mut part(3, false), 0), Translation::Dropped, "the first has not come");
        assert!(matches!(nat.judge(&mut part(0, true), 0), Translation::Bound(..)));
        let mut last = part(3, false);
        assert_eq!(nat.judge(&mut last, SECOND), Translation::Rewritten);
        assert_eq!((&last[26..30], &last[34..38]), (&OWN[..], &part(3, false)[34..38]));
        assert_eq!(nat.judge(&mut part(3, false), 31 * SECOND), Translation::Dropped, "too late");
        assert_eq!((nat.counts.parts, nat.counts.untranslatable), (2, 2));
    }

    #[test]
    fn bindings_end_when_they_are_not_used() {
        let nat = translator();
        let noted = |flags, last: u64| BindingUsage { flags, packets: 1, last: last * SECOND };
        let none = BindingUsage::default();
        for (protocol, source, destination, ends) in [
            (UDP, noted(0, 10), none, 310),
            // Packets from outside keep no binding.
            (UDP, noted(0, 10), noted(0, 200), 310),
            (ICMP, noted(0, 10), noted(0, 60), 70),
            // A SYN without an answer.
            (TCP, noted(2, 10), none, 250),
            (TCP, noted(2, 10), noted(0x12, 11), 251),
            (TCP, noted(0x12, 10), noted(0x12, 20), 7460),
            // One has finished, then both; a reset; a SYN after that.
            (TCP, noted(0x13, 10), noted(0x12, 20), 7460),
            (TCP, noted(0x13, 30), noted(0x13, 20), 270),
            (TCP, noted(0x12, 10), noted(0x16, 20), 260),
            (TCP, noted(0x02, 100), noted(0x13, 20), 340),
            // Several at once, of which one has finished, or was reset; several without an answer.
            (TCP, noted(0x1b, 30), noted(0x13, 20), 7470),
            (TCP, noted(0x1a, 30), noted(0x1c, 20), 7470),
            (TCP, noted(0x0a, 30), none, 270),
        ] {
            let inside = Endpoint { address: [10, 0, 0, 1].into(), port: 1, protocol };
            let until = |now: u64| nat.keep_until(inside, source, destination, now * SECOND);
            assert_eq!((until(ends - 1), until(ends)), (Some(ends * SECOND), None), "{protocol} {ends}");
        }
    }

    #[test]
    fn packets_that_only_come_in_parts_keep_their_binding() {
        let mut nat = translator();
        let inside = Endpoint { address: [10, 0, 0, 1].into(), port: 5000, protocol: UDP };
        let first_part = |source, destination, ports| {
            let mut frame = udp(source, destination, ports);
            frame[20..22].copy_from_slice(&0x2000u16.to_be_bytes());
            frame
        };
        for (time, is_back) in [(0, false), (200, false), (250, true)] {
            let mut frame = match is_back {
                true => first_part(FAR, OWN, [53, 5000]),
                false => first_part([10, 0, 0, 1], FAR, [5000, 53]),
            };
            let ruling = nat.judge(&mut frame, time * SECOND);
            assert_eq!(ruling == Translation::Rewritten, time > 0, "{ruling:?}");
        }
        // The program has the first only.
        let noted = [BindingUsage { flags: 0, packets: 1, last: 0 }, BindingUsage::default()];
        let [out, back] = nat.usage(inside, noted);
        assert_eq!((out.packets, back.packets), (2, 1));
        let until = |now: u64| nat.keep_until(inside, out, back, now * SECOND);
        assert_eq!((until(499), until(500)), (Some(500 * SECOND), None));
    }

    #[test]
    fn bindings_are_taken_over_from_the_map() {
        let end = |address: [u8; 4], port| Endpoint { address: address.into(), port, protocol: UDP };
        let (inside, external) = (end([10, 0, 0, 1], 5000), end(OWN, 5000));
        let both = entry::entries((inside, external), 0, 7 * SECOND);
        // Half of one; one for an unknown inside host; an invalid entry.
        let [half, _] = entry::entries((end([10, 0, 0, 2], 1), end(OWN, 2000)), 0, 0);
        let stranger = entry::entries((end([11, 0, 0, 1], 1), end(OWN, 2001)), 0, 0);
        let wrong = (vec![1, 2], vec![3]);
        let entries =
            [&both[..], std::slice::from_ref(&half), &stranger, std::slice::from_ref(&wrong)].concat();
        let mut nat = translator();
        let keys = [half.0, stranger[0].0.clone(), stranger[1].0.clone(), wrong.0];
        assert_eq!((nat.restored, nat.restore(&entries)), (None, keys.to_vec()));
        assert_eq!(nat.restored, Some(7 * SECOND), "from then on they expire");
        let mut out = udp([10, 0, 0, 1], FAR, [5000, 53]);
        assert_eq!((nat.judge(&mut out, 0), nat.counts.made), (Translation::Rewritten, 0));
        assert_eq!(nat.table.due(307 * SECOND).next(), Some((inside, external)));
        assert_eq!(nat.table.due(307 * SECOND - 1).next(), None);
    }

    #[test]
    fn what_is_noted_of_a_syn_is_what_the_program_notes() {
        // The program's own test has the same number for the same peer.
        assert_eq!(begun(SYN, [192, 0, 2, 80].into(), 80), 0x218 << 5 | 2);
        assert_eq!(begun(ACK, [192, 0, 2, 80].into(), 80), 0x10);
    }

    #[test]
    fn values_of_the_map_are_read() {
        let value = [&[1, 2, 3, 4, 5, 6, 0xf2, 0xff][..], &7u64.to_le_bytes(), &9u64.to_le_bytes()].concat();
        assert_eq!(BindingUsage::read(&value), Some(BindingUsage { flags: 0x12, packets: 7, last: 9 }));
        assert_eq!(BindingUsage::read(&value[..23]), None);
    }
}
