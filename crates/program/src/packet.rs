//! A program's packet: a movable window in a buffer with headroom and tailroom.

use std::ops::Range;

/// Minimum packet after a program: an Ethernet header.
pub const MIN_PACKET: usize = 14;

/// A packet in its buffer.
#[derive(Debug)]
pub struct Packet<'a> {
    buffer: &'a mut [u8],
    start: u32,
    end: u32,
}

impl<'a> Packet<'a> {
    /// The packet at `data` in `buffer`, with the rest as headroom and tailroom. A range beyond the buffer is
    /// cut to it, and a buffer to its first 4 GiB.
    pub fn new(buffer: &'a mut [u8], data: Range<usize>) -> Self {
        let length = buffer.len().min(u32::MAX as usize);
        let end = data.end.min(length);
        Self { start: data.start.min(end) as u32, end: end as u32, buffer }
    }

    /// Its range in its buffer, in bytes: `data` and `data_end` as offsets in
    /// [`Region::Packet`](crate::Region).
    pub fn range(&self) -> Range<usize> {
        self.start as usize..self.end as usize
    }

    /// Its bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.buffer[self.start as usize..self.end as usize]
    }

    /// Its bytes, mutable.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.buffer[self.start as usize..self.end as usize]
    }

    /// Moves its beginning by `offset` bytes; added bytes keep the buffer's contents. False, without effect,
    /// if there is no room or less than [`MIN_PACKET`] bytes would be left.
    #[must_use]
    pub fn adjust_head(&mut self, offset: i32) -> bool {
        let start = i64::from(self.start) + i64::from(offset);
        let fits = start >= 0 && start + MIN_PACKET as i64 <= i64::from(self.end);
        if fits {
            self.start = start as u32;
        }
        fits
    }

    /// Moves its end by `offset` bytes; added bytes are zero. False, without effect, if there is no room or
    /// less than [`MIN_PACKET`] bytes would be left.
    #[must_use]
    pub fn adjust_tail(&mut self, offset: i32) -> bool {
        let end = i64::from(self.end) + i64::from(offset);
        let fits = end <= self.buffer.len().min(u32::MAX as usize) as i64
            && end >= i64::from(self.start) + MIN_PACKET as i64;
        if fits {
            let old = self.end as usize;
            self.end = end as u32;
            if offset > 0 {
                self.buffer[old..end as usize].fill(0);
            }
        }
        fits
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_head_moves_within_the_room() {
        let mut buffer = [7; 64];
        let mut packet = Packet::new(&mut buffer, 16..40);
        for (offset, moved, range) in [
            (-17, false, 16..40),
            (-16, true, 0..40),
            (26, true, 26..40),
            (1, false, 26..40),
            (i32::MIN, false, 26..40),
        ] {
            assert_eq!(packet.adjust_head(offset), moved, "{offset}");
            assert_eq!(packet.range(), range);
        }
    }

    #[test]
    fn the_tail_moves_within_the_room_and_brings_zeros() {
        let mut buffer = [7; 64];
        let mut packet = Packet::new(&mut buffer, 16..40);
        for (offset, moved, range) in [
            (25, false, 16..40),
            (24, true, 16..64),
            (-34, true, 16..30),
            (-1, false, 16..30),
            (2, true, 16..32),
        ] {
            assert_eq!(packet.adjust_tail(offset), moved, "{offset}");
            assert_eq!(packet.range(), range);
        }
        assert_eq!(packet.bytes(), [7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 0, 0]);
        assert_eq!(buffer[40..64], [0; 24]);
    }

    #[test]
    fn a_window_stays_in_its_buffer() {
        let mut buffer = [0; 8];
        assert_eq!(Packet::new(&mut buffer, 4..20).range(), 4..8);
        assert_eq!(Packet::new(&mut buffer, 9..20).range(), 8..8);
    }
}
