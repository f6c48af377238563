//! A batch of packets that are processed together.

use crate::Handle;

/// Most packets in a batch.
pub const BATCH: usize = 64;

/// Bytes after which a driver stops filling a batch even if it has room: 64 trains of 64 KiB would not fit
/// the cache, and the first would wait until the last was read.
pub const BATCH_BYTES: u64 = 192 << 10;

/// Up to [`BATCH`] packet handles in order. A batch does not own its packets: dropping it does not free them.
#[derive(Debug, Clone)]
pub struct Batch {
    handles: [Handle; BATCH],
    len: usize,
}

impl Default for Batch {
    fn default() -> Self {
        Self { handles: [Handle::NONE; BATCH], len: 0 }
    }
}

impl Batch {
    /// An empty batch.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a packet at the end.
    ///
    /// # Panics
    /// If the batch is full: check [`Batch::room`] first.
    #[inline]
    pub fn push(&mut self, handle: Handle) {
        self.append(handle);
    }

    /// Adds a packet at the end, and returns its index.
    ///
    /// # Panics
    /// If the batch is full: check [`Batch::room`] first.
    #[inline]
    pub fn append(&mut self, handle: Handle) -> usize {
        let at = self.len;
        self.handles[at] = handle;
        self.len = at + 1;
        at
    }

    /// Adds as many of `packets` as fit, and returns how many.
    #[inline]
    pub fn extend(&mut self, packets: impl ExactSizeIterator<Item = Handle>) -> usize {
        let places = &mut self.handles[self.len..];
        let count = packets.len().min(places.len());
        places.iter_mut().zip(packets).for_each(|(place, handle)| *place = handle);
        self.len += count;
        count
    }

    /// Number of packets that still fit.
    #[inline]
    pub fn room(&self) -> usize {
        BATCH - self.len
    }

    /// Number of packets.
    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no packets.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Whether no more fit.
    #[inline]
    pub fn is_full(&self) -> bool {
        self.len == BATCH
    }

    /// Removes all handles.
    #[inline]
    pub fn clear(&mut self) {
        self.len = 0;
    }

    /// The packets in order.
    #[inline]
    pub fn as_slice(&self) -> &[Handle] {
        &self.handles[..self.len]
    }
}
