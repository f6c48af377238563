//! Waking a worker that sleeps: by another worker that has put a packet into its ring, or by a command.
#![allow(unsafe_code)]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Wake, Waker};

/// A worker's bell. It costs who rings it one load while the worker is awake.
#[derive(Debug)]
pub(crate) struct Bell {
    fd: i32,
    asleep: AtomicBool,
}

impl Bell {
    /// A bell; without the file descriptor (there are none left), sleeps simply last as long as they were
    /// meant to.
    pub(crate) fn new() -> Self {
        // SAFETY: takes two plain numbers and answers with a new descriptor or -1.
        let fd = unsafe { libc::eventfd(0, libc::EFD_NONBLOCK | libc::EFD_CLOEXEC) };
        Self { fd, asleep: AtomicBool::new(false) }
    }

    /// What to wait for; negative, and thereby ignored by poll, if there is none.
    pub(crate) fn fd(&self) -> i32 {
        self.fd
    }

    /// Wakes the worker if it sleeps.
    #[inline]
    pub(crate) fn ring(&self) {
        // The fence orders what was put into the ring before the look at the flag; `doze` is its counterpart.
        std::sync::atomic::fence(Ordering::SeqCst);
        if self.asleep.load(Ordering::Relaxed) {
            self.wake();
        }
    }

    #[cold]
    fn wake(&self) {
        let one = 1u64;
        if self.asleep.swap(false, Ordering::SeqCst) {
            // SAFETY: writes the eight bytes of `one`. It can fail only when the count is already huge: awake
            // enough.
            unsafe { libc::write(self.fd, (&raw const one).cast(), 8) };
        }
    }

    /// Says that the worker is about to sleep; it must look at its rings once more after this.
    pub(crate) fn doze(&self) {
        self.asleep.store(true, Ordering::SeqCst);
        std::sync::atomic::fence(Ordering::SeqCst);
    }

    /// Says that the worker is awake again.
    pub(crate) fn rise(&self) {
        self.asleep.store(false, Ordering::SeqCst);
        let mut count = 0u64;
        // SAFETY: reads eight bytes into `count`; the descriptor does not block.
        unsafe { libc::read(self.fd, (&raw mut count).cast(), 8) };
    }
}

/// What nodes' threads wake a worker by.
struct Ringer {
    bells: Arc<[Bell]>,
    worker: usize,
}

/// Wakes the worker with this number.
pub(crate) fn waker(bells: &Arc<[Bell]>, worker: u32) -> Waker {
    Waker::from(Arc::new(Ringer { bells: Arc::clone(bells), worker: worker as usize }))
}

impl Wake for Ringer {
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
            // SAFETY: the descriptor is this bell's own and not used any more.
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
