//! The Internet checksum (RFC 1071), its incremental update (RFC 1624), and completion of a checksum that the
//! sender left open.

use longwire_packet::{Checksum, Meta};
use thiserror::Error;

/// A running one's complement sum.
///
/// It is kept in memory order, which does not change the sum (RFC 1071, 2 B), so that eight bytes are read at
/// a time on every machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Sum(u64);

impl Sum {
    /// The sum of nothing.
    pub const ZERO: Self = Self(0);

    /// Adds bytes. An odd last byte is padded with zero, so only the last piece may be odd. All pieces
    /// together may have up to 16 GiB.
    #[inline]
    pub fn bytes(self, bytes: &[u8]) -> Self {
        let (chunks, rest) = bytes.as_chunks::<8>();
        let mut sum = self.0;
        for chunk in chunks {
            let word = u64::from_ne_bytes(*chunk);
            sum += (word & 0xffff_ffff) + (word >> 32);
        }
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        let word = u64::from_ne_bytes(last);
        Self(sum + (word & 0xffff_ffff) + (word >> 32))
    }

    /// Adds a 16-bit number.
    #[inline]
    pub const fn short(self, value: u16) -> Self {
        Self(self.0 + value.to_be() as u64)
    }

    /// Adds a 32-bit number.
    #[inline]
    pub const fn long(self, value: u32) -> Self {
        Self(self.0 + value.to_be() as u64)
    }

    /// The sum folded to 16 bits: the content of the checksum field while the rest is still to be filled in.
    #[inline]
    pub const fn folded(self) -> u16 {
        let sum = (self.0 & 0xffff_ffff) + (self.0 >> 32);
        let sum = (sum & 0xffff) + (sum >> 16);
        let sum = (sum & 0xffff) + (sum >> 16);
        let sum = (sum & 0xffff) + (sum >> 16);
        u16::from_be(sum as u16)
    }

    /// Whether the bytes contain a correct checksum: the sum of all is a non-zero multiple of 0xffff.
    /// Equivalent to a [`Sum::checksum`] of 0.
    #[inline]
    pub const fn is_right(self) -> bool {
        // 0xffff is odd: multiplication by its inverse modulo 2^64 maps its multiples, and nothing else, to
        // their factors.
        const INVERSE: u64 = 0xfffe_fffe_fffe_ffff;
        self.0.wrapping_mul(INVERSE).wrapping_sub(1) < u64::MAX / 0xffff
    }

    /// The checksum: the complement of the sum. Zero over bytes that contain a correct checksum.
    #[inline]
    pub const fn checksum(self) -> u16 {
        !self.folded()
    }
}

/// The change of a one's complement sum when `new` bytes replace `old` ones, both an even number: 1 to
/// 0xffff, where 0xffff changes nothing. A checksum over them decreases by this (RFC 1624, equation 4).
pub fn change(old: &[u8], new: &[u8]) -> u16 {
    match Sum::ZERO.bytes(new).short(Sum::ZERO.bytes(old).checksum()).folded() {
        0 => 0xffff,
        changed => changed,
    }
}

/// The sum over the pseudo-header of TCP or UDP over IPv4; `length` includes header and payload.
#[inline]
pub const fn pseudo_v4(source: u32, destination: u32, protocol: u8, length: u16) -> Sum {
    Sum::ZERO.long(source).long(destination).short(protocol as u16).short(length)
}

/// The sum over the pseudo-header of TCP, UDP or ICMPv6 over IPv6 (RFC 8200, 8.1); `length` includes header
/// and payload.
#[inline]
pub fn pseudo_v6(source: u128, destination: u128, protocol: u8, length: u32) -> Sum {
    let addresses = Sum::ZERO.bytes(&source.to_be_bytes()).bytes(&destination.to_be_bytes());
    addresses.short(protocol.into()).long(length)
}

/// The new checksum after a 16-bit word that it covers changed from `old` to `new` (RFC 1624, equation 3).
#[inline]
pub const fn update(checksum: u16, old: u16, new: u16) -> u16 {
    Sum::ZERO.short(!checksum).short(!old).short(new).checksum()
}

/// A checksum that can't be completed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("csum_start {start} and csum_offset {offset} put the checksum outside the frame of {len} bytes")]
pub struct ChecksumError {
    /// Where checksumming would start.
    pub start: u16,
    /// Offset of the checksum field from there.
    pub offset: u16,
    /// Bytes of the frame.
    pub len: usize,
}

/// Offset of the checksum in a UDP header, where zero means no checksum.
pub(crate) const UDP_OFFSET: u16 = 6;

/// Completes a checksum that the sender left open, before the frame goes on a wire. Frames whose checksum is
/// not [`Checksum::Partial`] are not changed. A train gets the checksum of the one large packet that it is.
///
/// # Errors
/// If the checksum would lie outside the frame, which is then not changed.
#[inline]
pub fn finish_checksum(meta: &mut Meta, frame: &mut [u8]) -> Result<(), ChecksumError> {
    meta.open_checksum().map_or(Ok(()), |place| fill_in(meta, frame, place))
}

#[inline(never)]
fn fill_in(meta: &mut Meta, frame: &mut [u8], (start, offset): (u16, u16)) -> Result<(), ChecksumError> {
    check_place(start, offset, frame.len())?;
    let covered = &mut frame[usize::from(start)..];
    let checksum = match Sum::ZERO.bytes(covered).checksum() {
        0 if offset == UDP_OFFSET => 0xffff,
        checksum => checksum,
    };
    let at = usize::from(offset);
    covered[at..at + 2].copy_from_slice(&checksum.to_be_bytes());
    meta.checksum = Checksum::Unknown as u8;
    Ok(())
}

/// Whether a checksum of two bytes at `start + offset` lies within a frame of `len` bytes.
pub(crate) fn check_place(start: u16, offset: u16, len: usize) -> Result<(), ChecksumError> {
    if usize::from(start) + usize::from(offset) + 2 > len {
        return Err(ChecksumError { start, offset, len });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use longwire_packet::Pool;
    use proptest::prelude::*;

    /// The sum as defined in RFC 1071, two bytes at a time.
    fn plain(bytes: &[u8]) -> u16 {
        let mut sum = 0u32;
        for pair in bytes.chunks(2) {
            sum += u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0));
            sum = (sum & 0xffff) + (sum >> 16);
        }
        !(sum as u16)
    }

    #[test]
    fn a_sum_is_right_if_the_checksum_of_all_is_zero() {
        let near = (1..1000).flat_map(|n| n * 0xffff - 1..n * 0xffff + 2);
        for sum in (0..1 << 20).chain(near).chain([0xffff_ffff * 5, 0xffff << 20, (0xffff << 20) + 1]) {
            assert_eq!(Sum(sum).is_right(), Sum(sum).checksum() == 0, "{sum}");
        }
    }

    #[test]
    fn agrees_with_the_rfc_example() {
        // RFC 1071, 3: the bytes 00 01 f2 03 f4 f5 f6 f7 sum to ddf2.
        let sum = Sum::ZERO.bytes(&[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7]);
        assert_eq!((sum.folded(), sum.checksum()), (0xddf2, 0x220d));
        assert_eq!(Sum::ZERO.checksum(), 0xffff);
        // RFC 1624, 4: header checksum dd2f, a word changes from 5555 to 3285: 0000, not ffff.
        assert_eq!(update(0xdd2f, 0x5555, 0x3285), 0x0000);
        assert_eq!(change(&[0x55, 0x55], &[0x32, 0x85]), 0xdd2f);
        assert_eq!((change(&[], &[]), change(&[0xff; 4], &[0; 6])), (0xffff, 0xffff));
    }

    #[test]
    fn pseudo_headers_are_their_bytes() {
        let v4 = [10, 0, 0, 1, 192, 168, 0, 255, 0, 17, 1, 2];
        assert_eq!(pseudo_v4(0x0a00_0001, 0xc0a8_00ff, 17, 0x0102).checksum(), plain(&v4));
        let (source, destination) = (0xfd00_1234u128 << 96 | 7, 0xff02u128 << 112 | 0x99);
        let v6 = [&source.to_be_bytes()[..], &destination.to_be_bytes(), &[0, 1, 2, 3, 0, 0, 0, 6]].concat();
        assert_eq!(pseudo_v6(source, destination, 6, 0x0001_0203).checksum(), plain(&v6));
    }

    #[test]
    fn finishes_and_marks() {
        // UDP 1 → 2, length 9, pseudo-header sum 0x1234 in the checksum field, payload ff.
        let mut pool = Pool::new(1 << 20).unwrap();
        let packet = pool.insert(&[0xee, 0xee, 0, 1, 0, 2, 0, 9, 0x12, 0x34, 0xff]).unwrap();
        let (meta, frame) = pool.parts_mut(packet);
        meta.set_open_checksum(2, 6);
        finish_checksum(meta, frame).unwrap();
        // 0001 + 0002 + 0009 + 1234 + ff00 = 1_1140 → 1141, complement eebe.
        assert_eq!(frame[8..10], [0xee, 0xbe]);
        assert_eq!(meta.checksum, Checksum::Unknown as u8);
        let before = frame.to_vec();
        finish_checksum(meta, frame).unwrap();
        assert_eq!(frame, before);
    }

    #[test]
    fn a_udp_checksum_of_zero_is_written_as_ffff() {
        for (offset, expected) in [(6, [0xff, 0xff]), (4, [0, 0])] {
            let mut pool = Pool::new(1 << 20).unwrap();
            let packet = pool.insert(&[0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff]).unwrap();
            let (meta, frame) = pool.parts_mut(packet);
            meta.set_open_checksum(0, offset);
            finish_checksum(meta, frame).unwrap();
            assert_eq!(frame[usize::from(offset)..][..2], expected);
        }
    }

    #[test]
    fn refuses_places_outside_the_frame() {
        let mut pool = Pool::new(1 << 20).unwrap();
        let packet = pool.insert(&[0; 20]).unwrap();
        let (meta, frame) = pool.parts_mut(packet);
        for (start, offset, fits) in
            [(0, 18, true), (18, 0, true), (0, 19, false), (20, 0, false), (u16::MAX, u16::MAX, false)]
        {
            meta.set_open_checksum(start, offset);
            assert_eq!(finish_checksum(meta, frame).is_ok(), fits, "{start} {offset}");
        }
    }

    proptest! {
        #[test]
        fn is_the_plain_sum(bytes in prop::collection::vec(any::<u8>(), 0..300), cut in 0..150usize) {
            let (head, tail) = bytes.split_at((cut * 2).min(bytes.len()));
            prop_assert_eq!(Sum::ZERO.bytes(&bytes).checksum(), plain(&bytes));
            prop_assert_eq!(Sum::ZERO.bytes(head).bytes(tail).checksum(), plain(&bytes));
        }

        #[test]
        fn a_change_is_the_difference_of_two_sums(
            old in prop::collection::vec(any::<u16>(), 0..20),
                new in prop::collection::vec(any::<u16>(), 0..20)
        ) {
            let total = |words: &[u16]| words.iter().map(|&word| i64::from(word)).sum::<i64>();
            let bytes = |words: &[u16]| words.iter().flat_map(|word| word.to_be_bytes()).collect::<Vec<u8>>();
            let changed = change(&bytes(&old), &bytes(&new));
            prop_assert_eq!((total(&new) - total(&old) - i64::from(changed)).rem_euclid(0xffff), 0);
            prop_assert!(changed > 0);
        }

        #[test]
        fn an_update_is_a_new_sum(mut bytes in prop::collection::vec(any::<u8>(), 4..80), at in 0..2usize,
            new: u16) {
            let old = u16::from_be_bytes([bytes[at * 2], bytes[at * 2 + 1]]);
            let before = plain(&bytes);
            bytes[at * 2..at * 2 + 2].copy_from_slice(&new.to_be_bytes());
            // All-zero data has a checksum of ffff, which an update can't distinguish from 0000.
            prop_assume!(bytes.iter().any(|&byte| byte != 0));
            prop_assert_eq!(update(before, old, new), plain(&bytes));
        }
    }
}
