//! What is to happen at which time, earliest first: a priority queue for times of which hardly any comes before one already
//! taken.
//!
//! A radix heap (Ahuja, Mehlhorn, Orlin & Tarjan, "Faster algorithms for the shortest path problem", 1990) with 64 buckets a
//! level, in which a time lies by the highest six bits in which it differs from the earliest. What comes next is
//! a short sorted list, made of one bucket at a time. An entry is moved from bucket to bucket a few times, always at
//! the end of a list, so that the cost hardly depends on how many there are. Small agendas are the sorted list alone.

/// Entries of a time and what happens then; equal times in the order in which they were added.
#[derive(Debug)]
pub(crate) struct Agenda<T> {
    /// The next entries, the first at the end: all that lie before `limit` if any are far, else all.
    near: Vec<(u64, T)>,
    limit: u64,
    /// So many in `near` are too many.
    crowd: usize,
    far: Option<Box<Far<T>>>,
}

/// Bits that a level tells apart.
const DIGIT: u32 = 6;
const DIGITS: usize = 1 << DIGIT;
const LEVELS: usize = 64usize.div_ceil(DIGIT as usize);

/// So many entries are sorted rather than told apart by their next six bits.
const FEW: usize = 48;

/// Which of the next entries is fetched ahead.
const AHEAD: usize = 2;

/// The entries from `limit` on.
#[derive(Debug)]
struct Far<T> {
    /// No entry here is earlier, and each is in the bucket of the highest digit in which it differs.
    base: u64,
    /// Levels that hold any, and of each level the buckets that do: a bit each.
    levels: u16,
    digits: [u64; LEVELS],
    buckets: [Vec<(u64, T)>; LEVELS * DIGITS],
    /// Empty: the room of a bucket that is being moved.
    moving: Vec<(u64, T)>,
}

impl<T> Default for Agenda<T> {
    fn default() -> Self {
        Self { near: Vec::new(), limit: 0, crowd: FEW, far: None }
    }
}

impl<T: Copy> Agenda<T> {
    /// The earliest time.
    #[inline]
    pub(crate) fn first(&self) -> Option<u64> {
        self.near.last().map(|entry| entry.0)
    }

    /// One of the next entries, if they are known: to fetch ahead what it needs.
    #[inline]
    pub(crate) fn soon(&self) -> Option<T> {
        self.near.iter().rev().nth(AHEAD).map(|entry| entry.1)
    }

    /// Whether there is nothing on it.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.near.is_empty()
    }

    /// Adds an entry.
    #[inline]
    pub(crate) fn push(&mut self, time: u64, what: T) {
        match &mut self.far {
            Some(far) if far.levels != 0 && time >= self.limit => far.push(time, what),
            _ => self.push_near(time, what),
        }
    }

    /// Takes the earliest entry.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<(u64, T)> {
        let first = self.near.pop()?;
        if self.near.is_empty() {
            self.refill();
        }
        Some(first)
    }

    /// Takes all entries, in any order.
    pub(crate) fn drain(&mut self) -> Vec<(u64, T)> {
        let mut all = std::mem::take(&mut self.near);
        if let Some(far) = self.far.take() {
            all.extend(far.buckets.into_iter().flatten());
        }
        *self = Self::default();
        all
    }

    fn push_near(&mut self, time: u64, what: T) {
        let place = self.near.partition_point(|entry| entry.0 > time);
        self.near.insert(place, (time, what));
        if self.near.len() > self.crowd {
            self.spread();
        }
    }

    /// Puts near entries, of which there are too many, into buckets.
    #[cold]
    fn spread(&mut self) {
        let far = self.far.get_or_insert_with(Box::default);
        if far.levels == 0 {
            far.base = self.near.last().map_or(0, |entry| entry.0);
        }
        let late = self.near.partition_point(|entry| entry.0 >= far.base);
        for (time, what) in self.near.drain(..late).rev() {
            far.push(time, what);
        }
        self.limit = far.base;
        self.crowd = self.near.len() + FEW;
        if self.near.is_empty() {
            self.refill();
        }
    }

    /// Makes the near entries of the first bucket.
    fn refill(&mut self) {
        self.crowd = FEW;
        let Some(far) = &mut self.far else { return };
        if let Some(limit) = far.take(&mut self.near) {
            self.limit = limit;
            self.crowd = FEW.max(2 * self.near.len());
        }
    }
}

impl<T> Default for Box<Far<T>> {
    fn default() -> Self {
        Self::new(Far {
            base: 0,
            levels: 0,
            digits: [0; LEVELS],
            buckets: [const { Vec::new() }; LEVELS * DIGITS],
            moving: Vec::new(),
        })
    }
}

impl<T: Copy> Far<T> {
    /// Adds an entry that is not before the base.
    #[inline]
    fn push(&mut self, time: u64, what: T) {
        let level = (63 - ((time ^ self.base) | 1).leading_zeros()) / DIGIT;
        let digit = (time >> (level * DIGIT)) as usize % DIGITS;
        self.levels |= 1 << level;
        self.digits[level as usize] |= 1 << digit;
        self.buckets[level as usize * DIGITS + digit].push((time, what));
    }

    /// Moves the first entries to `near`, which is empty, the first of them at its end, and returns the time before which
    /// there are no others. None if there are no entries.
    fn take(&mut self, near: &mut Vec<(u64, T)>) -> Option<u64> {
        while self.levels != 0 {
            let level = self.levels.trailing_zeros();
            let digits = &mut self.digits[level as usize];
            let digit = digits.trailing_zeros();
            *digits &= *digits - 1;
            self.levels &= !(u16::from(*digits == 0) << level);
            let below = level * DIGIT;
            // The digits above this level are those of the base, those below are zero.
            let above = self.base.checked_shr(below + DIGIT).unwrap_or(0) << DIGIT;
            let first = (above | u64::from(digit)) << below;
            self.base = first;
            let bucket = &mut self.buckets[level as usize * DIGITS + digit as usize];
            if bucket.len() <= FEW || level == 0 {
                near.extend(bucket.drain(..).rev());
                if level > 0 {
                    // Stable, so that of equal times the first added stays at the end.
                    near.sort_by_key(|entry| std::cmp::Reverse(entry.0));
                }
                return Some(first.saturating_add(1 << below));
            }
            std::mem::swap(&mut self.moving, bucket);
            let mut moving = std::mem::take(&mut self.moving);
            moving.drain(..).for_each(|(time, what)| self.push(time, what));
            self.moving = moving;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use longwire_block::Dice;
    use std::collections::BTreeMap;

    /// What is asked of an agenda, and answered at once by a sorted map of (time, number).
    fn agree(mut next: impl FnMut(&mut Dice, u64) -> u64, most: usize, steps: u32) {
        let (mut agenda, mut map) = (Agenda::default(), BTreeMap::new());
        let mut dice = Dice::named(u64::from(steps), "agenda");
        let (mut now, mut filling) = (1_000_000_000_000, true);
        for number in 0..steps {
            filling = if filling { map.len() < most } else { map.is_empty() };
            if dice.below(8) < if filling { 5 } else { 3 } {
                let time = next(&mut dice, now);
                agenda.push(time, number);
                map.insert((time, number), ());
            } else {
                let wanted = map.pop_first().map(|(entry, ())| entry);
                assert_eq!(agenda.pop(), wanted);
                now = wanted.map_or(now, |(time, _)| time.min(u64::MAX / 2)).max(now);
            }
            assert_eq!(agenda.first(), map.first_key_value().map(|((time, _), ())| *time));
            assert_eq!(agenda.is_empty(), map.is_empty());
        }
        let mut left = agenda.drain();
        left.sort_unstable();
        assert_eq!(left, map.into_keys().collect::<Vec<_>>());
        assert!(agenda.is_empty() && agenda.pop().is_none());
    }

    #[test]
    fn the_earliest_comes_first_and_equal_times_in_order() {
        for most in [1, 10, 47, 49, 200, 5000] {
            let steps = 40 * most as u32 + 1000;
            // Spread over nothing, some nanoseconds, milliseconds, everything.
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
