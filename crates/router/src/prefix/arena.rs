//! Memory for the nodes of the prefix tables: arrays of up to some hundred values, in chunks that never move.

use longwire_packet::{huge_vec, prefetch};

/// Classes of arrays: 1, 2, 4 … 256 values.
const CLASSES: usize = 9;

/// Arrays of values, identified by the index of their first. Chunks of `CHUNK` values are reserved on demand
/// and touched on use, so that growing copies nothing.
#[derive(Debug)]
pub(super) struct Arena<T, const CHUNK: usize> {
    chunks: Vec<Vec<T>>,
    /// Freed arrays, by class.
    free: [Vec<u32>; CLASSES],
}

impl<T: Copy + Default, const CHUNK: usize> Arena<T, CHUNK> {
    pub fn new() -> Self {
        const { assert!(CHUNK.is_power_of_two() && CHUNK >= 256) };
        Self { chunks: Vec::new(), free: Default::default() }
    }

    /// An array of `len` default values (1 to 256); none if the space is exhausted.
    pub fn alloc(&mut self, len: usize) -> Option<u32> {
        let class = class_of(len);
        if let Some(at) = self.free[class].pop() {
            self.slice_mut(at, 1 << class).fill(T::default());
            return Some(at);
        }
        if self.chunks.last().is_none_or(|chunk| chunk.len() + (1 << class) > CHUNK) {
            if (self.chunks.len() + 1) * CHUNK > u32::MAX as usize {
                return None;
            }
            self.chunks.push(huge_vec(CHUNK));
        }
        let last = self.chunks.len() - 1;
        let chunk = &mut self.chunks[last];
        let at = last * CHUNK + chunk.len();
        chunk.resize(chunk.len() + (1 << class), T::default());
        Some(at as u32)
    }

    /// Frees an array of `len` values.
    pub fn free(&mut self, at: u32, len: usize) {
        self.free[class_of(len)].push(at);
    }

    #[inline]
    pub fn at(&self, at: u32) -> T {
        self.chunks[at as usize / CHUNK][at as usize % CHUNK]
    }

    #[inline]
    pub fn at_mut(&mut self, at: u32) -> &mut T {
        &mut self.chunks[at as usize / CHUNK][at as usize % CHUNK]
    }

    pub fn slice_mut(&mut self, at: u32, len: usize) -> &mut [T] {
        &mut self.chunks[at as usize / CHUNK][at as usize % CHUNK..][..len]
    }

    #[inline]
    pub fn prefetch(&self, at: u32) {
        prefetch(&self.chunks[at as usize / CHUNK][at as usize % CHUNK]);
    }

    /// Inserts `value` at index `rank` into the array of `len` values at `at` (none if `len` is 0), and
    /// returns its index; it may move.
    pub fn with(&mut self, at: u32, len: usize, rank: usize, value: T) -> Option<u32> {
        let place = if len > 0 && class_of(len) == class_of(len + 1) {
            at
        } else {
            let place = self.alloc(len + 1)?;
            (0..len as u32).for_each(|each| *self.at_mut(place + each) = self.at(at + each));
            if len > 0 {
                self.free(at, len);
            }
            place
        };
        let array = self.slice_mut(place, len + 1);
        array.copy_within(rank..len, rank + 1);
        array[rank] = value;
        Some(place)
    }

    /// Removes the value at index `rank`, and returns the array's index. It moves only if it fits half the
    /// room.
    pub fn without(&mut self, at: u32, len: usize, rank: usize) -> u32 {
        self.slice_mut(at, len).copy_within(rank + 1.., rank);
        if len == 1 {
            self.free(at, len);
            return 0;
        }
        if class_of(len) == class_of(len - 1) {
            return at;
        }
        // Without room elsewhere it keeps its place, and half of it is wasted.
        let Some(place) = self.alloc(len - 1) else { return at };
        (0..len as u32 - 1).for_each(|each| *self.at_mut(place + each) = self.at(at + each));
        self.free(at, len);
        place
    }

    /// Bytes reserved, including freed arrays.
    pub fn bytes(&self) -> usize {
        self.chunks.iter().map(Vec::len).sum::<usize>() * size_of::<T>()
    }
}

fn class_of(len: usize) -> usize {
    len.next_power_of_two().trailing_zeros() as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrays_grow_shrink_and_are_used_again() {
        let mut arena = Arena::<u16, 256>::new();
        let mut at = 0;
        for value in 0..100u16 {
            at = arena.with(at, value.into(), 0, value).unwrap();
        }
        assert_eq!(arena.slice_mut(at, 3), [99, 98, 97]);
        let bytes = arena.bytes();
        for len in (1..=100).rev() {
            at = arena.without(at, len, len - 1);
        }
        assert_eq!(at, 0);
        for value in 0..100u16 {
            at = arena.with(at, value.into(), value.into(), value).unwrap();
        }
        assert_eq!((arena.slice_mut(at, 100)[99], arena.bytes()), (99, bytes));
    }
}
