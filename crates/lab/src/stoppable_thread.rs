//! A thread that ends when its owner drops it, and what it waits for.

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};

/// A thread that runs until dropped.
#[derive(Debug)]
pub struct StoppableThread {
    stop: OwnedFd,
    thread: Option<JoinHandle<()>>,
}

impl StoppableThread {
    /// Starts a thread, which returns when the descriptor that `run` gets becomes readable.
    ///
    /// # Errors
    /// If the system refuses a thread or a descriptor.
    pub fn start(name: &str, run: impl FnOnce(OwnedFd) + Send + 'static) -> io::Result<Self> {
        let stop = eventfd(0, EventfdFlags::CLOEXEC)?;
        let stopped = stop.try_clone()?;
        let thread = std::thread::Builder::new().name(name.to_owned()).spawn(move || run(stopped))?;
        Ok(Self { stop, thread: Some(thread) })
    }
}

impl Drop for StoppableThread {
    fn drop(&mut self) {
        // Eight bytes, as eventfd(2) requires; the first write can neither block nor fail.
        let _ = rustix::io::write(&self.stop, &1u64.to_ne_bytes());
        if let Some(thread) = self.thread.take() {
            // A panicked thread only stops serving.
            let _ = thread.join();
        }
    }
}

/// Which of these are readable or closed, as soon as one is, or after this time. A signal ends it early.
pub fn readable<'a>(fds: impl IntoIterator<Item = BorrowedFd<'a>>, limit: Option<Duration>) -> Vec<bool> {
    let mut polls: Vec<_> = fds.into_iter().map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)).collect();
    let limit = limit.and_then(|limit| Timespec::try_from(limit).ok());
    let _ = poll(&mut polls, limit.as_ref());
    polls.iter().map(|poll| !poll.revents().is_empty()).collect()
}
