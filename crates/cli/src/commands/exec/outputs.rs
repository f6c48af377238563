//! Files that `exec` writes: as root by sudo, they are made for the caller.

use anyhow::Context;
use longwire_rundir::own_uid;
use std::fs::OpenOptions;
use std::io;
use std::os::unix::fs::{FileTypeExt, fchown};
use std::path::{Path, PathBuf};

/// Makes the missing files, if this process is root for another user. Existing ones keep their owner.
pub fn make_for_caller(files: &[&Option<PathBuf>]) -> anyhow::Result<()> {
    let number = |variable: &str| std::env::var(variable).ok()?.parse::<u32>().ok();
    let (Some(uid), Some(gid)) = (number("SUDO_UID"), number("SUDO_GID")) else { return Ok(()) };
    if own_uid() != 0 {
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

/// Makes a file that is written when the command has ended, so that a name that can't be written is reported
/// before it runs. Pipes are left alone: their readers would see their end.
pub fn check(file: &Path) -> anyhow::Result<()> {
    if file.as_os_str() == "-" || file.metadata().is_ok_and(|known| known.file_type().is_fifo()) {
        return Ok(());
    }
    let opened = OpenOptions::new().append(true).create(true).open(file);
    opened.map(drop).with_context(|| format!("the report can't be written to {}", file.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn names_that_can_not_be_written_are_refused() {
        let folder = std::env::temp_dir().join(format!("longwire-outputs-{}", std::process::id()));
        std::fs::create_dir(&folder).unwrap();
        let (new, old, pipe) = (folder.join("new"), folder.join("old"), folder.join("pipe"));
        std::fs::write(&old, "kept").unwrap();
        assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        for file in [&new, &old, &pipe, &PathBuf::from("-")] {
            check(file).unwrap();
        }
        assert_eq!((std::fs::read_to_string(&old).unwrap(), new.exists()), ("kept".into(), true));
        for file in [&folder, &folder.join("none/x")] {
            assert!(check(file).unwrap_err().to_string().starts_with("the report can't"));
        }
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
