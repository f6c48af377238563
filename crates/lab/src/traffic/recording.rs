//! Packets of a stream as a capture, with the times that the measurement itself uses.
//!
//! Each packet becomes a frame with made-up addresses that is cut behind the measurement's header: sender and
//! receiver write the same bytes for the same packet, so that `longwire distill` pairs them, whatever address
//! translation is on the path. Times are those of CLOCK_MONOTONIC.
//!
//! A file that exists keeps its contents until a stream begins: nothing is lost where no receiver answers, or
//! no sender comes.

use super::header::{HEADER_BYTES, Header};
use super::{Error, Result};
use std::fs::{self, File, OpenOptions};
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
    /// Whether there was no file before.
    is_new: bool,
    /// Whether a stream has begun.
    has_begun: bool,
}

impl Recording {
    /// Opens the file, or creates it. It is emptied when the first stream begins; a new one is removed if
    /// none does.
    ///
    /// # Errors
    /// It can't be created or written.
    pub fn create(path: &Path) -> Result<Self> {
        let mut options = OpenOptions::new();
        let (file, is_new) = match options.write(true).create_new(true).open(path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                (options.create_new(false).create(true).truncate(false).open(path), false)
            }
            made => (made, true),
        };
        let file = BufWriter::with_capacity(BUFFER, file.map_err(failed(path))?);
        Ok(Self { path: path.into(), file, packets: 0, is_new, has_begun: false })
    }

    /// Empties the file for the first stream, and writes its head. Later calls have no effect.
    pub(super) fn begin(&mut self) -> Result<()> {
        if self.has_begun {
            return Ok(());
        }
        let file = self.file.get_ref();
        // Pipes and devices have no length.
        let emptied = file.metadata().and_then(|meta| if meta.is_file() { file.set_len(0) } else { Ok(()) });
        emptied.map_err(failed(&self.path))?;
        // Nanoseconds, version 2.4, no offset, longest frame, Ethernet.
        for word in [0xa1b2_3c4du32, 0x0004_0002, 0, 0, 262_144, 1] {
            self.file.write_all(&word.to_le_bytes()).map_err(failed(&self.path))?;
        }
        self.has_begun = true;
        Ok(())
    }

    /// Adds a packet of a stream that has begun. `ethernet` bytes are those of its frame, with check
    /// sequence.
    pub(super) fn add(&mut self, header: &Header, time: u64, ethernet: u64) -> Result<()> {
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
    pub fn flush(&mut self) -> Result<u64> {
        self.file.flush().map_err(failed(&self.path))?;
        Ok(self.packets)
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        if self.is_new && !self.has_begun {
            // An empty file that stays does no harm.
            let _ = fs::remove_file(&self.path);
        }
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
        recording.begin().unwrap();
        recording.add(&header, 5_000_000_001, 1046).unwrap();
        recording.add(&header, 6_000_000_002, 1046).unwrap();
        assert_eq!(recording.flush().unwrap(), 2);
        let bytes = fs::read(&path).unwrap();
        fs::remove_file(&path).unwrap();
        let (one, other) = bytes[24..].split_at(16 + KEPT);
        assert_eq!(one[16..], other[16..]);
        assert_eq!(one[..8], [5, 0, 0, 0, 1, 0, 0, 0]);
        assert_eq!(one[12..16], 1042u32.to_le_bytes());
        assert_eq!(Header::read(&one[16 + 42..]), Some(header));
        let error = Recording::create(Path::new("/nowhere/x.pcap")).unwrap_err().to_string();
        assert!(error.contains("/nowhere/x.pcap"), "{error}");
    }

    #[test]
    fn a_file_keeps_its_contents_until_a_stream_begins() {
        let path = std::env::temp_dir().join(format!("longwire-recorded-{}.pcap", std::process::id()));
        let contents = || fs::read(&path).unwrap();
        fs::write(&path, [b'x'; 100]).unwrap();
        let mut recording = Recording::create(&path).unwrap();
        assert_eq!(recording.flush().unwrap(), 0);
        drop(recording);
        assert_eq!(contents(), [b'x'; 100]);
        let mut recording = Recording::create(&path).unwrap();
        recording.begin().unwrap();
        // The next sender's stream.
        recording.begin().unwrap();
        recording.flush().unwrap();
        drop(recording);
        assert_eq!(contents().len(), 24, "the head of a capture without packets");
        fs::remove_file(&path).unwrap();
        drop(Recording::create(&path).unwrap());
        assert!(!path.exists());
    }
}
