//! The places of neighbours: whoever changes one is counted.

use super::{FREE, Slot};
use std::ops::Deref;

/// Places that are read as a slice, and changed through [`Slots::change`] alone.
#[derive(Debug)]
pub(super) struct Slots {
    list: Box<[Slot]>,
    changes: u64,
}

impl Slots {
    /// So many free ones.
    pub fn new(count: usize) -> Self {
        Self { list: vec![FREE; count].into(), changes: 0 }
    }

    /// One of them, to change.
    pub fn change(&mut self, at: usize) -> &mut Slot {
        self.changes += 1;
        &mut self.list[at]
    }

    /// How often one may have changed.
    #[inline]
    pub fn changes(&self) -> u64 {
        self.changes
    }
}

impl Deref for Slots {
    type Target = [Slot];

    #[inline]
    fn deref(&self) -> &[Slot] {
        &self.list
    }
}
