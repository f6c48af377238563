//! The stack frames of a running program.

use crate::memory::{FRAME_SIZE, Fault, MAX_FRAMES, STACK_SIZE};
use crate::reserved::Records;
use std::ops::Range;

/// Eight frames of 512 bytes. One stack is enough for all programs of a worker, which run one after the
/// other.
#[derive(Debug, Clone)]
pub struct Stack {
    bytes: Box<Aligned>,
    /// Frames in use.
    frames: usize,
    /// A bit for each byte written since its frame came into use; none if unchecked.
    written: Option<Box<[u64; STACK_SIZE / 64]>>,
    /// Pending records of the running program.
    pub(crate) records: Records,
}

#[derive(Debug, Clone)]
#[repr(align(64))]
struct Aligned([u8; STACK_SIZE]);

impl Stack {
    /// A stack that detects reads of uninitialized bytes and accesses to unused frames: for unverified
    /// programs.
    pub fn checked() -> Self {
        Self { written: Some(Box::new([0; STACK_SIZE / 64])), ..Self::trusting() }
    }

    /// A stack that only checks bounds: for verified programs, in particular compiled ones, which don't track
    /// their writes.
    pub fn trusting() -> Self {
        Self {
            bytes: Box::new(Aligned([0; STACK_SIZE])),
            frames: MAX_FRAMES,
            written: None,
            records: Records::default(),
        }
    }

    /// All its memory, for compiled programs. Offsets are the lower halves of frame pointers.
    pub fn bytes_mut(&mut self) -> &mut [u8; STACK_SIZE] {
        &mut self.bytes.0
    }

    /// Resets it for a program: one frame, nothing written.
    pub(crate) fn reset(&mut self) {
        if let Some(written) = &mut self.written {
            written.fill(0);
            self.frames = 1;
        }
    }

    /// Sets the number of frames in use.
    pub(crate) fn set_frames(&mut self, frames: usize) {
        let Some(written) = &mut self.written else { return };
        self.frames = frames;
        let unused = STACK_SIZE - frames * FRAME_SIZE;
        written[..unused / 64].fill(0);
    }

    /// Range of bytes, if they are within one frame in use.
    pub(crate) fn range(&self, address: u64, size: u32) -> Result<Range<usize>, Fault> {
        let start = address as u32 as usize;
        let end = start + size as usize;
        let within = match self.written {
            // Crossing the border of two frames is always the program's error.
            Some(_) => {
                let same = size == 0 || start / FRAME_SIZE == (end - 1) / FRAME_SIZE;
                same && start >= STACK_SIZE - self.frames * FRAME_SIZE && end <= STACK_SIZE
            }
            None => end <= STACK_SIZE,
        };
        if within { Ok(start..end) } else { Err(Fault::OutOfBounds { address, size }) }
    }

    /// Bytes to read, which must be initialized.
    pub(crate) fn read(&self, address: u64, range: Range<usize>) -> Result<&[u8], Fault> {
        if let Some(written) = &self.written
            && !range.clone().all(|at| written[at / 64] >> (at % 64) & 1 == 1)
        {
            return Err(Fault::Unwritten { address, size: range.len() as u32 });
        }
        Ok(&self.bytes.0[range])
    }

    /// Bytes to be written.
    pub(crate) fn write(&mut self, range: Range<usize>) -> &mut [u8] {
        if let Some(written) = &mut self.written {
            for at in range.clone() {
                written[at / 64] |= 1 << (at % 64);
            }
        }
        &mut self.bytes.0[range]
    }
}
