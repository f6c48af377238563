//! The paper's queues between input and output workers, and its pool of packet buffers (sections 3.2.3 and
//! 3.4).
//!
//! Both are circles that nobody waits for: who writes never asks whether what was there has been read. A
//! reader finds out that it was too late, and counts the packet as lost. Longwire's own path has neither.

use std::hint::spin_loop;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering, fence};

/// A packet of 64 bytes, as words: what moves between registers and memory.
pub(super) type Frame = [u64; 8];

/// On a line of its own, so that it is not shared by accident.
#[repr(align(64))]
#[derive(Debug, Default)]
struct Lined<T>(T);

#[derive(Debug, Default)]
#[repr(align(128))]
struct Buffer {
    words: [AtomicU64; 8],
    /// The number of the packet in it plus 1; [`BUSY`] while one is written.
    holds: AtomicU64,
}

const BUSY: u64 = u64::MAX;

/// Packet buffers that one input worker uses in a circle.
#[derive(Debug)]
pub(super) struct Buffers(Box<[Buffer]>);

impl Buffers {
    /// So many, a power of two.
    pub fn new(count: usize) -> Self {
        Self((0..count.next_power_of_two()).map(|_| Buffer::default()).collect())
    }

    fn at(&self, number: u64) -> &Buffer {
        &self.0[number as usize & (self.0.len() - 1)]
    }

    /// Writes the packet with this number where the one was that is as many packets older as there are
    /// buffers.
    #[inline]
    pub fn write(&self, number: u64, frame: &Frame) {
        let buffer = self.at(number);
        buffer.holds.store(BUSY, Ordering::Relaxed);
        // A reader that sees a new word sees that it is being written, too.
        fence(Ordering::Release);
        for (word, value) in buffer.words.iter().zip(frame) {
            word.store(*value, Ordering::Relaxed);
        }
        buffer.holds.store(number + 1, Ordering::Release);
    }

    /// The packet whose number ends with these 28 bits; none if its buffer has been used again.
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

/// The bits of an entry that are a packet's number; above them the input worker's.
const NUMBER: u32 = (1 << 28) - 1;

/// What stands in a queue: which buffer of which worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Entry(u32);

impl Entry {
    pub const fn new(worker: usize, number: u64) -> Self {
        Self((worker as u32) << 28 | number as u32 & NUMBER)
    }

    /// The worker, and the end of the packet's number.
    pub const fn place(self) -> (usize, u32) {
        (self.0 as usize >> 28, self.0 & NUMBER)
    }
}

/// How input workers are kept from each other where they share a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Guard {
    /// They don't share it: whoever puts in keeps its head in a register.
    Private,
    /// A lock that is looked at until it seems free, and only then tried.
    Lock,
    /// A lock that is tried until it is got: the paper's "tight test-until-acquired loop".
    TestAndSet,
}

/// A circular array of entries. The head is in memory, the tail is the output worker's alone.
#[derive(Debug)]
pub(super) struct Queue {
    /// Each with the lower half of its position, so that who reads knows what was overwritten.
    entries: Box<[AtomicU64]>,
    head: Lined<AtomicU64>,
    lock: Lined<AtomicBool>,
}

impl Queue {
    /// Of so many entries, a power of two.
    pub fn new(entries: usize) -> Self {
        Self {
            entries: (0..entries.next_power_of_two()).map(|_| AtomicU64::new(u64::MAX)).collect(),
            head: Lined::default(),
            lock: Lined::default(),
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

    /// Puts an entry in. `own` is the head as this worker keeps it, for queues that are its own.
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
                // Whoever holds it may have been preempted.
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

    /// Up to where it is filled.
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

    /// Where to go on when entries have been overwritten.
    #[cold]
    pub fn resume(&self, tail: u64) -> u64 {
        tail.max(self.head().saturating_sub(self.entries.len() as u64 / 2))
    }
}

/// Which of up to 64 queues have packets: one word to look at, whatever their number.
#[derive(Debug, Default)]
pub(super) struct Ready(Lined<AtomicU64>);

impl Ready {
    /// Packets have come into a queue.
    #[inline]
    pub fn set(&self, queue: usize) {
        self.0.0.fetch_or(1 << queue, Ordering::Release);
    }

    /// The first queue that may have some: the one of highest priority.
    #[inline]
    pub fn first(&self) -> Option<usize> {
        let bits = self.0.0.load(Ordering::Acquire);
        (bits != 0).then(|| bits.trailing_zeros() as usize)
    }

    /// A queue was found empty. It has to be looked at once more after this.
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
