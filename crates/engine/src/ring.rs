//! Rings that carry packets between workers: they are copied out of one pool and into the other.
//!
//! A record is a cache line of metadata and the packet's bytes in whole lines. There is one reader, and one
//! writer or several that take turns.

use longwire_packet::{Handle, MAX_FRAME, Meta, Pool};
use rtrb::chunks::ChunkError;
use rtrb::{Consumer, Producer, RingBuffer};
use std::sync::{Arc, Mutex, PoisonError};

const LINE: usize = 64;
type Line = [u64; LINE / 8];

/// The sending end.
pub enum Sender {
    /// One worker's own.
    Private(Producer<Line>),
    /// Shared by all senders to one worker; a lock is taken once per batch.
    Shared(Arc<Mutex<Producer<Line>>>),
}

/// The receiving end.
pub struct Receiver(Consumer<Line>);

/// Result of taking a packet.
pub enum RingRead {
    /// It is in the pool.
    Packet(Handle),
    /// The ring is empty.
    Empty,
    /// The pool was full: the packet is lost, with this number of segments.
    PoolFull(u16),
}

/// A ring of about `bytes` bytes, with room for at least two of the longest packets, and one writer.
pub fn private(bytes: usize) -> (Sender, Receiver) {
    let (producer, consumer) = of_bytes(bytes);
    (Sender::Private(producer), Receiver(consumer))
}

/// A ring with several writers, and a sending end for each.
pub fn shared(bytes: usize, writers: usize) -> (Vec<Sender>, Receiver) {
    let (producer, consumer) = of_bytes(bytes);
    let producer = Arc::new(Mutex::new(producer));
    let ends = (0..writers).map(|_| Sender::Shared(Arc::clone(&producer)));
    (ends.collect(), Receiver(consumer))
}

fn of_bytes(bytes: usize) -> (Producer<Line>, Consumer<Line>) {
    RingBuffer::new(bytes.max(2 * (MAX_FRAME + LINE)) / LINE)
}

impl Sender {
    /// Copies packets into the ring and publishes them together; returns how many had room, counted from the
    /// first. The packets stay in the pool.
    pub fn send(&mut self, pool: &Pool, packets: &[Handle]) -> usize {
        match self {
            Self::Private(ring) => put(ring, pool, packets),
            Self::Shared(ring) => {
                put(&mut ring.lock().unwrap_or_else(PoisonError::into_inner), pool, packets)
            }
        }
    }
}

fn put(ring: &mut Producer<Line>, pool: &Pool, packets: &[Handle]) -> usize {
    let lengths = || packets.iter().map(|&handle| record(pool.meta(handle).len as usize));
    let all = lengths().sum();
    let room = match ring.write_chunk_uninit(all) {
        Ok(_) => all,
        Err(ChunkError::TooFewSlots(room)) => room,
    };
    let (mut count, mut lines) = (0, 0);
    for length in lengths() {
        if lines + length > room {
            break;
        }
        (count, lines) = (count + 1, lines + length);
    }
    let Ok(chunk) = ring.write_chunk_uninit(lines) else { return 0 };
    chunk.fill_from_iter(packets[..count].iter().flat_map(|&handle| lines_of(pool, handle)));
    count
}

/// Lines of a packet of `bytes` bytes.
const fn record(bytes: usize) -> usize {
    1 + bytes.div_ceil(LINE)
}

fn lines_of(pool: &Pool, handle: Handle) -> impl Iterator<Item = Line> {
    let bytes = pool.data(handle).chunks(LINE).map(|bytes| {
        let mut line = [0u8; LINE];
        line[..bytes.len()].copy_from_slice(bytes);
        bytemuck::cast(line)
    });
    std::iter::once(bytemuck::cast(*pool.meta(handle))).chain(bytes)
}

impl Receiver {
    /// Takes the next packet into `pool`.
    pub fn take(&mut self, pool: &mut Pool) -> RingRead {
        let Ok(first) = self.0.peek() else { return RingRead::Empty };
        let meta: Meta = bytemuck::cast(*first);
        let lines = record(meta.len as usize);
        // A record is published whole, so its lines are all there.
        let Ok(chunk) = self.0.read_chunk(lines) else { return RingRead::Empty };
        let Some(handle) = pool.alloc(meta.len as usize) else {
            chunk.commit_all();
            return RingRead::PoolFull(meta.segments);
        };
        pool.adopt(handle, &meta);
        let (front, back) = chunk.as_slices();
        let source = front.iter().chain(back).skip(1);
        for (target, line) in pool.data_mut(handle).chunks_mut(LINE).zip(source) {
            let bytes: &[u8] = bytemuck::cast_slice(line);
            target.copy_from_slice(&bytes[..target.len()]);
        }
        chunk.commit_all();
        RingRead::Packet(handle)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn both(bytes: usize) -> [(Sender, Receiver); 2] {
        let (mut ends, receiver) = shared(bytes, 2);
        [private(bytes), (ends.remove(1), receiver)]
    }

    #[test]
    fn packets_come_out_as_they_went_in() {
        let (mut here, mut there) = (Pool::new(4 << 20).unwrap(), Pool::new(4 << 20).unwrap());
        for (mut sender, mut receiver) in both(0) {
            for round in 0..1000usize {
                // One, two or three at a time.
                let packets: Vec<Vec<u8>> = (0..=round % 3)
                    .map(|at| (0..(round + at) * 37 % 9000 + 1).map(|n| (n + round + at) as u8).collect())
                    .collect();
                let insert = |bytes: &Vec<u8>| {
                    let handle = here.insert(bytes).unwrap();
                    here.meta_mut(handle).seq = round as u64;
                    handle
                };
                let handles: Vec<_> = packets.iter().map(insert).collect();
                assert_eq!(sender.send(&here, &handles), handles.len());
                handles.into_iter().for_each(|handle| here.free(handle));
                for bytes in &packets {
                    let RingRead::Packet(copy) = receiver.take(&mut there) else { panic!("round {round}") };
                    assert_eq!(there.data(copy), bytes);
                    assert_eq!(there.meta(copy).seq, round as u64);
                    there.free(copy);
                }
            }
            assert!(matches!(receiver.take(&mut there), RingRead::Empty));
            assert_eq!((here.live(), there.live()), (0, 0));
        }
    }

    #[test]
    fn a_full_ring_and_a_full_pool_say_so() {
        let mut here = Pool::new(1 << 20).unwrap();
        let handle = here.alloc(MAX_FRAME).unwrap();
        let short = here.insert(&[1; 64]).unwrap();
        for (mut sender, mut receiver) in both(0) {
            // After the first packet without room, later ones are refused too, or they would overtake it.
            assert_eq!(sender.send(&here, &[handle, handle, handle, short]), 2);
            assert_eq!(sender.send(&here, &[handle, short]), 0);
            let mut full = Pool::new(1 << 20).unwrap();
            let held: Vec<_> = std::iter::from_fn(|| full.alloc(MAX_FRAME)).collect();
            assert!(matches!(receiver.take(&mut full), RingRead::PoolFull(1)));
            full.free(held[0]);
            assert!(matches!(receiver.take(&mut full), RingRead::Packet(_)));
            assert_eq!(sender.send(&here, &[short, handle, short]), 3);
        }
    }
}
