//! Server of the API on a Unix socket, with its own thread.

use crate::place;
use crate::{Instance, routes};
use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use longwire_rundir::{PlaceError, prepare, prepare_shared, shared_directory};
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

/// Most connections at a time; further ones wait.
const MAX_CONNECTIONS: usize = 32;
/// Time limit for a request's head, and for an idle connection.
const HEAD_TIME: Duration = Duration::from_secs(5);
/// Longest head of a request, in bytes.
const MAX_HEAD: usize = 16 * 1024;
/// Time limit for unfinished answers when the server ends.
const END_TIME: Duration = Duration::from_secs(1);

/// The API of a running instance. Dropping it ends the server and removes the socket.
#[derive(Debug)]
pub struct Server {
    path: PathBuf,
    end: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// Failure to start the server.
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
    /// The server's thread can't be started.
    #[error("can't start the thread of the API: {0}")]
    Thread(io::Error),
}

impl Server {
    /// Serves `instance` on its own socket in `directory`, which is made if missing; only this user may open
    /// them. Clients look in [`crate::directory`].
    ///
    /// # Errors
    /// If the directory belongs to another user, or the socket can't be made.
    pub fn start(directory: &Path, instance: Arc<dyn Instance>) -> Result<Self, StartError> {
        prepare(directory)?;
        Self::start_in(directory, instance)
    }

    /// As [`Server::start`], in the directory beside `directory` that all users may enter: members of the
    /// group with this number may open the socket, too.
    ///
    /// # Errors
    /// As [`Server::start`], or if this user may not give files to the group.
    pub fn start_for_group(
        directory: &Path,
        group: u32,
        instance: Arc<dyn Instance>,
    ) -> Result<Self, StartError> {
        let directory = shared_directory(directory);
        prepare_shared(&directory)?;
        let server = Self::start_in(&directory, instance)?;
        let shared = std::os::unix::fs::chown(&server.path, None, Some(group))
            .and_then(|()| fs::set_permissions(&server.path, Permissions::from_mode(0o660)));
        shared.map_err(|source| StartError::Socket { path: server.path.clone(), source })?;
        Ok(server)
    }

    fn start_in(directory: &Path, instance: Arc<dyn Instance>) -> Result<Self, StartError> {
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
            // An instance that does not answer must not prevent the process from ending.
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
        // First, so that no client finds a socket that is about to close. It may already be gone.
        let _ = fs::remove_file(&self.path);
        drop(self.end.take());
        if let Some(thread) = self.thread.take() {
            // Its panic has been printed; nothing is left to end.
            let _ = thread.join();
        }
    }
}

/// Makes the socket under a hidden name and renames it once it answers, so that a socket that refuses
/// connections is always dead.
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
    // Another PID namespace may have a process with the same id, or this process another server.
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
            // A client may send its request, close its side, and read the answer.
            .half_close(true)
            .serve_connection(TokioIo::new(stream), TowerToHyperService::new(router.clone()));
        let connection = graceful.watch(connection);
        tokio::spawn(async move {
            // Errors of a connection only affect its client.
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
            // Usually out of file descriptors: wait until some are closed.
            Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
        }
    }
}
