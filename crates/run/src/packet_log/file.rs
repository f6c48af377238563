//! The file of a packet log, in either format.

use super::binary::{BinaryWriter, HEADER_BYTES};
use super::pcapng::PcapngWriter;
use super::row::Row;
use crate::rotation::{FileMaker, Rotation};
use anyhow::Context;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

/// The format of a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// `.lwlog`
    Binary,
    /// `.pcapng`
    Pcapng,
}

impl Format {
    /// The format according to a file's name.
    ///
    /// # Errors
    /// If the extension is unknown.
    pub fn of(file: &Path) -> anyhow::Result<Self> {
        let extension = file.extension().map(|text| text.to_string_lossy().to_lowercase());
        match extension.as_deref() {
            Some("lwlog") => Ok(Self::Binary),
            Some("pcapng") => Ok(Self::Pcapng),
            _ => anyhow::bail!(
                "{}: name the log .pcapng, for Wireshark, or .lwlog, for longwire log",
                file.display()
            ),
        }
    }
}

enum Writer {
    Binary(BinaryWriter),
    Pcapng(PcapngWriter),
}

/// A log being written.
pub struct LogFile {
    path: PathBuf,
    format: Format,
    maker: FileMaker,
    /// Nanoseconds from 1970 to the start of the run.
    start_since_1970: u64,
    writer: Writer,
    written: u64,
}

impl LogFile {
    /// Creates the file, in the format of its extension.
    ///
    /// # Errors
    /// If the extension is unknown, or the file can't be created.
    pub fn create(path: &Path, maker: &FileMaker, start_since_1970: u64) -> anyhow::Result<Self> {
        let format = Format::of(path)?;
        let (writer, written) = maker
            .create(path)
            .and_then(|file| begin(file, format, start_since_1970))
            .with_context(|| format!("can't write the log {}", path.display()))?;
        Ok(Self { path: path.into(), format, maker: maker.clone(), start_since_1970, writer, written })
    }

    /// Writes a row with the names of its link and reason, and the bytes of its frame.
    ///
    /// # Errors
    /// Those of the system.
    pub fn write(&mut self, row: &Row, names: (&str, &str), frame: &[u8]) -> io::Result<()> {
        if let Some(rotation) = self.maker.full(self.written) {
            self.rotate(rotation)?;
        }
        self.written += match &mut self.writer {
            Writer::Binary(binary) => binary.write(row, names)?,
            Writer::Pcapng(pcapng) => pcapng.write(row, names, frame)?,
        };
        Ok(())
    }

    /// Flushes the buffer.
    ///
    /// # Errors
    /// Those of the system.
    pub fn flush(&mut self) -> io::Result<()> {
        match &mut self.writer {
            Writer::Binary(binary) => binary.flush(),
            Writer::Pcapng(pcapng) => pcapng.flush(),
        }
    }

    /// Begins a new file. For those who follow the log, the one before is complete once its lock is gone:
    /// then the new one has its name.
    fn rotate(&mut self, rotation: Rotation) -> io::Result<()> {
        self.flush()?;
        let file = self.maker.next(rotation, &self.path)?;
        (self.writer, self.written) = begin(file, self.format, self.start_since_1970)?;
        Ok(())
    }
}

/// Begins an empty file, and returns its length. It is locked as long as it is written.
fn begin(file: File, format: Format, start_since_1970: u64) -> io::Result<(Writer, u64)> {
    // Where files can't be locked, nobody can follow the log.
    let _ = file.lock_shared();
    Ok(match format {
        Format::Binary => (Writer::Binary(BinaryWriter::new(file, start_since_1970)?), HEADER_BYTES as u64),
        Format::Pcapng => (Writer::Pcapng(PcapngWriter::new(file, start_since_1970)?), 0),
    })
}
