//! A priority queue of timed entries, earliest first, for times that hardly ever precede one already taken.
//!
//! Most entries are in a [`Ring`] of buckets, a calendar with so short days that most have at most one entry:
//! there the cost of an entry does not depend on their number. Entries that do not fit their bucket are in a
//! heap beside it, which is all that small agendas have.

use crate::ring::{Content, Entry, Ring};
use std::collections::BinaryHeap;

/// Entries with their times; equal times in order of insertion.
#[derive(Debug)]
pub(crate) struct Agenda<T: Content> {
    /// The earliest time in `over`: the end of time if it is empty.
    over_first: u64,
    len: usize,
    /// Entries that do not fit the ring: for past days or full days; and all entries of a small agenda.
    /// Entries in the ring precede those here with the same time.
    over: BinaryHeap<Entry<T>>,
    ring: Option<Box<Ring<T>>>,
    /// Number of entries that have gone to a heap.
    number: u64,
}

/// Number of entries that a heap handles well.
const FEW: usize = 48;

impl<T: Content> Default for Agenda<T> {
    fn default() -> Self {
        Self { over_first: u64::MAX, len: 0, over: BinaryHeap::new(), ring: None, number: 0 }
    }
}

impl<T: Content> Agenda<T> {
    /// The earliest time; the end of time if it is empty.
    #[inline]
    pub(crate) fn first(&self) -> u64 {
        self.ring.as_ref().map_or(u64::MAX, |ring| ring.first()).min(self.over_first)
    }

    /// A likely next entry, for prefetching its data.
    #[inline]
    pub(crate) fn soon(&self) -> Option<T> {
        self.ring.as_ref().and_then(|ring| ring.soon())
    }

    /// Whether it has no entries.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Adds an entry.
    #[inline(always)]
    pub(crate) fn push(&mut self, time: u64, content: T) {
        self.len += 1;
        if let Some(ring) = &mut self.ring
            && ring.push(time, content)
        {
            return;
        }
        self.push_otherwise(time, content);
    }

    /// Takes the earliest entry.
    #[inline(always)]
    pub(crate) fn pop(&mut self) -> Option<(u64, T)> {
        match &mut self.ring {
            Some(ring) if !ring.is_empty() && ring.first() <= self.over_first => {
                let time = ring.first();
                let (content, calls) = ring.pop();
                self.len -= 1;
                if calls {
                    self.refill();
                }
                Some((time, content))
            }
            _ => self.pop_otherwise(),
        }
    }

    /// Takes all entries, earliest first.
    pub(crate) fn drain(&mut self) -> Vec<(u64, T)> {
        let all = self.sorted();
        *self = Self::default();
        all
    }

    #[inline(never)]
    fn push_otherwise(&mut self, time: u64, content: T) {
        self.place(time, content);
        let strained = match &mut self.ring {
            None => self.over.len() > FEW,
            Some(ring) => ring.is_strained(self.len),
        };
        if strained {
            self.rebuild();
        }
    }

    /// Adds an entry to the ring or the heap.
    fn place(&mut self, time: u64, content: T) {
        let alone = self.over.is_empty();
        let entry = Entry { time, number: self.number, content };
        if let Some(ring) = &mut self.ring {
            if ring.is_empty() {
                ring.turn(time, alone);
            }
            if ring.push(time, content) {
                return;
            }
            if ring.defer(entry) {
                self.number += 1;
                return;
            }
        }
        self.number += 1;
        self.over_first = self.over_first.min(time);
        self.over.push(entry);
    }

    #[inline(never)]
    fn pop_otherwise(&mut self) -> Option<(u64, T)> {
        let Entry { time, content, .. } = self.over.pop()?;
        self.len -= 1;
        self.over_first = self.over.peek().map_or(u64::MAX, |entry| entry.time);
        Some((time, content))
    }

    /// Moves entries whose days have come into the ring, and frees a large ring that is empty.
    #[inline(never)]
    fn refill(&mut self) {
        if self.ring.as_ref().is_some_and(|ring| ring.is_idle()) {
            self.ring = None;
            return;
        }
        while let Some(entry) = self.ring.as_mut().and_then(|ring| ring.recall()) {
            self.place(entry.time, entry.content);
        }
        if self.ring.as_mut().is_some_and(|ring| ring.is_sparse(self.len)) {
            self.rebuild();
        }
    }

    /// Makes a ring for the current entries.
    #[cold]
    fn rebuild(&mut self) {
        let all = self.sorted();
        let ring = (all.len() > FEW).then(|| Box::new(Ring::new(&all, self.ring.as_deref())));
        *self = Self { ring, ..Self::default() };
        self.len = all.len();
        for (time, content) in all {
            self.place(time, content);
        }
        if let Some(ring) = &mut self.ring {
            ring.settle();
        }
    }

    /// All entries, earliest first.
    fn sorted(&self) -> Vec<(u64, T)> {
        let mut all: Vec<_> = self.ring.iter().flat_map(|ring| ring.entries()).collect();
        for heap in self.ring.iter().map(|ring| &ring.beyond).chain([&self.over]) {
            let mut heap: Vec<_> = heap.iter().copied().collect();
            heap.sort_unstable_by(|one, other| other.cmp(one));
            all.extend(heap.into_iter().map(|entry| (entry.time, entry.content)));
        }
        // Stable: of equal times those in the ring come first.
        all.sort_by_key(|entry| entry.0);
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use longwire_block::Dice;
    use longwire_packet::Handle;
    use std::collections::BTreeMap;

    /// Compares an agenda with a sorted map of (time, number).
    fn agree(mut next: impl FnMut(&mut Dice, u64) -> u64, most: usize, steps: u32) {
        let (mut agenda, mut times, mut map) = (Agenda::default(), Agenda::default(), BTreeMap::new());
        let mut dice = Dice::named(u64::from(steps), "agenda");
        let (mut now, mut filling) = (1_000_000_000_000, true);
        for number in 0..steps {
            filling = if filling { map.len() < most } else { map.is_empty() };
            if dice.below(8) < if filling { 5 } else { 3 } {
                let time = next(&mut dice, now);
                agenda.push(time, Handle(number));
                times.push(time, ());
                map.insert((time, number), ());
            } else {
                let wanted = map.pop_first().map(|(entry, ())| entry);
                assert_eq!(agenda.pop().map(|(time, Handle(number))| (time, number)), wanted);
                assert_eq!(times.pop().map(|(time, ())| time), wanted.map(|(time, _)| time));
                now = wanted.map_or(now, |(time, _)| time.min(u64::MAX / 2)).max(now);
            }
            assert_eq!(agenda.first(), map.first_key_value().map_or(u64::MAX, |((time, _), ())| *time));
            assert_eq!((agenda.is_empty(), times.first()), (map.is_empty(), agenda.first()));
        }
        let left: Vec<_> = agenda.drain().into_iter().map(|(time, Handle(number))| (time, number)).collect();
        assert_eq!(left, map.into_keys().collect::<Vec<_>>());
        assert!(agenda.is_empty() && agenda.pop().is_none());
    }

    #[test]
    fn the_earliest_comes_first_and_equal_times_in_order() {
        for most in [1, 10, 47, 49, 200, 5000] {
            let steps = 40 * most as u32 + 1000;
            // Spread over zero, some nanoseconds, milliseconds, everything.
            agree(|_, now| now, most, steps);
            agree(|dice, now| now + dice.below(10), most, steps);
            agree(|dice, now| now + dice.below(40_000_000), most, steps);
            agree(|dice, now| now.saturating_add(dice.draw() >> dice.below(64)), most, steps);
            // Never, and the end of time.
            agree(|dice, _| u64::MAX - dice.below(3), most, steps);
        }
    }

    #[test]
    fn times_before_those_taken_are_found_too() {
        for most in [10, 60, 1000] {
            let late = |dice: &mut Dice, now: u64| match dice.below(4) {
                0 => now - dice.below(2_000_000),
                _ => now + dice.below(1_000_000),
            };
            agree(late, most, 100_000);
        }
    }

    #[test]
    fn falling_and_rising_times() {
        let mut agenda = Agenda::default();
        (0..1000).rev().for_each(|time| agenda.push(time * 1000, ()));
        (1000..2000).for_each(|time| agenda.push(time * 1000, ()));
        (0..2000).for_each(|time| assert_eq!(agenda.pop(), Some((time * 1000, ()))));
        assert_eq!(agenda.pop(), None);
    }
}
