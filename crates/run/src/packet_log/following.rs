//! Reads a packet log while it is written, over all of its files.

use super::reading::{Entry, read_input};
use crate::rotation::older;
use anyhow::{Context, bail};
use std::fs::{File, TryLockError};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Pause before the file is looked at again.
const PAUSE: Duration = Duration::from_millis(20);

/// Reads a log as [`read`](super::reading::read) does, and what is added to it, until its run ends. `waiting`
/// is called when there is nothing to read for now.
///
/// # Errors
/// Those of `read`, those of `waiting`, and if a file is removed before it is read.
pub fn follow(
    path: &Path,
    waiting: &dyn Fn() -> io::Result<()>,
    then: &mut dyn FnMut(Entry) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let what = || format!("{}", path.display());
    let mut next = Some(File::open(path).with_context(what)?);
    while let Some(file) = next {
        let place = Place::of(&file).with_context(what)?;
        read_input(Growing { file, waiting }, path, then)?;
        next = place.following(path)?;
    }
    Ok(())
}

/// A file that ends when nobody writes it any more.
struct Growing<'a> {
    file: File,
    waiting: &'a dyn Fn() -> io::Result<()>,
}

impl Read for Growing<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        loop {
            // Before the attempt to read: the writer adds nothing later.
            let is_complete = !is_written(&self.file)?;
            match self.file.read(bytes) {
                Ok(0) if is_complete => return Ok(0),
                Ok(0) => {
                    (self.waiting)()?;
                    std::thread::park_timeout(PAUSE);
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                result => return result,
            }
        }
    }
}

/// Whether a process has the lock of those who write a log, which ends with it.
fn is_written(file: &File) -> io::Result<bool> {
    match file.try_lock() {
        Ok(()) => file.unlock().map(|()| false),
        Err(TryLockError::WouldBlock) => Ok(true),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

/// Which file it is, whatever its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Place {
    device: u64,
    inode: u64,
}

impl Place {
    fn of(file: &File) -> io::Result<Self> {
        file.metadata().map(|about| Self { device: about.dev(), inode: about.ino() })
    }

    /// Whether it has this name now.
    fn is_at(self, path: &Path) -> bool {
        std::fs::metadata(path).is_ok_and(|about| about.dev() == self.device && about.ino() == self.inode)
    }

    /// The file of the log at `path` behind this one, which is complete; none behind the last one.
    fn following(self, path: &Path) -> anyhow::Result<Option<File>> {
        loop {
            if self.is_at(path) {
                return Ok(None);
            }
            // Files are renamed from the oldest to the newest: within a rename, one is missing.
            let Some((own, next)) = self.names(path).or_else(|| self.names(path)) else {
                bail!("{}: a file was removed before it was read; keep more: --file-count", path.display());
            };
            // If it still has its name when the next one is open, that one has not been renamed in between.
            match File::open(&next) {
                Ok(file) if self.is_at(&own) => return Ok(Some(file)),
                Err(error) if error.kind() != ErrorKind::NotFound => {
                    return Err(error).with_context(|| format!("{}", next.display()));
                }
                _ => {}
            }
        }
    }

    /// Its own name among the older files of a log, and that of the next.
    fn names(self, path: &Path) -> Option<(PathBuf, PathBuf)> {
        let name = |number: u32| if number == 0 { path.to_owned() } else { older(path, number) };
        let mut number = 1;
        loop {
            let own = name(number);
            if self.is_at(&own) {
                return Some((own, name(number - 1)));
            }
            if !own.exists() && !name(number + 1).exists() {
                return None;
            }
            number += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet_log::file::LogFile;
    use crate::packet_log::row::{Event, Row};
    use crate::rotation::{FileMaker, Rotation};

    #[test]
    fn a_file_leads_to_the_next_until_it_is_removed() {
        let folder = std::env::temp_dir().join(format!("longwire-following-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join("run.lwlog");
        let maker = FileMaker { rotation: Some(Rotation { size: 64, files: 3 }), ..FileMaker::default() };
        let mut log = LogFile::create(&path, &maker, 0).unwrap();
        // A row fills a file: the next one begins another.
        let row = Row::outside(Event::Lost, 1, 1);
        let mut write = || log.write(&row, ("", ""), &[]).unwrap();
        write();
        let first = File::open(&path).unwrap();
        let place = Place::of(&first).unwrap();
        assert!(is_written(&first).unwrap() && place.following(&path).unwrap().is_none());
        write();
        let second = Place::of(&File::open(&path).unwrap()).unwrap();
        assert!(!is_written(&first).unwrap());
        let next = |place: Place| place.following(&path).unwrap().map(|file| Place::of(&file).unwrap());
        assert_eq!(next(place), Some(second));
        write();
        assert_eq!(next(place), Some(second), "two files behind");
        assert_eq!(next(second), Some(Place::of(&File::open(&path).unwrap()).unwrap()));
        write();
        let said = place.following(&path).unwrap_err().to_string();
        assert!(said.ends_with("a file was removed before it was read; keep more: --file-count"), "{said}");
        drop(log);
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
