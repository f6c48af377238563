//! Problems in the place of the empty answers that hyper sends by itself when it can't read the head of a
//! request: no service is asked for these.

use crate::problem::Problem;
use axum::http::StatusCode;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_io_timeout::TimeoutStream;

/// Longest head of a request, in bytes.
pub(crate) const MAX_HEAD: usize = 16 * 1024;

/// A connection on which a refusal without words gets them.
#[derive(Debug)]
pub(crate) struct Worded<S> {
    stream: Pin<Box<TimeoutStream<S>>>,
    /// What is being sent in the place of an answer.
    instead: Option<Instead>,
}

/// An answer in the place of another.
#[derive(Debug)]
struct Instead {
    bytes: Vec<u8>,
    sent: usize,
    /// The length of the other.
    replaces: usize,
}

impl<S> Worded<S> {
    pub(crate) fn new(stream: TimeoutStream<S>) -> Self {
        Self { stream: Box::pin(stream), instead: None }
    }
}

impl<S: AsyncRead + AsyncWrite> AsyncRead for Worded<S> {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        self.get_mut().stream.as_mut().poll_read(cx, buf)
    }
}

impl<S: AsyncRead + AsyncWrite> AsyncWrite for Worded<S> {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let Self { stream, instead } = self.get_mut();
        if instead.is_none() {
            *instead = worded(buf);
        }
        let Some(Instead { bytes, sent, replaces }) = instead else {
            return stream.as_mut().poll_write(cx, buf);
        };
        while *sent < bytes.len() {
            match ready!(stream.as_mut().poll_write(cx, &bytes[*sent..]))? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                written => *sent += written,
            }
        }
        let replaced = *replaces;
        *instead = None;
        Poll::Ready(Ok(replaced))
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.get_mut().stream.as_mut().poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.get_mut().stream.as_mut().poll_shutdown(cx)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        // An empty answer is a head alone, which is one buffer.
        match bufs.iter().find(|buf| !buf.is_empty()) {
            Some(first) if self.instead.is_some() || wordless(first).is_some() => self.poll_write(cx, first),
            _ => self.get_mut().stream.as_mut().poll_write_vectored(cx, bufs),
        }
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}

/// The line of a head that says that nothing follows it.
const NOTHING_FOLLOWS: &str = "\r\ncontent-length: 0\r\n";

/// The answer in the place of this one, if it is a refusal without words.
fn worded(answer: &[u8]) -> Option<Instead> {
    let (status, head) = wordless(answer)?;
    let detail = if status == StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE {
        format!("the head of a request has at most {} KiB and 100 headers", MAX_HEAD / 1024)
    } else {
        "the head of the request can't be read".into()
    };
    let problem = serde_json::to_string(&Problem::new(status, detail)).ok()?;
    let length = problem.len();
    let follows = format!("\r\ncontent-type: application/problem+json\r\ncontent-length: {length}\r\n");
    let bytes = (head.replace(NOTHING_FOLLOWS, &follows) + &problem).into_bytes();
    Some(Instead { bytes, sent: 0, replaces: answer.len() })
}

/// The status and the head of an answer that is a refusal without words. Those of services have a type.
fn wordless(answer: &[u8]) -> Option<(StatusCode, &str)> {
    let version_and_status = answer.get(..12).filter(|line| line.starts_with(b"HTTP/1."))?;
    let status = StatusCode::from_bytes(&version_and_status[9..]).ok()?;
    if !matches!(status, StatusCode::BAD_REQUEST | StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE) {
        return None;
    }
    let head = std::str::from_utf8(answer).ok().filter(|head| head.ends_with("\r\n\r\n"))?;
    (head.contains(NOTHING_FOLLOWS) && !head.contains("\r\ncontent-type:")).then_some((status, head))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

    const EMPTY: &[u8] = b"HTTP/1.1 431 Request Header Fields Too Large\r\nconnection: close\r\n\
        content-length: 0\r\ndate: Thu, 01 Jan 1970 00:00:00 GMT\r\n\r\n";

    #[tokio::test]
    async fn refusals_without_words_get_them_however_little_is_taken_at_a_time() {
        for room in [1, 7, 1 << 16] {
            let (mut client, server) = duplex(room);
            let mut stream = Worded::new(TimeoutStream::new(server));
            let sent = tokio::spawn(async move {
                stream.write_all(EMPTY).await.unwrap();
                stream.write_all(b"behind it").await.unwrap();
            });
            let mut answer = String::new();
            client.read_to_string(&mut answer).await.unwrap();
            sent.await.unwrap();
            let (head, body) = answer.strip_suffix("behind it").unwrap().split_once("\r\n\r\n").unwrap();
            assert!(head.ends_with("date: Thu, 01 Jan 1970 00:00:00 GMT"), "{answer}");
            assert!(head.contains(&format!("content-length: {}\r\n", body.len())), "{answer}");
            assert_eq!(serde_json::from_str::<Problem>(body).unwrap().status, 431, "{answer}");
        }
    }

    #[test]
    fn other_answers_stay_as_they_are() {
        assert!(wordless(EMPTY).is_some());
        let text = std::str::from_utf8(EMPTY).unwrap();
        for (from, to) in [
            ("431", "200"),
            ("431", "4"),
            ("length: 0", "length: 5"),
            ("connection: close", "content-type: text/plain"),
            ("GMT\r\n\r\n", "GMT\r\n\r\n{}"),
            ("HTTP", "http"),
        ] {
            assert!(wordless(text.replace(from, to).as_bytes()).is_none(), "{to}");
        }
        assert!(wordless(b"").is_none() && wordless(b"HTTP/1.1 431").is_none());
    }
}
