//! Cache of a bridge's verdicts, for later frames between the same two stations.
//!
//! The decision of a node with a station table ([`Node::stations`]) depends only on the input port and the
//! Ethernet addresses. For each frame the cache checks in the node's table that both stations are in the same
//! slots and have not expired, which also refreshes the source, so no invalidation is needed. The classifier
//! looks up the IP addresses as usual.

use longwire_block::stations::{Stations, station};
use longwire_block::{Node, REFUSED};
use longwire_link::classify::{Classifier, PLAIN_LEN, plain_v4};
use longwire_packet::{AHEAD, BATCH, FirstLine, Handle, Meta, Pool};
use longwire_units::Nanos;

/// Number of cached verdicts.
const VERDICTS: usize = 256;
/// Number of batches that skip the cache after one with hits for less than half of its packets.
pub(crate) const PATIENCE: u32 = 7;
/// Shortest run of hits that is taken out from among other packets.
const FEW: usize = 4;
/// How many packets ahead a bucket, a single line, is prefetched.
const SOON: usize = 2 * AHEAD;
/// The shortest Ethernet header.
const HEADER: u32 = 14;

/// The verdict on one frame, and the key that matches similar ones.
#[derive(Debug, Clone, Copy, Default)]
struct Verdict {
    /// Both stations: addresses with their ports ([`station`]).
    source: u64,
    destination: u64,
    /// Their slots in the table.
    places: [u32; 2],
    /// The path between the two ports for packets whose addresses select none.
    by_ports: u32,
}

#[derive(Debug)]
pub(crate) struct Verdicts {
    entries: Box<[Verdict; VERDICTS]>,
    /// Remaining batches that skip the cache.
    pub skipped: u32,
}

/// Eight bytes of a packet's first line, as a number.
#[inline(always)]
fn word(line: &FirstLine, at: usize) -> u64 {
    line[at..].first_chunk().map_or(0, |bytes| u64::from_be_bytes(*bytes))
}

/// The source of a frame received by `port`, as [`station`] encodes it, and its destination with two
/// arbitrary bytes below.
#[inline(always)]
fn ends(line: &FirstLine, port: u16) -> (u64, u64) {
    (word(line, 6) & !0xffff | u64::from(port), word(line, 0))
}

/// The cache index for a frame.
#[inline(always)]
fn place(source: u64, destination: u64) -> usize {
    let mixed = source ^ (destination >> 16).rotate_left(32);
    (mixed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as usize % VERDICTS
}

impl Verdicts {
    pub fn new() -> Self {
        Self { entries: Box::new([Verdict::default(); VERDICTS]), skipped: 0 }
    }

    /// The verdict on a frame like this one. A frame that already has a decision never matches.
    #[inline(always)]
    fn find(&self, meta: &Meta, line: &FirstLine) -> Option<(usize, Verdict)> {
        let (source, destination) = ends(line, meta.in_port);
        let at = place(source, destination);
        let verdict = &self.entries[at];
        let differs = (verdict.source ^ source) | (verdict.destination ^ destination) >> 16;
        (differs | u64::from(meta.flags) == 0 && meta.len >= HEADER).then_some((at, *verdict))
    }

    pub fn forget_all(&mut self) {
        self.entries.fill(Verdict::default());
    }

    /// Caches the verdict on a frame.
    pub fn note(&mut self, stations: &Stations, meta: &Meta, line: &FirstLine, by_ports: u32) {
        let (source, destination) = ends(line, meta.in_port);
        if meta.out_port < REFUSED
            && let Some(places) = stations.places(source >> 16, meta.in_port, destination >> 16)
        {
            let at = place(source, destination);
            let destination = station(destination >> 16, meta.out_port);
            self.entries[at] = Verdict { source, destination, places, by_ports };
        }
    }

    /// Number of packets before the next run of possible hits; the first packet is a miss. Isolated hits are
    /// treated as misses: a sender that changes its address every time must not slow down all others.
    pub fn unlike(&self, pool: &mut Pool, handles: &[Handle]) -> usize {
        let mut row = 0;
        for (at, &handle) in handles.iter().enumerate().skip(1) {
            let (meta, line) = pool.head_mut(handle);
            row = if self.find(meta, line).is_some() { row + 1 } else { 0 };
            if row == FEW {
                return at + 1 - FEW;
            }
        }
        handles.len()
    }

    /// Applies cached verdicts to the leading packets that are hits, and returns their number.
    #[inline]
    pub fn decide_alike(
        &mut self,
        node: &mut dyn Node,
        pool: &mut Pool,
        classifier: &Classifier,
        handles: &[Handle],
    ) -> usize {
        let mut known = 0;
        loop {
            let rest = &handles[known..];
            let (Some(&first), Some(stations)) = (rest.first(), node.stations()) else { break };
            let (meta, line) = pool.head_mut(first);
            let Some((at, verdict)) = self.find(meta, line) else { break };
            let alike = FramePattern::to(meta, line);
            let (count, last) = match (alike.is_v4 && classifier.has_addresses(), classifier.is_large()) {
                (true, true) => alike.decide::<true, true>(pool, classifier, rest, &verdict),
                (true, false) => alike.decide::<true, false>(pool, classifier, rest, &verdict),
                (false, _) => alike.decide::<false, false>(pool, classifier, rest, &verdict),
            };
            // Times never decrease: what is valid for the last one was valid before.
            if !stations.again(verdict.places, verdict.source, verdict.destination, last) {
                self.entries[at] = Verdict::default();
                break;
            }
            known += count;
        }
        known
    }
}

/// Common properties of consecutive frames between the same stations.
struct FramePattern {
    /// Their first 16 bytes except the last, of a plain IPv4 packet: both stations, type, version and header
    /// length.
    words: [u64; 2],
    in_port: u64,
    /// Whether all are plain IPv4 packets, if they are long enough.
    is_v4: bool,
}

impl FramePattern {
    #[inline(always)]
    fn to(meta: &Meta, line: &FirstLine) -> Self {
        let is_v4 = plain_v4(meta, line).is_some();
        Self { words: Self::words(line), in_port: meta.in_port.into(), is_v4 }
    }

    #[inline(always)]
    fn words(line: &FirstLine) -> [u64; 2] {
        // The last byte is at the top, and is shifted out.
        let word = |at: usize| line[at..].first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
        [word(0), word(8) << 8]
    }

    /// Applies `verdict` to the leading packets that match; returns their number, at least one, and the
    /// arrival of the last. `LOOKED_UP`: they are plain IPv4 packets, and some addresses select paths, from a
    /// `LARGE` table.
    #[inline(always)]
    fn decide<const LOOKED_UP: bool, const LARGE: bool>(
        &self,
        pool: &mut Pool,
        classifier: &Classifier,
        handles: &[Handle],
        verdict: &Verdict,
    ) -> (usize, Nanos) {
        let shortest = if self.is_v4 { PLAIN_LEN } else { HEADER };
        let parsed = !LOOKED_UP && !self.is_v4 && classifier.has_addresses();
        let mut count = 0;
        let mut homes = [(0, 0); BATCH];
        let mut packets = pool.packets();
        for (&handle, home) in handles.iter().zip(&mut homes) {
            let (meta, line) = packets.head_mut(handle);
            let [first, second] = Self::words(line);
            let differs = (first ^ self.words[0]) | (second ^ self.words[1]);
            let differs = differs | (u64::from(meta.in_port) ^ self.in_port) | u64::from(meta.flags);
            if differs != 0 || meta.len < shortest {
                break;
            }
            meta.out_port = verdict.destination as u16;
            count += 1;
            if LOOKED_UP && LARGE {
                *home = classifier.home_of_plain(line);
            } else if LOOKED_UP {
                let found = classifier.find_plain(classifier.home_of_plain(line));
                meta.path = found.unwrap_or(verdict.by_ports);
            } else {
                meta.path = verdict.by_ports;
            }
        }
        if LOOKED_UP && LARGE {
            homes[..SOON.min(count)].iter().for_each(|&home| classifier.prefetch_plain(home));
            for (at, (&handle, &home)) in handles[..count].iter().zip(&homes).enumerate() {
                if let Some(&soon) = homes[..count].get(at + SOON) {
                    classifier.prefetch_plain(soon);
                }
                packets.meta_mut(handle).path = classifier.find_plain(home).unwrap_or(verdict.by_ports);
            }
        }
        if parsed {
            handles[..count].iter().for_each(|&handle| classifier.classify_one(pool, handle));
        }
        let last = handles[..count].last().map_or(0, |&last| pool.meta(last).arrival);
        (count, Nanos(last))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use longwire_packet::Pool;

    const SOURCE: [u8; 6] = [2, 0, 0, 0, 0, 1];
    const DESTINATION: [u8; 6] = [2, 0, 0, 0, 0, 2];

    /// Among thousands of frames that differ from one in two bytes, many have entries that collide with its
    /// own.
    #[test]
    fn only_what_is_alike_in_all_is_known() {
        let mut pool = Pool::new(1 << 20).unwrap();
        let mut stations = Stations::new(8, Nanos::NEVER);
        let number = |[a, b, c, d, e, f]: [u8; 6]| u64::from_be_bytes([0, 0, a, b, c, d, e, f]);
        assert!(
            stations.learn(number(SOURCE), 7, Nanos(1)) && stations.learn(number(DESTINATION), 8, Nanos(1))
        );
        let frame = [&DESTINATION[..], &SOURCE, &[8, 0], &[0; 46]].concat();
        let mut verdicts = Verdicts::new();
        let handle = pool.insert(&frame).unwrap();
        let mut knows = |frame: &[u8], in_port: u16, flags: u8, note: bool| {
            pool.data_mut(handle).copy_from_slice(frame);
            let (meta, line) = pool.head_mut(handle);
            (meta.in_port, meta.out_port, meta.flags) = (in_port, 8, flags);
            if note {
                verdicts.note(&stations, meta, line, 99);
            }
            let found = verdicts.find(meta, line);
            found.is_some_and(|(_, verdict)| (verdict.by_ports, verdict.destination as u16) == (99, 8))
        };
        assert!(!knows(&frame, 7, 0, false) && knows(&frame, 7, 0, true));
        assert!(!knows(&frame, 6, 0, false) && !knows(&frame, 7, Meta::BANDED, false));
        for at in [0, 2, 4, 6, 8, 10] {
            for other in 1..=u16::MAX {
                let mut changed = frame.clone();
                let before = u16::from_be_bytes([frame[at], frame[at + 1]]);
                changed[at..at + 2].copy_from_slice(&(before ^ other).to_be_bytes());
                assert!(!knows(&changed, 7, 0, false), "{at}: {other}");
            }
        }
        assert!(knows(&frame, 7, 0, false));
    }

    #[test]
    fn a_frame_without_a_whole_header_is_not_known() {
        let mut pool = Pool::new(1 << 20).unwrap();
        // A frame's bytes may equal those of an unused entry.
        let verdicts = Verdicts::new();
        for len in [13, 14] {
            let handle = pool.alloc(len).unwrap();
            let (meta, line) = pool.head_mut(handle);
            line.fill(0);
            assert_eq!(verdicts.find(meta, line).is_some(), len == 14);
        }
    }
}
