//! Waking a sleeping worker: after another worker has put a packet into its ring, or for a command.
#![allow(unsafe_code)]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Wake, Waker};

/// Wakes one worker. Ringing costs one load while the worker is awake.
#[derive(Debug)]
pub(crate) struct Bell {
    fd: i32,
    asleep: AtomicBool,
}

impl Bell {
    /// Creates a bell. Without a file descriptor (none left), every sleep lasts its planned time.
    pub(crate) fn new() -> Self {
        // SAFETY: takes two plain numbers and returns a new descriptor or -1.
        let fd = unsafe { libc::eventfd(0, libc::EFD_NONBLOCK | libc::EFD_CLOEXEC) };
        Self { fd, asleep: AtomicBool::new(false) }
    }

    /// The descriptor to wait for; -1, which `poll` ignores, if there is none.
    pub(crate) fn fd(&self) -> i32 {
        self.fd
    }

    /// Wakes the worker if it sleeps.
    #[inline]
    pub(crate) fn ring(&self) {
        // The fence orders the write to the ring before the read of the flag; `doze` has its counterpart.
        std::sync::atomic::fence(Ordering::SeqCst);
        if self.asleep.load(Ordering::Relaxed) {
            self.wake();
        }
    }

    #[cold]
    fn wake(&self) {
        let one = 1u64;
        if self.asleep.swap(false, Ordering::SeqCst) {
            // SAFETY: writes the eight bytes of `one`. It can only fail when the count is already huge, and
            // then the worker is awake.
            unsafe { libc::write(self.fd, (&raw const one).cast(), 8) };
        }
    }

    /// Announces that the worker is about to sleep. It must check its rings once more afterwards.
    pub(crate) fn doze(&self) {
        self.asleep.store(true, Ordering::SeqCst);
        std::sync::atomic::fence(Ordering::SeqCst);
    }

    /// Announces that the worker is awake again.
    pub(crate) fn rise(&self) {
        self.asleep.store(false, Ordering::SeqCst);
        let mut count = 0u64;
        // SAFETY: reads eight bytes into `count`; the descriptor does not block.
        unsafe { libc::read(self.fd, (&raw mut count).cast(), 8) };
    }
}

/// Lets a node's own threads wake its worker.
struct BellWaker {
    bells: Arc<[Bell]>,
    worker: usize,
}

/// Wakes the worker with this number.
pub(crate) fn waker(bells: &Arc<[Bell]>, worker: u32) -> Waker {
    Waker::from(Arc::new(BellWaker { bells: Arc::clone(bells), worker: worker as usize }))
}

impl Wake for BellWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.bells[self.worker].ring();
    }
}

impl Drop for Bell {
    fn drop(&mut self) {
        if self.fd >= 0 {
            // SAFETY: the descriptor belongs to this bell and is not used any more.
            unsafe { libc::close(self.fd) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::wait_readable;
    use longwire_units::Nanos;

    #[test]
    fn a_node_s_thread_wakes_its_own_worker_and_only_while_that_sleeps() {
        let bells: Arc<[Bell]> = [Bell::new(), Bell::new()].into();
        let waker = waker(&bells, 1);
        let rings = |worker: usize| {
            let mut fds = [libc::pollfd { fd: bells[worker].fd(), events: libc::POLLIN, revents: 0 }];
            wait_readable(&mut fds, Nanos::ZERO)
        };
        waker.wake_by_ref();
        assert!(!rings(1), "it is awake");
        bells.iter().for_each(Bell::doze);
        waker.wake_by_ref();
        assert!(rings(1) && !rings(0));
        bells.iter().for_each(Bell::rise);
        assert!(!rings(1));
        waker.wake();
        assert!(!rings(1));
    }
}
