//! The file of rows: appended to, and continued after an interruption.

use crate::line::{Line, SWEEP};
use crate::tasks::Sweep;
use anyhow::{Context, bail, ensure};
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{BufRead, BufReader, Seek, Write};
use std::path::{Path, PathBuf};

/// The beginning of every row.
const BEGINNING: &[u8] = b"{\"task\": ";

/// What a file has of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kept {
    Nothing,
    Results,
    Failure,
}

/// A file with the rows of one sweep. It is locked while this exists.
#[derive(Debug)]
pub struct RowFile {
    path: PathBuf,
    file: File,
    /// By task.
    rows: Vec<Kept>,
    repaired: bool,
}

impl RowFile {
    /// Opens the file, or makes it, and reads which tasks it has. A last line without an end is what an
    /// interruption left of a row: it is removed.
    ///
    /// # Errors
    /// If the file can't be opened, another process writes it, or it has other lines than rows of this sweep.
    pub fn open(path: &Path, sweep: &Sweep) -> anyhow::Result<Self> {
        let name = path.display();
        let options = OpenOptions::new().read(true).append(true).create(true).open(path);
        let file = options.with_context(|| format!("opening {name}"))?;
        // Reading a device such as /dev/full has no end.
        let is_regular = file.metadata().with_context(|| format!("reading {name}"))?.is_file();
        ensure!(is_regular, "rows can't be kept in {name}: name a regular file with --output");
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => bail!(
                "another process writes {name}; give each its own --output, and read all of them with \
                 longwire sweep table"
            ),
            Err(TryLockError::Error(error)) => return Err(error).with_context(|| format!("locking {name}")),
        }
        let mut rows = vec![Kept::Nothing; usize::try_from(sweep.count())?];
        let kept = read_rows(&file, path, sweep, &mut rows)?;
        let length = file.metadata().with_context(|| format!("reading {name}"))?.len();
        let repaired = kept < length;
        if repaired {
            file.set_len(kept).with_context(|| format!("repairing {name}"))?;
        }
        Ok(Self { path: path.into(), file, rows, repaired })
    }

    /// Whether a torn row was removed.
    pub const fn was_repaired(&self) -> bool {
        self.repaired
    }

    /// Whether it has the row of a task.
    pub fn has(&self, task: u64) -> bool {
        self.kept(task) != Kept::Nothing
    }

    /// Whether it has the row of a task that failed.
    pub fn has_failed(&self, task: u64) -> bool {
        self.kept(task) == Kept::Failure
    }

    fn kept(&self, task: u64) -> Kept {
        let place = usize::try_from(task).ok();
        place.and_then(|place| self.rows.get(place).copied()).unwrap_or(Kept::Nothing)
    }

    /// Appends a row.
    ///
    /// # Errors
    /// If it can't be written.
    pub fn append(&mut self, line: &Line) -> anyhow::Result<()> {
        let written = self.file.write_all(line.to_json().as_bytes());
        written.with_context(|| format!("writing {}", self.path.display()))
    }
}

/// Whether a text is the beginning of a row of the sweep with this fingerprint.
fn is_begun(text: &[u8], fingerprint: &str) -> bool {
    let Some(rest) = text.strip_prefix(BEGINNING) else { return BEGINNING.starts_with(text) };
    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (rest, sweep) = (&rest[digits..], format!(", \"{SWEEP}\": \"{fingerprint}\""));
    rest.starts_with(sweep.as_bytes()) || sweep.as_bytes().starts_with(rest)
}

/// Notes the rows that a file has, and returns the length of its whole lines.
fn read_rows(file: &File, path: &Path, sweep: &Sweep, rows: &mut [Kept]) -> anyhow::Result<u64> {
    let name = path.display();
    let mut reader = BufReader::new(file);
    reader.rewind().with_context(|| format!("reading {name}"))?;
    let (mut kept, mut number, mut text) = (0, 0u64, Vec::new());
    loop {
        text.clear();
        let read = reader.read_until(b'\n', &mut text).with_context(|| format!("reading {name}"))?;
        if text.last() != Some(&b'\n') {
            // What is no part of a row of this sweep is somebody's text, which must stay.
            ensure!(
                is_begun(&text, sweep.fingerprint()),
                "{name}: its last line is no row of this sweep; name another file with --output"
            );
            return Ok(kept);
        }
        (kept, number) = (kept + read as u64, number + 1);
        let line: Line = serde_json::from_slice(&text).with_context(|| {
            format!("{name}:{number}: this is no row of a sweep; name another file with --output")
        })?;
        let of_sweep = line.get(SWEEP).and_then(|known| known.as_str());
        ensure!(
            of_sweep == Some(sweep.fingerprint()),
            "{name}:{number}: this row belongs to another sweep, or to an earlier version of this one, of \
             its scenario or of a file that they name; name another file with --output, or remove this one"
        );
        let task = line.task().and_then(|task| usize::try_from(task).ok());
        let place = task.and_then(|task| rows.get_mut(task));
        let none = || format!("{name}:{number}: the sweep has no such task; remove the line");
        *place.with_context(none)? = if line.failure().is_some() { Kept::Failure } else { Kept::Results };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_interruption_leaves_is_the_beginning_of_a_row() {
        let row = b"{\"task\": 12, \"sweep\": \"f00\", \"a.rate\": \"1mbit\", \"seed\": 1}";
        for length in 0..=row.len() {
            assert!(is_begun(&row[..length], "f00"), "{length}");
        }
        for other in [
            "{\"task\": \"buy milk\"}",
            "{\"task\": 12}",
            "{\"task\": 12, \"sweep\": \"f01",
            "{\"task\": 12, \"sweep\": \"f0\", \"seed\": 1}",
            "{\"tasks\"",
            "hello",
        ] {
            assert!(!is_begun(other.as_bytes(), "f00"), "{other}");
        }
    }
}
