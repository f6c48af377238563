//! Conversion of pcapng files with clocks finer than a nanosecond, or with long blocks of other things than
//! packets.
//!
//! The pcapng library refuses interfaces with such an `if_tsresol`, though the format allows 10⁻¹²⁷ and 2⁻¹²⁷
//! s. Resolutions are changed to nanoseconds before it reads them: in the descriptions of interfaces and in
//! packets' timestamps, rounded down. It also refuses blocks longer than its buffer; those that are not used,
//! such as secrets, are left out.

use std::io::{BufReader, Read, Result, copy, sink};

const SECTION: u32 = 0x0a0d_0d0a;
const INTERFACE: u32 = 1;
/// The obsolete packet block.
const PACKET: u32 = 2;
const SIMPLE: u32 = 3;
const STATISTICS: u32 = 5;
const ENHANCED: u32 = 6;
/// Kinds of blocks that are used.
const USED: [u32; 6] = [SECTION, INTERFACE, PACKET, SIMPLE, STATISTICS, ENHANCED];
/// The option `if_tsresol`, and its value for nanoseconds.
const RESOLUTION: u16 = 9;
const NANOSECONDS: u8 = 9;
/// Type, length, interface and timestamp of a packet block.
const STAMPED: usize = 20;
/// Offset of the options in an interface block.
const OPTIONS: usize = 16;
/// Longest block that can be read. Of longer ones those that are not used are left out, and the others passed
/// through unchanged.
pub const LONGEST: u32 = 1 << 20;

/// A pcapng file in which times finer than a nanosecond are converted, and long blocks left out that are not
/// used. Any other input is passed through unchanged.
#[derive(Debug)]
pub struct Nanoseconds<R> {
    inner: BufReader<R>,
    big: bool,
    /// For each interface of the section, its resolution if it was too fine.
    finer: Vec<Option<u8>>,
    /// The beginning of the current block, and the number of bytes already delivered.
    head: Vec<u8>,
    given: usize,
    /// Remaining bytes of the block after that.
    rest: u64,
}

impl<R: Read> Nanoseconds<R> {
    /// Reads `inner`, from its beginning.
    pub fn new(inner: R) -> Self {
        let (finer, head) = (Vec::new(), Vec::new());
        Self { inner: BufReader::new(inner), big: false, finer, head, given: 0, rest: 0 }
    }

    /// Reads the beginning of the next block, and changes it if necessary. False at the end of the file.
    fn begin_block(&mut self) -> Result<bool> {
        self.head.clear();
        self.given = 0;
        self.fill(12)?;
        if self.head.len() < 12 {
            return Ok(!self.head.is_empty());
        }
        if self.word(0) == SECTION {
            self.big = self.head[8..12] == [0x1a, 0x2b, 0x3c, 0x4d];
            self.finer.clear();
        }
        let (kind, length) = (self.word(0), self.word(4));
        if length < 12 || !length.is_multiple_of(4) {
            // The position of the next block is unknown.
            self.rest = u64::MAX;
            return Ok(true);
        }
        if length > LONGEST && !USED.contains(&kind) {
            let rest = u64::from(length - 12);
            // If the file ends within the block, its beginning is passed on, and found to be cut short.
            if copy(&mut self.inner.by_ref().take(rest), &mut sink())? == rest {
                self.head.clear();
            }
            return Ok(true);
        }
        match kind {
            INTERFACE if length <= LONGEST => {
                self.fill(length as usize)?;
                let finer = self.coarsen_interface();
                self.finer.push(finer);
            }
            INTERFACE => self.finer.push(None),
            PACKET | ENHANCED if length as usize >= STAMPED => {
                self.fill(STAMPED)?;
                self.coarsen_packet(kind);
            }
            _ => {}
        }
        self.rest = u64::from(length) - self.head.len() as u64;
        Ok(true)
    }

    /// Reads until the block's head has `wanted` bytes, or the file ends.
    fn fill(&mut self, wanted: usize) -> Result<()> {
        let more = wanted.saturating_sub(self.head.len()) as u64;
        self.inner.by_ref().take(more).read_to_end(&mut self.head)?;
        Ok(())
    }

    fn word(&self, at: usize) -> u32 {
        let bytes = self.head[at..].first_chunk().copied().unwrap_or_default();
        if self.big { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) }
    }

    fn half(&self, at: usize) -> u16 {
        let bytes = self.head[at..].first_chunk().copied().unwrap_or_default();
        if self.big { u16::from_be_bytes(bytes) } else { u16::from_le_bytes(bytes) }
    }

    /// Changes an interface's resolution to nanoseconds if it is finer, and returns the original.
    fn coarsen_interface(&mut self) -> Option<u8> {
        let mut at = OPTIONS;
        while at + 4 < self.head.len() {
            let (code, length) = (self.half(at), usize::from(self.half(at + 2)));
            match code {
                0 => return None,
                RESOLUTION if length == 1 => {
                    let value = self.head[at + 4];
                    let finest = if value & 0x80 == 0 { 9 } else { 0x80 | 29 };
                    if value <= finest {
                        return None;
                    }
                    self.head[at + 4] = NANOSECONDS;
                    return Some(value);
                }
                _ => at += 4 + length.next_multiple_of(4),
            }
        }
        None
    }

    fn coarsen_packet(&mut self, kind: u32) {
        if self.head.len() < STAMPED {
            return;
        }
        let interface = if kind == PACKET { usize::from(self.half(8)) } else { self.word(8) as usize };
        let Some(&Some(resolution)) = self.finer.get(interface) else { return };
        let ticks = u64::from(self.word(12)) << 32 | u64::from(self.word(16));
        let nanos = nanos(ticks, resolution);
        for (at, word) in [(12, (nanos >> 32) as u32), (16, nanos as u32)] {
            let bytes = if self.big { word.to_be_bytes() } else { word.to_le_bytes() };
            self.head[at..at + 4].copy_from_slice(&bytes);
        }
    }
}

/// Converts ticks of a finer clock to nanoseconds.
fn nanos(ticks: u64, resolution: u8) -> u64 {
    let power = u32::from(resolution & 0x7f);
    if resolution & 0x80 != 0 {
        return ((u128::from(ticks) * 1_000_000_000) >> power) as u64;
    }
    10u64.checked_pow(power - 9).map_or(0, |unit| ticks / unit)
}

impl<R: Read> Read for Nanoseconds<R> {
    fn read(&mut self, buffer: &mut [u8]) -> Result<usize> {
        let mut read = 0;
        while read < buffer.len() {
            let room = &mut buffer[read..];
            if self.given < self.head.len() {
                let count = room.len().min(self.head.len() - self.given);
                room[..count].copy_from_slice(&self.head[self.given..][..count]);
                self.given += count;
                read += count;
            } else if self.rest > 0 {
                let most = room.len().min(usize::try_from(self.rest).unwrap_or(usize::MAX));
                let count = self.inner.read(&mut room[..most])?;
                if count == 0 {
                    break;
                }
                self.rest -= count as u64;
                read += count;
            } else if !self.begin_block()? {
                break;
            }
        }
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_become_nanoseconds_rounded_down() {
        for (ticks, resolution, wanted) in [
            (1_999, 12, 1),
            (u64::MAX, 10, u64::MAX / 10),
            (u64::MAX, 28, 1),
            (u64::MAX, 29, 0),
            (u64::MAX, 127, 0),
            (3 << 31, 0x80 | 32, 1_500_000_000),
            (u64::MAX, 0x80 | 30, 17_179_869_183_999_999_999),
            (u64::MAX, 255, 0),
        ] {
            assert_eq!(nanos(ticks, resolution), wanted, "{ticks} {resolution:#x}");
        }
    }

    /// Invalid bytes are passed through unchanged, whatever the size of the reads.
    #[test]
    fn what_is_no_pcapng_goes_through() {
        let section =
            [&SECTION.to_le_bytes()[..], &28u32.to_le_bytes(), &0x1a2b_3c4du32.to_le_bytes()].concat();
        for tail in [&[][..], &[1], &[9; 11], &[0; 100], &[0xff; 100], &[1, 0, 0, 0, 0, 0, 16, 0, 9, 9, 9, 9]]
        {
            let file = [&section[..], &[7u8; 16], tail].concat();
            for portion in [1, 7, 4096] {
                let (mut reader, mut seen, mut buffer) =
                    (Nanoseconds::new(&file[..]), Vec::<u8>::new(), [0; 4096]);
                while let Ok(count @ 1..) = reader.read(&mut buffer[..portion]) {
                    seen.extend(&buffer[..count]);
                }
                assert_eq!(seen, file);
            }
        }
    }
}
