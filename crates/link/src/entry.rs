//! What lies in a heap of an agenda: a time, and what happens then.

use std::cmp::Ordering;

/// Something in a heap, which gives the greatest first.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Entry<T> {
    pub(crate) time: u64,
    pub(crate) number: u64,
    pub(crate) what: T,
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
