//! The directory of a user's instances: sockets, locks and states.
//!
//! It belongs to this user alone from its first moment. [`prepare`] makes it with mode 0700 and refuses one
//! that belongs to another user; [`is_usable`] checks the same before anything in it is trusted. Waiting for
//! a lock is interrupted by the signals that [`StopSignals`] catches.
#![forbid(unsafe_code)]

mod interrupt;
mod key_file;
mod lock;
mod stop_signals;

pub use interrupt::{interrupt, interrupt_flag, on_wait};
pub use key_file::{make_key_file, random, read_key_file};
pub use lock::{Lock, LockError, Patience};
pub use stop_signals::{StopSignals, asking};

use std::fs::{self, DirBuilder, Metadata, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use thiserror::Error;

/// The user id that the kernel shows for users without a mapping in this user namespace.
const UNMAPPED: u32 = 65_534;
/// Permission bits: writable by others; any access by others; sticky.
const OTHERS_WRITE: u32 = 0o022;
const OTHERS: u32 = 0o077;
const STICKY: u32 = 0o1000;
/// How to choose another directory than [`directory`].
pub const NAME_ANOTHER: &str = "name another directory in LONGWIRE_RUN_DIR";
/// Root's directory of sockets that groups may open.
const SHARED: &str = "/run/longwire-shared";

/// A directory that can't be used. How to name another one is said by those who know where it was named.
#[derive(Debug, Error)]
pub enum PlaceError {
    /// It can't be made or inspected.
    #[error("can't use {}: {source}", path.display())]
    Io {
        /// The directory.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// It belongs to another user.
    #[error("{} is not a directory of this user", .0.display())]
    Foreign(PathBuf),
    /// Other users have access, and may have put anything there.
    #[error(
        "{} is open to other users (mode {mode:04o}), and not this user's alone (chmod 700)",
        path.display()
    )]
    Open {
        /// The directory.
        path: PathBuf,
        /// Its permissions.
        mode: u32,
    },
    /// Other users may replace it.
    #[error(
        "{} is in {}, where other users can put another directory in its place",
        path.display(), above.display()
    )]
    Exchangeable {
        /// The directory.
        path: PathBuf,
        /// The parent directory that is not safe.
        above: PathBuf,
    },
}

impl From<PlaceError> for io::Error {
    fn from(error: PlaceError) -> Self {
        let kind = match &error {
            PlaceError::Io { source, .. } => source.kind(),
            _ => io::ErrorKind::PermissionDenied,
        };
        Self::new(kind, error)
    }
}

/// The directory of this user's sockets and locks: `$LONGWIRE_RUN_DIR`; else `/run/longwire` for root; else
/// `$XDG_RUNTIME_DIR/longwire`; else `/tmp/longwire-<uid>`.
///
/// Inside a user namespace the outer user id is used, so that an instance that became root in one is found.
pub fn directory() -> PathBuf {
    variable("LONGWIRE_RUN_DIR").unwrap_or_else(default_directory)
}

/// The directory of locks that must not depend on `LONGWIRE_RUN_DIR`, such as those on interfaces: the
/// default directory of this user, or [`directory`] if that is unusable.
///
/// # Errors
/// Neither can be used.
pub fn lock_directory() -> io::Result<PathBuf> {
    let usual = default_directory();
    if prepare(&usual).is_ok() {
        return Ok(usual);
    }
    let named = directory();
    match prepare(&named) {
        Ok(()) => Ok(named),
        Err(error) => {
            let said = format!("{error}; {NAME_ANOTHER}");
            Err(io::Error::new(io::Error::from(error).kind(), said))
        }
    }
}

fn default_directory() -> PathBuf {
    default_of(outer_uid(own_uid(), &uid_map()), variable("XDG_RUNTIME_DIR").as_deref())
}

fn variable(name: &str) -> Option<PathBuf> {
    std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute())
}

/// Makes the directory if it is missing, for this user alone. An existing one is not changed, except the
/// default directory, which an earlier version may have left readable.
///
/// # Errors
/// It can't be made, belongs to another user, is open to other users, or could be replaced by them.
pub fn prepare(directory: &Path) -> Result<(), PlaceError> {
    let failed = |source| PlaceError::Io { path: directory.into(), source };
    DirBuilder::new().recursive(true).mode(0o700).create(directory).map_err(failed)?;
    match look(directory, &[own_uid()])? {
        // Only Longwire uses this name, and the directory belongs to this user.
        Some(mode) if mode & OTHERS != 0 && directory == default_directory() => {
            fs::set_permissions(directory, Permissions::from_mode(0o700)).map_err(failed)
        }
        Some(mode) if mode & OTHERS != 0 => Err(PlaceError::Open { path: directory.into(), mode }),
        Some(_) => Ok(()),
        None => Err(failed(io::ErrorKind::NotFound.into())),
    }
}

/// The directory of the sockets that a group may open, beside `directory`: of every default directory
/// `/run/longwire-shared`, else a sibling whose name ends in `-shared`.
pub fn shared_directory(directory: &Path) -> PathBuf {
    if directory == default_directory() {
        return SHARED.into();
    }
    let mut path = directory.as_os_str().to_owned();
    path.push("-shared");
    path.into()
}

/// Makes a directory of sockets that groups may open, if it is missing: all users may enter it, and only this
/// one may put anything there.
///
/// # Errors
/// It can't be made, belongs to another user, or others may write to it.
pub fn prepare_shared(directory: &Path) -> Result<(), PlaceError> {
    let failed = |source| PlaceError::Io { path: directory.into(), source };
    match DirBuilder::new().mode(0o755).create(directory) {
        // The mode that was asked for is reduced by the process's mask.
        Ok(()) => fs::set_permissions(directory, Permissions::from_mode(0o755)).map_err(failed)?,
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        Err(error) => return Err(failed(error)),
    }
    match look(directory, &[own_uid()])? {
        Some(mode) if mode & OTHERS_WRITE != 0 => Err(PlaceError::Open { path: directory.into(), mode }),
        Some(_) => Ok(()),
        None => Err(failed(io::ErrorKind::NotFound.into())),
    }
}

/// Whether the directory exists and its contents can be trusted: only this user or root can have put them
/// there.
///
/// # Errors
/// It exists and belongs to another user, or could have been filled or replaced by one.
pub fn is_usable(directory: &Path) -> Result<bool, PlaceError> {
    match look(directory, &[own_uid(), 0])? {
        Some(mode) if mode & OTHERS_WRITE != 0 => Err(PlaceError::Open { path: directory.into(), mode }),
        found => Ok(found.is_some()),
    }
}

/// The directory's mode, if it exists, belongs to one of these users, and can't be replaced.
fn look(directory: &Path, owners: &[u32]) -> Result<Option<u32>, PlaceError> {
    let failed = |source| PlaceError::Io { path: directory.into(), source };
    let found = match fs::symlink_metadata(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        found => found.map_err(failed)?,
    };
    // In /tmp another user could have made it, or a symbolic link in its place.
    if !found.is_dir() || !owners.contains(&found.uid()) {
        return Err(PlaceError::Foreign(directory.into()));
    }
    let whole = fs::canonicalize(directory).map_err(failed)?;
    for above in whole.ancestors().skip(1) {
        if can_be_changed_by_others(&fs::metadata(above).map_err(failed)?) {
            return Err(PlaceError::Exchangeable { path: directory.into(), above: above.into() });
        }
    }
    Ok(Some(found.mode() & 0o7777))
}

/// Whether users other than this one and root can rename entries. Inside a user namespace root has no id.
fn can_be_changed_by_others(above: &Metadata) -> bool {
    let owner = above.uid();
    let has_no_number = || owner == UNMAPPED && mapped(owner, &uid_map()).is_none();
    let trusted = owner == 0 || owner == own_uid() || has_no_number();
    !trusted || (above.mode() & OTHERS_WRITE != 0 && above.mode() & STICKY == 0)
}

fn default_of(uid: u32, runtime: Option<&Path>) -> PathBuf {
    match runtime {
        _ if uid == 0 => "/run/longwire".into(),
        Some(runtime) => runtime.join("longwire"),
        None => format!("/tmp/longwire-{uid}").into(),
    }
}

/// The effective user id, which owns the process's folder in /proc.
pub fn own_uid() -> u32 {
    fs::metadata("/proc/self").map_or(UNMAPPED, |found| found.uid())
}

/// The outer user id for `uid` in this user namespace, from the lines of `/proc/self/uid_map`
/// (user_namespaces(7)): first inside, first outside, count.
fn outer_uid(uid: u32, map: &str) -> u32 {
    mapped(uid, map).unwrap_or(uid)
}

fn uid_map() -> String {
    fs::read_to_string("/proc/self/uid_map").unwrap_or_default()
}

/// As [`outer_uid`]; none if `uid` is not mapped.
fn mapped(uid: u32, map: &str) -> Option<u32> {
    let lines = map.lines().filter_map(|line| {
        let mut numbers = line.split_whitespace().map(|n| n.parse::<u32>().ok());
        Some((numbers.next()??, numbers.next()??, numbers.next()??))
    });
    let mut outer = lines.filter_map(|(inside, outside, count)| {
        let offset = uid.checked_sub(inside).filter(|offset| *offset < count)?;
        outside.checked_add(offset)
    });
    outer.next()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{chown, symlink};

    fn mode_of(path: &Path) -> u32 {
        fs::metadata(path).unwrap().mode() & 0o7777
    }

    #[test]
    fn a_directory_that_exists_keeps_its_mode() {
        let folder = std::env::temp_dir().join(format!("longwire-rundir-{}", std::process::id()));
        prepare(&folder).unwrap();
        assert_eq!(mode_of(&folder), 0o700, "for this user alone from its first moment");
        for mode in [0o755, 0o1777, 0o770] {
            fs::set_permissions(&folder, Permissions::from_mode(mode)).unwrap();
            let error = prepare(&folder).unwrap_err();
            assert!(matches!(error, PlaceError::Open { mode: found, .. } if found == mode), "{error}");
            assert!(error.to_string().contains("chmod 700"), "{error}");
            assert_eq!(mode_of(&folder), mode, "it is not ours to change");
            assert_eq!(is_usable(&folder).is_ok(), mode & OTHERS_WRITE == 0);
        }
        let inner = folder.join("x");
        fs::set_permissions(&folder, Permissions::from_mode(0o770)).unwrap();
        assert!(matches!(prepare(&inner).unwrap_err(), PlaceError::Exchangeable { .. }));
        fs::set_permissions(&folder, Permissions::from_mode(0o1777)).unwrap();
        prepare(&inner).unwrap();
        let link = folder.join("link");
        symlink(&inner, &link).unwrap();
        assert!(matches!(prepare(&link).unwrap_err(), PlaceError::Foreign(_)));
        assert!(!is_usable(&folder.join("none")).unwrap());
        // Only root can give a directory away.
        if own_uid() == 0 && mapped(UNMAPPED, &uid_map()).is_some() {
            chown(&folder, Some(UNMAPPED), None).unwrap();
            let error = is_usable(&inner).unwrap_err();
            assert!(
                matches!(error, PlaceError::Exchangeable { .. }),
                "outside a user namespace nobody is a user: {error}"
            );
            chown(&folder, Some(own_uid()), None).unwrap();
            chown(&inner, Some(1), None).unwrap();
            assert!(matches!(prepare(&inner).unwrap_err(), PlaceError::Foreign(_)));
            assert!(matches!(is_usable(&inner).unwrap_err(), PlaceError::Foreign(_)));
        }
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn a_shared_directory_is_entered_by_all_and_written_by_one() {
        let own = std::env::temp_dir().join(format!("longwire-shared-{}", std::process::id()));
        let folder = shared_directory(&own);
        assert!(folder.ends_with(format!("longwire-shared-{}-shared", std::process::id())));
        assert_eq!(shared_directory(&default_directory()), Path::new("/run/longwire-shared"));
        prepare_shared(&folder).unwrap();
        assert_eq!(mode_of(&folder), 0o755);
        prepare_shared(&folder).unwrap();
        assert!(is_usable(&folder).unwrap());
        fs::set_permissions(&folder, Permissions::from_mode(0o775)).unwrap();
        assert!(matches!(prepare_shared(&folder).unwrap_err(), PlaceError::Open { mode: 0o775, .. }));
        assert!(is_usable(&folder).is_err());
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn every_user_has_a_directory() {
        let runtime = Path::new("/run/user/1000");
        assert_eq!(default_of(0, Some(runtime)), Path::new("/run/longwire"));
        assert_eq!(default_of(1000, Some(runtime)), Path::new("/run/user/1000/longwire"));
        assert_eq!(default_of(1000, None), Path::new("/tmp/longwire-1000"));
    }

    #[test]
    fn the_user_outside_a_namespace_counts() {
        assert_eq!(outer_uid(0, "         0          0 4294967295\n"), 0);
        assert_eq!(outer_uid(0, "         0       1000          1\n"), 1000);
        assert_eq!(outer_uid(5, "0 1000 1\n1 100000 65536\n"), 100_004);
        assert_eq!(outer_uid(65534, "0 1000 1\n"), 65534);
        assert_eq!(outer_uid(7, "nonsense\n1 2\n"), 7);
    }
}
