//! Directories whose entries are opened without following links, and read only if they belong to this user.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use longwire_rundir::own_uid;

/// Longest file that is read, in bytes: the state of about 50 000 hosts.
const LONGEST: u64 = 64 << 20;
/// Most names that are listed.
const MOST_NAMES: usize = 10_000;

/// An open directory, which stays the same whatever is renamed.
#[derive(Debug)]
pub struct Directory(File);

impl Directory {
    /// Opens a directory of the machine, such as one under `/proc`.
    pub fn open(path: &Path) -> io::Result<Self> {
        let flags = libc::O_PATH | libc::O_DIRECTORY | libc::O_CLOEXEC;
        OpenOptions::new().read(true).custom_flags(flags).open(path).map(Self)
    }

    /// Opens a directory inside this one; a symbolic link is refused.
    pub fn inside(&self, name: &str) -> io::Result<Self> {
        let flags = libc::O_PATH | libc::O_DIRECTORY | libc::O_NOFOLLOW | libc::O_CLOEXEC;
        OpenOptions::new().read(true).custom_flags(flags).open(self.entry(name)?).map(Self)
    }

    /// The names in it that are text and not hidden, sorted.
    pub fn names(&self) -> io::Result<Vec<String>> {
        let entries = fs::read_dir(self.path())?.take(MOST_NAMES);
        let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        let mut names: Vec<_> = names.filter(|name| !name.starts_with('.')).collect();
        names.sort_unstable();
        Ok(names)
    }

    /// Reads a regular file inside it that belongs to this user, is not writable by others, and has a
    /// plausible length. Anything else is an error before it is opened: opening a FIFO or a device can have
    /// side effects.
    pub fn read(&self, name: &str) -> io::Result<Vec<u8>> {
        let flags = libc::O_PATH | libc::O_NOFOLLOW | libc::O_CLOEXEC;
        let found = OpenOptions::new().read(true).custom_flags(flags).open(self.entry(name)?)?;
        let meta = found.metadata()?;
        let refuse = |why: String| Err(io::Error::new(io::ErrorKind::InvalidData, why));
        if !meta.is_file() {
            return refuse("it is not a regular file".to_owned());
        }
        if meta.uid() != own_uid() || meta.mode() & 0o022 != 0 {
            let (uid, mode) = (meta.uid(), meta.mode() & 0o7777);
            let why = format!("it belongs to user {uid} with mode {mode:04o}; only its user may write it");
            return refuse(why);
        }
        if meta.len() > LONGEST {
            return refuse(format!("it has {} bytes; at most {LONGEST} are read", meta.len()));
        }
        let mut bytes = Vec::new();
        File::open(path_of(&found))?.take(LONGEST + 1).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > LONGEST {
            return refuse(format!("it grows; at most {LONGEST} bytes are read"));
        }
        Ok(bytes)
    }

    /// Its owner.
    pub fn owner(&self) -> io::Result<u32> {
        Ok(self.0.metadata()?.uid())
    }

    /// A path to it, valid while this value lives.
    pub fn path(&self) -> PathBuf {
        path_of(&self.0)
    }

    fn entry(&self, name: &str) -> io::Result<PathBuf> {
        if name.is_empty() || name == "." || name == ".." || name.contains('/') {
            let why = format!("{name:?} is no name of an entry");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
        }
        Ok(self.path().join(name))
    }
}

fn path_of(file: &File) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{CWD, FileType, Mode, mknodat};
    use std::os::unix::fs::{PermissionsExt, symlink};

    fn folder(name: &str) -> PathBuf {
        let path = std::env::temp_dir().join(format!("longwire-directory-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        path
    }

    #[test]
    fn only_a_regular_file_of_this_user_is_read() {
        let path = folder("read");
        fs::write(path.join("file"), "text").unwrap();
        symlink(path.join("file"), path.join("link")).unwrap();
        symlink("/dev/zero", path.join("zero")).unwrap();
        fs::write(path.join("open"), "text").unwrap();
        fs::set_permissions(path.join("open"), fs::Permissions::from_mode(0o666)).unwrap();
        mknodat(CWD, path.join("fifo"), FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        File::create(path.join("long")).unwrap().set_len(LONGEST + 1).unwrap();
        let directory = Directory::open(&path).unwrap();
        assert_eq!(directory.read("file").unwrap(), b"text");
        for (name, reason) in [
            ("link", "not a regular file"),
            ("zero", "not a regular file"),
            ("fifo", "not a regular file"),
            ("open", "mode 0666"),
            ("long", "at most"),
            ("../file", "no name of an entry"),
        ] {
            let error = directory.read(name).unwrap_err().to_string();
            assert!(error.contains(reason), "{name}: {error}");
        }
        fs::remove_dir_all(path).unwrap();
    }

    #[test]
    fn a_link_to_a_directory_is_refused() {
        let path = folder("link");
        fs::create_dir(path.join("real")).unwrap();
        symlink(path.join("real"), path.join("link")).unwrap();
        let directory = Directory::open(&path).unwrap();
        assert_eq!(directory.inside("real").unwrap().owner().unwrap(), own_uid());
        assert!(directory.inside("link").is_err());
        assert_eq!(directory.names().unwrap(), ["link", "real"]);
        fs::remove_dir_all(path).unwrap();
    }
}
