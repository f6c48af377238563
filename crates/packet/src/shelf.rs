//! Free slots of a class in front of its pages, which count them as taken: what was put there last is taken
//! first, while it is in the cache.

/// Most slots on a shelf: as many as a delay line's swings, and more. What has not been needed takes no
/// memory.
const SHELF: usize = 1 << 16;
/// How many slots an empty shelf gets from the pages.
pub(crate) const LOT: usize = 512;

/// See the module.
#[derive(Debug)]
pub(crate) struct Shelf {
    count: usize,
    slots: Box<[u32]>,
}

impl Shelf {
    pub fn empty() -> Self {
        Self { count: 0, slots: vec![0; SHELF].into() }
    }

    pub fn len(&self) -> usize {
        self.count
    }

    /// Adds a slot. Whether there was room for it.
    #[inline]
    pub fn push(&mut self, slot: u32) -> bool {
        let Some(place) = self.slots.get_mut(self.count) else { return false };
        *place = slot;
        self.count += 1;
        true
    }

    /// Takes the slot that was added last.
    #[inline]
    pub fn pop(&mut self) -> Option<u32> {
        // Of an empty one there is no such place.
        let last = self.count.wrapping_sub(1);
        let &slot = self.slots.get(last)?;
        self.count = last;
        Some(slot)
    }

    /// The slots that were added last, at most so many.
    #[inline]
    pub fn last(&self, most: usize) -> &[u32] {
        &self.slots[self.count - most.min(self.count)..self.count]
    }

    /// So many of [`Shelf::last`] were taken.
    #[inline]
    pub fn forget(&mut self, taken: usize) {
        self.count -= taken;
    }

    /// Where slots can be added.
    #[inline]
    pub fn room(&mut self) -> &mut [u32] {
        &mut self.slots[self.count..]
    }

    /// So many were written to the first places of [`Shelf::room`].
    #[inline]
    pub fn keep(&mut self, added: usize) {
        self.count += added;
    }
}
