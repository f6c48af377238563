//! A generator and a sink in one port, for benchmarks of the engine. They cost a few nanoseconds per packet,
//! so that the engine dominates.
//!
//! Every packet is a separate buffer, written by the source and read by the sink.

use longwire_block::{Dice, Port, PortError, PortStats, Stamp};
use longwire_packet::{Batch, FirstLine, Handle, Pool};
use longwire_units::Nanos;
use longwire_wire::checksum::Sum;
use std::hint::black_box;
use std::net::Ipv4Addr;
use thiserror::Error;

const HEADERS: usize = 14 + 20 + 8;
/// Bytes of a packet's first line.
const LINE: usize = size_of::<FirstLine>();
/// Bytes of each packet that the sink reads.
const READ: usize = 40;

/// Source and destination address of a packet.
pub type Pair = (Ipv4Addr, Ipv4Addr);

/// The packets of a [`Blast`].
#[derive(Debug, Clone)]
pub struct BlastPlan {
    /// Length of each frame in bytes, without FCS: 42 (Ethernet, IPv4 and UDP headers) to 9000.
    pub frame_bytes: usize,
    /// Addresses of the packets, used in a cycle. Empty: the port only takes packets.
    pub pairs: Vec<Pair>,
    /// Shuffles the pairs once with this seed; else they keep their order.
    pub shuffle: Option<u64>,
    /// Number of packets; [`u64::MAX`] for no end.
    pub count: u64,
    /// Gap between packets: the n-th arrives at n gaps. None: packets arrive as fast as the port is polled,
    /// stamped with `now`.
    pub gap: Option<Nanos>,
    /// Destination and source MAC address.
    pub macs: ([u8; 6], [u8; 6]),
}

/// An invalid [`BlastPlan`].
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum BlastError {
    /// The frame's length is out of range.
    #[error("frame_bytes is {0}; it must be 42 to 9000")]
    FrameBytes(usize),
}

/// The bytes that differ between packets: 24 to 34 of the frame, IPv4 checksum and addresses, in network
/// order.
#[derive(Clone, Copy)]
struct Patch([u8; 10]);

/// A port that generates and takes packets.
pub struct Blast {
    name: String,
    template: Box<[u8]>,
    /// The part of it in a packet's first line.
    first_line: FirstLine,
    patches: Box<[Patch]>,
    cursor: usize,
    left: u64,
    gap: Option<Nanos>,
    next: Nanos,
    stats: PortStats,
    sum: u64,
}

impl BlastPlan {
    /// Creates a port that only takes packets.
    pub fn sink() -> Self {
        Self {
            frame_bytes: 60,
            pairs: Vec::new(),
            shuffle: None,
            count: 0,
            gap: None,
            macs: ([0; 6], [0; 6]),
        }
    }
}

impl Blast {
    /// Creates a port that sends according to `plan` and takes everything. Allocates all that it needs.
    ///
    /// # Errors
    /// The frame's length is out of range.
    pub fn new(name: &str, mut plan: BlastPlan) -> Result<Self, BlastError> {
        if !(HEADERS..=9000).contains(&plan.frame_bytes) {
            return Err(BlastError::FrameBytes(plan.frame_bytes));
        }
        if let Some(seed) = plan.shuffle {
            shuffle(&mut plan.pairs, seed);
        }
        let template = template(&plan);
        let patches = plan.pairs.iter().map(|&pair| Patch::new(&template, pair)).collect();
        let mut first_line = [0; LINE];
        let held = template.len().min(LINE);
        first_line[..held].copy_from_slice(&template[..held]);
        Ok(Self {
            name: name.into(),
            template,
            first_line,
            patches,
            cursor: 0,
            left: if plan.pairs.is_empty() { 0 } else { plan.count },
            gap: plan.gap,
            next: Nanos::ZERO,
            stats: PortStats::default(),
            sum: 0,
        })
    }

    /// Number of packets still to be sent.
    pub fn left(&self) -> u64 {
        self.left
    }

    /// The sum of the first five words of all packets taken, which proves that they were read.
    pub fn sum(&self) -> u64 {
        self.sum
    }

    /// Number of packets that arrive by `now`, according to their gap.
    fn due(&self, now: Nanos) -> u64 {
        match self.gap {
            None => u64::MAX,
            Some(_) if self.next > now => 0,
            Some(gap) => {
                (now - self.next).0.checked_div(gap.0).map_or(u64::MAX, |more| more.saturating_add(1))
            }
        }
    }

    /// Stamps the packets of a paced source. Packets for which the pool had no room are lost, as on a network
    /// card; an unpaced source sends them later.
    fn stamp_in_turn(&mut self, pool: &mut Pool, packets: &[Handle], gap: Nanos, missing: u64) {
        for &handle in packets {
            pool.meta_mut(handle).arrival = self.next.0;
            self.next += gap;
        }
        if missing > 0 {
            self.stats.in_pool_full += 1;
            self.next += gap;
            self.left -= 1;
        }
    }
}

impl Port for Blast {
    fn name(&self) -> &str {
        &self.name
    }

    fn describe(&self) -> String {
        format!("blast of {} bytes, {} address pairs", self.template.len(), self.patches.len())
    }

    fn stamp(&self) -> Stamp {
        if self.gap.is_some() { Stamp::Source } else { Stamp::Poll }
    }

    fn receive(&mut self, pool: &mut Pool, now: Nanos, batch: &mut Batch) -> Result<(), PortError> {
        let wanted = self.left.min(self.due(now)).min(batch.room() as u64);
        let first = batch.len();
        pool.alloc_batch(self.template.len(), wanted as usize, batch);
        let (mut cursor, mut packets) = (self.cursor, pool.packets());
        for &handle in &batch.as_slice()[first..] {
            let (meta, line) = packets.head_mut(handle);
            *line = self.first_line;
            if let Some(patch) = self.patches.get(cursor) {
                line[24..34].copy_from_slice(&patch.0);
            }
            cursor = if cursor + 1 < self.patches.len() { cursor + 1 } else { 0 };
            meta.arrival = now.0;
        }
        self.cursor = cursor;
        let sent = (batch.len() - first) as u64;
        if let Some(rest) = self.template.get(LINE..) {
            for &handle in &batch.as_slice()[first..] {
                pool.data_mut(handle)[LINE..].copy_from_slice(rest);
            }
        }
        self.left -= sent;
        if let Some(gap) = self.gap {
            self.stamp_in_turn(pool, &batch.as_slice()[first..], gap, wanted - sent);
        }
        self.stats.in_frames += sent;
        self.stats.in_bytes += sent * self.template.len() as u64;
        Ok(())
    }

    fn transmit(&mut self, pool: &mut Pool, batch: &Batch) -> Result<(), PortError> {
        let (mut sum, mut frames, mut bytes) = (self.sum, 0, 0);
        let mut packets = pool.packets();
        for &handle in batch.as_slice() {
            let (meta, line) = packets.head_mut(handle);
            frames += u64::from(meta.segments);
            bytes += meta.segment_bytes();
            let words = line[..READ].as_chunks::<8>().0.iter();
            sum = words.fold(sum, |sum, word| sum.wrapping_add(u64::from_le_bytes(*word)));
        }
        pool.free_batch(batch);
        self.stats.out_frames += frames;
        self.stats.out_bytes += bytes;
        self.sum = black_box(sum);
        Ok(())
    }

    fn next_arrival(&mut self) -> Option<Nanos> {
        match (self.left, self.gap) {
            (0, _) => Some(Nanos::NEVER),
            (_, Some(_)) => Some(self.next),
            (_, None) => None,
        }
    }

    fn stats(&self) -> PortStats {
        self.stats
    }
}

impl Patch {
    /// The changing bytes of `template` for a pair of addresses.
    fn new(template: &[u8], (source, destination): Pair) -> Self {
        let mut header = [0; 20];
        header.copy_from_slice(&template[14..34]);
        header[12..16].copy_from_slice(&source.octets());
        header[16..20].copy_from_slice(&destination.octets());
        let checksum = Sum::ZERO.bytes(&header).checksum();
        let mut patch = [0; 10];
        patch[..2].copy_from_slice(&checksum.to_be_bytes());
        patch[2..].copy_from_slice(&header[12..]);
        Self(patch)
    }
}

/// A UDP datagram over IPv4 without addresses and checksums (0 means no checksum in UDP, RFC 768).
fn template(plan: &BlastPlan) -> Box<[u8]> {
    let mut frame = vec![0; plan.frame_bytes];
    frame[..6].copy_from_slice(&plan.macs.0);
    frame[6..12].copy_from_slice(&plan.macs.1);
    frame[12..14].copy_from_slice(&[0x08, 0x00]);
    let ip_len = (plan.frame_bytes - 14) as u16;
    frame[14..16].copy_from_slice(&[0x45, 0]);
    frame[16..18].copy_from_slice(&ip_len.to_be_bytes());
    // Do not fragment; 64 hops; UDP.
    frame[20..24].copy_from_slice(&[0x40, 0, 64, 17]);
    // The discard port.
    frame[34..38].copy_from_slice(&[0, 9, 0, 9]);
    frame[38..40].copy_from_slice(&(ip_len - 20).to_be_bytes());
    frame.into()
}

/// The Fisher–Yates shuffle with our own generator, so that a seed always gives the same order.
fn shuffle(pairs: &mut [Pair], seed: u64) {
    let mut dice = Dice::named(seed, "blast/order");
    for last in (1..pairs.len()).rev() {
        pairs.swap(last, dice.below(last as u64 + 1) as usize);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use longwire_packet::BATCH;

    fn pairs(n: u32) -> Vec<Pair> {
        (0..n).map(|i| (Ipv4Addr::from(0x0a00_0000 + i), Ipv4Addr::from(0x0b00_0000 + i))).collect()
    }

    fn plan(n: u32, count: u64) -> BlastPlan {
        BlastPlan { frame_bytes: 64, pairs: pairs(n), count, macs: ([2; 6], [4; 6]), ..BlastPlan::sink() }
    }

    #[test]
    fn sends_each_pair_in_turn_and_stops() {
        let mut pool = Pool::new(1 << 20).unwrap();
        let mut port = Blast::new("a", plan(3, 100)).unwrap();
        let mut sources = Vec::new();
        loop {
            let mut batch = Batch::new();
            port.receive(&mut pool, Nanos(7), &mut batch).unwrap();
            if batch.is_empty() {
                break;
            }
            for &handle in batch.as_slice() {
                let data = pool.data(handle);
                assert_eq!(data.len(), 64);
                assert_eq!(&data[..14], [2, 2, 2, 2, 2, 2, 4, 4, 4, 4, 4, 4, 8, 0]);
                // A valid header, with its checksum, sums to all ones.
                let words = data[14..34].chunks(2).map(|w| u32::from(u16::from_be_bytes([w[0], w[1]])));
                let sum: u32 = words.sum();
                assert_eq!((sum & 0xffff) + (sum >> 16), 0xffff);
                sources.push(u64::from(data[29]));
                assert_eq!(pool.meta(handle).arrival, 7);
            }
            port.transmit(&mut pool, &batch).unwrap();
        }
        assert_eq!(sources, (0..100).map(|i| i % 3).collect::<Vec<u64>>());
        let stats = port.stats();
        assert_eq!((stats.in_frames, stats.out_frames, stats.out_bytes), (100, 100, 6400));
        assert_ne!(port.sum(), 0);
        assert_eq!((port.left(), pool.live(), port.next_arrival()), (0, 0, Some(Nanos::NEVER)));
    }

    #[test]
    fn a_shuffled_list_still_has_every_pair_once() {
        let mut one = pairs(1000);
        shuffle(&mut one, 1);
        assert_ne!(one, pairs(1000));
        let mut again = pairs(1000);
        shuffle(&mut again, 1);
        assert_eq!(one, again);
        one.sort_unstable();
        assert_eq!(one, pairs(1000));
    }

    #[test]
    fn a_paced_source_keeps_its_times() {
        let mut pool = Pool::new(1 << 20).unwrap();
        let plan = BlastPlan { gap: Some(Nanos(672)), ..plan(2, 1000) };
        let mut port = Blast::new("a", plan).unwrap();
        let mut batch = Batch::new();
        port.receive(&mut pool, Nanos(672 * 2), &mut batch).unwrap();
        let times: Vec<_> = batch.as_slice().iter().map(|&handle| pool.meta(handle).arrival).collect();
        assert_eq!(times, [0, 672, 1344]);
        assert_eq!((port.next_arrival(), port.stamp()), (Some(Nanos(2016)), Stamp::Source));
        batch.clear();
        port.receive(&mut pool, Nanos::NEVER, &mut batch).unwrap();
        assert_eq!(batch.len(), BATCH);
    }

    #[test]
    fn a_sink_sends_nothing_and_bad_lengths_are_refused() {
        let mut sink = Blast::new("b", BlastPlan::sink()).unwrap();
        assert_eq!(sink.next_arrival(), Some(Nanos::NEVER));
        let short = BlastPlan { frame_bytes: 41, ..BlastPlan::sink() };
        assert_eq!(Blast::new("b", short).err(), Some(BlastError::FrameBytes(41)));
    }
}
