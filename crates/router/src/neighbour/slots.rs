//! The slots of neighbours, with a count of changes.

use super::Slot;
use std::ops::Deref;

/// Slots that are read as a slice, and changed only through [`Slots::change`].
#[derive(Debug)]
pub(super) struct Slots {
    list: Box<[Slot]>,
    changes: u64,
}

impl Slots {
    /// This many free slots.
    pub fn new(count: usize) -> Self {
        Self { list: vec![Slot::default(); count].into(), changes: 0 }
    }

    /// A slot to change.
    pub fn change(&mut self, at: usize) -> &mut Slot {
        self.changes += 1;
        &mut self.list[at]
    }

    /// Number of possible changes so far.
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
