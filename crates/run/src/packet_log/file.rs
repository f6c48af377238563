//! The file of a packet log: its format and rotation.

use super::binary::BinaryWriter;
use super::pcapng::PcapngWriter;
use super::row::Row;
use anyhow::{Context, ensure};
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::{MetadataExt, fchown};
use std::path::{Path, PathBuf};

/// The format of a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// `.lwlog`
    Binary,
    /// `.pcapng`
    Pcapng,
}

/// Rotation of log files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rotation {
    /// Approximate size of a file in bytes.
    pub size: u64,
    /// Number of files kept, including the current one.
    pub files: u32,
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
    Binary(BinaryWriter, BufWriter<File>),
    Pcapng(PcapngWriter),
}

/// A log being written.
pub struct LogFile {
    path: PathBuf,
    format: Format,
    rotation: Option<Rotation>,
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
    pub fn create(path: &Path, rotation: Option<Rotation>, start_since_1970: u64) -> anyhow::Result<Self> {
        let format = Format::of(path)?;
        ensure!(rotation.is_none_or(|rotation| rotation.files > 0), "a log has at least one file");
        let (writer, written) = File::create(path)
            .and_then(|file| begin(file, format, start_since_1970))
            .with_context(|| format!("can't write the log {}", path.display()))?;
        Ok(Self { path: path.into(), format, rotation, start_since_1970, writer, written })
    }

    /// Writes a row with the names of its link and reason, and the bytes of its frame.
    ///
    /// # Errors
    /// Those of the system.
    pub fn write(&mut self, row: &Row, names: (&str, &str), frame: &[u8]) -> io::Result<()> {
        if self.rotation.is_some_and(|rotation| self.written >= rotation.size) {
            self.rotate()?;
        }
        self.written += match &mut self.writer {
            Writer::Binary(binary, out) => binary.write(out, row, names)?,
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
            Writer::Binary(_, out) => out.flush(),
            Writer::Pcapng(pcapng) => pcapng.flush(),
        }
    }

    /// Renames the files, replacing the oldest, and begins a new one. For those who follow the log, the file
    /// before is complete once its lock is gone: then the new one has its name.
    fn rotate(&mut self) -> io::Result<()> {
        self.flush()?;
        let owner = std::fs::metadata(&self.path)?;
        let files = self.rotation.map_or(1, |rotation| rotation.files);
        for number in (1..files).rev() {
            let from = if number == 1 { self.path.clone() } else { older(&self.path, number - 1) };
            match std::fs::rename(from, older(&self.path, number)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        if files == 1 {
            // Truncated, it would be another log for those who read it.
            std::fs::remove_file(&self.path)?;
        }
        let file = File::create(&self.path)?;
        // Under sudo the first file is the caller's, and so are the others. Ordinary users own all of them.
        let _ = fchown(&file, Some(owner.uid()), Some(owner.gid()));
        (self.writer, self.written) = begin(file, self.format, self.start_since_1970)?;
        Ok(())
    }
}

/// Begins an empty file, and returns its length. It is locked as long as it is written.
fn begin(file: File, format: Format, start_since_1970: u64) -> io::Result<(Writer, u64)> {
    // Where files can't be locked, nobody can follow the log.
    let _ = file.lock_shared();
    match format {
        Format::Binary => {
            let (mut binary, mut out) = (BinaryWriter::default(), BufWriter::with_capacity(1 << 18, file));
            let length = binary.begin(&mut out, start_since_1970)?;
            Ok((Writer::Binary(binary, out), length))
        }
        Format::Pcapng => Ok((Writer::Pcapng(PcapngWriter::new(file, start_since_1970)?), 0)),
    }
}

/// The name of an older file of a log: `run.lwlog` becomes `run.1.lwlog`, then `run.2.lwlog`.
pub fn older(path: &Path, number: u32) -> PathBuf {
    let extension = path.extension().unwrap_or_default().to_string_lossy();
    path.with_extension(format!("{number}.{extension}"))
}
