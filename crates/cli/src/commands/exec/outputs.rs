//! Files that `exec` writes: as root by sudo, they are made for the caller.

use anyhow::Context;
use longwire_rundir::own_uid;
use std::fs::OpenOptions;
use std::io;
use std::os::unix::fs::fchown;
use std::path::PathBuf;

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
