//! Rings that carry packets between workers: they are copied out of one pool and into the other.
//!
//! A record is a cache line of metadata and the packet's bytes in whole lines. There is one reader, and one
//! writer or several that take turns.

use longwire_packet::{Handle, MAX_FRAME, Meta, Pool};
use rtrb::chunks::WriteChunk;
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
    /// Copies packets into the ring; returns how many had room, counted from the first. The packets stay in
    /// the pool.
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
    let mut behind = packets.iter().skip(1);
    let sent = packets.iter().take_while(|&&handle| {
        if let Some(&next) = behind.next() {
            pool.prefetch(next);
        }
        let lines = record(pool.meta(handle).len as usize);
        ring.write_chunk(lines).is_ok_and(|chunk| {
            write(chunk, pool, handle);
            true
        })
    });
    sent.count()
}

/// Lines of a packet of `bytes` bytes.
const fn record(bytes: usize) -> usize {
    1 + bytes.div_ceil(LINE)
}

/// Copies a packet into its lines. They may wrap around the end of the ring; each part is copied at once.
fn write(mut lines: WriteChunk<'_, Line>, pool: &Pool, handle: Handle) {
    let (front, back) = lines.as_mut_slices();
    let (head, front) = front.split_at_mut(1);
    head[0] = bytemuck::cast(*pool.meta(handle));
    let data = pool.data(handle);
    let (front, back): (&mut [u8], &mut [u8]) =
        (bytemuck::cast_slice_mut(front), bytemuck::cast_slice_mut(back));
    let (one, other) = data.split_at(front.len().min(data.len()));
    front[..one.len()].copy_from_slice(one);
    back[..other.len()].copy_from_slice(other);
    lines.commit_all();
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
        let (front, back): (&[Line], &[Line]) = chunk.as_slices();
        let (front, back): (&[u8], &[u8]) = (bytemuck::cast_slice(&front[1..]), bytemuck::cast_slice(back));
        let data = pool.data_mut(handle);
        let (one, other) = data.split_at_mut(front.len().min(meta.len as usize));
        one.copy_from_slice(&front[..one.len()]);
        other.copy_from_slice(&back[..other.len()]);
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
