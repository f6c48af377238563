//! A port whose other end is in this process: frames that the far end pushes are received, and it takes the
//! transmitted ones.
//!
//! Each direction has a ring of bytes and a ring of metadata, allocated at the start. The two ends may be in
//! different threads.

use crate::driver::InterfaceState;
use longwire_block::{Port, PortError, PortStats, Stamp};
use longwire_packet::{Batch, MAX_FRAME, Meta, Pool, Train};
use longwire_units::Nanos;
use rtrb::{Consumer, Producer, RingBuffer};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

/// A frame's metadata.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Facts {
    /// Received frames: arrival time, or [`Nanos::NEVER`] for the port's next poll. Sent frames: when it left
    /// its last link (or arrived, if it crossed none).
    pub time: Nanos,
    /// Original length of the frame in bytes; 0 if none are missing.
    pub wire_len: u32,
    /// Segments of a train; 0 or 1 for an ordinary frame.
    pub segments: u16,
    /// See [`Train::gso_size`].
    pub gso_size: u16,
    /// See [`Train::header_len`].
    pub header_len: u16,
    /// See [`Meta::open_checksum`]: where the checksum starts, if it is partial.
    pub csum_start: u16,
    /// Offset of the checksum from there.
    pub csum_offset: u16,
    /// See [`Train::gso`].
    pub gso: u8,
    /// See [`Meta::checksum`].
    pub checksum: u8,
}

impl Default for Facts {
    fn default() -> Self {
        Self {
            time: Nanos::NEVER,
            wire_len: 0,
            segments: 1,
            gso_size: 0,
            header_len: 0,
            csum_start: 0,
            csum_offset: 0,
            gso: 0,
            checksum: 0,
        }
    }
}

impl Facts {
    fn of(meta: &Meta) -> Self {
        let mut facts = Self {
            time: Nanos(meta.leave().max(meta.arrival)),
            wire_len: meta.wire_len,
            checksum: meta.checksum,
            ..Self::default()
        };
        if let Some(Train { gso, segments, gso_size, header_len }) = meta.train() {
            (facts.gso, facts.segments) = (gso, segments);
            (facts.gso_size, facts.header_len) = (gso_size, header_len);
        }
        if let Some(place) = meta.open_checksum() {
            (facts.csum_start, facts.csum_offset) = place;
        }
        facts
    }

    fn apply(&self, meta: &mut Meta, arrival: Nanos) {
        meta.arrival = arrival.0;
        meta.wire_len = self.wire_len.max(meta.len);
        let &Self { gso, segments, gso_size, header_len, .. } = self;
        if segments > 1 {
            meta.set_train(Train { gso, segments, gso_size, header_len });
        }
        meta.set_open_checksum(self.csum_start, self.csum_offset);
        meta.checksum = self.checksum;
    }
}

/// A frame taken by the far end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    /// Its bytes, from the Ethernet header on.
    pub bytes: Vec<u8>,
    /// Its metadata.
    pub facts: Facts,
}

/// The writing end of a direction.
struct Sender {
    facts: Producer<(Facts, u32)>,
    bytes: Producer<u8>,
}

/// The reading end of a direction.
struct Receiver {
    facts: Consumer<(Facts, u32)>,
    bytes: Consumer<u8>,
}

/// The engine's end.
pub struct MemoryPort {
    name: String,
    stamp: Stamp,
    incoming: Receiver,
    outgoing: Sender,
    state: Arc<AtomicU8>,
    stats: PortStats,
}

/// The test's end.
pub struct FarEnd {
    incoming: Receiver,
    outgoing: Sender,
    state: Arc<AtomicU8>,
}

impl MemoryPort {
    /// Creates a port and its far end, with room for `frames` frames of `bytes` bytes in total in each
    /// direction.
    ///
    /// With [`Stamp::Source`] no frames follow those already pushed: `next_arrival` is exact, and
    /// [`Nanos::NEVER`] when none is left. With other stamps it is unknown.
    pub fn pair(name: &str, stamp: Stamp, frames: usize, bytes: usize) -> (Self, FarEnd) {
        let (to_port, from_far) = ring(frames, bytes);
        let (to_far, from_port) = ring(frames, bytes);
        let state = Arc::new(AtomicU8::new(InterfaceState::Up as u8));
        let port = Self {
            name: name.into(),
            stamp,
            incoming: from_far,
            outgoing: to_far,
            state: Arc::clone(&state),
            stats: PortStats::default(),
        };
        (port, FarEnd { incoming: from_port, outgoing: to_port, state })
    }

    fn usable(&self) -> Result<(), PortError> {
        match self.state.load(Ordering::Relaxed) {
            0 => Ok(()),
            1 => Err(PortError::down(&*self.name, &*self.name)),
            _ => Err(PortError::Vanished { port: self.name.clone() }),
        }
    }
}

impl FarEnd {
    /// Pushes a frame that arrives at the port's next poll. False if the ring is full.
    pub fn push(&mut self, bytes: &[u8]) -> bool {
        self.push_with(bytes, Facts::default())
    }

    /// Pushes a frame that arrives at `time` on the engine's clock; times must not decrease. False if the
    /// ring is full.
    pub fn push_at(&mut self, time: Nanos, bytes: &[u8]) -> bool {
        self.push_with(bytes, Facts { time, ..Facts::default() })
    }

    /// Pushes a frame with its metadata. False if the ring is full.
    pub fn push_with(&mut self, bytes: &[u8], facts: Facts) -> bool {
        self.outgoing.push(bytes, facts)
    }

    /// Whether a frame of this many bytes can be pushed.
    pub fn has_room(&self, bytes: usize) -> bool {
        self.outgoing.facts.slots() > 0 && self.outgoing.bytes.slots() >= bytes
    }

    /// Takes the oldest frame that the port has sent.
    pub fn take(&mut self) -> Option<Frame> {
        let mut bytes = Vec::new();
        let facts = self.take_into(&mut bytes)?;
        Some(Frame { bytes, facts })
    }

    /// Takes the oldest frame that the port has sent into `bytes`, which is cleared first. Reusing it avoids
    /// allocation.
    pub fn take_into(&mut self, bytes: &mut Vec<u8>) -> Option<Facts> {
        let (facts, len) = self.incoming.facts.pop().ok()?;
        bytes.clear();
        self.incoming.read(len as usize, |part| bytes.extend_from_slice(part));
        Some(facts)
    }

    /// Brings the port up, takes it down, or away.
    pub fn set_state(&mut self, state: InterfaceState) {
        self.state.store(state as u8, Ordering::Relaxed);
    }
}

impl Sender {
    fn push(&mut self, bytes: &[u8], facts: Facts) -> bool {
        if self.facts.slots() == 0 {
            return false;
        }
        let Ok(mut chunk) = self.bytes.write_chunk(bytes.len()) else { return false };
        let (first, second) = chunk.as_mut_slices();
        let (head, tail) = bytes.split_at(first.len());
        first.copy_from_slice(head);
        second.copy_from_slice(tail);
        // Bytes before metadata: who sees the metadata finds the bytes.
        chunk.commit_all();
        self.facts.push((facts, bytes.len() as u32)).is_ok()
    }
}

impl Receiver {
    /// Passes the next `len` bytes to `show`, in one or two parts, and removes them.
    fn read(&mut self, len: usize, mut show: impl FnMut(&[u8])) {
        if let Ok(chunk) = self.bytes.read_chunk(len) {
            let (first, second) = chunk.as_slices();
            show(first);
            show(second);
            chunk.commit_all();
        }
    }
}

impl Port for MemoryPort {
    fn name(&self) -> &str {
        &self.name
    }

    fn describe(&self) -> String {
        "memory".into()
    }

    fn stamp(&self) -> Stamp {
        self.stamp
    }

    fn receive(&mut self, pool: &mut Pool, now: Nanos, batch: &mut Batch) -> Result<(), PortError> {
        self.usable()?;
        while !batch.is_full() {
            let Ok(&(facts, len)) = self.incoming.facts.peek() else { break };
            let arrival = if facts.time == Nanos::NEVER { now } else { facts.time };
            if arrival > now {
                break;
            }
            let len = len as usize;
            let frames = u64::from(facts.segments.max(1));
            match pool.alloc(len) {
                Some(handle) => {
                    let (meta, mut rest) = pool.parts_mut(handle);
                    facts.apply(meta, arrival);
                    self.stats.in_frames += frames;
                    self.stats.in_bytes += meta.segment_bytes();
                    self.incoming.read(len, |part| {
                        let (here, after) = std::mem::take(&mut rest).split_at_mut(part.len());
                        here.copy_from_slice(part);
                        rest = after;
                    });
                    batch.push(handle);
                }
                None => {
                    self.incoming.read(len, |_| ());
                    if len > MAX_FRAME {
                        self.stats.in_bad += frames;
                    } else {
                        self.stats.in_pool_full += frames;
                    }
                }
            }
            let _ = self.incoming.facts.pop();
        }
        Ok(())
    }

    fn transmit(&mut self, pool: &mut Pool, batch: &Batch) -> Result<(), PortError> {
        let usable = self.usable();
        for &handle in batch.as_slice() {
            let meta = pool.meta(handle);
            let frames = u64::from(meta.segments);
            if usable.is_err() {
                self.stats.out_down += frames;
            } else if self.outgoing.push(pool.data(handle), Facts::of(meta)) {
                self.stats.out_frames += frames;
                self.stats.out_bytes += meta.segment_bytes();
            } else {
                self.stats.out_full += frames;
            }
            pool.free(handle);
        }
        usable
    }

    fn next_arrival(&mut self) -> Option<Nanos> {
        match self.stamp {
            // A frame without a time arrives at the next poll.
            Stamp::Source => Some(match self.incoming.facts.peek() {
                Ok((facts, _)) if facts.time == Nanos::NEVER => Nanos::ZERO,
                Ok((facts, _)) => facts.time,
                Err(_) => Nanos::NEVER,
            }),
            Stamp::Kernel | Stamp::Sender | Stamp::Poll => None,
        }
    }

    fn stats(&self) -> PortStats {
        self.stats
    }
}

fn ring(frames: usize, bytes: usize) -> (Sender, Receiver) {
    let (facts_in, facts_out) = RingBuffer::new(frames);
    let (bytes_in, bytes_out) = RingBuffer::new(bytes);
    (Sender { facts: facts_in, bytes: bytes_in }, Receiver { facts: facts_out, bytes: bytes_out })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drain(port: &mut MemoryPort, pool: &mut Pool, now: u64) -> Vec<(u64, Vec<u8>)> {
        let mut batch = Batch::new();
        port.receive(pool, Nanos(now), &mut batch).unwrap();
        let seen = batch.as_slice().iter();
        let seen = seen.map(|&handle| (pool.meta(handle).arrival, pool.data(handle).to_vec())).collect();
        batch.as_slice().iter().for_each(|&handle| pool.free(handle));
        seen
    }

    #[test]
    fn frames_arrive_at_their_times_and_not_before() {
        let mut pool = Pool::new(1 << 20).unwrap();
        let (mut port, mut far) = MemoryPort::pair("a", Stamp::Source, 16, 4096);
        assert_eq!(port.next_arrival(), Some(Nanos::NEVER));
        for (time, byte) in [(10, 1), (10, 2), (25, 3)] {
            assert!(far.push_at(Nanos(time), &[byte; 60]));
        }
        assert_eq!(port.next_arrival(), Some(Nanos(10)));
        assert_eq!(drain(&mut port, &mut pool, 9), []);
        assert_eq!(drain(&mut port, &mut pool, 12), [(10, vec![1; 60]), (10, vec![2; 60])]);
        assert_eq!(port.next_arrival(), Some(Nanos(25)));
        assert_eq!(drain(&mut port, &mut pool, 25), [(25, vec![3; 60])]);
        assert_eq!((port.stats().in_frames, port.stats().in_bytes), (3, 180));
    }

    #[test]
    fn bytes_survive_the_wrap_of_the_ring() {
        let mut pool = Pool::new(1 << 20).unwrap();
        let (mut port, mut far) = MemoryPort::pair("a", Stamp::Poll, 8, 1000);
        let mut taken = Vec::new();
        for round in 0..500u32 {
            let frame: Vec<u8> = (0..64 + round % 337).map(|i| (i ^ round) as u8).collect();
            assert!(far.push(&frame));
            let mut batch = Batch::new();
            port.receive(&mut pool, Nanos(u64::from(round)), &mut batch).unwrap();
            port.transmit(&mut pool, &batch).unwrap();
            assert_eq!(far.take_into(&mut taken).unwrap().time, Nanos(u64::from(round)));
            assert_eq!(taken, frame);
        }
        assert_eq!(pool.live(), 0);
    }

    #[test]
    fn a_full_ring_a_full_pool_and_a_dead_port_are_counted() {
        let mut pool = Pool::new(1 << 20).unwrap();
        let (mut port, mut far) = MemoryPort::pair("a", Stamp::Poll, 2, 1 << 17);
        assert!(far.push(&[0; 100]) && far.push(&[0; 100]) && !far.push(&[0; 100]));
        let mut batch = Batch::new();
        port.receive(&mut pool, Nanos(1), &mut batch).unwrap();
        batch.push(pool.insert(&[0; 60]).unwrap());
        port.transmit(&mut pool, &batch).unwrap();
        assert_eq!((port.stats().out_frames, port.stats().out_full), (2, 1));

        let held: Vec<_> = std::iter::from_fn(|| pool.alloc(MAX_FRAME)).collect();
        far.push(&[0; 100]);
        assert!(drain(&mut port, &mut pool, 2).is_empty());
        assert_eq!(port.stats().in_pool_full, 1);
        held.into_iter().for_each(|handle| pool.free(handle));

        far.set_state(InterfaceState::Gone);
        batch.clear();
        batch.push(pool.insert(&[0; 60]).unwrap());
        assert!(matches!(port.transmit(&mut pool, &batch), Err(PortError::Vanished { .. })));
        assert_eq!((port.stats().out_down, pool.live()), (1, 0));
        far.set_state(InterfaceState::Down);
        batch.clear();
        assert!(matches!(port.receive(&mut pool, Nanos(3), &mut batch), Err(PortError::Down { .. })));
        far.set_state(InterfaceState::Up);
        assert!(port.receive(&mut pool, Nanos(3), &mut batch).is_ok());
    }

    #[test]
    fn a_train_keeps_its_facts_and_counts_its_segments() {
        let mut pool = Pool::new(1 << 20).unwrap();
        let (mut port, mut far) = MemoryPort::pair("a", Stamp::Source, 2, 1 << 17);
        let facts =
            Facts { time: Nanos(5), segments: 3, gso_size: 1000, header_len: 54, gso: 1, ..Facts::default() };
        far.push_with(&[7; 54 + 2500], facts);
        let mut batch = Batch::new();
        port.receive(&mut pool, Nanos(5), &mut batch).unwrap();
        assert_eq!((port.stats().in_frames, port.stats().in_bytes), (3, 2500 + 3 * 54));
        port.transmit(&mut pool, &batch).unwrap();
        assert_eq!(far.take().unwrap().facts, Facts { wire_len: 2554, ..facts });
    }
}
