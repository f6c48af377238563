//! A list of packets threaded through their metadata: eight bytes however long it is.

use longwire_packet::{Handle, Meta, Pool};

/// Packets in order of arrival, linked by `Meta::next`. A packet is in one list at the most.
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
        self.push_last(pool, handle);
    }

    /// The same for a packet that has no next one.
    #[inline]
    pub(crate) fn push_last(&mut self, pool: &mut Pool, handle: Handle) {
        if self.head.is_none() {
            self.head = handle;
        } else {
            pool.meta_mut(self.tail).next = handle.0;
        }
        self.tail = handle;
    }

    /// The same where the one before it, if there is one, is to be told by who asks.
    #[inline(always)]
    pub(crate) fn push_known(&mut self, handle: Handle) -> Option<Handle> {
        let last = self.tail;
        self.tail = handle;
        if self.head.is_none() {
            self.head = handle;
            return None;
        }
        Some(last)
    }

    /// Takes the first packet.
    #[inline]
    pub fn pop(&mut self, pool: &Pool) -> Option<Handle> {
        self.pop_known(pool).map(|(handle, _)| handle)
    }

    /// The same, with what is known of it.
    #[inline]
    pub(crate) fn pop_known<'p>(&mut self, pool: &'p Pool) -> Option<(Handle, &'p Meta)> {
        if self.head.is_none() {
            return None;
        }
        let first = self.head;
        let meta = pool.meta(first);
        self.head = Handle(meta.next);
        Some((first, meta))
    }

    /// Takes all packets.
    #[inline]
    pub fn take(&mut self) -> Self {
        std::mem::take(self)
    }

    /// Takes out a packet, which is in the list, and all behind it.
    pub fn part_from(&mut self, pool: &mut Pool, first: Handle) -> Self {
        let mut before = None;
        let mut at = self.head;
        while at != first {
            before = Some(at);
            at = Handle(pool.meta(at).next);
        }
        let parted = Self { head: first, tail: self.tail };
        match before {
            Some(before) => {
                pool.meta_mut(before).next = Handle::NONE.0;
                self.tail = before;
            }
            None => *self = Self::EMPTY,
        }
        parted
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
