//! The state of an installed program: a block that all its packets share.

use crate::words::Words;

/// Some bytes of shared memory, zero at the beginning.
///
/// Programs read and write it word by word. Between two batches of the worker that runs them, [`State::get`]
/// and [`State::set`] are whole.
#[derive(Debug)]
pub struct State {
    words: Words,
    size: u32,
}

impl State {
    /// Most bytes of a state.
    pub const MAX: u32 = 4096;

    /// A state of this many bytes, at most [`State::MAX`]; more are cut off.
    pub fn new(size: u32) -> Self {
        let size = size.min(Self::MAX);
        Self { words: Words::new(size as usize), size }
    }

    /// How many bytes it has.
    pub fn size(&self) -> u32 {
        self.size
    }

    /// Its memory, rounded up to whole words.
    pub fn words(&self) -> &Words {
        &self.words
    }

    /// Its bytes.
    pub fn get(&self) -> Vec<u8> {
        let mut bytes = vec![0; self.size as usize];
        self.words.read(0, &mut bytes);
        bytes
    }

    /// Writes it. False, and nothing is done, if `bytes` are not as many as it has.
    #[must_use]
    pub fn set(&self, bytes: &[u8]) -> bool {
        let fits = bytes.len() == self.size as usize;
        if fits {
            self.words.write(0, bytes);
        }
        fits
    }
}
