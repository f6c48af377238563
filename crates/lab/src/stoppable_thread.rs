//! A thread that ends when its owner drops it.

use std::io;
use std::os::fd::OwnedFd;
use std::thread::JoinHandle;

use rustix::event::{EventfdFlags, eventfd};

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
