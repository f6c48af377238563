//! An entry in the heap of an agenda: a time, and an action.

use std::cmp::Ordering;

/// An entry in a heap that returns the greatest first.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Entry<T> {
    pub(crate) time: u64,
    pub(crate) number: u64,
    pub(crate) content: T,
}

impl<T> Ord for Entry<T> {
    fn cmp(&self, other: &Self) -> Ordering {
        (other.time, other.number).cmp(&(self.time, self.number))
    }
}

impl<T> PartialOrd for Entry<T> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> PartialEq for Entry<T> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl<T> Eq for Entry<T> {}
