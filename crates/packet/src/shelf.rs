//! Free slots of a class in front of its pages, which treat them as taken. The slot added last is taken
//! first, while it is in the cache.

/// Most slots on a shelf: more than the occupancy of a delay line varies by. Unused capacity takes no memory.
const SHELF: usize = 1 << 16;
/// Slots that an empty shelf takes from the pages at once.
pub(crate) const LOT: usize = 512;

/// See the module.
#[derive(Debug)]
pub(crate) struct FreeSlots {
    count: usize,
    slots: Box<[u32]>,
}

impl FreeSlots {
    pub fn empty() -> Self {
        Self { count: 0, slots: vec![0; SHELF].into() }
    }

    pub fn len(&self) -> usize {
        self.count
    }

    /// Adds a slot. Returns false if the shelf is full.
    #[inline]
    pub fn push(&mut self, slot: u32) -> bool {
        let Some(place) = self.slots.get_mut(self.count) else { return false };
        *place = slot;
        self.count += 1;
        true
    }

    /// Takes the slot added last.
    #[inline]
    pub fn pop(&mut self) -> Option<u32> {
        // The index wraps for an empty shelf, and the lookup finds nothing.
        let last = self.count.wrapping_sub(1);
        let &slot = self.slots.get(last)?;
        self.count = last;
        Some(slot)
    }

    /// The slots added last, at most `most`.
    #[inline]
    pub fn last(&self, most: usize) -> &[u32] {
        &self.slots[self.count - most.min(self.count)..self.count]
    }

    /// Removes the last `taken` slots, after they were read through [`FreeSlots::last`].
    #[inline]
    pub fn forget(&mut self, taken: usize) {
        self.count -= taken;
    }

    /// The free part of the shelf.
    #[inline]
    pub fn room(&mut self) -> &mut [u32] {
        &mut self.slots[self.count..]
    }

    /// Keeps the first `added` slots that were written to [`FreeSlots::room`].
    #[inline]
    pub fn keep(&mut self, added: usize) {
        self.count += added;
    }
}
