//! How many files this process may have open.
#![allow(unsafe_code)]

use crate::LabError;
use crate::namespace::check;

/// Lets this process have so many files open, if it may not yet: up to its hard limit, and beyond where it
/// has the privilege.
///
/// # Errors
/// If the machine does not allow it.
pub fn allow_open_files(count: u64) -> Result<(), LabError> {
    let doing = || LabError::system(format!("allowing {count} open files (ulimit -n)"));
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the call fills in the record that it is given, which outlives it.
    check(unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) }).map_err(doing())?;
    if limit.rlim_cur >= count {
        return Ok(());
    }
    limit = libc::rlimit { rlim_cur: count, rlim_max: limit.rlim_max.max(count) };
    // SAFETY: the call reads the record that it is given, which outlives it.
    check(unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit) }).map_err(doing())
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
        // Fewer than there may be takes nothing away.
        allow_open_files(10).unwrap();
        assert_eq!(open(2500).unwrap().len(), 2500);
    }
}
