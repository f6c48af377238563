//! The virtio network header (VIRTIO 1.2, 5.1.6), which TAP and AF_PACKET put before each frame to carry
//! segmentation and checksum offload.

use crate::checksum::{ChecksumError, check_place};
use crate::train::{TrainError, validate_train};
use longwire_packet::{Checksum, Gso, Meta};
use thiserror::Error;

/// Bytes of the header that kernel interfaces use by default.
pub const LEN: usize = 10;
/// Bytes of the header with the number of merged buffers.
pub const MERGEABLE_LEN: usize = 12;

const NEEDS_CHECKSUM: u8 = 1;
const DATA_VALID: u8 = 2;
/// The bit besides the kind of train that says the sender set CWR, which the frame itself says too.
const ECN: u8 = 0x80;

/// A virtio network header that can't be right.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum VirtioError {
    /// The header is cut off.
    #[error("a virtio header of {0} bytes is too short: it has 10, or 12 with merged buffers")]
    Short(usize),
    /// The checksum would be outside the frame.
    #[error(transparent)]
    Checksum(#[from] ChecksumError),
    /// The train is none.
    #[error(transparent)]
    Train(#[from] TrainError),
}

/// The header, little-endian as on the interfaces of a little-endian machine; read into and written from [`Meta`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    flags: u8,
    kind: u8,
    header_len: u16,
    gso_size: u16,
    csum_start: u16,
    csum_offset: u16,
}

impl Header {
    /// Reads the header of `frame` from the front of `bytes` (10 or 12 of them count, the number of merged buffers
    /// is not looked at) and sets the fields of `meta` that it is about, after checking them against the frame:
    /// [`validate_train`] is included.
    ///
    /// # Errors
    /// A header that is cut off or does not fit the frame, which is then to be counted as bad.
    pub fn read(bytes: &[u8], meta: &mut Meta, frame: &[u8]) -> Result<(), VirtioError> {
        let header = bytes.first_chunk::<LEN>().ok_or(VirtioError::Short(bytes.len()))?;
        let header = Self::from_bytes(header);
        meta.checksum = Checksum::Unknown as u8;
        (meta.csum_start, meta.csum_offset) = (0, 0);
        if header.flags & NEEDS_CHECKSUM != 0 {
            check_place(header.csum_start, header.csum_offset, frame.len())?;
            meta.checksum = Checksum::Partial as u8;
            (meta.csum_start, meta.csum_offset) = (header.csum_start, header.csum_offset);
        } else if header.flags & DATA_VALID != 0 {
            meta.checksum = Checksum::Verified as u8;
        }
        (meta.gso, meta.gso_size) = (header.kind & !ECN, header.gso_size);
        validate_train(meta, frame)?;
        Ok(())
    }

    /// The header that says of a frame what `meta` knows. Twelve-byte headers end in two more zero bytes.
    ///
    /// That a checksum was found right is not passed on: the receiver is to see errors made on the way.
    pub fn write(meta: &Meta) -> [u8; LEN] {
        let mut header = Self {
            flags: 0,
            kind: Gso::None as u8,
            header_len: 0,
            gso_size: 0,
            csum_start: 0,
            csum_offset: 0,
        };
        if meta.checksum == Checksum::Partial as u8 {
            header.flags = NEEDS_CHECKSUM;
            (header.csum_start, header.csum_offset) = (meta.csum_start, meta.csum_offset);
        }
        if meta.is_train() {
            (header.kind, header.header_len, header.gso_size) = (meta.gso, meta.header_len, meta.gso_size);
        }
        header.to_bytes()
    }

    fn from_bytes(bytes: &[u8; LEN]) -> Self {
        let [flags, kind, rest @ ..] = *bytes;
        let word = |at: usize| u16::from_le_bytes([rest[at], rest[at + 1]]);
        Self {
            flags,
            kind,
            header_len: word(0),
            gso_size: word(2),
            csum_start: word(4),
            csum_offset: word(6),
        }
    }

    fn to_bytes(self) -> [u8; LEN] {
        let [a, b] = self.header_len.to_le_bytes();
        let [c, d] = self.gso_size.to_le_bytes();
        let [e, f] = self.csum_start.to_le_bytes();
        let [g, h] = self.csum_offset.to_le_bytes();
        [self.flags, self.kind, a, b, c, d, e, f, g, h]
    }
}
