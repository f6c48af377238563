//! Lock files, each held by one process at a time and freed when it ends, however it ends.

use crate::interrupt;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use thiserror::Error;

/// Interval between attempts, and the time after which waiting is reported.
const LOOK: Duration = Duration::from_millis(10);
const MOMENT: Duration = Duration::from_secs(1);
/// Most bytes of a file that are read.
const LONGEST: u64 = 4096;

/// A lock that is held until dropped.
#[derive(Debug)]
pub struct Lock {
    file: File,
    path: PathBuf,
    removed: bool,
}

/// Limit on waiting for a lock, and whether an interrupt ends the waiting.
#[derive(Debug, Clone, Copy)]
pub struct Patience {
    /// The longest wait.
    pub limit: Duration,
    /// Whether [`interrupt`](crate::interrupt()) ends it. Cleaning up after a signal must not be interrupted.
    pub interruptible: bool,
}

/// Reason why a lock is not held.
#[derive(Debug, Error)]
pub enum LockError {
    /// Another process holds it and did not free it in time.
    #[error("{} is held by {} for {} s already; end that, or try again later", path.display(),
        in_words(*holder), waited.as_secs())]
    Held {
        /// The lock.
        path: PathBuf,
        /// The process that holds it, if known.
        holder: Option<u32>,
        /// Time spent waiting.
        waited: Duration,
    },
    /// The user interrupted this process while it waited.
    #[error("interrupted while waiting for {}, which holds {}", in_words(*holder), path.display())]
    Interrupted {
        /// The lock.
        path: PathBuf,
        /// The process that holds it, if known.
        holder: Option<u32>,
    },
    /// The file can't be made or locked.
    #[error("can't lock {}: {source}", path.display())]
    Io {
        /// The lock.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
}

impl Lock {
    /// Waits for a lock in a directory that belongs to this user alone (see [`prepare`](crate::prepare)).
    ///
    /// # Errors
    /// Another process holds it for longer than the limit, or the system refuses.
    pub fn acquire(path: &Path, patience: Patience) -> Result<Self, LockError> {
        let begin = Instant::now();
        let mut said = false;
        loop {
            if let Some(lock) = Self::attempt(path)? {
                return Ok(lock);
            }
            let (waited, holder) = (begin.elapsed(), Self::holder(path));
            if patience.interruptible && interrupt::is_interrupted() {
                return Err(LockError::Interrupted { path: path.into(), holder });
            }
            if waited >= patience.limit {
                return Err(LockError::Held { path: path.into(), holder, waited });
            }
            if waited >= MOMENT && !said {
                interrupt::say(&format!("waiting for {}, which holds {}", in_words(holder), path.display()));
                said = true;
            }
            std::thread::sleep(LOOK.min(patience.limit - waited));
        }
    }

    /// Takes the lock if it is free. Its file is removed with it, instead of being kept for the next lock.
    ///
    /// # Errors
    /// The system refuses.
    pub fn take(path: &Path) -> Result<Option<Self>, LockError> {
        let mut lock = Self::attempt(path)?;
        lock.iter_mut().for_each(|lock| lock.removed = true);
        Ok(lock)
    }

    /// The process that holds a lock, from the file's contents.
    pub fn holder(path: &Path) -> Option<u32> {
        let mut text = String::new();
        let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK;
        let file = OpenOptions::new().read(true).custom_flags(flags).open(path).ok()?;
        file.take(LONGEST).read_to_string(&mut text).ok()?;
        text.lines().next()?.trim().parse().ok()
    }

    /// The lock that a killed process has left. Its file is removed with it.
    pub fn left(path: &Path) -> Option<Self> {
        let mut lock = Self::open(path, false).and_then(Self::locked).ok().flatten()?;
        lock.removed = true;
        Some(lock)
    }

    /// Writes a text into the file, for those who find what this process has left.
    ///
    /// # Errors
    /// The system refuses.
    pub fn write(&mut self, text: &str) -> io::Result<()> {
        self.file.seek(SeekFrom::End(0))?;
        self.file.write_all(text.as_bytes())
    }

    /// The text that the holder has written.
    ///
    /// # Errors
    /// The system refuses.
    pub fn text(&mut self) -> io::Result<String> {
        self.file.seek(SeekFrom::Start(0))?;
        let mut whole = String::new();
        (&self.file).take(LONGEST).read_to_string(&mut whole)?;
        Ok(whole.split_once('\n').map_or_else(String::new, |(_, text)| text.to_owned()))
    }

    /// Frees the lock, and keeps its file.
    pub fn keep(mut self) {
        self.removed = false;
    }

    fn attempt(path: &Path) -> Result<Option<Self>, LockError> {
        let failed = |source| LockError::Io { path: path.into(), source };
        let Some(mut lock) = Self::open(path, true).and_then(Self::locked).map_err(failed)? else {
            return Ok(None);
        };
        lock.sign().map_err(failed)?;
        Ok(Some(lock))
    }

    fn open(path: &Path, create: bool) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(create).truncate(false).mode(0o600);
        let file = options.custom_flags(libc::O_NOFOLLOW | libc::O_CLOEXEC | libc::O_NONBLOCK).open(path)?;
        Ok(Self { file, path: path.into(), removed: false })
    }

    /// None if another process holds it, or if its holder has just removed the file, so that there may be a
    /// new one.
    fn locked(self) -> io::Result<Option<Self>> {
        match self.file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Ok(None),
            Err(TryLockError::Error(error)) => return Err(error),
        }
        let id = |meta: fs::Metadata| (meta.dev(), meta.ino());
        let same = fs::symlink_metadata(&self.path)
            .is_ok_and(|now| self.file.metadata().is_ok_and(|own| id(own) == id(now)));
        Ok(same.then_some(self))
    }

    /// Writes this process's id into the file, for those who wait.
    fn sign(&mut self) -> io::Result<()> {
        // An earlier version made it readable by others.
        self.file.set_permissions(fs::Permissions::from_mode(0o600))?;
        self.file.set_len(0)?;
        self.file.seek(SeekFrom::Start(0))?;
        writeln!(self.file, "{}", std::process::id())
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        if self.removed {
            // Removed while it is still held, so that it can't be another process's.
            let _ = fs::remove_file(&self.path);
        }
        // A program that another thread is starting has a copy of the descriptor for a moment, so closing
        // this one would not free the lock.
        let _ = self.file.unlock();
    }
}

/// The name and id of a process.
fn in_words(holder: Option<u32>) -> String {
    let Some(pid) = holder else { return "another process".into() };
    match fs::read_to_string(format!("/proc/{pid}/comm")) {
        Ok(name) => format!("process {pid} ({})", name.trim_end()),
        Err(_) => format!("process {pid}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHORT: Patience = Patience { limit: Duration::from_millis(50), interruptible: false };

    fn folder(name: &str) -> PathBuf {
        let path = std::env::temp_dir().join(format!("longwire-lock-{name}-{}", std::process::id()));
        crate::prepare(&path).unwrap();
        path
    }

    #[test]
    fn waiting_ends_and_names_the_holder() {
        let folder = folder("waits");
        let path = folder.join("lock");
        let first = Lock::acquire(&path, SHORT).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o7777, 0o600);
        let error = Lock::acquire(&path, SHORT).unwrap_err();
        assert!(error.to_string().contains(&format!("process {}", std::process::id())), "{error}");
        assert!(matches!(error, LockError::Held { .. }));
        drop(first);
        drop(Lock::acquire(&path, SHORT).unwrap());
        assert!(path.exists());
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_file_that_goes_with_its_lock_is_nobody_elses() {
        let folder = folder("goes");
        let path = folder.join("lock");
        let lock = Lock::take(&path).unwrap().unwrap();
        assert!(Lock::take(&path).unwrap().is_none());
        assert_eq!(Lock::holder(&path), Some(std::process::id()));
        assert!(Lock::left(&path).is_none(), "it is held");
        // A file opened before its removal is no longer a lock.
        let late = Lock::open(&path, true).unwrap();
        drop(lock);
        assert!(!path.exists());
        assert!(late.locked().unwrap().is_none());
        let mut killed = Lock::take(&path).unwrap().unwrap();
        killed.write("what it did\n").unwrap();
        assert_eq!(Lock::holder(&path), Some(std::process::id()));
        killed.keep();
        let mut left = Lock::left(&path).unwrap();
        assert_eq!(left.text().unwrap(), "what it did\n");
        drop(left);
        assert!(!path.exists());
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_link_is_not_followed() {
        let folder = folder("link");
        std::os::unix::fs::symlink(folder.join("elsewhere"), folder.join("lock")).unwrap();
        assert!(matches!(Lock::acquire(&folder.join("lock"), SHORT).unwrap_err(), LockError::Io { .. }));
        assert!(!folder.join("elsewhere").exists());
        fs::remove_dir_all(folder).unwrap();
    }
}
