//! A ring of lines in shared memory with one writer and one reader, which do not trust each other.
//!
//! Indices count lines and only grow. Each side keeps its own index and publishes it, but never reads it
//! back. The other side's index is copied once, and must lie between its last value and its limit.

use crate::shared::Memory;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use thiserror::Error;

/// Bytes of a line.
pub const LINE: usize = 64;
/// Words of a line.
pub(crate) const LINE_WORDS: usize = LINE / 8;

/// A line as words.
pub(crate) type Line = [u64; LINE_WORDS];

/// An invalid index or length written by the other side.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("the other side wrote an invalid {what}: {value}")]
pub struct CorruptRing {
    /// What it wrote.
    pub what: &'static str,
    /// The value.
    pub value: u64,
}

/// Position of a ring, in words from the beginning of the memory.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RingLayout {
    /// The writer's index.
    pub head: usize,
    /// The reader's index.
    pub tail: usize,
    /// The first line.
    pub first: usize,
    /// Number of lines: a power of two.
    pub lines: u64,
}

/// The side that writes.
#[derive(Debug)]
pub(crate) struct Writer {
    memory: Arc<Memory>,
    place: RingLayout,
    head: u64,
    published: u64,
    /// The reader's index at the last check.
    tail: u64,
}

/// The side that reads.
#[derive(Debug)]
pub(crate) struct Reader {
    memory: Arc<Memory>,
    place: RingLayout,
    tail: u64,
    released: u64,
    /// The writer's index at the last check.
    head: u64,
}

impl Writer {
    pub fn new(memory: Arc<Memory>, place: RingLayout) -> Self {
        Self { memory, place, head: 0, published: 0, tail: 0 }
    }

    /// Whether `lines` lines can be written.
    #[inline]
    pub fn has_room(&mut self, lines: u64) -> Result<bool, CorruptRing> {
        if self.head - self.tail + lines <= self.place.lines {
            return Ok(true);
        }
        let tail = self.memory.words()[self.place.tail].load(Ordering::Acquire);
        // Unpublished lines can't have been read.
        if tail.wrapping_sub(self.tail) > self.published - self.tail {
            return Err(CorruptRing { what: "read index", value: tail });
        }
        self.tail = tail;
        Ok(self.head - self.tail + lines <= self.place.lines)
    }

    /// Writes the line `ahead` lines after those written. There must be room.
    #[inline]
    pub fn line(&mut self, ahead: u64, line: &Line) {
        let words = at(&self.memory, &self.place, self.head + ahead);
        words.iter().zip(line).for_each(|(word, value)| word.store(*value, Ordering::Relaxed));
    }

    /// Writes bytes from that line on, in whole lines padded with zeros.
    #[inline]
    pub fn bytes(&mut self, ahead: u64, bytes: &[u8]) {
        for (ahead, chunk) in (ahead..).zip(bytes.chunks(LINE)) {
            let mut padded = [0u8; LINE];
            padded[..chunk.len()].copy_from_slice(chunk);
            let words = at(&self.memory, &self.place, self.head + ahead);
            for (word, eight) in words.iter().zip(padded.as_chunks::<8>().0) {
                word.store(u64::from_le_bytes(*eight), Ordering::Relaxed);
            }
        }
    }

    /// Marks lines as written.
    #[inline]
    pub fn advance(&mut self, lines: u64) {
        self.head += lines;
    }

    /// Publishes written lines. Returns whether there were any.
    #[inline]
    pub fn publish(&mut self) -> bool {
        if self.head == self.published {
            return false;
        }
        self.published = self.head;
        self.memory.words()[self.place.head].store(self.head, Ordering::Release);
        true
    }

    pub fn memory(&self) -> &Memory {
        &self.memory
    }
}

impl Reader {
    pub fn new(memory: Arc<Memory>, place: RingLayout) -> Self {
        Self { memory, place, tail: 0, released: 0, head: 0 }
    }

    /// Number of lines available for reading.
    #[inline]
    pub fn available(&mut self) -> Result<u64, CorruptRing> {
        if self.head == self.tail {
            let head = self.memory.words()[self.place.head].load(Ordering::Acquire);
            // Overwritten lines must have been released.
            if head.wrapping_sub(self.tail) > self.place.lines - (self.tail - self.released) {
                return Err(CorruptRing { what: "write index", value: head });
            }
            self.head = head;
        }
        Ok(self.head - self.tail)
    }

    /// A copy of the line `ahead` lines after those read.
    #[inline]
    pub fn line(&self, ahead: u64) -> Line {
        let words = at(&self.memory, &self.place, self.tail + ahead);
        std::array::from_fn(|index| words[index].load(Ordering::Relaxed))
    }

    /// A copy of the bytes from that line on.
    #[inline]
    pub fn bytes(&self, ahead: u64, bytes: &mut [u8]) {
        for (ahead, chunk) in (ahead..).zip(bytes.chunks_mut(LINE)) {
            let mut line = [0u8; LINE];
            let words = at(&self.memory, &self.place, self.tail + ahead);
            for (eight, word) in line.as_chunks_mut::<8>().0.iter_mut().zip(words) {
                *eight = word.load(Ordering::Relaxed).to_le_bytes();
            }
            chunk.copy_from_slice(&line[..chunk.len()]);
        }
    }

    /// Marks lines as read.
    #[inline]
    pub fn advance(&mut self, lines: u64) {
        self.tail += lines;
    }

    /// Releases read lines for overwriting.
    #[inline]
    pub fn release(&mut self) {
        if self.tail != self.released {
            self.released = self.tail;
            self.memory.words()[self.place.tail].store(self.tail, Ordering::Release);
        }
    }
}

#[inline]
fn at<'m>(memory: &'m Memory, place: &RingLayout, index: u64) -> &'m [AtomicU64; LINE_WORDS] {
    let first = place.first + (index & (place.lines - 1)) as usize * LINE_WORDS;
    let words: Result<&[AtomicU64; LINE_WORDS], _> = memory.words()[first..first + LINE_WORDS].try_into();
    words.expect("a line has so many words")
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLACE: RingLayout = RingLayout { head: 0, tail: 8, first: 16, lines: 8 };

    fn pair() -> (Arc<Memory>, Writer, Reader) {
        let memory = Arc::new(Memory::create(16 + 8 * LINE_WORDS).unwrap());
        (Arc::clone(&memory), Writer::new(Arc::clone(&memory), PLACE), Reader::new(memory, PLACE))
    }

    #[test]
    fn bytes_come_out_as_they_went_in_across_the_end() {
        let (_, mut writer, mut reader) = pair();
        for round in 0..100usize {
            let bytes: Vec<u8> = (0..round * 11 % 400 + 1).map(|n| (n + round) as u8).collect();
            let lines = bytes.len().div_ceil(LINE) as u64;
            assert_eq!(writer.has_room(lines), Ok(true), "round {round}");
            writer.bytes(0, &bytes);
            writer.advance(lines);
            assert_eq!(reader.available(), Ok(0), "not published");
            assert!(writer.publish() && !writer.publish());
            assert_eq!(reader.available(), Ok(lines));
            let mut copy = vec![0; bytes.len()];
            reader.bytes(0, &mut copy);
            assert_eq!(copy, bytes);
            reader.advance(lines);
            reader.release();
        }
    }

    #[test]
    fn a_full_ring_says_so_until_lines_are_released() {
        let (_, mut writer, mut reader) = pair();
        assert_eq!(writer.has_room(8), Ok(true));
        writer.advance(8);
        writer.publish();
        assert_eq!(writer.has_room(1), Ok(false));
        assert_eq!(reader.available(), Ok(8));
        reader.advance(3);
        assert_eq!(writer.has_room(1), Ok(false));
        reader.release();
        assert_eq!((writer.has_room(3), writer.has_room(4)), (Ok(true), Ok(false)));
    }

    #[test]
    fn indices_that_cannot_be_are_noticed() {
        // (lines written, the reader's index as reported, validity)
        for (written, tail, can_be) in
            [(8, 0, true), (8, 8, true), (8, 9, false), (8, u64::MAX, false), (7, 8, false)]
        {
            let (memory, mut writer, _) = pair();
            writer.advance(written);
            writer.publish();
            memory.words()[PLACE.tail].store(tail, Ordering::Relaxed);
            assert_eq!(writer.has_room(8).is_ok(), can_be, "{written} written, {tail}");
        }
        for (head, can_be) in [(0, true), (8, true), (9, false), (u64::MAX, false), (1 << 63, false)] {
            let (memory, _, mut reader) = pair();
            memory.words()[PLACE.head].store(head, Ordering::Relaxed);
            assert_eq!(reader.available().is_ok(), can_be, "{head}");
        }
        // Lines that were read but not released must not be overwritten; an index never decreases.
        let (memory, _, mut reader) = pair();
        for (head, advance, can_be) in [(4, 4, true), (8, 4, true), (9, 0, false), (7, 0, false)] {
            memory.words()[PLACE.head].store(head, Ordering::Relaxed);
            assert_eq!(reader.available().is_ok(), can_be, "{head}");
            reader.advance(advance);
        }
    }
}
