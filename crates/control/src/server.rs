//! Serves the API on a Unix socket, from a thread of its own.

use crate::place;
use crate::{Instance, routes};
use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use longwire_rundir::{PlaceError, prepare};
use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;
use thiserror::Error;
use tokio::net::{UnixListener, UnixStream};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

/// Highest number of connections at a time; further ones wait.
const MAX_CONNECTIONS: usize = 32;
/// How long a connection may take for a request's head, or be idle.
const HEAD_TIME: Duration = Duration::from_secs(5);
/// Highest length of a request's head, in bytes.
const MAX_HEAD: usize = 16 * 1024;
/// How long answers under way may take when the server ends.
const END_TIME: Duration = Duration::from_secs(1);

/// The API of a running instance. It ends, and its socket is removed, when this is dropped.
#[derive(Debug)]
pub struct Server {
    path: PathBuf,
    end: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// Why the API can't be served.
#[derive(Debug, Error)]
pub enum StartError {
    /// The directory can't be used.
    #[error(transparent)]
    Place(#[from] PlaceError),
    /// The socket can't be made.
    #[error("can't open the socket {}: {source}", path.display())]
    Socket {
        /// The socket.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// The thread that serves it can't be started.
    #[error("can't start the thread of the API: {0}")]
    Thread(io::Error),
}

impl Server {
    /// Serves `instance` on a socket of its own in `directory`, which is made if it is missing; only this
    /// user may open them. [`crate::directory`] is where clients look.
    ///
    /// # Errors
    /// If the directory is not this user's, or the socket can't be made.
    pub fn start(directory: &Path, instance: Arc<dyn Instance>) -> Result<Self, StartError> {
        prepare(directory)?;
        let name = place::file_name(&instance.name(), std::process::id());
        let path = directory.join(&name);
        let runtime = Builder::new_current_thread().enable_all().max_blocking_threads(2).build();
        let runtime = runtime.map_err(StartError::Thread)?;
        let listener = listen(&runtime, directory, &name);
        let listener = listener.map_err(|source| StartError::Socket { path: path.clone(), source })?;
        let (end, ended) = oneshot::channel();
        let router = routes::router(instance);
        let work = move || {
            runtime.block_on(serve(listener, router, ended));
            // An instance that does not answer must not keep the process from ending.
            runtime.shutdown_timeout(END_TIME);
        };
        let thread =
            std::thread::Builder::new().name("longwire-api".into()).spawn(work).map_err(|source| {
                let _ = fs::remove_file(&path);
                StartError::Thread(source)
            })?;
        Ok(Self { path, end: Some(end), thread: Some(thread) })
    }

    /// The socket.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // First, so that nobody finds a socket that is about to close. It may be gone already.
        let _ = fs::remove_file(&self.path);
        drop(self.end.take());
        if let Some(thread) = self.thread.take() {
            // Its panic has been printed; there is nothing left to end.
            let _ = thread.join();
        }
    }
}

/// Makes the socket under a hidden name and renames it once it answers, so that a socket which refuses
/// connections is always a dead one.
fn listen(runtime: &Runtime, directory: &Path, name: &str) -> io::Result<UnixListener> {
    let hidden = directory.join(format!(".{name}"));
    match fs::remove_file(&hidden) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let _context = runtime.enter();
    let listener = UnixListener::bind(&hidden)?;
    fs::set_permissions(&hidden, Permissions::from_mode(0o600))?;
    let path = directory.join(name);
    // A process of the same number in another PID namespace, or another server of this process.
    if std::os::unix::net::UnixStream::connect(&path).is_ok() {
        fs::remove_file(&hidden)?;
        return Err(io::Error::new(
            io::ErrorKind::AddrInUse,
            "an instance of this name and number answers there",
        ));
    }
    fs::rename(&hidden, path)?;
    Ok(listener)
}

async fn serve(listener: UnixListener, router: Router, mut ended: oneshot::Receiver<()>) {
    let permits = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    let graceful = GracefulShutdown::new();
    loop {
        let (stream, permit) = tokio::select! {
            accepted = accept(&listener, &permits) => accepted,
            _ = &mut ended => break,
        };
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(HEAD_TIME)
            .max_buf_size(MAX_HEAD)
            // A client may say all it has to say, end its side, and read on.
            .half_close(true)
            .serve_connection(TokioIo::new(stream), TowerToHyperService::new(router.clone()));
        let connection = graceful.watch(connection);
        tokio::spawn(async move {
            // A client that breaks off hurts nobody but itself.
            let _ = connection.await;
            drop(permit);
        });
    }
    drop(listener);
    let _ = tokio::time::timeout(END_TIME, graceful.shutdown()).await;
}

async fn accept(listener: &UnixListener, permits: &Arc<Semaphore>) -> (UnixStream, OwnedSemaphorePermit) {
    loop {
        // The semaphore is never closed, so acquiring can't fail.
        let Ok(permit) = permits.clone().acquire_owned().await else { continue };
        match listener.accept().await {
            Ok((stream, _)) => return (stream, permit),
            // Out of file descriptors, mostly: wait until some are closed.
            Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
        }
    }
}
