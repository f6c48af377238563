//! The stack frames of a running program.

use crate::memory::{FRAME_SIZE, Fault, MAX_FRAMES, STACK_SIZE};
use crate::reserved::Records;
use std::ops::Range;

/// Eight frames of 512 bytes. One is enough for all programs of a worker, which run one after the other.
#[derive(Debug, Clone)]
pub struct Stack {
    bytes: Box<Aligned>,
    /// Frames in use.
    frames: usize,
    /// One bit for each byte that was written since its frame came into use; none if nobody looks.
    written: Option<Box<[u64; STACK_SIZE / 64]>>,
    /// What the program that uses it has reserved in rings.
    pub(crate) records: Records,
}

#[derive(Debug, Clone)]
#[repr(align(64))]
struct Aligned([u8; STACK_SIZE]);

impl Stack {
    /// A stack that notices when bytes are read that were not written, and frames touched that are not in
    /// use: for programs that nobody has verified.
    pub fn checked() -> Self {
        Self { written: Some(Box::new([0; STACK_SIZE / 64])), ..Self::trusting() }
    }

    /// A stack that only sees to it that accesses lie within it: for verified programs, compiled ones above
    /// all, which keep no account of what they write.
    pub fn trusting() -> Self {
        Self {
            bytes: Box::new(Aligned([0; STACK_SIZE])),
            frames: MAX_FRAMES,
            written: None,
            records: Records::default(),
        }
    }

    /// All its memory, for compiled programs. A frame pointer's place is its address's lower half.
    pub fn bytes_mut(&mut self) -> &mut [u8; STACK_SIZE] {
        &mut self.bytes.0
    }

    /// Gets ready for a program: one frame, nothing written.
    pub(crate) fn reset(&mut self) {
        if let Some(written) = &mut self.written {
            written.fill(0);
            self.frames = 1;
        }
    }

    /// Takes the frame of a called function into use, or out of it.
    pub(crate) fn set_frames(&mut self, frames: usize) {
        let Some(written) = &mut self.written else { return };
        self.frames = frames;
        let unused = STACK_SIZE - frames * FRAME_SIZE;
        written[..unused / 64].fill(0);
    }

    /// Where bytes lie, if they are within one frame in use.
    pub(crate) fn range(&self, address: u64, size: u32) -> Result<Range<usize>, Fault> {
        let start = address as u32 as usize;
        let end = start + size as usize;
        let within = match self.written {
            // A program may reach over the border of two frames by nothing but its own fault.
            Some(_) => {
                let same = size == 0 || start / FRAME_SIZE == (end - 1) / FRAME_SIZE;
                same && start >= STACK_SIZE - self.frames * FRAME_SIZE && end <= STACK_SIZE
            }
            None => end <= STACK_SIZE,
        };
        if within { Ok(start..end) } else { Err(Fault::OutOfBounds { address, size }) }
    }

    /// Bytes that were written before.
    pub(crate) fn read(&self, address: u64, range: Range<usize>) -> Result<&[u8], Fault> {
        if let Some(written) = &self.written
            && !range.clone().all(|at| written[at / 64] >> (at % 64) & 1 == 1)
        {
            return Err(Fault::Unwritten { address, size: range.len() as u32 });
        }
        Ok(&self.bytes.0[range])
    }

    /// Bytes that are about to be written.
    pub(crate) fn write(&mut self, range: Range<usize>) -> &mut [u8] {
        if let Some(written) = &mut self.written {
            for at in range.clone() {
                written[at / 64] |= 1 << (at % 64);
            }
        }
        &mut self.bytes.0[range]
    }
}
