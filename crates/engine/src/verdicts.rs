//! What was decided about a packet, for the next one like it: to which port its bridge sends it, and which path it takes from there.
//!
//! Packets are alike that came in by one port and have the same Ethernet and IP addresses. Neither a node that decides by stations alone
//! ([`Node::stations`](longwire_block::Node::stations)) nor the classifier asks for more; the classifier's rules never change, and whether the two stations
//! stand where they stood, and are not forgotten, is asked of the node's table each time, which hears the source thereby.

use crate::worker::Worker;
use longwire_block::stations::{Stations, station};
use longwire_packet::{Batch, FirstLine, Handle, Meta};
use longwire_units::Nanos;
use longwire_wire::{ethertype, protocol};

/// How many verdicts are kept: their cache lines are half of what the nearest cache holds.
const VERDICTS: usize = 256;
/// After a batch without one known packet, so many are not looked for.
const PATIENCE: u32 = 7;

/// What was decided about one packet, and what makes others like it.
#[derive(Debug, Clone, Copy, Default)]
#[repr(align(64))]
struct Verdict {
    head: Head,
    /// Both IP addresses: of IPv4 in the first word, of IPv6 in all.
    addresses: [u64; 4],
    /// Where source and destination stood.
    places: [u32; 2],
    path: u32,
    in_port: u16,
    out_port: u16,
}

/// The Ethernet header: its first eight bytes, which have the destination, and its last, which have the source and the type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Head {
    first: u64,
    last: u64,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Verdicts {
    entries: Box<[Verdict; VERDICTS]>,
    /// Batches that will not be looked for.
    skipped: u32,
}

/// Eight bytes of a packet's first line, as a number.
#[inline]
fn word(line: &FirstLine, at: usize) -> u64 {
    line[at..].first_chunk().map_or(0, |bytes| u64::from_be_bytes(*bytes))
}

impl Head {
    #[inline]
    fn of(line: &FirstLine) -> Self {
        Self { first: word(line, 0), last: word(line, 6) }
    }

    /// The addresses of a packet of IPv4 without options and VLAN tags: the classifier looks at nothing else in it.
    #[inline]
    fn pair(self, meta: &Meta, line: &FirstLine) -> Option<u64> {
        (self.last as u16 == ethertype::IPV4 && line[14] == 0x45 && meta.len >= 34).then(|| word(line, 26))
    }

    /// The same of TCP or UDP over IPv6 without extension headers.
    fn wide_pair(self, meta: &Meta, line: &FirstLine) -> Option<[u64; 4]> {
        let is_plain = self.last as u16 == ethertype::IPV6
            && line[14] >> 4 == 6
            && matches!(line[20], protocol::TCP | protocol::UDP)
            && meta.len >= 54;
        is_plain.then(|| [22, 30, 38, 46].map(|at| word(line, at)))
    }

    /// Where a packet's verdict is, if it has one.
    #[inline]
    fn place(self, addresses: u64) -> usize {
        let mixed = self.first ^ self.last.rotate_left(24) ^ addresses.rotate_left(40);
        (mixed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as usize % VERDICTS
    }

    fn source(self, port: u16) -> u64 {
        station(self.last >> 16, port)
    }

    fn destination(self, port: u16) -> u64 {
        station(self.first >> 16, port)
    }
}

/// All of IPv6 addresses in one word, of which different ones may have the same.
fn folded(addresses: [u64; 4]) -> u64 {
    addresses.into_iter().fold(0, |folded, word| folded.rotate_left(21) ^ word)
}

impl Verdicts {
    pub fn new() -> Self {
        Self { entries: Box::new([Verdict::default(); VERDICTS]), skipped: 0 }
    }

    /// What was decided about a packet like this one. One about which somebody has said something already is like none.
    #[inline]
    fn find(&self, meta: &Meta, line: &FirstLine) -> Option<&Verdict> {
        let head = Head::of(line);
        let Some(pair) = head.pair(meta, line) else { return self.find_wide(head, meta, line) };
        let verdict = &self.entries[head.place(pair)];
        (verdict.head == head
            && verdict.addresses[0] == pair
            && verdict.in_port == meta.in_port
            && meta.flags == 0)
            .then_some(verdict)
    }

    #[inline(never)]
    fn find_wide(&self, head: Head, meta: &Meta, line: &FirstLine) -> Option<&Verdict> {
        let addresses = head.wide_pair(meta, line)?;
        let verdict = &self.entries[head.place(folded(addresses))];
        (verdict.head == head
            && verdict.addresses == addresses
            && verdict.in_port == meta.in_port
            && meta.flags == 0)
            .then_some(verdict)
    }

    /// Remembers what was decided about a packet.
    fn note(&mut self, stations: &Stations, meta: &Meta, line: &FirstLine) {
        let (head, &Meta { path, in_port, out_port, .. }) = (Head::of(line), meta);
        let narrow = head.pair(meta, line).map(|pair| (head.place(pair), [pair, 0, 0, 0]));
        let wide = || head.wide_pair(meta, line).map(|pair| (head.place(folded(pair)), pair));
        if let Some((place, addresses)) = narrow.or_else(wide)
            && let Some(places) = stations.places(head.last >> 16, in_port, head.first >> 16)
        {
            self.entries[place] = Verdict { head, addresses, places, path, in_port, out_port };
        }
    }
}

impl Worker {
    /// Lets a node that has stations decide about packets.
    pub(crate) fn decide_by_stations(&mut self, node: usize, batch: &Batch, first: usize) {
        if self.verdicts.skipped > 0 {
            self.verdicts.skipped -= 1;
            return self.forward(node, batch, first);
        }
        let (mut rest, mut known) = (batch.as_slice(), 0);
        while !rest.is_empty() {
            let alike = self.decide_alike(node, rest);
            known += alike;
            rest = &rest[alike..];
            let (others, more) = rest.split_at(self.unlike(rest));
            if !others.is_empty() {
                let mut batch = Batch::new();
                others.iter().for_each(|&handle| batch.push(handle));
                self.forward(node, &batch, first);
            }
            rest = more;
        }
        if known == 0 {
            self.verdicts.skipped = PATIENCE;
        }
    }

    /// Decides about the first packets that are like others, and says how many these are.
    #[inline]
    fn decide_alike(&mut self, node: usize, handles: &[Handle]) -> usize {
        let Some(stations) = self.nodes[node].stations() else { return 0 };
        let mut count = 0;
        for &handle in handles {
            let (meta, line) = self.pool.head_mut(handle);
            let Some(&Verdict { head, places, path, in_port, out_port, .. }) = self.verdicts.find(meta, line)
            else {
                break;
            };
            let (source, destination) = (head.source(in_port), head.destination(out_port));
            if !stations.again(places, source, destination, Nanos(meta.arrival)) {
                break;
            }
            (meta.path, meta.out_port) = (path, out_port);
            count += 1;
        }
        self.ready.extend_from_slice(&handles[..count]);
        count
    }

    /// How many packets come before the next that may be like another: the first of all was not.
    fn unlike(&mut self, handles: &[Handle]) -> usize {
        let is_known = |handle: &Handle| {
            let (meta, line) = self.pool.head_mut(*handle);
            self.verdicts.find(meta, line).is_some()
        };
        let rest = handles.get(1..).unwrap_or_default();
        rest.iter().position(is_known).map_or(handles.len(), |at| at + 1)
    }

    /// Remembers what its node has decided about the first of some packets: one of many that are alike is enough.
    #[inline]
    pub(crate) fn note_verdict(&mut self, node: usize, batch: &Batch) {
        if let Some(stations) = self.nodes[node].stations()
            && let Some(&handle) = batch.as_slice().first()
        {
            let (meta, line) = self.pool.head_mut(handle);
            self.verdicts.note(stations, meta, line);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use longwire_packet::Pool;

    const SOURCE: [u8; 6] = [2, 0, 0, 0, 0, 1];
    const DESTINATION: [u8; 6] = [2, 0, 0, 0, 0, 2];

    fn frames() -> [Vec<u8>; 2] {
        let ethernet = |kind: [u8; 2]| [&DESTINATION[..], &SOURCE, &kind].concat();
        let v4 = [&ethernet([8, 0])[..], &[0x45; 1], &[0; 19], &[0; 20]].concat();
        let mut v6 = [&ethernet([0x86, 0xdd])[..], &[0x60; 1], &[0; 39], &[0; 20]].concat();
        v6[20] = protocol::TCP;
        [v4, v6]
    }

    /// Of thousands of packets that differ from one in a few bytes many have their verdicts in its place.
    #[test]
    fn only_what_is_alike_in_all_is_known() {
        let mut pool = Pool::new(1 << 20).unwrap();
        let mut stations = Stations::new(8, Nanos::NEVER);
        let number = |[a, b, c, d, e, f]: [u8; 6]| u64::from_be_bytes([0, 0, a, b, c, d, e, f]);
        assert!(
            stations.learn(number(SOURCE), 7, Nanos(1)) && stations.learn(number(DESTINATION), 8, Nanos(1))
        );
        for frame in frames() {
            let mut verdicts = Verdicts::new();
            let handle = pool.insert(&frame).unwrap();
            let mut knows = |frame: &[u8], in_port: u16, flags: u8, note: bool| {
                pool.data_mut(handle).copy_from_slice(frame);
                let (meta, line) = pool.head_mut(handle);
                (meta.in_port, meta.out_port, meta.path, meta.flags) = (in_port, 8, 99, flags);
                if note {
                    verdicts.note(&stations, meta, line);
                }
                verdicts.find(meta, line).is_some_and(|verdict| (verdict.path, verdict.out_port) == (99, 8))
            };
            assert!(!knows(&frame, 7, 0, false) && knows(&frame, 7, 0, true));
            assert!(!knows(&frame, 6, 0, false) && !knows(&frame, 7, Meta::BANDED, false));
            // The last bytes of both Ethernet addresses, and of all words of the IP addresses.
            let v4 = frame[13] == 0;
            let ends: &[usize] = if v4 { &[4, 10, 28, 32] } else { &[4, 10, 28, 36, 44, 52] };
            for &at in ends {
                for other in 1..4096u16 {
                    let mut changed = frame.clone();
                    let before = u16::from_be_bytes([frame[at], frame[at + 1]]);
                    changed[at..at + 2].copy_from_slice(&(before ^ other).to_be_bytes());
                    assert!(!knows(&changed, 7, 0, false), "{at}: {other}");
                }
            }
            // Type, version and length of the header, next header.
            for at in if v4 { 12..15 } else { 12..13 } {
                let mut changed = frame.clone();
                changed[at] ^= 1;
                assert!(!knows(&changed, 7, 0, false), "{at}");
            }
            assert!(knows(&frame, 7, 0, false));
        }
    }

    #[test]
    fn what_is_cut_within_the_addresses_is_not_known() {
        let mut pool = Pool::new(1 << 20).unwrap();
        for (frame, whole) in frames().iter().zip([34, 54]) {
            for len in [whole - 1, whole] {
                let handle = pool.insert(&frame[..len]).unwrap();
                let (meta, line) = pool.head_mut(handle);
                let head = Head::of(line);
                let known = head.pair(meta, line).is_some() || head.wide_pair(meta, line).is_some();
                assert_eq!(known, len == whole);
            }
        }
    }
}
