//! Rings that carry packets from one worker to another, by copying them out of one pool and into the other.
//!
//! A record is a cache line of metadata and the packet's bytes in whole lines. One writer, one reader, no locks.

use longwire_packet::{Handle, MAX_FRAME, Meta, Pool};
use rtrb::{Consumer, Producer, RingBuffer};

const LINE: usize = 64;
type Line = [u64; LINE / 8];

/// The end that packets are put into.
pub struct Sender(Producer<Line>);

/// The end that packets are taken from.
pub struct Receiver(Consumer<Line>);

/// What came of taking a packet.
pub enum Taken {
    /// It is in the pool.
    Packet(Handle),
    /// The ring is empty.
    Empty,
    /// There was one, but the pool is full: it is gone, and so many segments with it.
    PoolFull(u16),
}

/// A ring of about `bytes` bytes, at least enough for two of the longest packets.
pub fn ring(bytes: usize) -> (Sender, Receiver) {
    let lines = bytes.max(2 * (MAX_FRAME + LINE)) / LINE;
    let (producer, consumer) = RingBuffer::new(lines);
    (Sender(producer), Receiver(consumer))
}

impl Sender {
    /// Copies a packet into the ring; false if there is no room. The packet itself stays in the pool.
    pub fn send(&mut self, pool: &Pool, handle: Handle) -> bool {
        let data = pool.data(handle);
        let Ok(chunk) = self.0.write_chunk_uninit(1 + data.len().div_ceil(LINE)) else { return false };
        let meta: Line = bytemuck::cast(*pool.meta(handle));
        let lines = data.chunks(LINE).map(|bytes| {
            let mut line = [0u8; LINE];
            line[..bytes.len()].copy_from_slice(bytes);
            bytemuck::cast(line)
        });
        chunk.fill_from_iter(std::iter::once(meta).chain(lines));
        true
    }
}

impl Receiver {
    /// Whether nothing is in it.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Takes the next packet into `pool`.
    pub fn take(&mut self, pool: &mut Pool) -> Taken {
        let Ok(first) = self.0.peek() else { return Taken::Empty };
        let meta: Meta = bytemuck::cast(*first);
        let lines = 1 + (meta.len as usize).div_ceil(LINE);
        // A record is published whole, so its lines are all there.
        let Ok(chunk) = self.0.read_chunk(lines) else { return Taken::Empty };
        let Some(handle) = pool.alloc(meta.len as usize) else {
            chunk.commit_all();
            return Taken::PoolFull(meta.segments);
        };
        pool.adopt(handle, &meta);
        let (front, back) = chunk.as_slices();
        let source = front.iter().chain(back).skip(1);
        for (target, line) in pool.data_mut(handle).chunks_mut(LINE).zip(source) {
            let bytes: &[u8] = bytemuck::cast_slice(line);
            target.copy_from_slice(&bytes[..target.len()]);
        }
        chunk.commit_all();
        Taken::Packet(handle)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_come_out_as_they_went_in() {
        let (mut here, mut there) = (Pool::new(4 << 20).unwrap(), Pool::new(4 << 20).unwrap());
        let (mut sender, mut receiver) = ring(0);
        for round in 0..3000usize {
            let bytes: Vec<u8> = (0..round * 37 % 9000 + 1).map(|n| (n + round) as u8).collect();
            let handle = here.insert(&bytes).unwrap();
            here.meta_mut(handle).seq = round as u64;
            assert!(sender.send(&here, handle));
            here.free(handle);
            let Taken::Packet(copy) = receiver.take(&mut there) else { panic!("round {round}") };
            assert_eq!(there.data(copy), bytes);
            assert_eq!(there.meta(copy).seq, round as u64);
            there.free(copy);
        }
        assert!(matches!(receiver.take(&mut there), Taken::Empty));
        assert_eq!((here.live(), there.live()), (0, 0));
    }

    #[test]
    fn a_full_ring_and_a_full_pool_say_so() {
        let mut here = Pool::new(1 << 20).unwrap();
        let (mut sender, mut receiver) = ring(0);
        let handle = here.alloc(MAX_FRAME).unwrap();
        assert!(sender.send(&here, handle) && sender.send(&here, handle));
        assert!(!sender.send(&here, handle));
        let mut full = Pool::new(1 << 20).unwrap();
        let held: Vec<_> = std::iter::from_fn(|| full.alloc(MAX_FRAME)).collect();
        assert!(matches!(receiver.take(&mut full), Taken::PoolFull(1)));
        full.free(held[0]);
        assert!(matches!(receiver.take(&mut full), Taken::Packet(_)));
    }
}
