//! Packets of a stream as a capture, with the times that the measurement itself uses.
//!
//! Each packet becomes a frame with made-up addresses that is cut behind the measurement's header: sender and
//! receiver write the same bytes for the same packet, so that `longwire distill` pairs them, whatever address
//! translation is on the path. Times are those of CLOCK_MONOTONIC.

use super::Error;
use super::header::{HEADER_BYTES, Header};
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// Bytes of a frame that are kept: headers of Ethernet, IPv4 and UDP, and the measurement's.
const KEPT: usize = 14 + 20 + 8 + HEADER_BYTES;
/// Bytes written at a time, so that a sender is seldom held up.
const BUFFER: usize = 1 << 20;
/// Bytes of the check sequence, which captures do not have.
const CHECK: u64 = 4;

/// A pcap file of packets that were sent or received.
#[derive(Debug)]
pub struct Recording {
    path: PathBuf,
    file: BufWriter<File>,
    packets: u64,
}

impl Recording {
    /// Creates the file.
    ///
    /// # Errors
    /// It can't be created or written.
    pub fn create(path: &Path) -> Result<Self, Error> {
        let file = File::create(path).map_err(failed(path))?;
        let mut file = BufWriter::with_capacity(BUFFER, file);
        // Nanoseconds, version 2.4, no offset, longest frame, Ethernet.
        for word in [0xa1b2_3c4du32, 0x0004_0002, 0, 0, 262_144, 1] {
            file.write_all(&word.to_le_bytes()).map_err(failed(path))?;
        }
        Ok(Self { path: path.into(), file, packets: 0 })
    }

    /// Adds a packet. `ethernet` bytes are those of its frame, with check sequence.
    pub(super) fn add(&mut self, header: &Header, time: u64, ethernet: u64) -> Result<(), Error> {
        let original = u32::try_from(ethernet.saturating_sub(CHECK)).unwrap_or(u32::MAX);
        let mut record = [0; 16 + KEPT];
        let fields = [
            u32::try_from(time / 1_000_000_000).unwrap_or(u32::MAX),
            (time % 1_000_000_000) as u32,
            KEPT as u32,
            original.max(KEPT as u32),
        ];
        for (place, field) in record.chunks_exact_mut(4).zip(fields) {
            place.copy_from_slice(&field.to_le_bytes());
        }
        let (_, frame) = record.split_at_mut(16);
        frame[12..15].copy_from_slice(&[0x08, 0x00, 0x45]);
        let ip_bytes = u16::try_from(original.saturating_sub(14)).unwrap_or(u16::MAX).to_be_bytes();
        frame[16..18].copy_from_slice(&ip_bytes);
        frame[22..24].copy_from_slice(&[64, 17]);
        // Addresses for documentation (RFC 5737).
        frame[26..34].copy_from_slice(&[192, 0, 2, 1, 192, 0, 2, 2]);
        header.write(&mut frame[KEPT - HEADER_BYTES..]);
        self.file.write_all(&record).map_err(failed(&self.path))?;
        self.packets += 1;
        Ok(())
    }

    /// Writes what is still in memory; returns the number of packets in the file.
    ///
    /// # Errors
    /// The file can't be written.
    pub fn flush(&mut self) -> Result<u64, Error> {
        self.file.flush().map_err(failed(&self.path))?;
        Ok(self.packets)
    }
}

fn failed(path: &Path) -> impl FnOnce(io::Error) -> Error {
    Error::system(format!("writing the record {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_sides_write_the_same_packet() {
        let path = std::env::temp_dir().join(format!("longwire-recording-{}.pcap", std::process::id()));
        let header = Header { flow: 7, sequence: 9, sent: 5_000_000_001 };
        let mut recording = Recording::create(&path).unwrap();
        recording.add(&header, 5_000_000_001, 1046).unwrap();
        recording.add(&header, 6_000_000_002, 1046).unwrap();
        assert_eq!(recording.flush().unwrap(), 2);
        let bytes = std::fs::read(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        let (one, other) = bytes[24..].split_at(16 + KEPT);
        assert_eq!(one[16..], other[16..]);
        assert_eq!(one[..8], [5, 0, 0, 0, 1, 0, 0, 0]);
        assert_eq!(one[12..16], 1042u32.to_le_bytes());
        assert_eq!(Header::read(&one[16 + 42..]), Some(header));
        let error = Recording::create(Path::new("/nowhere/x.pcap")).unwrap_err().to_string();
        assert!(error.contains("/nowhere/x.pcap"), "{error}");
    }
}
