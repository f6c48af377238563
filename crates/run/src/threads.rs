//! Threads beside the workers of a run, and the data that they share.

use std::io;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle};

/// Locks shared data. A holder that panicked has left a consistent state.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A thread that ends when this is dropped, which waits for it.
#[derive(Debug)]
pub(crate) struct EndingThread<T> {
    end: Option<Sender<()>>,
    thread: Option<JoinHandle<T>>,
}

impl<T> EndingThread<T> {
    /// Starts a thread of this name, whose `work` has to end when the other side of its channel is gone.
    ///
    /// # Errors
    /// If no thread can be started.
    pub(crate) fn start(
        name: &str,
        work: impl FnOnce(&Receiver<()>) -> T + Send + 'static,
    ) -> io::Result<Self>
    where
        T: Send + 'static,
    {
        let (end, ended) = channel();
        let thread = Builder::new().name(name.into()).spawn(move || work(&ended))?;
        Ok(Self { end: Some(end), thread: Some(thread) })
    }

    /// Ends the thread, and returns its result; none if it has panicked, which has been printed.
    pub(crate) fn end(mut self) -> Option<T> {
        self.join()
    }

    fn join(&mut self) -> Option<T> {
        self.end = None;
        self.thread.take()?.join().ok()
    }
}

impl<T> Drop for EndingThread<T> {
    fn drop(&mut self) {
        // Nobody wants the result any more.
        let _ = self.join();
    }
}
