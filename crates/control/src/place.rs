//! Where sockets of instances are, and what they are called.

use std::fs::{self, DirBuilder, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use thiserror::Error;

/// Longest name of an instance in a socket's name: with the directory it has to fit in the 108 bytes of a socket's address.
const MAX_NAME: usize = 40;

/// Longest name of a router in one.
const MAX_ROUTER: usize = 20;

/// A running instance's socket.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Found {
    /// The instance's name.
    pub name: String,
    /// Its process, as numbered in its own PID namespace.
    pub pid: u32,
    /// Its socket.
    pub path: PathBuf,
}

/// A directory that sockets can't be put in.
#[derive(Debug, Error)]
pub enum PlaceError {
    /// It can't be made or looked at.
    #[error("can't use {}: {source}; name another directory in LONGWIRE_RUN_DIR", path.display())]
    Io {
        /// The directory.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// Somebody else made it.
    #[error("{} is not a directory of this user; remove it, or name another in LONGWIRE_RUN_DIR", .0.display())]
    Foreign(PathBuf),
}

/// Where the sockets of this user's instances are: `$LONGWIRE_RUN_DIR`; else `/run/longwire` for root; else
/// `$XDG_RUNTIME_DIR/longwire`; else `/tmp/longwire-<uid>`.
///
/// Inside a user namespace the user outside counts, so that an instance that made itself root in one is found.
pub fn directory() -> PathBuf {
    let variable = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    if let Some(given) = variable("LONGWIRE_RUN_DIR") {
        return given;
    }
    let map = fs::read_to_string("/proc/self/uid_map").unwrap_or_default();
    default_directory(outer_uid(own_uid(), &map), variable("XDG_RUNTIME_DIR").as_deref())
}

/// Makes the directory if it is missing, for this user alone.
///
/// # Errors
/// It can't be made, or is somebody else's.
pub fn prepare(directory: &Path) -> Result<(), PlaceError> {
    let failed = |source| PlaceError::Io { path: directory.into(), source };
    DirBuilder::new().recursive(true).mode(0o700).create(directory).map_err(failed)?;
    // In /tmp another user could have made it, or put a symbolic link there.
    let found = fs::symlink_metadata(directory).map_err(failed)?;
    if !found.is_dir() || found.uid() != own_uid() {
        return Err(PlaceError::Foreign(directory.into()));
    }
    fs::set_permissions(directory, Permissions::from_mode(0o700)).map_err(failed)
}

/// The socket's file name. Whatever is not a letter, digit, dot or underscore in the name becomes a hyphen.
pub(crate) fn file_name(name: &str, pid: u32) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || "._".contains(c) { c } else { '-' };
    let plain: String = name.chars().take(MAX_NAME).map(plain).collect();
    // Hidden names are those of sockets that don't answer yet.
    let plain = plain.trim_start_matches('.');
    let plain = if plain.is_empty() { "longwire" } else { plain };
    format!("{plain}-{pid}.sock")
}

/// The socket's path for control processes of a router of the instance `name`, which is this process.
pub fn control_socket(directory: &Path, name: &str, router: &str) -> PathBuf {
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '_' { c } else { '-' };
    let router: String = router.chars().take(MAX_ROUTER).map(plain).collect();
    let instance = file_name(name, std::process::id());
    directory.join(format!("{}.{router}.control", instance.trim_end_matches(".sock")))
}

/// The sockets in a directory, by name; whether anybody answers on them is not known yet.
pub(crate) fn sockets(directory: &Path) -> Result<Vec<Found>, PlaceError> {
    let failed = |source| PlaceError::Io { path: directory.into(), source };
    let entries = match fs::read_dir(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(failed)?,
    };
    let mut found = Vec::new();
    for entry in entries {
        let path = entry.map_err(failed)?.path();
        let name = path.file_name().and_then(|n| n.to_str()).and_then(parse_file_name);
        found.extend(name.map(|(name, pid)| Found { name, pid, path }));
    }
    found.sort();
    Ok(found)
}

/// Removes the socket of an instance that has ended without doing so, and those of its routers for control processes.
pub(crate) fn clear(found: &Found) {
    // Another client may have removed any of them just now.
    let _ = fs::remove_file(&found.path);
    let (Some(directory), Some(own)) = (found.path.parent(), found.path.file_stem().and_then(|n| n.to_str()))
    else {
        return;
    };
    let is_own = |file: &str| {
        let router = file.strip_prefix(own).and_then(|rest| rest.strip_prefix('.')?.strip_suffix(".control"));
        router.is_some_and(|router| !router.contains('.'))
    };
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        if entry.file_name().to_str().is_some_and(is_own) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

fn parse_file_name(file: &str) -> Option<(String, u32)> {
    let (name, pid) = file.strip_suffix(".sock")?.rsplit_once('-')?;
    let pid = pid.parse().ok()?;
    (!name.is_empty() && !name.starts_with('.')).then(|| (name.into(), pid))
}

fn default_directory(uid: u32, runtime: Option<&Path>) -> PathBuf {
    match runtime {
        _ if uid == 0 => "/run/longwire".into(),
        Some(runtime) => runtime.join("longwire"),
        None => format!("/tmp/longwire-{uid}").into(),
    }
}

/// The effective user: /proc gives each process's folder to it.
fn own_uid() -> u32 {
    fs::metadata("/proc/self").map_or(0, |found| found.uid())
}

/// The user outside this user namespace that `uid` stands for, by the lines of `/proc/self/uid_map`
/// (user_namespaces(7)): first inside, first outside, how many.
fn outer_uid(uid: u32, map: &str) -> u32 {
    let lines = map.lines().filter_map(|line| {
        let mut numbers = line.split_whitespace().map(|n| n.parse::<u32>().ok());
        Some((numbers.next()??, numbers.next()??, numbers.next()??))
    });
    let mut outer = lines.filter_map(|(inside, outside, count)| {
        let offset = uid.checked_sub(inside).filter(|offset| *offset < count)?;
        outside.checked_add(offset)
    });
    outer.next().unwrap_or(uid)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_instance_leaves_is_cleared_and_nothing_else() {
        let directory = std::env::temp_dir().join(format!("longwire-clear-{}", std::process::id()));
        fs::create_dir_all(&directory).unwrap();
        let own = control_socket(&directory, "a", "r.1");
        let pid = std::process::id();
        let others =
            [format!("a-{pid}.b-7.r1.control"), format!("a-{pid}1.r1.control"), format!("a-{pid}.pid")];
        let path = directory.join(file_name("a", pid));
        let files = others.iter().map(|name| directory.join(name)).chain([own.clone(), path.clone()]);
        files.for_each(|file| fs::write(file, "").unwrap());
        clear(&Found { name: "a".into(), pid, path: path.clone() });
        assert!(!path.exists() && !own.exists());
        assert!(others.iter().all(|name| directory.join(name).exists()));
        fs::remove_dir_all(&directory).unwrap();
    }

    #[test]
    fn every_user_has_a_directory() {
        let runtime = Path::new("/run/user/1000");
        assert_eq!(default_directory(0, Some(runtime)), Path::new("/run/longwire"));
        assert_eq!(default_directory(1000, Some(runtime)), Path::new("/run/user/1000/longwire"));
        assert_eq!(default_directory(1000, None), Path::new("/tmp/longwire-1000"));
    }

    #[test]
    fn the_user_outside_a_namespace_counts() {
        assert_eq!(outer_uid(0, "         0          0 4294967295\n"), 0);
        assert_eq!(outer_uid(0, "         0       1000          1\n"), 1000);
        assert_eq!(outer_uid(5, "0 1000 1\n1 100000 65536\n"), 100_004);
        assert_eq!(outer_uid(65534, "0 1000 1\n"), 65534);
        assert_eq!(outer_uid(7, "nonsense\n1 2\n"), 7);
    }

    #[test]
    fn names_are_written_and_read_back() {
        let cases = [
            ("demo", "demo-7.sock"),
            ("a/b c", "a-b-c-7.sock"),
            ("..x", "x-7.sock"),
            ("", "longwire-7.sock"),
        ];
        for (name, file) in cases {
            assert_eq!(file_name(name, 7), file);
            assert_eq!(parse_file_name(file).unwrap().1, 7);
        }
        assert_eq!(parse_file_name("two-parts-12.sock"), Some(("two-parts".into(), 12)));
        assert!(file_name(&"x".repeat(500), u32::MAX).len() < 60);
        for file in [".demo-7.sock", "demo-7", "demo.sock", "demo-x.sock", "-7.sock"] {
            assert_eq!(parse_file_name(file), None, "{file}");
        }
    }
}
