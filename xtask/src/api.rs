//! Requests to a running instance: HTTP/1.1 over one connection after another or one for all.

use anyhow::{Context, Result, bail, ensure};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

/// Time limit for an answer.
const PATIENCE: Duration = Duration::from_secs(5);
/// Longest answer that is read, in bytes.
const LONGEST: usize = 64 << 20;

/// A connection to an instance.
pub(crate) struct Connection<S> {
    stream: BufReader<S>,
}

/// An answer.
pub(crate) struct Answer {
    /// The status, such as 200.
    pub(crate) status: u16,
    pub(crate) body: String,
}

impl Answer {
    /// Whether the request succeeded.
    pub(crate) const fn is_success(&self) -> bool {
        self.status >= 200 && self.status < 300
    }
}

impl Connection<UnixStream> {
    /// Connects to an instance's socket.
    ///
    /// # Errors
    /// It can't be reached.
    pub(crate) fn unix(socket: &Path) -> Result<Self> {
        let stream =
            UnixStream::connect(socket).with_context(|| format!("connecting to {}", socket.display()))?;
        stream.set_read_timeout(Some(PATIENCE))?;
        Ok(Self { stream: BufReader::new(stream) })
    }
}

impl Connection<TcpStream> {
    /// Connects to a port of this machine.
    ///
    /// # Errors
    /// It can't be reached.
    pub(crate) fn tcp(port: u16) -> Result<Self> {
        let stream = TcpStream::connect(("127.0.0.1", port)).with_context(|| format!("port {port}"))?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_nodelay(true)?;
        Ok(Self { stream: BufReader::new(stream) })
    }

    /// The connection itself, for requests whose answers are not read.
    pub(crate) fn into_inner(self) -> TcpStream {
        self.stream.into_inner()
    }
}

impl<S> Connection<S>
where
    S: Read,
    for<'s> &'s S: Write,
{
    /// Sends a request and reads the answer. The connection stays open.
    ///
    /// # Errors
    /// The instance does not answer within five seconds, or not with HTTP.
    pub(crate) fn ask(&mut self, method: &str, path: &str, body: &str) -> Result<Answer> {
        let request = request(method, path, body);
        let mut to: &S = self.stream.get_ref();
        to.write_all(request.as_bytes()).with_context(|| format!("{method} {path}"))?;
        self.answer().with_context(|| format!("the answer to {method} {path}"))
    }

    fn answer(&mut self) -> Result<Answer> {
        let first = self.line()?;
        let status = first.split(' ').nth(1).and_then(|status| status.parse().ok());
        let status = status.with_context(|| format!("no status: {first}"))?;
        let mut length = 0;
        loop {
            let line = self.line()?;
            if line.is_empty() {
                break;
            }
            let Some((name, value)) = line.split_once(':') else { bail!("no header: {line}") };
            if name.eq_ignore_ascii_case("content-length") {
                length = value.trim().parse().with_context(|| line.clone())?;
            }
        }
        ensure!(length <= LONGEST, "{length} bytes are too many");
        let mut body = vec![0; length];
        self.stream.read_exact(&mut body)?;
        Ok(Answer { status, body: String::from_utf8_lossy(&body).into_owned() })
    }

    fn line(&mut self) -> Result<String> {
        let mut line = String::new();
        ensure!(self.stream.read_line(&mut line)? > 0, "the instance has closed the connection");
        Ok(line.trim_end().to_owned())
    }
}

/// The text of a request.
pub(crate) fn request(method: &str, path: &str, body: &str) -> String {
    let length = body.len();
    format!(
        "{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
         Content-Length: {length}\r\n\r\n{body}"
    )
}
