//! Server of the API on a Unix socket, with its own thread.

use crate::service::{Service, runtime};
use crate::{Instance, place, routes};
use longwire_rundir::{NAME_ANOTHER, PlaceError, prepare, prepare_shared, shared_directory};
use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use thiserror::Error;
use tokio::net::UnixListener;
use tokio::runtime::Runtime;

/// The API of a running instance. Dropping it ends the server and removes the socket.
#[derive(Debug)]
pub struct Server {
    path: PathBuf,
    _service: Service,
}

/// Failure to start the server.
#[derive(Debug, Error)]
pub enum StartError {
    /// The directory can't be used.
    #[error("{0}; {NAME_ANOTHER}")]
    Place(#[from] PlaceError),
    /// The directory for a group can't be used.
    #[error("{0}; --group needs root, or LONGWIRE_RUN_DIR with a directory of this user")]
    Shared(PlaceError),
    /// The socket can't be created.
    #[error("can't open the socket {}: {source}", path.display())]
    Socket {
        /// The socket.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The server's thread can't be started.
    #[error("can't start the thread of the API: {0}")]
    Thread(io::Error),
}

impl Server {
    /// Serves `instance` on its own socket in `directory`, which is created if missing; only this user may
    /// open them. Clients look in [`crate::directory`].
    ///
    /// # Errors
    /// If the directory belongs to another user, or the socket can't be created.
    pub fn start(directory: &Path, instance: Arc<dyn Instance>) -> Result<Self, StartError> {
        prepare(directory)?;
        Self::start_in(directory, instance)
    }

    /// As [`Server::start`], in the sibling of `directory` that all users may enter: members of the group
    /// with this number may also open the socket.
    ///
    /// # Errors
    /// As [`Server::start`], or if this user may not give files to the group.
    pub fn start_for_group(
        directory: &Path,
        group: u32,
        instance: Arc<dyn Instance>,
    ) -> Result<Self, StartError> {
        let directory = shared_directory(directory);
        prepare_shared(&directory).map_err(StartError::Shared)?;
        let server = Self::start_in(&directory, instance)?;
        let shared = std::os::unix::fs::chown(&server.path, None, Some(group))
            .and_then(|()| fs::set_permissions(&server.path, Permissions::from_mode(0o660)));
        shared.map_err(|source| StartError::Socket { path: server.path.clone(), source })?;
        Ok(server)
    }

    fn start_in(directory: &Path, instance: Arc<dyn Instance>) -> Result<Self, StartError> {
        let name = place::file_name(&instance.name(), std::process::id());
        let path = directory.join(&name);
        let runtime = runtime().map_err(StartError::Thread)?;
        let listener = listen(&runtime, directory, &name);
        let listener = listener.map_err(|source| StartError::Socket { path: path.clone(), source })?;
        let service = Service::start("longwire-api", runtime, listener, routes::router(instance));
        let service = service.map_err(|source| {
            let _ = fs::remove_file(&path);
            StartError::Thread(source)
        })?;
        Ok(Self { path, _service: service })
    }

    /// The socket.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Before the service ends, so that no client finds a closing socket. It may already be gone.
        let _ = fs::remove_file(&self.path);
    }
}

/// Creates the socket under a hidden name and renames it once it answers, so that a socket that refuses
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
            "an instance of this name and process id already answers there",
        ));
    }
    fs::rename(&hidden, path)?;
    Ok(listener)
}
