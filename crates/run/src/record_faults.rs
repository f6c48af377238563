//! Failures to write the files of a run, which are said while it goes on.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The first failure of each file of a run, shared between those who write and those who say it.
#[derive(Debug, Clone, Default)]
pub struct RecordFaults(Arc<Mutex<Noted>>);

#[derive(Debug, Default)]
struct Noted {
    all: Vec<String>,
    /// How many of them were taken.
    taken: usize,
}

impl RecordFaults {
    /// Notes the first failure of a file, with its name and the reason.
    pub(crate) fn note(&self, fault: String) {
        self.lock().all.push(fault);
    }

    /// All so far.
    pub fn all(&self) -> Vec<String> {
        self.lock().all.clone()
    }

    /// Those that nobody has taken yet.
    pub fn take_new(&self) -> Vec<String> {
        let mut noted = self.lock();
        let new = noted.all[noted.taken..].to_vec();
        noted.taken = noted.all.len();
        new
    }

    /// A holder that panicked has left a consistent state.
    fn lock(&self) -> MutexGuard<'_, Noted> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
