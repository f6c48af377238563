//! Files that grow: packet logs, time series and captures. How they are made, their rotation, and failures to
//! write them, which are said while the run goes on.

use crate::threads::lock;
use longwire_lab::User;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{MetadataExt, fchown};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

/// Makes the files of a run's records.
#[derive(Debug, Clone, Default)]
pub struct FileMaker {
    /// Rotation of each file.
    pub rotation: Option<Rotation>,
    /// The user whose they are and with whose rights they are made; else this process's.
    pub user: Option<User>,
    /// What fails while they are written.
    pub faults: RecordFaults,
}

impl FileMaker {
    /// Creates a file. With a rotation, one that is there becomes an older one unless it is empty: a service
    /// that is started again keeps what it has written.
    ///
    /// # Errors
    /// Those of the system.
    pub fn create(&self, path: &Path) -> io::Result<File> {
        let has_content = || fs::metadata(path).is_ok_and(|file| file.is_file() && file.len() > 0);
        let made = self.with_rights(|| match self.rotation.filter(|_| has_content()) {
            Some(rotation) => rotation.next(path),
            None => File::create(path),
        });
        made.map_err(|error| with_fix(error, path))
    }

    /// The rotation, if a file of this length is to be rotated.
    #[must_use]
    pub fn full(&self, length: u64) -> Option<Rotation> {
        self.rotation.filter(|rotation| length >= rotation.size)
    }

    /// The next file of this path: see [`Rotation`].
    ///
    /// # Errors
    /// Those of the system.
    pub fn next(&self, rotation: Rotation, path: &Path) -> io::Result<File> {
        self.with_rights(|| rotation.next(path))
    }

    fn with_rights(&self, make: impl FnOnce() -> io::Result<File> + Send) -> io::Result<File> {
        match &self.user {
            Some(user) => user.with_rights_to_files(make),
            None => make(),
        }
    }
}

/// The first failure of each file of a run, shared between those who write and those who say it.
#[derive(Debug, Clone, Default)]
pub struct RecordFaults(Arc<Mutex<Noted>>);

#[derive(Debug, Default)]
struct Noted {
    all: Vec<String>,
    /// How many of them were taken.
    taken: usize,
}

impl RecordFaults {
    /// Notes the first failure of a file, with its name and the reason.
    pub(crate) fn note(&self, fault: String) {
        lock(&self.0).all.push(fault);
    }

    /// All so far.
    pub fn all(&self) -> Vec<String> {
        lock(&self.0).all.clone()
    }

    /// Those that nobody has taken yet.
    pub fn take_new(&self) -> Vec<String> {
        let mut noted = lock(&self.0);
        let new = noted.all[noted.taken..].to_vec();
        noted.taken = noted.all.len();
        new
    }
}

/// Rotation of files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rotation {
    /// Approximate size of a file in bytes.
    pub size: u64,
    /// Number of files kept, including the current one.
    pub files: u32,
}

impl Rotation {
    /// Renames the files of this path, replacing the oldest, and creates a new one.
    fn next(self, path: &Path) -> io::Result<File> {
        // Somebody may have removed the file: it is made anew.
        let owner = fs::metadata(path).ok();
        for number in (1..self.files).rev() {
            let from = if number == 1 { path.into() } else { older(path, number - 1) };
            if_there(fs::rename(from, older(path, number)))?;
        }
        if self.files == 1 {
            // Truncated, it would be another log for those who read it.
            if_there(fs::remove_file(path))?;
        }
        let file = File::create(path)?;
        if let Some(owner) = owner {
            // Under sudo the first file is the caller's, and so are the others. Ordinary users own all of
            // them.
            let _ = fchown(&file, Some(owner.uid()), Some(owner.gid()));
        }
        Ok(file)
    }
}

/// The error of a file that can't be made: if its folder is missing, with the fix.
fn with_fix(error: io::Error, path: &Path) -> io::Error {
    // A name alone has a folder without a name, which is there.
    let folder = path.parent().filter(|folder| *folder != Path::new("") && !folder.exists());
    match folder {
        Some(folder) if error.kind() == io::ErrorKind::NotFound => {
            io::Error::new(error.kind(), format!("{error}; make the folder {} first", folder.display()))
        }
        _ => error,
    }
}

/// What was done with a file, which need not be there.
fn if_there(done: io::Result<()>) -> io::Result<()> {
    done.or_else(|error| if error.kind() == io::ErrorKind::NotFound { Ok(()) } else { Err(error) })
}

/// The name of an older file: `run.lwlog` becomes `run.1.lwlog`, then `run.2.lwlog`; `run` becomes `run.1`.
pub fn older(path: &Path, number: u32) -> PathBuf {
    match path.extension() {
        Some(extension) => path.with_extension(format!("{number}.{}", extension.to_string_lossy())),
        None => path.with_extension(number.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_move_on_and_the_oldest_goes() {
        let folder = std::env::temp_dir().join(format!("longwire-rotation-{}", std::process::id()));
        fs::create_dir(&folder).unwrap();
        let path = folder.join("run.csv");
        let maker = FileMaker { rotation: Some(Rotation { size: 10, files: 3 }), ..FileMaker::default() };
        let without = FileMaker::default();
        assert!(maker.full(10).is_some() && maker.full(9).is_none() && without.full(u64::MAX).is_none());
        maker.create(&path).unwrap();
        for text in ["a", "b", "c", "d"] {
            fs::write(&path, text).unwrap();
            maker.create(&path).unwrap();
        }
        let content = |name: &str| fs::read_to_string(folder.join(name)).ok();
        let all = ["run.csv", "run.1.csv", "run.2.csv", "run.3.csv"].map(content);
        assert_eq!(all, [Some(""), Some("d"), Some("c"), None].map(|text| text.map(String::from)));
        assert_eq!(older("folder.1/run".as_ref(), 2), Path::new("folder.1/run.2"));
        fs::write(&path, "e").unwrap();
        without.create(&path).unwrap();
        assert_eq!([content("run.csv").as_deref(), content("run.1.csv").as_deref()], [Some(""), Some("d")]);
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_missing_folder_is_named() {
        let error = FileMaker::default().create(Path::new("/nowhere/logs/run.csv")).unwrap_err();
        assert!(error.to_string().ends_with("; make the folder /nowhere/logs first"), "{error}");
    }

    #[test]
    fn a_file_that_somebody_has_removed_is_made_anew() {
        let folder = std::env::temp_dir().join(format!("longwire-rotation-gone-{}", std::process::id()));
        fs::create_dir(&folder).unwrap();
        let (path, maker) = (folder.join("run.csv"), FileMaker::default());
        for files in [1, 3] {
            let rotation = Rotation { size: 10, files };
            fs::write(&path, "a").unwrap();
            maker.next(rotation, &path).unwrap();
            fs::remove_file(&path).unwrap();
            maker.next(rotation, &path).unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), "", "{files}");
        }
        assert_eq!(fs::read_to_string(folder.join("run.2.csv")).unwrap(), "a", "older ones move on");
        fs::remove_dir_all(folder).unwrap();
    }
}
