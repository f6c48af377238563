//! The paper's queues between input and output workers, and its pool of packet buffers (sections 3.2.3 and
//! 3.4).
//!
//! Both are circular, and nobody waits: a writer overwrites unread entries. A reader that was too late
//! detects this, and counts the packet as lost. Longwire's own path has neither.

use std::hint::spin_loop;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering, fence};

/// A packet of 64 bytes, as words: the unit of transfer between registers and memory.
pub(super) type Frame = [u64; 8];

/// Alone on its cache line, against false sharing.
#[repr(align(64))]
#[derive(Debug, Default)]
struct CacheLine<T>(T);

#[derive(Debug, Default)]
#[repr(align(128))]
struct Buffer {
    words: [AtomicU64; 8],
    /// The number of the packet in it plus 1; [`BUSY`] during a write.
    holds: AtomicU64,
}

const BUSY: u64 = u64::MAX;

/// Circular packet buffers of one input worker.
#[derive(Debug)]
pub(super) struct Buffers(Box<[Buffer]>);

impl Buffers {
    /// This many, a power of two.
    pub fn new(count: usize) -> Self {
        Self((0..count.next_power_of_two()).map(|_| Buffer::default()).collect())
    }

    fn at(&self, number: u64) -> &Buffer {
        &self.0[number as usize & (self.0.len() - 1)]
    }

    /// Writes the packet with this number over the oldest one.
    #[inline]
    pub fn write(&self, number: u64, frame: &Frame) {
        let buffer = self.at(number);
        buffer.holds.store(BUSY, Ordering::Relaxed);
        // A reader that sees a new word also sees that a write is in progress.
        fence(Ordering::Release);
        for (word, value) in buffer.words.iter().zip(frame) {
            word.store(*value, Ordering::Relaxed);
        }
        buffer.holds.store(number + 1, Ordering::Release);
    }

    /// The packet whose number ends with these 28 bits; none if its buffer has been overwritten.
    #[inline]
    pub fn read(&self, number: u32) -> Option<Frame> {
        let buffer = self.at(number.into());
        let holds = buffer.holds.load(Ordering::Acquire);
        if holds == BUSY || (holds.wrapping_sub(1) as u32) & NUMBER != number {
            return None;
        }
        let frame = std::array::from_fn(|at| buffer.words[at].load(Ordering::Relaxed));
        fence(Ordering::Acquire);
        (buffer.holds.load(Ordering::Relaxed) == holds).then_some(frame)
    }
}

/// The bits of an entry with the packet's number; above them the input worker's.
const NUMBER: u32 = (1 << 28) - 1;

/// A queue entry: the worker and its buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Entry(u32);

impl Entry {
    pub const fn new(worker: usize, number: u64) -> Self {
        Self((worker as u32) << 28 | number as u32 & NUMBER)
    }

    /// The worker, and the lower bits of the packet's number.
    pub const fn place(self) -> (usize, u32) {
        (self.0 as usize >> 28, self.0 & NUMBER)
    }
}

/// Mutual exclusion of input workers that share a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Guard {
    /// None: each worker has its own queue, and keeps its head in a register.
    Private,
    /// A test-and-test-and-set lock.
    Lock,
    /// A test-and-set lock: the paper's "tight test-until-acquired loop".
    TestAndSet,
}

/// A circular array of entries. The head is in memory, the tail is private to the output worker.
#[derive(Debug)]
pub(super) struct Queue {
    /// Each with the lower half of its position, so that the reader detects overwritten ones.
    entries: Box<[AtomicU64]>,
    head: CacheLine<AtomicU64>,
    lock: CacheLine<AtomicBool>,
}

impl Queue {
    /// With this many entries, a power of two.
    pub fn new(entries: usize) -> Self {
        Self {
            entries: (0..entries.next_power_of_two()).map(|_| AtomicU64::new(u64::MAX)).collect(),
            head: CacheLine::default(),
            lock: CacheLine::default(),
        }
    }

    fn slot(&self, position: u64) -> &AtomicU64 {
        &self.entries[position as usize & (self.entries.len() - 1)]
    }

    #[inline]
    fn put_at(&self, position: u64, entry: Entry) {
        self.slot(position).store(position << 32 | u64::from(entry.0), Ordering::Relaxed);
        self.head.0.store(position + 1, Ordering::Release);
    }

    /// Appends an entry. `own` is this worker's copy of the head, for private queues.
    #[inline]
    pub fn put(&self, guard: Guard, own: &mut u64, entry: Entry) {
        match guard {
            Guard::Private => {
                self.put_at(*own, entry);
                *own += 1;
            }
            Guard::Lock | Guard::TestAndSet => {
                self.lock(guard);
                self.put_at(self.head.0.load(Ordering::Relaxed), entry);
                self.lock.0.store(false, Ordering::Release);
            }
        }
    }

    #[inline]
    fn lock(&self, guard: Guard) {
        let mut tries = 0u32;
        while self.lock.0.swap(true, Ordering::Acquire) {
            loop {
                tries += 1;
                // The lock's holder may have been preempted.
                if tries.is_multiple_of(4096) {
                    std::thread::yield_now();
                }
                if guard == Guard::TestAndSet || !self.lock.0.load(Ordering::Relaxed) {
                    break;
                }
                spin_loop();
            }
        }
    }

    /// Position after the last entry.
    #[inline]
    pub fn head(&self) -> u64 {
        self.head.0.load(Ordering::Acquire)
    }

    /// The entry at this position; none if it has been overwritten.
    #[inline]
    pub fn entry(&self, position: u64) -> Option<Entry> {
        let word = self.slot(position).load(Ordering::Relaxed);
        ((word >> 32) as u32 == position as u32).then_some(Entry(word as u32))
    }

    /// Position at which to resume after entries have been overwritten.
    #[cold]
    pub fn resume(&self, tail: u64) -> u64 {
        tail.max(self.head().saturating_sub(self.entries.len() as u64 / 2))
    }
}

/// Which of up to 64 queues have packets: one word, whatever their number.
#[derive(Debug, Default)]
pub(super) struct Ready(CacheLine<AtomicU64>);

impl Ready {
    /// Marks a queue as non-empty.
    #[inline]
    pub fn set(&self, queue: usize) {
        self.0.0.fetch_or(1 << queue, Ordering::Release);
    }

    /// The first queue marked: the one of highest priority.
    #[inline]
    pub fn first(&self) -> Option<usize> {
        let bits = self.0.0.load(Ordering::Acquire);
        (bits != 0).then(|| bits.trailing_zeros() as usize)
    }

    /// Marks a queue as empty. It must be checked once more after this.
    #[inline]
    pub fn clear(&self, queue: usize) {
        self.0.0.fetch_and(!(1 << queue), Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_are_used_again_after_a_circle() {
        let buffers = Buffers::new(4);
        (0..6).for_each(|number| buffers.write(number, &[number; 8]));
        let seen: Vec<_> = (0..7).map(|number| buffers.read(number).map(|frame| frame[0])).collect();
        assert_eq!(seen, [None, None, Some(2), Some(3), Some(4), Some(5), None]);
        let far = (1 << 28) + 3;
        buffers.write(far, &[9; 8]);
        assert_eq!(buffers.read(Entry::new(2, far).place().1), Some([9; 8]));
        assert_eq!(Entry::new(2, far).place(), (2, 3));
    }

    #[test]
    fn what_was_overwritten_is_known() {
        for guard in [Guard::Private, Guard::Lock, Guard::TestAndSet] {
            let (queue, mut own) = (Queue::new(4), 0);
            (0..7).for_each(|number| queue.put(guard, &mut own, Entry::new(0, number)));
            assert_eq!((queue.head(), queue.resume(0), queue.resume(6)), (7, 5, 6));
            let seen: Vec<_> = (0..8).map(|position| queue.entry(position)).collect();
            let there = |number| Some(Entry::new(0, number));
            assert_eq!(seen, [None, None, None, there(3), there(4), there(5), there(6), None]);
        }
    }

    #[test]
    fn workers_share_a_queue() {
        const EACH: u64 = 20_000;
        for guard in [Guard::Lock, Guard::TestAndSet] {
            let queue = Queue::new(1 << 16);
            std::thread::scope(|scope| {
                for worker in 0..2 {
                    let queue = &queue;
                    scope.spawn(move || {
                        (0..EACH).for_each(|number| queue.put(guard, &mut 0, Entry::new(worker, number)));
                    });
                }
            });
            let mut next = [0; 2];
            for position in 0..queue.head() {
                let (worker, number) = queue.entry(position).unwrap().place();
                assert_eq!(u64::from(number), next[worker], "in order");
                next[worker] += 1;
            }
            assert_eq!(next, [EACH; 2], "and all of them");
        }
    }

    #[test]
    fn bits_lead_to_the_first_queue() {
        let ready = Ready::default();
        assert_eq!(ready.first(), None);
        [9, 63, 5].into_iter().for_each(|queue| ready.set(queue));
        let mut order = Vec::new();
        while let Some(queue) = ready.first() {
            order.push(queue);
            ready.clear(queue);
        }
        assert_eq!(order, [5, 9, 63]);
    }
}
