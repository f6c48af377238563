//! Many writes to one descriptor with one system call, through io_uring.
//!
//! Requests must not wait (`RWF_NOWAIT`), so the kernel completes them during submission, in order, and keeps
//! no reference to our memory. [`Ring::write`] returns only when that is the case, whatever fails.

use io_uring::{IoUring, opcode, types};
use longwire_packet::BATCH;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// Result of a request that the kernel has not taken.
pub(super) const UNANSWERED: i32 = i32::MIN;
/// Consecutive system calls that may take no request.
const PATIENCE: u32 = 16;
/// `IORING_ENTER_GETEVENTS` (linux/io_uring.h).
const WAIT: u32 = 1;

/// A frame to write, in one or two pieces of memory.
#[derive(Debug, Clone, Copy)]
pub(super) struct FrameVectors {
    pub(super) vectors: [libc::iovec; 2],
    pub(super) count: usize,
}

impl FrameVectors {
    pub(super) const NONE: Self =
        Self { vectors: [libc::iovec { iov_base: std::ptr::null_mut(), iov_len: 0 }; 2], count: 1 };
}

/// A ring with room for a batch of requests.
pub(super) struct Ring {
    ring: IoUring,
}

impl Ring {
    /// Creates a ring for writes to `fd`, a TAP queue.
    ///
    /// # Errors
    /// The kernel has no io_uring, refuses it, or can't write to a TAP queue without waiting (before Linux
    /// 5.11).
    pub(super) fn open(fd: BorrowedFd<'_>) -> io::Result<Self> {
        let mut ring = Self::new()?;
        // Since Linux 5.9. Before 5.6 an unknown request would get the same answer as below.
        if !ring.ring.params().is_feature_poll_32bits() {
            return Err(io::Error::from_raw_os_error(libc::EOPNOTSUPP));
        }
        let mut result = [UNANSWERED];
        // SAFETY: no bytes are read.
        unsafe { ring.write(fd, &[FrameVectors::NONE], &mut result) }?;
        match result[0] {
            // The write was executed: an empty frame is too short.
            answer if answer == -libc::EINVAL => Ok(ring),
            answer if answer < 0 => Err(io::Error::from_raw_os_error(-answer)),
            _ => Err(io::Error::from_raw_os_error(libc::EOPNOTSUPP)),
        }
    }

    /// Creates a ring for writes that need not wait.
    pub(super) fn new() -> io::Result<Self> {
        Ok(Self { ring: IoUring::new(BATCH as u32)? })
    }

    /// Writes the frames, at most a batch, in order. `results` gets the return value of `write` for each,
    /// with errors as negative numbers.
    ///
    /// # Errors
    /// The ring is unusable from now on. Frames at the end that are [`UNANSWERED`] were not written.
    ///
    /// # Safety
    /// The pieces are readable memory until this returns.
    pub(super) unsafe fn write(
        &mut self,
        fd: BorrowedFd<'_>,
        frames: &[FrameVectors],
        results: &mut [i32],
    ) -> io::Result<()> {
        results.fill(UNANSWERED);
        let queue = types::Fd(fd.as_raw_fd());
        let mut submission = self.ring.submission();
        for (at, FrameVectors { vectors, count }) in frames.iter().enumerate() {
            let entry = match count {
                1 => opcode::Write::new(queue, vectors[0].iov_base.cast(), vectors[0].iov_len as u32)
                    .rw_flags(libc::RWF_NOWAIT)
                    .build(),
                _ => opcode::Writev::new(queue, vectors.as_ptr(), 2).rw_flags(libc::RWF_NOWAIT).build(),
            };
            // SAFETY: what it points to lives until this returns, and no request outlives that.
            if unsafe { submission.push(&entry.user_data(at as u64)) }.is_err() {
                break;
            }
        }
        drop(submission);
        self.submit(frames.len(), results)
    }

    /// Submits the queue, and waits for completions.
    fn submit(&mut self, frames: usize, results: &mut [i32]) -> io::Result<()> {
        let (mut answered, mut patience) = (0, PATIENCE);
        let broken = loop {
            // Waiting costs time, and usually everything is complete.
            let waiting = self.taken(frames) - answered;
            let result = self.ring.submit_and_wait(waiting);
            let before = answered;
            answered += self.collect(results);
            if answered == frames {
                return Ok(());
            }
            patience = if answered > before { PATIENCE } else { patience - 1 };
            match result {
                Err(error) if !is_passing(&error) => break error,
                _ if patience == 0 => break io::Error::from_raw_os_error(libc::EAGAIN),
                _ => {}
            }
        };
        // The kernel may still read what it has taken. Normally all of it is complete by now.
        let taken = self.taken(frames);
        while answered < taken {
            let nothing: Option<&libc::sigset_t> = None;
            // SAFETY: no argument is passed, and nothing is submitted.
            let _ = unsafe { self.ring.submitter().enter(0, (taken - answered) as u32, WAIT, nothing) };
            answered += self.collect(results);
        }
        Err(broken)
    }

    /// Number of frames that the kernel has taken from the queue.
    fn taken(&mut self, frames: usize) -> usize {
        frames.saturating_sub(self.ring.submission().len())
    }

    /// Takes the available completions, and returns their number.
    fn collect(&mut self, results: &mut [i32]) -> usize {
        let mut count = 0;
        for answer in self.ring.completion() {
            if let Some(result) = results.get_mut(answer.user_data() as usize) {
                *result = answer.result();
            }
            count += 1;
        }
        count
    }
}

/// Whether repeating the call may succeed at once.
fn is_passing(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EINTR | libc::EAGAIN | libc::EBUSY))
}
