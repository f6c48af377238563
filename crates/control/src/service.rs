//! HTTP over accepted connections, on a separate thread, with limits on their number, time and size.

use crate::certificate::Certificate;
use crate::worded::{MAX_HEAD, Worded};
use axum::{Extension, Router};
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use std::io;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};
use tokio::time::timeout;
use tokio_io_timeout::TimeoutStream;

/// Time limit for a request's head, and for an idle connection.
const HEAD_TIME: Duration = Duration::from_secs(5);
/// Time limit for a client that does not read its answer.
const READER_TIME: Duration = Duration::from_secs(10);
/// Time limit for unfinished answers when the service ends.
const END_TIME: Duration = Duration::from_secs(1);

/// Accepts connections.
pub(crate) trait Accept: Send + 'static {
    /// A connection.
    type Connection: AcceptedConnection;
    /// Most connections at a time; further ones wait.
    const MOST: usize;

    /// The next connection.
    fn next(&self) -> impl Future<Output = io::Result<Self::Connection>> + Send;
}

/// A connection that was accepted.
pub(crate) trait AcceptedConnection: Send + 'static {
    /// What requests are read from.
    type Stream: AsyncRead + AsyncWrite + Send + 'static;

    /// Prepares it for requests, and says by which certificate the client has proven who it is. It has the
    /// time of a request's head, and holds up no other connection.
    fn open(self) -> impl Future<Output = io::Result<(Self::Stream, Option<Certificate>)>> + Send;
}

/// A connection that needs no preparation.
pub(crate) struct Plain<S>(pub(crate) S);

impl<S: AsyncRead + AsyncWrite + Send + 'static> AcceptedConnection for Plain<S> {
    type Stream = S;

    async fn open(self) -> io::Result<(S, Option<Certificate>)> {
        Ok((self.0, None))
    }
}

impl Accept for UnixListener {
    type Connection = Plain<UnixStream>;
    const MOST: usize = 32;

    async fn next(&self) -> io::Result<Plain<UnixStream>> {
        self.accept().await.map(|(stream, _)| Plain(stream))
    }
}

impl Accept for TcpListener {
    type Connection = Plain<TcpStream>;
    // A browser opens up to six for a page.
    const MOST: usize = 256;

    async fn next(&self) -> io::Result<Plain<TcpStream>> {
        let (stream, _) = self.accept().await?;
        // Answers are small; without this, one may wait for the acknowledgement of its first segment.
        stream.set_nodelay(true)?;
        Ok(Plain(stream))
    }
}

/// A thread that serves HTTP. Dropping it ends the service.
#[derive(Debug)]
pub(crate) struct Service {
    end: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Service {
    /// Serves `router` on all connections of `listener`, which was created in `runtime`.
    pub(crate) fn start(
        name: &str,
        runtime: Runtime,
        listener: impl Accept,
        router: Router,
    ) -> io::Result<Self> {
        let (end, ended) = oneshot::channel();
        let work = move || {
            runtime.block_on(serve(listener, router, ended));
            // An instance that does not answer must not prevent the process from ending.
            runtime.shutdown_timeout(END_TIME);
        };
        let thread = std::thread::Builder::new().name(name.into()).spawn(work)?;
        Ok(Self { end: Some(end), thread: Some(thread) })
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        drop(self.end.take());
        if let Some(thread) = self.thread.take() {
            // Its panic has been printed.
            let _ = thread.join();
        }
    }
}

/// The runtime of a service: its own thread, and at most two that block while workers answer. These are
/// started when they are needed, and end after ten seconds without work.
pub(crate) fn runtime() -> io::Result<Runtime> {
    Builder::new_current_thread().enable_all().max_blocking_threads(2).thread_name("answers").build()
}

async fn serve<A: Accept>(listener: A, router: Router, mut ended: oneshot::Receiver<()>) {
    let permits = Arc::new(Semaphore::new(A::MOST));
    let graceful = GracefulShutdown::new();
    loop {
        let (accepted, permit) = tokio::select! {
            accepted = accept(&listener, &permits) => accepted,
            _ = &mut ended => break,
        };
        let (router, watcher) = (router.clone(), graceful.watcher());
        tokio::spawn(async move {
            if let Ok(Ok((stream, certificate))) = timeout(HEAD_TIME, accepted.open()).await {
                // Errors of a connection only affect its client.
                let _ = watcher.watch(connection(stream, router, certificate)).await;
            }
            drop(permit);
        });
    }
    drop(listener);
    let _ = timeout(END_TIME, graceful.shutdown()).await;
}

/// A connection that is served.
type ServedConnection<S> = http1::Connection<TokioIo<Worded<S>>, TowerToHyperService<Router>>;

/// A connection, whose client has to send a whole head and to read its answers in time. Its requests are
/// marked with its certificate.
fn connection<S: AsyncRead + AsyncWrite + Send + 'static>(
    stream: S,
    router: Router,
    certificate: Option<Certificate>,
) -> ServedConnection<S> {
    let router = match certificate {
        Some(certificate) => router.layer(Extension(certificate)),
        None => router,
    };
    let mut stream = TimeoutStream::new(stream);
    stream.set_write_timeout(Some(READER_TIME));
    http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIME)
        .max_buf_size(MAX_HEAD)
        // A client may send its request, close its side, and read the answer.
        .half_close(true)
        .serve_connection(TokioIo::new(Worded::new(stream)), TowerToHyperService::new(router))
}

async fn accept<A: Accept>(listener: &A, permits: &Arc<Semaphore>) -> (A::Connection, OwnedSemaphorePermit) {
    loop {
        // The semaphore is never closed, so acquiring can't fail.
        let Ok(permit) = permits.clone().acquire_owned().await else { continue };
        match listener.next().await {
            Ok(accepted) => return (accepted, permit),
            // Usually out of file descriptors: wait until some are closed.
            Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::routing::get;
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

    /// An answer longer than a socket's buffer.
    fn long() -> Router {
        Router::new().route("/", get(async || vec![b'x'; 1 << 20]))
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_does_not_read_is_cut_off() {
        let (mut client, server) = duplex(1000);
        client.write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n").await.unwrap();
        let started = tokio::time::Instant::now();
        assert!(connection(server, long(), None).await.is_err());
        assert_eq!(started.elapsed(), READER_TIME);
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_reads_slowly_gets_all() {
        let (mut client, server) = duplex(1 << 16);
        client.write_all(b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").await.unwrap();
        let served = tokio::spawn(connection(server, long(), None));
        let (mut all, mut part) = (0, vec![0; 1 << 16]);
        loop {
            tokio::time::advance(READER_TIME / 2).await;
            match client.read(&mut part).await.unwrap() {
                0 => break,
                read => all += read,
            }
        }
        assert!(all > 1 << 20 && served.await.unwrap().is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_says_nothing_is_cut_off() {
        let (_client, server) = duplex(1000);
        let started = tokio::time::Instant::now();
        assert!(connection(server, long(), None).await.is_err());
        assert_eq!(started.elapsed(), HEAD_TIME);
    }
}
