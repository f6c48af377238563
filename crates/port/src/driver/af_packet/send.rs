//! Sends a batch of frames with one system call, gathered directly from the pool.

use crate::vnet;
use longwire_block::PortStats;
use longwire_packet::{BATCH, Handle, Pool};
use longwire_wire::virtio;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// Attempts without progress per call: about ten microseconds together.
const PATIENCE: u32 = 16;
/// Attempts for one frame.
const TRIES: u32 = 4;

/// Why frames of a batch were not sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SendFailure {
    /// The interface is down.
    Down,
    /// The interface is gone.
    Gone,
    /// The queue was full, or the interface has no carrier.
    Full,
}

/// Message headers and vectors for a batch, allocated once.
pub(crate) struct Sender {
    arrays: Box<Arrays>,
    with_header: bool,
    /// Frames in the arrays.
    used: usize,
}

struct Arrays {
    headers: [[u8; vnet::LEN]; BATCH],
    vectors: [[libc::iovec; 2]; BATCH],
    messages: [libc::mmsghdr; BATCH],
    /// For each frame: its segments and their bytes.
    worth: [(u64, u64); BATCH],
}

// SAFETY: the pointers in the arrays point into the same box, or to frames only while `send` runs.
unsafe impl Send for Sender {}

impl Sender {
    /// Creates a sender, with or without a virtio header before each frame.
    pub(crate) fn new(with_header: bool) -> Self {
        let nothing = libc::iovec { iov_base: std::ptr::null_mut(), iov_len: 0 };
        // SAFETY: all-zero bytes are a valid mmsghdr: null pointers and zero lengths.
        let message: libc::mmsghdr = unsafe { std::mem::zeroed() };
        let mut arrays = Box::new(Arrays {
            headers: [[0; vnet::LEN]; BATCH],
            vectors: [[nothing; 2]; BATCH],
            messages: [message; BATCH],
            worth: [(0, 0); BATCH],
        });
        let Arrays { headers, vectors, messages, .. } = &mut *arrays;
        for ((header, vector), message) in headers.iter_mut().zip(vectors).zip(messages) {
            vector[0] = libc::iovec { iov_base: header.as_mut_ptr().cast(), iov_len: vnet::LEN };
            let first = if with_header { vector.as_mut_ptr() } else { &raw mut vector[1] };
            message.msg_hdr.msg_iov = first;
            message.msg_hdr.msg_iovlen = if with_header { 2 } else { 1 };
        }
        Self { arrays, with_header, used: 0 }
    }

    /// Sends up to a batch of frames in order. Each is counted in `stats` as sent, too long for `mtu`, or not
    /// taken. The caller keeps the frames.
    ///
    /// # Errors
    /// Why some were not sent; these are counted as full or as down.
    pub(crate) fn send(
        &mut self,
        socket: BorrowedFd<'_>,
        pool: &Pool,
        frames: &[Handle],
        mtu: u32,
        stats: &mut PortStats,
    ) -> Result<(), SendFailure> {
        self.used = 0;
        for &handle in frames {
            let (meta, data) = (pool.meta(handle), pool.data(handle));
            if data.len() < vnet::ETHERNET || !vnet::fits(mtu, meta, data) {
                stats.out_oversize += u64::from(meta.segments);
                continue;
            }
            let at = self.used;
            if self.with_header {
                self.arrays.headers[at] = virtio::write(meta);
            }
            let base = data.as_ptr().cast_mut().cast();
            self.arrays.vectors[at][1] = libc::iovec { iov_base: base, iov_len: data.len() };
            self.arrays.worth[at] = (u64::from(meta.segments), meta.segment_bytes());
            self.used += 1;
        }
        self.push(socket, stats)
    }

    /// Passes the gathered frames to the kernel. `send` holds the pool meanwhile, so that frames don't move.
    fn push(&mut self, socket: BorrowedFd<'_>, stats: &mut PortStats) -> Result<(), SendFailure> {
        let full_before = stats.out_full;
        let (mut at, mut tries, mut patience, mut asked_again) = (0, 0, PATIENCE, false);
        while at < self.used {
            let error = match self.call(socket, at) {
                Ok(sent) => {
                    let (frames, bytes) = self.worth(at..at + sent);
                    stats.out_frames += frames;
                    stats.out_bytes += bytes;
                    (at, tries) = (at + sent, 0);
                    continue;
                }
                Err(error) => error,
            };
            match error.raw_os_error() {
                Some(libc::EINTR) => {}
                // After an interface was down and is up again, the first call still returns this.
                Some(libc::ENETDOWN) if !asked_again => asked_again = true,
                Some(libc::ENOBUFS | libc::EAGAIN | libc::ENOMEM) if patience == 0 => {
                    stats.out_full += self.worth(at..self.used).0;
                    break;
                }
                Some(libc::ENOBUFS | libc::EAGAIN | libc::ENOMEM) => {
                    (tries, patience) = (tries + 1, patience - 1);
                    if tries == TRIES {
                        stats.out_full += self.worth(at..at + 1).0;
                        (at, tries) = (at + 1, 0);
                    }
                }
                Some(libc::EMSGSIZE | libc::EINVAL) => {
                    stats.out_oversize += self.worth(at..at + 1).0;
                    (at, tries) = (at + 1, 0);
                }
                Some(code) => {
                    stats.out_down += self.worth(at..self.used).0;
                    let gone = matches!(code, libc::ENXIO | libc::ENODEV);
                    return Err(if gone { SendFailure::Gone } else { SendFailure::Down });
                }
                None => unreachable!("a failed system call has a number"),
            }
        }
        if stats.out_full == full_before { Ok(()) } else { Err(SendFailure::Full) }
    }

    /// Tries once to send the frames from `at` on; returns how many were sent, at least one.
    fn call(&mut self, socket: BorrowedFd<'_>, at: usize) -> io::Result<usize> {
        let messages = &mut self.arrays.messages[at..self.used];
        // SAFETY: each message points to its vectors in the same box, and these to headers in the box and
        // frames of the pool that `send` borrows; the kernel reads them before the call returns.
        let sent = unsafe {
            libc::sendmmsg(
                socket.as_raw_fd(),
                messages.as_mut_ptr(),
                messages.len() as u32,
                libc::MSG_DONTWAIT,
            )
        };
        if sent > 0 { Ok(sent as usize) } else { Err(io::Error::last_os_error()) }
    }

    /// Frames and bytes of a range of gathered packets, counting segments.
    fn worth(&self, range: std::ops::Range<usize>) -> (u64, u64) {
        self.arrays.worth[range].iter().fold((0, 0), |(frames, bytes), (f, b)| (frames + f, bytes + b))
    }
}
