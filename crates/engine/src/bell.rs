//! Waking a sleeping worker: after another worker has put a packet into its ring, or for a command.

use rustix::event::{EventfdFlags, eventfd};
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Wake, Waker};

/// Wakes one worker. Ringing costs one load while the worker is awake.
#[derive(Debug)]
pub(crate) struct Bell {
    /// None if no descriptor was left: every sleep lasts its planned time, then.
    fd: Option<OwnedFd>,
    asleep: AtomicBool,
}

impl Bell {
    pub(crate) fn new() -> Self {
        let fd = eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC).ok();
        Self { fd, asleep: AtomicBool::new(false) }
    }

    /// The descriptor to wait for; -1, which `poll` ignores, if there is none.
    pub(crate) fn fd(&self) -> i32 {
        self.fd.as_ref().map_or(-1, AsRawFd::as_raw_fd)
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
        if self.asleep.swap(false, Ordering::SeqCst)
            && let Some(fd) = &self.fd
        {
            // It can only fail when the count is already huge, and then the worker is awake.
            let _ = rustix::io::write(fd, &1u64.to_ne_bytes());
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
        if let Some(fd) = &self.fd {
            // Nothing may have rung; the descriptor does not block.
            let _ = rustix::io::read(fd, &mut [0u8; 8]);
        }
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
