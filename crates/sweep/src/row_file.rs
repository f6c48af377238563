//! The file of rows: appended to, and continued after an interruption.

use crate::line::{Line, SWEEP};
use crate::tasks::Sweep;
use anyhow::{Context, bail, ensure};
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{BufRead, BufReader, Seek, Write};
use std::path::{Path, PathBuf};

/// A file with the rows of one sweep. It is locked while this exists.
#[derive(Debug)]
pub struct RowFile {
    path: PathBuf,
    file: File,
    /// By task: whether the file has its row.
    done: Vec<bool>,
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
        let mut done = vec![false; usize::try_from(sweep.count())?];
        let kept = read_done(&file, path, sweep, &mut done)?;
        let length = file.metadata().with_context(|| format!("reading {name}"))?.len();
        let repaired = kept < length;
        if repaired {
            file.set_len(kept).with_context(|| format!("repairing {name}"))?;
        }
        Ok(Self { path: path.into(), file, done, repaired })
    }

    /// Whether a torn row was removed.
    pub const fn was_repaired(&self) -> bool {
        self.repaired
    }

    /// Whether it has the row of a task.
    pub fn has(&self, task: u64) -> bool {
        usize::try_from(task).is_ok_and(|task| self.done.get(task) == Some(&true))
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

/// Notes the tasks that a file has, and returns the length of its whole lines.
fn read_done(file: &File, path: &Path, sweep: &Sweep, done: &mut [bool]) -> anyhow::Result<u64> {
    let name = path.display();
    let mut reader = BufReader::new(file);
    reader.rewind().with_context(|| format!("reading {name}"))?;
    let (mut kept, mut number, mut text) = (0, 0u64, Vec::new());
    loop {
        text.clear();
        let read = reader.read_until(b'\n', &mut text).with_context(|| format!("reading {name}"))?;
        if text.last() != Some(&b'\n') {
            return Ok(kept);
        }
        (kept, number) = (kept + read as u64, number + 1);
        let line: Line = serde_json::from_slice(&text).with_context(|| {
            format!("{name}:{number}: this is no row of a sweep; name another file with --output")
        })?;
        let of_sweep = line.get(SWEEP).and_then(|known| known.as_str());
        ensure!(
            of_sweep == Some(sweep.fingerprint()),
            "{name}:{number}: this row belongs to another sweep, or to an earlier version of this one or of \
             its scenario; name another file with --output, or remove this one"
        );
        let task = line.task().and_then(|task| usize::try_from(task).ok());
        let place = task.and_then(|task| done.get_mut(task));
        let none = || format!("{name}:{number}: the sweep has no such task; remove the line");
        *place.with_context(none)? = true;
    }
}
