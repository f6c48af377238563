//! The virtio network header (VIRTIO 1.2, 5.1.6), which TAP and AF_PACKET put before each frame to carry
//! segmentation and checksum offload.

use crate::checksum::{ChecksumError, check_place};
use crate::train::{TrainError, validate_train};
use longwire_packet::{Checksum, Meta};
use thiserror::Error;

/// Bytes of the header that kernel interfaces use by default.
pub const LEN: usize = 10;

const NEEDS_CHECKSUM: u8 = 1;
const DATA_VALID: u8 = 2;
/// The bit next to the kind of train that announces CWR; the frame has the flag too.
const ECN: u8 = 0x80;

/// An invalid virtio network header.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum VirtioError {
    /// The header is truncated.
    #[error("a virtio header of {0} bytes is too short: it has 10, or 12 with merged buffers")]
    Short(usize),
    /// The checksum lies outside the frame.
    #[error(transparent)]
    Checksum(#[from] ChecksumError),
    /// The train is none.
    #[error(transparent)]
    Train(#[from] TrainError),
}

/// Reads the header of `frame` from the first 10 or 12 `bytes`, little-endian as on the interfaces of a
/// little-endian machine (the number of merged buffers is ignored), checks it against the frame, and sets the
/// fields of `meta` that it describes. This includes [`validate_train`].
///
/// # Errors
/// A header that is truncated or does not fit the frame, which should then be counted as bad.
pub fn read(bytes: &[u8], meta: &mut Meta, frame: &[u8]) -> Result<(), VirtioError> {
    let header = bytes.first_chunk::<LEN>().ok_or(VirtioError::Short(bytes.len()))?;
    let word = |at: usize| u16::from_le_bytes([header[at], header[at + 1]]);
    let (flags, kind) = (header[0], header[1]);
    meta.checksum = Checksum::Unknown as u8;
    if flags & NEEDS_CHECKSUM != 0 {
        let (start, offset) = (word(6), word(8));
        check_place(start, offset, frame.len())?;
        meta.set_open_checksum(start, offset);
    } else if flags & DATA_VALID != 0 {
        meta.checksum = Checksum::Verified as u8;
    }
    validate_train(meta, frame, (kind & !ECN, word(4)))?;
    Ok(())
}

/// Writes the header of a frame from its `meta`. Twelve-byte headers end in two more zero bytes.
///
/// A verified checksum is not passed on as such: the receiver must see errors made on the way.
pub fn write(meta: &Meta) -> [u8; LEN] {
    let mut header = [0; LEN];
    if let Some((start, offset)) = meta.open_checksum() {
        header[0] = NEEDS_CHECKSUM;
        header[6..8].copy_from_slice(&start.to_le_bytes());
        header[8..].copy_from_slice(&offset.to_le_bytes());
    }
    if let Some(train) = meta.train() {
        header[1] = train.gso;
        header[2..4].copy_from_slice(&train.header_len.to_le_bytes());
        header[4..6].copy_from_slice(&train.gso_size.to_le_bytes());
    }
    header
}

#[cfg(test)]
mod tests {
    use super::*;
    use longwire_packet::{Pool, Train};

    /// TCP over IPv4 with 250 bytes of payload; the IP checksum is left out.
    fn frame() -> Vec<u8> {
        let mut frame = vec![0; 304];
        frame[12..14].copy_from_slice(&[8, 0]);
        frame[14..18].copy_from_slice(&[0x45, 0, 1, 34]);
        (frame[23], frame[46]) = (6, 0x50);
        frame
    }

    fn read_first(header: &[u8]) -> Result<Meta, VirtioError> {
        let mut pool = Pool::new(1 << 20).unwrap();
        let packet = pool.insert(&frame()).unwrap();
        let (meta, frame) = pool.parts_mut(packet);
        read(header, meta, frame)?;
        Ok(*meta)
    }

    #[test]
    fn reads_and_writes() {
        const UNKNOWN: (u8, Option<(u16, u16)>) = (Checksum::Unknown as u8, None);
        const OPEN: (u8, Option<(u16, u16)>) = (Checksum::Partial as u8, Some((34, 16)));
        const VERIFIED: (u8, Option<(u16, u16)>) = (Checksum::Verified as u8, None);
        let train = Train { gso: 1, segments: 3, gso_size: 100, header_len: 54 };
        // (read; checksum, its place, train; written)
        let table = [
            ([0; 10], UNKNOWN, None, [0; 10]),
            ([2, 0, 0, 0, 0, 0, 0, 0, 0, 0], VERIFIED, None, [0; 10]),
            ([1, 0, 9, 9, 9, 9, 34, 0, 16, 0], OPEN, None, [1, 0, 0, 0, 0, 0, 34, 0, 16, 0]),
            // A train: the wrong header length and checksum place are replaced, the ECN bit is dropped.
            ([1, 0x81, 1, 0, 100, 0, 2, 0, 2, 0], OPEN, Some(train), [1, 1, 54, 0, 100, 0, 34, 0, 16, 0]),
            // A train of one segment is an ordinary packet.
            ([1, 1, 54, 0, 250, 0, 34, 0, 16, 0], OPEN, None, [1, 0, 0, 0, 0, 0, 34, 0, 16, 0]),
        ];
        for (bytes, checksum, train, written) in table {
            let meta = read_first(&bytes).unwrap();
            assert_eq!((meta.checksum, meta.open_checksum()), checksum, "{bytes:?}");
            assert_eq!(meta.train(), train, "{bytes:?}");
            assert_eq!(write(&meta), written, "{bytes:?}");
            // Followed by the number of merged buffers.
            assert_eq!(read_first(&[&bytes[..], &[1, 0]].concat()).unwrap(), meta);
        }
    }

    #[test]
    fn refuses_what_does_not_fit_the_frame() {
        assert_eq!(read_first(&[0; 9]), Err(VirtioError::Short(9)));
        let outside = ChecksumError { start: 287, offset: 16, len: 304 };
        assert_eq!(read_first(&[1, 0, 0, 0, 0, 0, 0x1f, 1, 16, 0]), Err(outside.into()));
        assert!(read_first(&[1, 0, 0, 0, 0, 0, 0x1e, 1, 16, 0]).is_ok());
        assert_eq!(read_first(&[0, 3, 0, 0, 100, 0, 0, 0, 0, 0]), Err(TrainError::Kind(3).into()));
        let size = TrainError::Size { gso_size: 0, payload: 250 };
        assert_eq!(read_first(&[0, 1, 0, 0, 0, 0, 0, 0, 0, 0]), Err(size.into()));
    }
}
