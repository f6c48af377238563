//! Sends a batch of frames: gathered from the pool with their headers, then written together or one by one.

use super::ring::{FrameVectors, Ring, UNANSWERED};
use crate::vnet;
use longwire_block::PortStats;
use longwire_packet::{BATCH, Batch, Pool};
use longwire_wire::virtio;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// Attempts to write a frame that the kernel does not take at once.
const TRIES: u32 = 4;
/// Batches below this size are written one by one, which is cheaper (decision 41).
const FEW: usize = 4;
/// A header and frame up to this total length are copied together: one piece is cheaper for the kernel than
/// two.
const SLOT: usize = 256;

/// How a batch of frames is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Writes {
    /// With one system call, through io_uring, where the kernel allows it; else as below.
    #[default]
    Together,
    /// With one system call per frame.
    Single,
}

/// The kernel's answer to a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Answer {
    Sent,
    /// Not now.
    Full,
    Oversize,
    Down,
    Gone,
}

impl Answer {
    /// From the return value of `write`, with errors as negative numbers.
    fn of(result: i32, length: usize) -> Self {
        match result {
            written if usize::try_from(written) == Ok(length) => Self::Sent,
            // A queue takes frames whole, so the frame was truncated.
            0.. => Self::Oversize,
            UNANSWERED => Self::Full,
            _ => match -result {
                libc::EAGAIN | libc::EINTR | libc::ENOBUFS | libc::ENOMEM => Self::Full,
                libc::EINVAL | libc::EMSGSIZE => Self::Oversize,
                libc::EBADFD => Self::Gone,
                _ => Self::Down,
            },
        }
    }
}

/// Buffers for a batch, allocated once, and how it is written.
pub(super) struct Sender {
    arrays: Box<Arrays>,
    ring: Option<Ring>,
    /// Why there is no ring, if one was requested.
    refused: Option<io::Error>,
    /// Frames in the arrays.
    used: usize,
}

struct Arrays {
    /// Header and frame, or only the header.
    slots: [[u8; SLOT]; BATCH],
    pieces: [FrameVectors; BATCH],
    results: [i32; BATCH],
    /// For each frame: bytes to write, its segments and their bytes.
    worth: [FrameSize; BATCH],
}

#[derive(Debug, Clone, Copy)]
struct FrameSize {
    length: usize,
    segments: u64,
    bytes: u64,
}

// SAFETY: the pointers in the arrays point into the same box, or to frames only while `send` runs.
unsafe impl Send for Sender {}

impl Sender {
    pub(super) fn new(queue: BorrowedFd<'_>, writes: Writes) -> Self {
        let (ring, refused) = match writes {
            Writes::Together => match Ring::open(queue) {
                Ok(ring) => (Some(ring), None),
                Err(error) => (None, Some(error)),
            },
            Writes::Single => (None, None),
        };
        let nothing = FrameSize { length: 0, segments: 0, bytes: 0 };
        let arrays = Box::new(Arrays {
            slots: [[0; SLOT]; BATCH],
            pieces: [FrameVectors::NONE; BATCH],
            results: [UNANSWERED; BATCH],
            worth: [nothing; BATCH],
        });
        Self { arrays, ring, refused, used: 0 }
    }

    pub(super) fn describe(&self) -> String {
        match (&self.ring, &self.refused) {
            (Some(_), _) => "writes by io_uring".into(),
            (None, Some(error)) => format!("single writes (no io_uring: {error})"),
            (None, None) => "single writes".into(),
        }
    }

    /// Sends the frames in order. Each is counted as sent, too long for `mtu`, or not taken. The caller keeps
    /// them. Returns the state of the interface if it is not up.
    pub(super) fn send(
        &mut self,
        queue: BorrowedFd<'_>,
        pool: &Pool,
        batch: &Batch,
        mtu: u32,
        stats: &mut PortStats,
    ) -> Option<Answer> {
        self.gather(pool, batch, mtu, stats);
        let used = self.used;
        let Arrays { pieces, results, .. } = &mut *self.arrays;
        results[..used].fill(UNANSWERED);
        if let Some(ring) = self.ring.as_mut().filter(|_| used >= FEW) {
            // SAFETY: the pieces are in the arrays, or are frames of the borrowed pool.
            if let Err(error) = unsafe { ring.write(queue, &pieces[..used], &mut results[..used]) } {
                (self.ring, self.refused) = (None, Some(error));
            }
        }
        self.settle(queue, stats)
    }

    /// Counts the outcome of each gathered frame, and retries frames that were not taken, as far as that
    /// keeps the order.
    fn settle(&self, queue: BorrowedFd<'_>, stats: &mut PortStats) -> Option<Answer> {
        let used = self.used;
        let mut not_up = None;
        // A frame refused before one that was sent can't be sent after it.
        let is_sent = |at: &usize| self.answer(*at) == Answer::Sent;
        let retry_from = (0..used).rev().find(is_sent).map_or(0, |at| at + 1);
        for at in 0..used {
            let mut answer = self.answer(at);
            if answer == Answer::Full && at >= retry_from {
                answer = self.write(queue, at);
            }
            let FrameSize { segments, bytes, .. } = self.arrays.worth[at];
            match answer {
                Answer::Sent => {
                    stats.out_frames += segments;
                    stats.out_bytes += bytes;
                }
                Answer::Full => stats.out_full += segments,
                Answer::Oversize => stats.out_oversize += segments,
                Answer::Down | Answer::Gone => {
                    stats.out_down += segments;
                    not_up = Some(answer);
                }
            }
        }
        not_up
    }

    /// Records where each frame and its header are.
    fn gather(&mut self, pool: &Pool, batch: &Batch, mtu: u32, stats: &mut PortStats) {
        let Arrays { slots, pieces, worth, .. } = &mut *self.arrays;
        let mut used = 0;
        for &handle in batch.as_slice() {
            let (meta, frame) = (pool.meta(handle), pool.data(handle));
            let segments = u64::from(meta.segments);
            if frame.len() < vnet::ETHERNET || !vnet::fits(mtu, meta, frame) {
                stats.out_oversize += segments;
                continue;
            }
            let length = vnet::LEN + frame.len();
            let slot = &mut slots[used];
            slot[..vnet::LEN].copy_from_slice(&virtio::write(meta));
            let FrameVectors { vectors, count } = &mut pieces[used];
            vectors[0].iov_base = slot.as_mut_ptr().cast();
            if let Some(room) = slot.get_mut(vnet::LEN..length) {
                room.copy_from_slice(frame);
                (vectors[0].iov_len, *count) = (length, 1);
            } else {
                let base = frame.as_ptr().cast_mut().cast();
                vectors[1] = libc::iovec { iov_base: base, iov_len: frame.len() };
                (vectors[0].iov_len, *count) = (vnet::LEN, 2);
            }
            worth[used] = FrameSize { length, segments, bytes: meta.segment_bytes() };
            used += 1;
        }
        self.used = used;
    }

    fn answer(&self, at: usize) -> Answer {
        Answer::of(self.arrays.results[at], self.arrays.worth[at].length)
    }

    /// Writes one of the gathered frames. `send` holds the pool meanwhile, so that frames don't move.
    fn write(&self, queue: BorrowedFd<'_>, at: usize) -> Answer {
        let FrameVectors { vectors, count } = &self.arrays.pieces[at];
        for _ in 0..TRIES {
            // SAFETY: both vectors point to memory that outlives the call and is only read.
            let written = unsafe {
                match count {
                    1 => libc::write(queue.as_raw_fd(), vectors[0].iov_base, vectors[0].iov_len),
                    _ => libc::writev(queue.as_raw_fd(), vectors.as_ptr(), 2),
                }
            };
            let result = if written < 0 {
                -io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO)
            } else {
                written as i32
            };
            match Answer::of(result, self.arrays.worth[at].length) {
                Answer::Full => {}
                answer => return answer,
            }
        }
        Answer::Full
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsFd;
    use std::os::unix::net::UnixDatagram;

    #[test]
    fn an_answer_is_what_the_kernel_has_said() {
        let of = |result| Answer::of(result, 70);
        assert_eq!(of(70), Answer::Sent);
        assert_eq!((of(0), of(69), of(71)), (Answer::Oversize, Answer::Oversize, Answer::Oversize));
        for code in [libc::EAGAIN, libc::EINTR, libc::ENOBUFS, libc::ENOMEM] {
            assert_eq!(of(-code), Answer::Full);
        }
        assert_eq!((of(-libc::EINVAL), of(-libc::EMSGSIZE)), (Answer::Oversize, Answer::Oversize));
        assert_eq!((of(-libc::EIO), of(-libc::EBADFD)), (Answer::Down, Answer::Gone));
        assert_eq!(of(UNANSWERED), Answer::Full);
    }

    /// A batch of frames, in one piece and in two, each with its number at the end.
    fn batch(pool: &mut Pool) -> Batch {
        let mut batch = Batch::new();
        for at in 0..BATCH {
            let mut frame = vec![0; if at % 3 == 0 { 1000 } else { 60 }];
            frame.push(at as u8);
            batch.push(pool.insert(&frame).unwrap());
        }
        batch
    }

    /// The numbers of the waiting frames, whose lengths are checked.
    fn drain(far: &UnixDatagram) -> Vec<u8> {
        let mut numbers = Vec::new();
        let mut buffer = [0; 2048];
        while let Ok(length) = far.recv(&mut buffer) {
            let number = buffer[length - 1];
            assert_eq!(length, vnet::LEN + if number % 3 == 0 { 1001 } else { 61 });
            numbers.push(number);
        }
        numbers
    }

    /// Senders by a ring, if there is io_uring, and by single writes.
    fn senders(near: &UnixDatagram) -> Vec<Sender> {
        let single = Sender::new(near.as_fd(), Writes::Single);
        match Ring::new() {
            Ok(ring) => {
                vec![Sender { ring: Some(ring), ..Sender::new(near.as_fd(), Writes::Single) }, single]
            }
            Err(error) => {
                println!("skipped, of two ways to write: io_uring: {error}");
                vec![single]
            }
        }
    }

    #[test]
    fn what_a_full_queue_does_not_take_is_counted_and_the_rest_in_order() {
        // Like a TAP queue, the socket takes datagrams whole or not at all, and only a few fit.
        let (near, far) = UnixDatagram::pair().unwrap();
        near.set_nonblocking(true).unwrap();
        far.set_nonblocking(true).unwrap();
        let bytes: libc::c_int = 16 << 10;
        let (value, length) = ((&raw const bytes).cast(), size_of_val(&bytes) as u32);
        // SAFETY: SO_SNDBUF reads an int.
        let set =
            unsafe { libc::setsockopt(near.as_raw_fd(), libc::SOL_SOCKET, libc::SO_SNDBUF, value, length) };
        assert_eq!(set, 0);
        let mut pool = Pool::new(4 << 20).unwrap();
        for mut sender in senders(&near) {
            let mut stats = PortStats::default();
            for round in 1..=50 {
                let batch = batch(&mut pool);
                assert_eq!(sender.send(near.as_fd(), &pool, &batch, 1500, &mut stats), None);
                batch.as_slice().iter().for_each(|&handle| pool.free(handle));
                assert_eq!(stats.out_frames + stats.out_full, round * BATCH as u64);
                let sent = stats.out_frames / round;
                assert!((1..BATCH as u64).contains(&sent), "{sent} of a batch wait");
                assert_eq!(drain(&far), (0..sent as u8).collect::<Vec<_>>());
            }
        }
    }

    #[test]
    fn only_what_is_behind_the_last_frame_sent_is_tried_again() {
        let (near, far) = UnixDatagram::pair().unwrap();
        far.set_nonblocking(true).unwrap();
        let mut pool = Pool::new(4 << 20).unwrap();
        let mut sender = Sender::new(near.as_fd(), Writes::Single);
        let (batch, mut stats) = (batch(&mut pool), PortStats::default());
        sender.gather(&pool, &batch, 1500, &mut stats);
        let Arrays { results, worth, .. } = &mut *sender.arrays;
        for (result, worth) in results.iter_mut().zip(worth) {
            *result = worth.length as i32;
        }
        results[7] = -libc::EAGAIN;
        results[BATCH - 4..].copy_from_slice(&[-libc::EAGAIN, -libc::EINVAL, UNANSWERED, UNANSWERED]);
        assert_eq!(sender.settle(near.as_fd(), &mut stats), None);
        assert_eq!(drain(&far), [60, 62, 63]);
        assert_eq!((stats.out_frames, stats.out_full, stats.out_oversize), (BATCH as u64 - 2, 1, 1));
    }
}
