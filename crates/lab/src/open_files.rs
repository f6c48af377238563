//! How many files this process may have open.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::LabError;

/// Lets this process have so many files open, if it may not yet: up to its hard limit, and beyond where it
/// has the privilege.
///
/// # Errors
/// If the machine does not allow it.
pub fn allow_open_files(count: u64) -> Result<(), LabError> {
    let limit = getrlimit(Resource::Nofile);
    // None means that there is no limit.
    if limit.current.is_none_or(|current| current >= count) {
        return Ok(());
    }
    let limit = Rlimit { current: Some(count), maximum: limit.maximum.map(|most| most.max(count)) };
    setrlimit(Resource::Nofile, limit)
        .map_err(|e| LabError::system(format!("allowing {count} open files (ulimit -n)"))(e.into()))
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
