//! The limit of open files.
#![allow(unsafe_code)]

use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::OnceLock;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::{LabError, Result};

/// The limit before this process raised it.
static BEFORE: OnceLock<Rlimit> = OnceLock::new();

/// Raises this process's limit of open files to `count`, if it is lower: up to its hard limit, or beyond with
/// the privilege.
///
/// # Errors
/// If the system refuses.
pub fn allow_open_files(count: u64) -> Result<()> {
    let limit = getrlimit(Resource::Nofile);
    // None means that there is no limit.
    if limit.current.is_none_or(|current| current >= count) {
        return Ok(());
    }
    BEFORE.get_or_init(|| limit);
    let limit = Rlimit { current: Some(count), maximum: limit.maximum.map(|most| most.max(count)) };
    setrlimit(Resource::Nofile, limit)
        .map_err(|e| LabError::system(format!("allowing {count} open files (ulimit -n)"))(e.into()))
}

/// As [`allow_open_files`], but as far as the system permits: all of them may not be needed.
pub fn allow_open_files_if_possible(count: u64) {
    if allow_open_files(count).is_err()
        // Up to the hard limit it takes no privilege.
        && let Some(most) = getrlimit(Resource::Nofile).maximum
    {
        let _ = allow_open_files(most.min(count));
    }
}

/// Gives a command the limit that this process had before it raised its own: some programs close as many
/// descriptors as they may have, and others can't use high ones. What opens files between fork and exec comes
/// before, because all of this process's are still open then.
pub fn restore_open_files(command: &mut Command) {
    let Some(limit) = BEFORE.get().copied() else { return };
    // SAFETY: between fork and exec the closure only makes a system call, on an existing value. Lowering a
    // limit takes no privilege.
    unsafe {
        command.pre_exec(move || Ok(setrlimit(Resource::Nofile, limit)?));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::io;

    #[test]
    fn what_is_allowed_can_be_opened() {
        let open = |count: usize| (0..count).map(|_| File::open("/dev/null")).collect::<io::Result<Vec<_>>>();
        allow_open_files(3000).unwrap();
        assert_eq!(open(2500).unwrap().len(), 2500);
        // A lower number does not reduce the limit.
        allow_open_files(10).unwrap();
        assert_eq!(open(2500).unwrap().len(), 2500);
    }
}
