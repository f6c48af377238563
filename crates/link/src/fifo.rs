//! A list of packets linked through their metadata: eight bytes, whatever its length.

use longwire_packet::{Handle, Pool};

/// Packets in order of arrival, linked by `Meta::next`. A packet is in at most one list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fifo {
    head: Handle,
    tail: Handle,
}

impl Default for Fifo {
    fn default() -> Self {
        Self::EMPTY
    }
}

impl Fifo {
    /// No packets.
    pub const EMPTY: Self = Self { head: Handle::NONE, tail: Handle::NONE };

    /// Adds a packet at the end.
    #[inline]
    pub fn push(&mut self, pool: &mut Pool, handle: Handle) {
        pool.meta_mut(handle).next = Handle::NONE.0;
        if self.head.is_none() {
            self.head = handle;
        } else {
            pool.meta_mut(self.tail).next = handle.0;
        }
        self.tail = handle;
    }

    /// Adds all packets of another list at the end.
    pub(crate) fn append(&mut self, pool: &mut Pool, mut other: Self) {
        while let Some(handle) = other.pop(pool) {
            self.push(pool, handle);
        }
    }

    /// Takes the first packet.
    #[inline]
    pub fn pop(&mut self, pool: &Pool) -> Option<Handle> {
        let first = self.first()?;
        self.head = Handle(pool.meta(first).next);
        Some(first)
    }

    /// Takes all packets.
    #[inline]
    pub fn take(&mut self) -> Self {
        std::mem::take(self)
    }

    /// The packets, from the first to the last.
    pub fn iter<'p>(&self, pool: &'p Pool) -> impl Iterator<Item = Handle> + use<'p> {
        let (mut next, last) = (self.first(), self.tail);
        std::iter::from_fn(move || {
            let handle = next?;
            next = (handle != last).then(|| Handle(pool.meta(handle).next));
            Some(handle)
        })
    }

    /// The first packet.
    #[inline]
    pub fn first(&self) -> Option<Handle> {
        if self.head.is_none() { None } else { Some(self.head) }
    }

    /// The last packet.
    #[inline]
    pub(crate) fn last(&self) -> Option<Handle> {
        self.first().map(|_| self.tail)
    }

    /// Whether there are none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.head.is_none()
    }
}
