//! Memory shared by programs, other workers and the control half: 64-bit atomic words, of fixed size. A word
//! is never torn; several words together may be, if others write concurrently.

use crate::{Atomic, Size, Width};
use std::sync::atomic::{AtomicU64, Ordering};

/// A block of shared memory, initially zero.
///
/// Bytes are in the words in little-endian order, so that compiled programs can use plain loads and stores.
/// Offsets are in bytes; those of [`Words::load`], [`Words::store`] and [`Words::change`] are aligned to the
/// size and in bounds, which the caller has checked: bytes beyond the end read as 0 and are not written.
#[derive(Debug)]
pub struct Words {
    words: Box<[AtomicU64]>,
}

impl Words {
    /// At least `bytes` zero bytes.
    pub fn new(bytes: usize) -> Self {
        Self { words: (0..bytes.div_ceil(8)).map(|_| AtomicU64::new(0)).collect() }
    }

    /// Its length in bytes, a multiple of 8.
    pub fn len(&self) -> usize {
        self.words.len() * 8
    }

    /// Whether it has no bytes.
    pub fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// The words themselves, for compiled programs.
    pub fn words(&self) -> &[AtomicU64] {
        &self.words
    }

    /// The bytes at `place`, as a number.
    #[inline]
    pub fn load(&self, place: usize, size: Size) -> u64 {
        let Some(word) = self.words.get(place / 8) else { return 0 };
        size.cut(word.load(Ordering::Relaxed) >> shift(place))
    }

    /// Writes the low bytes of `value`. Concurrent writes to other bytes of the word are preserved.
    #[inline]
    pub fn store(&self, place: usize, size: Size, value: u64) {
        let Some(word) = self.words.get(place / 8) else { return };
        if size == Size::Double {
            word.store(value, Ordering::Relaxed);
        } else {
            replace(word, size.cut(u64::MAX), shift(place), Ordering::Relaxed, |_| value);
        }
    }

    /// Executes a sequentially consistent atomic operation. Returns the previous value.
    pub fn change(&self, place: usize, width: Width, operation: Atomic, src: u64, r0: u64) -> u64 {
        let Some(word) = self.words.get(place / 8) else { return 0 };
        let mask = width.size().cut(u64::MAX);
        replace(word, mask, shift(place), Ordering::SeqCst, |old| operation.apply(width, old, src, r0))
    }

    /// Copies bytes from `place`, at any alignment, word by word.
    pub fn read(&self, place: usize, bytes: &mut [u8]) {
        let mut done = 0;
        while done < bytes.len() {
            let (at, rest) = (place + done, bytes.len() - done);
            let piece = rest.min(8 - at % 8);
            let word = self.load(at / 8 * 8, Size::Double) >> shift(at);
            bytes[done..done + piece].copy_from_slice(&word.to_le_bytes()[..piece]);
            done += piece;
        }
    }

    /// Writes bytes at `place`, at any alignment, word by word.
    pub fn write(&self, place: usize, bytes: &[u8]) {
        let mut done = 0;
        while done < bytes.len() {
            let (at, rest) = (place + done, bytes.len() - done);
            let piece = rest.min(8 - at % 8);
            let mut value = [0; 8];
            value[..piece].copy_from_slice(&bytes[done..done + piece]);
            let value = u64::from_le_bytes(value);
            if piece == 8 {
                self.store(at, Size::Double, value);
            } else if let Some(word) = self.words.get(at / 8) {
                replace(word, (1 << (piece * 8)) - 1, shift(at), Ordering::Relaxed, |_| value);
            }
            done += piece;
        }
    }

    /// Clears `length` bytes from `place`, both multiples of 8.
    pub fn clear(&self, place: usize, length: usize) {
        for word in self.words.iter().skip(place / 8).take(length / 8) {
            word.store(0, Ordering::Relaxed);
        }
    }
}

/// Bit offset of the byte at `place` in its word.
fn shift(place: usize) -> u32 {
    (place % 8 * 8) as u32
}

/// Replaces the bits under `mask`, at bit offset `shift`, by the result of `new`. Returns the previous ones.
fn replace(word: &AtomicU64, mask: u64, shift: u32, order: Ordering, new: impl Fn(u64) -> u64) -> u64 {
    let mut seen = word.load(Ordering::Relaxed);
    loop {
        let old = seen >> shift & mask;
        let next = seen & !(mask << shift) | (new(old) & mask) << shift;
        match word.compare_exchange_weak(seen, next, order, Ordering::Relaxed) {
            Ok(_) => return old,
            Err(other) => seen = other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_lie_in_little_endian_order() {
        let words = Words::new(13);
        assert_eq!(words.len(), 16);
        words.store(0, Size::Double, 0x0807_0605_0403_0201);
        assert_eq!(words.load(2, Size::Half), 0x0403);
        words.store(4, Size::Word, 0xaaaa_bbbb_cccc_dddd);
        assert_eq!(words.load(0, Size::Double), 0xcccc_dddd_0403_0201);
        words.store(7, Size::Byte, 0x11);
        assert_eq!(words.load(0, Size::Double), 0x11cc_dddd_0403_0201);
    }

    #[test]
    fn bytes_go_anywhere() {
        let words = Words::new(24);
        let bytes: Vec<u8> = (1..=19).collect();
        words.write(3, &bytes);
        let mut all = [9; 24];
        words.read(0, &mut all);
        assert_eq!(all[..4], [0, 0, 0, 1]);
        assert_eq!(all[20..], [18, 19, 0, 0]);
        let mut some = [0; 19];
        words.read(3, &mut some);
        assert_eq!(some[..], bytes[..]);
        words.clear(8, 8);
        words.read(0, &mut all);
        assert_eq!(all[6..18], [4, 5, 0, 0, 0, 0, 0, 0, 0, 0, 14, 15]);
    }

    #[test]
    fn half_a_word_changes_alone() {
        let words = Words::new(8);
        words.store(0, Size::Double, 0xffff_ffff_ffff_fffe);
        assert_eq!(words.change(4, Width::W32, Atomic::FetchAdd, 3, 0), 0xffff_ffff);
        assert_eq!(words.load(0, Size::Double), 0x0000_0002_ffff_fffe);
        assert_eq!(words.change(0, Width::W32, Atomic::CompareExchange, 7, 0x1_ffff_fffe), 0xffff_fffe);
        assert_eq!(words.load(0, Size::Double), 0x0000_0002_0000_0007);
        assert_eq!(words.change(0, Width::W64, Atomic::CompareExchange, 1, 7), 0x0000_0002_0000_0007);
        assert_eq!(words.load(0, Size::Double), 0x0000_0002_0000_0007);
    }

    #[test]
    fn beyond_the_end_is_nothing() {
        let words = Words::new(8);
        words.store(8, Size::Byte, 1);
        words.write(6, &[1, 2, 3]);
        assert_eq!(words.load(8, Size::Byte), 0);
        assert_eq!(words.load(0, Size::Double), 0x0201_0000_0000_0000);
        assert_eq!(words.change(8, Width::W64, Atomic::Add, 1, 0), 0);
    }
}
