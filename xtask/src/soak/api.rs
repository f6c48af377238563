//! Requests to a running instance by its socket.

use anyhow::{Context, Result};
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

/// Sends a change, and returns the whole answer.
///
/// # Errors
/// The socket can't be reached, or does not answer within five seconds.
pub(super) fn patch(socket: &Path, path: &str, body: &str) -> Result<String> {
    let mut stream =
        UnixStream::connect(socket).with_context(|| format!("connecting to {}", socket.display()))?;
    stream.set_read_timeout(Some(Duration::from_secs(5)))?;
    let length = body.len();
    write!(
        stream,
        "PATCH {path} HTTP/1.1\r\nHost: longwire\r\nContent-Type: application/json\r\nConnection: close\r\n\
         Content-Length: {length}\r\n\r\n{body}"
    )?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).with_context(|| format!("the answer to {path}"))?;
    Ok(answer)
}
