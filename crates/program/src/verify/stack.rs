//! Knowledge about a stack frame: initialized bytes, and stored values.

use super::value::{Names, Value};
use crate::memory::FRAME_SIZE;

/// A frame. Offsets are from its lower end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    /// The caller's `r6` to `r9`.
    pub saved: [Value; 4],
    /// A bit for each byte initialized on all paths.
    written: [u64; FRAME_SIZE / 64],
    /// Values that can be loaded as they were stored, by offset; they do not overlap.
    stored: Vec<StackValue>,
}

/// A value in the stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct StackValue {
    place: u16,
    size: u16,
    value: Value,
}

impl Frame {
    /// An empty frame.
    pub fn new(saved: [Value; 4]) -> Self {
        Self { saved, written: [0; FRAME_SIZE / 64], stored: Vec::new() }
    }

    /// The first possibly uninitialized byte.
    pub fn unwritten(&self, start: usize, end: usize) -> Option<usize> {
        (start..end).find(|&at| self.written[at / 64] >> (at % 64) & 1 == 0)
    }

    /// The value stored in exactly these bytes.
    pub fn load(&self, place: usize, size: usize) -> Option<Value> {
        let at = self.stored.partition_point(|stored| usize::from(stored.place) < place);
        let stored = self.stored.get(at)?;
        let same = usize::from(stored.place) == place && usize::from(stored.size) == size;
        same.then_some(stored.value)
    }

    /// Number of its values.
    pub fn size(&self) -> usize {
        self.saved.len() + self.stored.len()
    }

    /// Marks bytes as written.
    pub fn write(&mut self, start: usize, end: usize) {
        self.forget(start, end);
        for at in start..end {
            self.written[at / 64] |= 1 << (at % 64);
        }
    }

    /// Bytes that may be overwritten with unknown data.
    pub fn forget(&mut self, start: usize, end: usize) {
        self.stored.retain(|s| usize::from(s.place + s.size) <= start || usize::from(s.place) >= end);
    }

    /// Stores a value.
    pub fn store(&mut self, place: usize, size: usize, value: Value) {
        self.write(place, place + size);
        let stored = StackValue { place: place as u16, size: size as u16, value };
        let at = self.stored.partition_point(|s| s.place < stored.place);
        self.stored.insert(at, stored);
    }

    /// All stored values.
    pub fn values_mut(&mut self) -> impl Iterator<Item = &mut Value> {
        self.saved.iter_mut().chain(self.stored.iter_mut().map(|stored| &mut stored.value))
    }

    /// Whether this includes `other`.
    pub fn contains(&self, other: &Self, names: &mut Names) -> bool {
        let written = self.written.iter().zip(&other.written).all(|(mine, theirs)| mine & !theirs == 0);
        written
            && self.saved.iter().zip(&other.saved).all(|(mine, theirs)| mine.contains(theirs, names))
            && self.beside(other).all(|(mine, theirs)| {
                names.note(1);
                theirs.is_some_and(|theirs| mine.value.contains(theirs, names))
            })
    }

    /// The stored values, each with the one that `other` has in exactly the same bytes.
    fn beside<'a>(
        &'a self,
        other: &'a Self,
    ) -> impl Iterator<Item = (&'a StackValue, Option<&'a Value>)> + 'a {
        let mut theirs = other.stored.iter().peekable();
        self.stored.iter().map(move |mine| {
            while theirs.next_if(|next| next.place < mine.place).is_some() {}
            let same = theirs.next_if(|next| (next.place, next.size) == (mine.place, mine.size));
            (mine, same.map(|theirs| &theirs.value))
        })
    }

    /// Values that both frames have at the same offset.
    pub fn pairs<'a>(&'a self, other: &'a Self) -> impl Iterator<Item = (&'a Value, &'a Value)> {
        let stored = self.beside(other).filter_map(|(mine, theirs)| Some((&mine.value, theirs?)));
        self.saved.iter().zip(&other.saved).chain(stored)
    }

    /// A superset of both; `join` joins values.
    pub fn join(&self, other: &Self, mut join: impl FnMut(&Value, &Value) -> Value) -> Self {
        let mut both = Self::new(self.saved);
        for (mine, theirs) in both.saved.iter_mut().zip(&other.saved) {
            *mine = join(mine, theirs);
        }
        for (written, (mine, theirs)) in both.written.iter_mut().zip(self.written.iter().zip(&other.written))
        {
            *written = mine & theirs;
        }
        for (mine, theirs) in self.beside(other) {
            if let Some(theirs) = theirs {
                both.stored.push(StackValue { value: join(&mine.value, theirs), ..*mine });
            }
        }
        both
    }
}
