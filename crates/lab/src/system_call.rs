//! Results of system calls by libc.

use std::io;

/// What a call returned, or the error if that is negative. Safe between fork and exec.
pub fn checked<N: PartialOrd + Default>(result: N) -> io::Result<N> {
    if result < N::default() { Err(io::Error::last_os_error()) } else { Ok(result) }
}
