//! Longest prefixes: keys are a length in bits, as 4 bytes in native order, and the bits; bits after the
//! prefix are ignored.
//!
//! A key is stored with those bits zero, in a [`Table`] like a hash map's. A lookup tries every existing
//! length, longest first: at most as many as there are bits, and as there are keys.

use super::spec::{LENGTH, lengths};
use super::table::Table;
use crate::MapSpec;
use std::sync::atomic::{AtomicU32, Ordering};

/// Number of keys of each length.
#[derive(Debug)]
pub(super) struct Prefixes {
    counts: Box<[AtomicU32]>,
}

/// A normalized key.
pub(super) struct Prefix {
    bytes: [u8; MapSpec::MAX_KEY as usize],
    size: usize,
    length: usize,
}

impl Prefixes {
    pub(super) fn new(key_size: u32) -> Self {
        Self { counts: (0..lengths(key_size)).map(|_| AtomicU32::new(0)).collect() }
    }

    /// The entry of the longest prefix of this key. None if its length is invalid.
    pub(super) fn longest(&self, table: &Table, key: &[u8]) -> Option<u32> {
        let mut prefix = Prefix::new(key)?;
        for length in (0..=prefix.length).rev() {
            if self.counts.get(length)?.load(Ordering::Acquire) > 0 {
                prefix.shorten(length);
                if let Some(entry) = table.find(prefix.key()) {
                    return Some(entry);
                }
            }
        }
        None
    }

    pub(super) fn added(&self, prefix: &Prefix) {
        self.counts[prefix.length].fetch_add(1, Ordering::Release);
    }

    pub(super) fn removed(&self, prefix: &Prefix) {
        self.counts[prefix.length].fetch_sub(1, Ordering::Release);
    }
}

impl Prefix {
    /// None if its length exceeds its bits.
    pub(super) fn new(key: &[u8]) -> Option<Self> {
        let (length, bits) = key.split_first_chunk::<LENGTH>()?;
        let length = usize::try_from(u32::from_le_bytes(*length)).ok()?;
        if length > bits.len() * 8 {
            return None;
        }
        let mut prefix =
            Self { bytes: [0; MapSpec::MAX_KEY as usize], size: key.len(), length: bits.len() * 8 };
        prefix.bytes.get_mut(..key.len())?.copy_from_slice(key);
        prefix.shorten(length);
        Some(prefix)
    }

    pub(super) fn key(&self) -> &[u8] {
        &self.bytes[..self.size]
    }

    /// Shortens it to this many bits, at most as many as it has.
    fn shorten(&mut self, length: usize) {
        let bits = &mut self.bytes[LENGTH..self.size];
        let whole = length / 8;
        if let Some(partial) = bits.get_mut(whole) {
            *partial &= !(0xff >> (length % 8));
        }
        bits.iter_mut().skip(whole + 1).for_each(|byte| *byte = 0);
        self.length = length;
        self.bytes[..LENGTH].copy_from_slice(&(length as u32).to_le_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lies_beyond_a_prefix_counts_for_nothing() {
        let prefix = Prefix::new(&[11, 0, 0, 0, 0xff, 0xff, 0xff]).unwrap();
        assert_eq!(prefix.key(), [11, 0, 0, 0, 0xff, 0xe0, 0]);
        assert_eq!(Prefix::new(&[0, 0, 0, 0, 1, 2]).unwrap().key(), [0; 6]);
        assert_eq!(Prefix::new(&[16, 0, 0, 0, 1, 2]).unwrap().key(), [16, 0, 0, 0, 1, 2]);
        assert!(Prefix::new(&[17, 0, 0, 0, 1, 2]).is_none());
        assert!(Prefix::new(&[0, 0, 0, 1, 1, 2]).is_none());
        assert!(Prefix::new(&[0, 0, 0]).is_none());
    }
}
