//! The state of an installed program, shared by all its packets.

use crate::words::Words;

/// A block of shared memory, initially zero.
///
/// Programs access it word by word. [`ProgramState::get`] and [`ProgramState::set`] are atomic if called
/// between two batches of the worker that runs the programs.
#[derive(Debug)]
pub struct ProgramState {
    words: Words,
    size: u32,
}

impl ProgramState {
    /// Most bytes of a state.
    pub const MAX: u32 = 4096;

    /// A state of this many bytes, at most [`ProgramState::MAX`]; larger sizes are reduced.
    pub fn new(size: u32) -> Self {
        let size = size.min(Self::MAX);
        Self { words: Words::new(size as usize), size }
    }

    /// Its size in bytes.
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

    /// Writes it. False, without effect, if the size differs.
    #[must_use]
    pub fn set(&self, bytes: &[u8]) -> bool {
        let fits = bytes.len() == self.size as usize;
        if fits {
            self.words.write(0, bytes);
        }
        fits
    }
}
