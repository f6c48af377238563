//! The compact format of packet logs, `.lwlog`.
//!
//! A file begins with a header of 32 bytes: the magic number, the version and the size of a row in bytes (32
//! bits each, little endian), the time of the run's start (64 bits, nanoseconds since 1970, 0 in virtual
//! time), and 8 zero bytes. Records follow: 56 bytes as in [`Row::encode`], and then as many bytes as their
//! last field says. The event's byte is that of a row, or [`LINK_NAME`] or [`REASON_NAME`]: a name for the
//! number in the link or reason field, which precedes the first row that needs it.

use super::row::{NO_LINK, NO_REASON, NO_TIME, ROW_BYTES, Row};
use std::collections::HashSet;
use std::fs::File;
use std::io::{self, BufWriter, Write};

/// The magic number.
pub const MAGIC: [u8; 8] = *b"LWLOG\r\n\x1a";
/// The version of the format.
pub const VERSION: u32 = 1;
/// Bytes of the header.
pub const HEADER_BYTES: usize = 32;
/// The event byte of a record that names a link.
pub const LINK_NAME: u8 = 254;
/// The event byte of a record that names a reason.
pub const REASON_NAME: u8 = 253;

/// Writes rows, and the names that they need.
pub struct BinaryWriter {
    out: BufWriter<File>,
    named_links: HashSet<u32>,
    named_reasons: HashSet<u8>,
}

impl BinaryWriter {
    /// Begins a file with the header.
    pub fn new(file: File, start_since_1970: u64) -> io::Result<Self> {
        let mut out = BufWriter::with_capacity(1 << 18, file);
        let mut header = [0; HEADER_BYTES];
        header[..8].copy_from_slice(&MAGIC);
        header[8..12].copy_from_slice(&VERSION.to_le_bytes());
        header[12..16].copy_from_slice(&(ROW_BYTES as u32).to_le_bytes());
        header[16..24].copy_from_slice(&start_since_1970.to_le_bytes());
        out.write_all(&header)?;
        Ok(Self { out, named_links: HashSet::new(), named_reasons: HashSet::new() })
    }

    /// Writes a row with the names of its link and reason, and returns its length.
    pub fn write(&mut self, row: &Row, (link, reason): (&str, &str)) -> io::Result<u64> {
        let mut length = ROW_BYTES as u64;
        if row.link != NO_LINK && self.named_links.insert(row.link) {
            length += name(&mut self.out, LINK_NAME, (row.link, 0), link)?;
        }
        if row.reason != NO_REASON && self.named_reasons.insert(row.reason) {
            length += name(&mut self.out, REASON_NAME, (NO_LINK, row.reason), reason)?;
        }
        self.out.write_all(&row.encode(0))?;
        Ok(length)
    }

    /// Flushes the buffer.
    pub fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// Writes a record with a name.
fn name(out: &mut dyn Write, kind: u8, (link, reason): (u32, u8), name: &str) -> io::Result<u64> {
    let mut record = [0; ROW_BYTES];
    record[8..24].copy_from_slice(&[0xff; 16]);
    debug_assert_eq!(NO_TIME, u64::MAX);
    record[44..48].copy_from_slice(&link.to_le_bytes());
    (record[50], record[51]) = (kind, reason);
    record[52..56].copy_from_slice(&(name.len() as u32).to_le_bytes());
    out.write_all(&record)?;
    out.write_all(name.as_bytes())?;
    Ok((ROW_BYTES + name.len()) as u64)
}
