//! Files that are written whole or not at all.

use std::fs::{self, File, Metadata};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, fchown};
use std::path::{Path, PathBuf};

/// Writes a file. What it was stays until the new text is on the disk, which may be full.
///
/// As with [`fs::write`], the file keeps its owner and its mode, and of a symbolic link the target is
/// written. What is not a regular file, such as `/dev/stdout`, is written in place, and so is a file that
/// this user may write but not replace.
///
/// # Errors
/// If it can't be written.
pub fn write(file: &Path, text: &str) -> io::Result<()> {
    let place = fs::canonicalize(file).unwrap_or_else(|_| file.to_owned());
    let old = fs::symlink_metadata(&place).ok();
    if old.as_ref().is_some_and(|old| !old.is_file()) {
        return fs::write(file, text);
    }
    match replace(&place, text, old.as_ref()) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied && old.is_some() => {
            fs::write(file, text)
        }
        other => other,
    }
}

/// Checks that a file can be written, before what it will say takes long to find. Nothing changes.
///
/// # Errors
/// If it can't be, as far as is known now.
pub fn check(file: &Path) -> io::Result<()> {
    match fs::metadata(file) {
        // A pipe may have no reader yet.
        Ok(old) if !old.is_file() && !old.is_dir() => Ok(()),
        Ok(_) => File::options().write(true).open(file).map(drop),
        Err(_) => {
            let new = beside(file);
            File::create_new(&new)?;
            fs::remove_file(new)
        }
    }
}

/// The name of the file until it is written.
fn beside(place: &Path) -> PathBuf {
    let mut new = place.as_os_str().to_owned();
    new.push(format!(".{}.new", std::process::id()));
    new.into()
}

fn replace(place: &Path, text: &str, old: Option<&Metadata>) -> io::Result<()> {
    if old.is_some() {
        // Who may not write it may not replace it either.
        File::options().write(true).open(place)?;
    }
    let new = beside(place);
    // Nobody else's file, nor a link to one.
    let made = File::create_new(&new)?;
    let written = fill(made, text, old).and_then(|()| fs::rename(&new, place));
    if written.is_err() {
        // The error is reported; the unfinished file is of no use.
        let _ = fs::remove_file(&new);
    }
    written
}

fn fill(mut new: File, text: &str, old: Option<&Metadata>) -> io::Result<()> {
    if let Some(old) = old {
        let made = new.metadata()?;
        if (made.uid(), made.gid()) != (old.uid(), old.gid()) {
            fchown(&new, Some(old.uid()), Some(old.gid()))?;
        }
        new.set_permissions(old.permissions())?;
    }
    new.write_all(text.as_bytes())?;
    new.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    #[test]
    fn a_file_keeps_its_mode_and_a_link_its_target() {
        let folder = std::env::temp_dir().join(format!("longwire-whole-file-{}", std::process::id()));
        fs::create_dir(&folder).unwrap();
        let [file, link, dangling, new] = ["file", "link", "dangling", "new"].map(|name| folder.join(name));
        fs::write(&file, "old").unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
        symlink(&file, &link).unwrap();
        symlink(&new, &dangling).unwrap();
        write(&link, "first").unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "first");
        assert!(link.is_symlink());
        write(&file, "second").unwrap();
        assert_eq!(fs::read_to_string(&link).unwrap(), "second");
        assert_eq!(file.metadata().unwrap().mode() & 0o7777, 0o640);
        write(&dangling, "third").unwrap();
        assert_eq!(fs::read_to_string(&new).unwrap(), "third");
        write(Path::new("/dev/null"), "nothing").unwrap();
        for known in [&*file, &*link, &*folder.join("other"), Path::new("/dev/null")] {
            check(known).unwrap();
        }
        assert!(check(&folder).is_err() && check(&folder.join("none/file")).is_err());
        assert_eq!(fs::read_to_string(&file).unwrap(), "second", "a check changes nothing");
        assert!(write(Path::new("/dev/full"), "something").is_err());
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 4, "nothing else is left");
        fs::remove_dir_all(&folder).unwrap();
    }
}
