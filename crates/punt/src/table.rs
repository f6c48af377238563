//! Table of the packets that an attachment holds, in order of expiry.

use longwire_packet::Handle;
use longwire_units::Nanos;

/// Packets that are up, indexed by their tokens modulo the size.
#[derive(Debug, Default)]
pub(crate) struct Table {
    slots: Box<[(Handle, Nanos)]>,
    /// The next token, and the first that may be up.
    next: u64,
    first: u64,
    /// Lower tokens belong to a previous process.
    since: u64,
    /// Packets, counted in segments.
    pub kept: u64,
}

impl Table {
    pub fn new(slots: usize) -> Self {
        Self { slots: vec![(Handle::NONE, Nanos::ZERO); slots].into(), next: 0, first: 0, since: 0, kept: 0 }
    }

    #[inline]
    fn slot(&self, token: u64) -> usize {
        (token & (self.slots.len() as u64 - 1)) as usize
    }

    #[inline]
    pub fn has_room(&self) -> bool {
        self.next - self.first < self.slots.len() as u64
    }

    pub fn has_any(&self) -> bool {
        self.next != self.first
    }

    #[inline]
    pub fn put(&mut self, handle: Handle, expires: Nanos, segments: u16) -> u64 {
        let token = self.next;
        let slot = self.slot(token);
        self.slots[slot] = (handle, expires);
        self.next += 1;
        self.kept += u64::from(segments);
        token
    }

    /// The packet with this token, if the attached process has it.
    #[inline]
    pub fn at(&self, token: u64) -> Option<Handle> {
        if token < self.since { None } else { self.at_any(token) }
    }

    /// Whether the attached process has, or had, a packet with this token.
    pub fn has_been(&self, token: u64) -> bool {
        (self.since..self.next).contains(&token)
    }

    #[inline]
    pub fn at_any(&self, token: u64) -> Option<Handle> {
        if !(self.first..self.next).contains(&token) {
            return None;
        }
        let handle = self.slots[self.slot(token)].0;
        (!handle.is_none()).then_some(handle)
    }

    /// Removes a packet that is there.
    #[inline]
    pub fn take(&mut self, token: u64, segments: u16) {
        let slot = self.slot(token);
        self.slots[slot].0 = Handle::NONE;
        self.kept -= u64::from(segments);
        while self.first < self.next && self.slots[self.slot(self.first)].0.is_none() {
            self.first += 1;
        }
    }

    /// The oldest packet: its token, its expiry, and whether a previous process had it.
    #[inline]
    pub fn first(&self) -> Option<(u64, Nanos, bool)> {
        (self.first < self.next)
            .then(|| (self.first, self.slots[self.slot(self.first)].1, self.first < self.since))
    }

    /// Marks all packets that are up as the previous process's.
    pub fn renounce(&mut self) {
        self.since = self.next;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_free_again_once_the_oldest_is_gone() {
        let mut table = Table::new(4);
        let tokens: Vec<_> = (0..4).map(|n| table.put(Handle(n), Nanos(u64::from(n)), 2)).collect();
        assert_eq!((tokens, table.has_room(), table.kept), (vec![0, 1, 2, 3], false, 8));
        [1, 3].into_iter().for_each(|token| table.take(token, 2));
        assert_eq!((table.has_room(), table.at(1), table.at(2)), (false, None, Some(Handle(2))));
        table.take(0, 2);
        assert_eq!((table.has_room(), table.first()), (true, Some((2, Nanos(2), false))));
        let token = table.put(Handle(9), Nanos(9), 1);
        assert_eq!((token, table.at(4), table.at(0), table.at(5)), (4, Some(Handle(9)), None, None));
        table.renounce();
        assert_eq!((table.at(4), table.at_any(4), table.kept), (None, Some(Handle(9)), 3));
        table.put(Handle(10), Nanos(10), 1);
        assert_eq!([4, 5, 6].map(|token| table.has_been(token)), [false, true, false]);
    }
}
