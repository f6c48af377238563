//! Files that `exec` writes: those of the user who runs the command, made with that user's rights; else, as
//! root by sudo, they are made for the caller.

use anyhow::Context;
use longwire_lab::User;
use longwire_report::printable;
use longwire_rundir::own_uid;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{FileTypeExt, fchown};
use std::path::{Path, PathBuf};

/// Folders of this process's own descriptors, which the shell names: `/dev/stderr`, `/dev/fd/63`.
const DESCRIPTORS: [&str; 3] = ["/dev", "/dev/fd", "/proc/self/fd"];

/// Writes files.
#[derive(Debug, Clone, Default)]
pub struct Outputs {
    /// The user with whose rights they are written, if it is another one.
    pub user: Option<User>,
}

/// Whether a file is this process's standard error.
pub fn is_standard_error(file: &Path) -> bool {
    [Path::new("-"), Path::new("/dev/stderr")].contains(&file)
}

/// Whether several outputs may go to a file: to a descriptor, or a pipe.
pub fn is_shared(file: &Path) -> bool {
    file.as_os_str() == "-" || is_descriptor(file) || is_pipe(file)
}

/// Whether a name means one of this process's own descriptors, or a device.
fn is_descriptor(file: &Path) -> bool {
    file.parent().is_some_and(|folder| DESCRIPTORS.iter().any(|own| folder == Path::new(own)))
}

fn is_pipe(file: &Path) -> bool {
    file.metadata().is_ok_and(|known| known.file_type().is_fifo())
}

impl Outputs {
    /// Makes the missing files, if this process is root for a caller. Existing ones keep their owner.
    pub fn make_for_caller(&self, files: &[&Option<PathBuf>]) -> anyhow::Result<()> {
        let number = |variable: &str| std::env::var(variable).ok()?.parse::<u32>().ok();
        let (Some(uid), Some(gid)) = (number("SUDO_UID"), number("SUDO_GID")) else { return Ok(()) };
        if own_uid() != 0 || self.user.is_some() {
            return Ok(());
        }
        for file in files.iter().copied().flatten().filter(|file| file.as_os_str() != "-") {
            match OpenOptions::new().write(true).create_new(true).open(file) {
                // By its descriptor: the name may mean another file by now.
                Ok(made) => fchown(made, Some(uid), Some(gid)),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
                Err(error) => Err(error),
            }
            .with_context(|| format!("can't write {}", file.display()))?;
        }
        Ok(())
    }

    /// Makes a file that is written when the command has ended, so that a name that can't be written is
    /// reported before it runs. Pipes are left alone: their readers would see their end.
    pub fn check(&self, file: &Path) -> anyhow::Result<()> {
        if file.as_os_str() == "-" || is_pipe(file) {
            return Ok(());
        }
        let opened = self.with_rights(file, || OpenOptions::new().append(true).create(true).open(file));
        opened.map(drop).with_context(|| format!("the report can't be written to {}", file.display()))
    }

    /// Writes the report, or the error, to its file; standard output belongs to the command.
    pub fn report(&self, file: &Path, text: &str) -> anyhow::Result<()> {
        let written = match file.as_os_str() == "-" {
            true => writeln!(io::stderr(), "{}", printable(text)),
            false => self.with_rights(file, || fs::write(file, format!("{text}\n"))),
        };
        written.with_context(|| format!("the report can't be written to {}", file.display()))
    }

    /// Opens a file to which messages are added, and empties it. It stays open, because the reader of a pipe
    /// would see its end between two messages.
    pub fn open(&self, file: &Path) -> io::Result<File> {
        self.with_rights(file, || {
            let opened = OpenOptions::new().append(true).create(true).open(file)?;
            if opened.metadata()?.is_file() {
                opened.set_len(0)?;
            }
            Ok(opened)
        })
    }

    fn with_rights<R: Send>(&self, file: &Path, f: impl FnOnce() -> io::Result<R> + Send) -> io::Result<R> {
        match &self.user {
            Some(user) if !is_descriptor(file) => user.with_rights_to_files(f),
            _ => f(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    /// A folder of this test.
    fn folder(test: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("longwire-outputs-{test}-{}", std::process::id()));
        fs::create_dir(&folder).unwrap();
        folder
    }

    #[test]
    fn names_that_can_not_be_written_are_refused() {
        let folder = folder("names");
        let (new, old, pipe) = (folder.join("new"), folder.join("old"), folder.join("pipe"));
        fs::write(&old, "kept").unwrap();
        let outputs = Outputs::default();
        assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        for file in [&new, &old, &pipe, &PathBuf::from("-")] {
            outputs.check(file).unwrap();
        }
        assert_eq!((fs::read_to_string(&old).unwrap(), new.exists()), ("kept".into(), true));
        for file in [&folder, &folder.join("none/x")] {
            assert!(outputs.check(file).unwrap_err().to_string().starts_with("the report can't"));
        }
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn outputs_share_descriptors_and_pipes_only() {
        let folder = folder("shared");
        let [file, pipe] = ["file", "pipe"].map(|name| folder.join(name));
        fs::write(&file, "").unwrap();
        assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let shared = |file: &str| is_shared(Path::new(file));
        assert!(is_shared(&pipe) && ["-", "/dev/stderr", "/dev/fd/63", "/dev/null"].into_iter().all(shared));
        assert!(!is_shared(&file) && !["new.json", "/dev/shm/new.json"].into_iter().any(shared));
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn messages_replace_those_of_a_file_and_follow_each_other_in_a_pipe() {
        let folder = folder("messages");
        let (old, pipe) = (folder.join("old"), folder.join("pipe"));
        fs::write(&old, "old").unwrap();
        assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        for file in [&old, &pipe] {
            let (name, is_pipe) = (file.clone(), *file == pipe);
            let reader = is_pipe.then(|| std::thread::spawn(move || fs::read_to_string(name).unwrap()));
            let mut opened = Outputs::default().open(file).unwrap();
            for text in ["one\n", "two\n"] {
                opened.write_all(text.as_bytes()).unwrap();
            }
            drop(opened);
            let read = reader.map_or_else(|| fs::read_to_string(file).unwrap(), |read| read.join().unwrap());
            assert_eq!(read, "one\ntwo\n");
        }
        fs::remove_dir_all(&folder).unwrap();
    }
}
