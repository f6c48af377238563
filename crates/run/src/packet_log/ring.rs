//! The bounded ring from a worker to the log's writer: rows, each with some bytes of its frame.

use super::row::{ROW_BYTES, Row};
use rtrb::{Consumer, Producer, RingBuffer};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// What to do with a row when the ring is full.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WhenFull {
    /// Count it as lost: real time does not wait.
    Lose,
    /// Wait for the writer: virtual time stands still.
    Wait,
}

/// A worker's end.
pub struct RowSender {
    ring: Producer<u8>,
    when_full: WhenFull,
    lost: Arc<AtomicU64>,
}

/// The writer's end.
pub struct RowReceiver {
    ring: Consumer<u8>,
    lost: Arc<AtomicU64>,
    /// Lost rows already reported.
    known: u64,
    data: Vec<u8>,
}

/// Creates a ring of this many bytes.
pub fn ring(bytes: usize, when_full: WhenFull) -> (RowSender, RowReceiver) {
    let (producer, consumer) = RingBuffer::new(bytes);
    let lost = Arc::<AtomicU64>::default();
    let sender = RowSender { ring: producer, when_full, lost: Arc::clone(&lost) };
    (sender, RowReceiver { ring: consumer, lost, known: 0, data: Vec::new() })
}

impl RowSender {
    /// Sends a row with these bytes of its frame.
    pub fn send(&mut self, row: &Row, data: &[u8]) {
        let length = ROW_BYTES + data.len();
        while self.ring.slots() < length {
            if self.when_full == WhenFull::Lose || self.ring.is_abandoned() {
                self.lost.fetch_add(1, Ordering::Relaxed);
                return;
            }
            std::thread::yield_now();
        }
        let Ok(mut chunk) = self.ring.write_chunk(length) else { return };
        let (first, second) = chunk.as_mut_slices();
        put((&mut *first, &mut *second), 0, &row.encode(data.len() as u32));
        put((first, second), ROW_BYTES, data);
        chunk.commit_all();
    }
}

/// Writes bytes at `at` into two slices as if they were one.
fn put((first, second): (&mut [u8], &mut [u8]), at: usize, bytes: &[u8]) {
    let split = first.len().saturating_sub(at).min(bytes.len());
    let (head, tail) = bytes.split_at(split);
    if !head.is_empty() {
        first[at..at + split].copy_from_slice(head);
    }
    if !tail.is_empty() {
        let at = (at + split).saturating_sub(first.len());
        second[at..at + tail.len()].copy_from_slice(tail);
    }
}

impl RowReceiver {
    /// The next row and the bytes of its frame, if there is one.
    pub fn next(&mut self) -> Option<(Row, &[u8])> {
        // Rows are published whole.
        let head = self.ring.read_chunk(ROW_BYTES).ok()?;
        let mut bytes = [0; ROW_BYTES];
        copy(head.as_slices(), &mut bytes);
        let Some((row, length)) = Row::decode(&bytes) else {
            head.commit_all();
            return None;
        };
        let whole = self.ring.read_chunk(ROW_BYTES + length as usize).ok()?;
        self.data.resize(ROW_BYTES + length as usize, 0);
        copy(whole.as_slices(), &mut self.data);
        whole.commit_all();
        Some((row, &self.data[ROW_BYTES..]))
    }

    /// Number of rows lost since the last call.
    pub fn newly_lost(&mut self) -> u64 {
        let lost = self.lost.load(Ordering::Relaxed);
        lost - std::mem::replace(&mut self.known, lost)
    }
}

fn copy((first, second): (&[u8], &[u8]), to: &mut [u8]) {
    let (head, tail) = to.split_at_mut(first.len());
    head.copy_from_slice(first);
    tail.copy_from_slice(second);
}

#[cfg(test)]
mod tests {
    use super::super::row::{Event, NO_REASON, NO_TIME};
    use super::*;

    fn row(id: u64) -> Row {
        Row {
            time: id,
            arrival: id,
            leave: NO_TIME,
            id,
            queue_bytes: 0,
            length: 99,
            link: 0,
            segments: 1,
            event: Event::Arrive,
            reason: NO_REASON,
        }
    }

    #[test]
    fn rows_come_out_in_order_and_losses_are_counted() {
        let (mut sender, mut receiver) = ring(200, WhenFull::Lose);
        let (mut sent, mut taken, mut lost) = (0, 0, 0);
        for turn in 0..100_u64 {
            for _ in 0..=turn % 4 {
                sender.send(&row(sent), &vec![sent as u8; sent as usize % 20]);
                sent += 1;
            }
            while let Some((row, data)) = receiver.next() {
                assert_eq!(row.id, taken + lost);
                assert_eq!(data, vec![row.id as u8; row.id as usize % 20]);
                taken += 1;
            }
            lost += receiver.newly_lost();
            assert_eq!(taken + lost, sent);
        }
        assert!(lost > 0 && taken > lost, "{taken} {lost}");
    }

    #[test]
    fn nobody_waits_for_a_writer_that_is_gone() {
        let (mut sender, receiver) = ring(100, WhenFull::Wait);
        sender.send(&row(1), &[]);
        drop(receiver);
        sender.send(&row(2), &[]);
        assert_eq!(sender.lost.load(Ordering::Relaxed), 1);
    }
}
