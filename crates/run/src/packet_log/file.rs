//! The file of a packet log: its format, and a new file when it has become too large.

use super::binary::BinaryWriter;
use super::pcapng::PcapngWriter;
use super::row::Row;
use anyhow::{Context, ensure};
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// How a log is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// `.lwlog`
    Binary,
    /// `.pcapng`
    Pcapng,
}

/// Sizes at which a log begins another file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rotation {
    /// Bytes of a file, about.
    pub size: u64,
    /// How many files are kept, the one being written included.
    pub files: u32,
}

impl Format {
    /// The format that a file's name says.
    ///
    /// # Errors
    /// If it says none.
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

/// A log that is being written.
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
    /// Makes the file, in the format that its name says.
    ///
    /// # Errors
    /// If the name says none, or the file can't be made.
    pub fn create(path: &Path, rotation: Option<Rotation>, start_since_1970: u64) -> anyhow::Result<Self> {
        let format = Format::of(path)?;
        ensure!(rotation.is_none_or(|rotation| rotation.files > 0), "a log has one file at least");
        let (writer, written) = open(path, format, start_since_1970)
            .with_context(|| format!("the log {} can't be written", path.display()))?;
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

    /// Writes out what is buffered.
    ///
    /// # Errors
    /// Those of the system.
    pub fn flush(&mut self) -> io::Result<()> {
        match &mut self.writer {
            Writer::Binary(_, out) => out.flush(),
            Writer::Pcapng(pcapng) => pcapng.flush(),
        }
    }

    /// Renames the files, the oldest away, and begins a new one.
    fn rotate(&mut self) -> io::Result<()> {
        self.flush()?;
        let files = self.rotation.map_or(1, |rotation| rotation.files);
        for number in (1..files).rev() {
            let from = if number == 1 { self.path.clone() } else { older(&self.path, number - 1) };
            match std::fs::rename(from, older(&self.path, number)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        (self.writer, self.written) = open(&self.path, self.format, self.start_since_1970)?;
        Ok(())
    }
}

/// Makes a file, and returns how long it is.
fn open(path: &Path, format: Format, start_since_1970: u64) -> io::Result<(Writer, u64)> {
    let file = File::create(path)?;
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
