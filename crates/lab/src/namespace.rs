//! Network namespaces: created, named as by `ip netns`, and entered by temporary threads.
#![allow(unsafe_code)]

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};

use rustix::io::Errno;
use rustix::mount::{
    MountPropagationFlags, UnmountFlags, mount_bind, mount_bind_recursive, mount_change, unmount,
};
use rustix::thread::{UnshareFlags, unshare_unsafe};

use crate::system_call::checked;
use crate::{LabError, Result};

/// The directory of named namespaces, where `ip netns` finds them.
pub const NAMES: &str = "/run/netns";

/// An open network namespace. It lives at least as long as this value.
#[derive(Debug)]
pub struct Namespace {
    file: File,
    id: NamespaceId,
}

/// The identity of a namespace while the machine is up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct NamespaceId {
    device: u64,
    inode: u64,
}

impl NamespaceId {
    fn of(meta: &fs::Metadata) -> Self {
        Self { device: meta.dev(), inode: meta.ino() }
    }

    /// The id of the namespace at a path such as `/proc/<pid>/ns/net`.
    pub(crate) fn at(path: &Path) -> io::Result<Self> {
        Ok(Self::of(&fs::metadata(path)?))
    }

    /// The id of an open namespace.
    pub(crate) fn of_file(file: &File) -> io::Result<Self> {
        Ok(Self::of(&file.metadata()?))
    }

    /// The id of a socket's namespace.
    pub(crate) fn of_socket(socket: &impl AsFd) -> io::Result<Self> {
        const SIOCGSKNS: libc::Ioctl = 0x894c;
        // SAFETY: the request takes no argument, and returns a new descriptor or an error, which is checked
        // before the descriptor becomes an owned one.
        let namespace =
            unsafe { File::from_raw_fd(checked(libc::ioctl(socket.as_fd().as_raw_fd(), SIOCGSKNS))?) };
        Self::of_file(&namespace)
    }

    /// The inode, as `ip netns` and `ls -i` show it.
    pub(crate) const fn inode(self) -> u64 {
        self.inode
    }
}

impl Namespace {
    /// The calling thread's namespace.
    ///
    /// # Errors
    /// If `/proc` isn't mounted.
    pub fn current() -> Result<Self> {
        Self::at(Path::new("/proc/thread-self/ns/net"))
    }

    /// The namespace that `ip netns` knows by `name`.
    ///
    /// # Errors
    /// If there is none, or it was created in another mount namespace.
    pub fn open(name: &str) -> Result<Self> {
        Self::at(&path_of(name))
    }

    /// The namespace at a path such as `/proc/PID/ns/net`.
    ///
    /// # Errors
    /// If there is none, or it can't be opened.
    pub fn at(path: &Path) -> Result<Self> {
        let doing = || LabError::system(format!("opening network namespace {}", path.display()));
        let file = File::open(path).map_err(doing())?;
        let meta = file.metadata().map_err(doing())?;
        Ok(Self { id: NamespaceId::of(&meta), file })
    }

    /// Creates a namespace with its loopback up, and binds it to `name`.
    ///
    /// # Errors
    /// If the name is taken or the kernel refuses.
    pub fn create(name: &str) -> Result<Self> {
        let path = path_of(name);
        fs::create_dir_all(NAMES)
            .and_then(|()| share(Path::new(NAMES)))
            .map_err(LabError::system(format!("making {NAMES}")))?;
        let made = OpenOptions::new().write(true).create_new(true).mode(0o444).open(&path);
        match made {
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {
                return Err(LabError::NamespaceExists(name.to_owned()));
            }
            other => other.map_err(LabError::system(format!("making {}", path.display())))?,
        };
        let bound = on_a_thread(|| {
            // Changes this thread only, which ends with the closure.
            unshare(UnshareFlags::NEWNET)?;
            Ok(mount_bind("/proc/thread-self/ns/net", &path)?)
        });
        if let Err(e) = bound {
            // If only the bind failed, this is an ordinary empty file.
            let _ = fs::remove_file(&path);
            return Err(LabError::system(format!("making network namespace {name}"))(e));
        }
        Self::open(name)
    }

    /// Whether `ip netns` knows a namespace by this name.
    #[must_use]
    pub fn exists(name: &str) -> bool {
        path_of(name).symlink_metadata().is_ok()
    }

    /// Removes the name; the namespace itself ends when nothing uses it any more. A missing name is not an
    /// error.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn remove(name: &str) -> Result<()> {
        let path = path_of(name);
        // A failure means that nothing is mounted here (it was created in another mount namespace, or a run
        // was killed between the two steps): the file is removed anyway, with which the kernel removes mounts
        // on it in other mount namespaces.
        let _ = unmount(&path, UnmountFlags::DETACH | UnmountFlags::NOFOLLOW);
        let removed = fs::remove_file(&path);
        removed.or_else(|error| match error.kind() {
            io::ErrorKind::NotFound => Ok(()),
            _ => Err(LabError::system(format!("removing network namespace {name}"))(error)),
        })
    }

    /// Runs `f` on a new thread inside this namespace and waits for it. Sockets and devices opened there
    /// belong to the namespace and keep working from any thread.
    ///
    /// # Errors
    /// If the kernel refuses to let the thread in.
    ///
    /// # Panics
    /// If `f` panics.
    pub fn run<R: Send>(&self, f: impl FnOnce() -> R + Send) -> Result<R> {
        on_a_thread(|| {
            enter(self.as_fd())?;
            Ok(f())
        })
        .map_err(LabError::system("entering a network namespace"))
    }

    /// A second handle to this namespace.
    ///
    /// # Errors
    /// If the process is out of file descriptors.
    pub(crate) fn again(&self) -> Result<Self> {
        let file = self.file.try_clone().map_err(LabError::system("holding a network namespace"))?;
        Ok(Self { file, id: self.id })
    }

    /// Whether a path leads to this namespace, which may have outlived its name and processes.
    #[must_use]
    pub fn is_at(&self, path: &Path) -> bool {
        NamespaceId::at(path).is_ok_and(|found| found == self.id)
    }

    /// The identity of this namespace.
    #[must_use]
    pub const fn id(&self) -> NamespaceId {
        self.id
    }
}

impl AsFd for Namespace {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

/// The path that `ip netns` uses for a name.
#[must_use]
pub fn path_of(name: &str) -> PathBuf {
    Path::new(NAMES).join(name)
}

/// Moves the calling thread into a network namespace. Safe between fork and exec.
pub(crate) fn enter(namespace: BorrowedFd<'_>) -> io::Result<()> {
    // rustix looks up the call in the C library, which takes a lock that another thread may have held at the
    // fork. SAFETY: no pointers; the kernel checks that the descriptor is a network namespace.
    checked(unsafe { libc::setns(namespace.as_raw_fd(), libc::CLONE_NEWNET) }).map(drop)
}

/// Makes the folder of names a shared mount, as `ip netns add` does: later, that would mount over our names,
/// hide them and keep them busy.
fn share(names: &Path) -> io::Result<()> {
    let make_shared = || mount_change(names, MountPropagationFlags::SHARED | MountPropagationFlags::REC);
    match make_shared() {
        // It is not a mount yet.
        Err(Errno::INVAL) => {
            mount_bind_recursive(names, names)?;
            Ok(make_shared()?)
        }
        other => Ok(other?),
    }
}

/// Moves the calling thread into new namespaces. Safe between fork and exec.
pub(crate) fn unshare(namespaces: UnshareFlags) -> rustix::io::Result<()> {
    // SAFETY: these flags leave the table of descriptors shared.
    unsafe { unshare_unsafe(namespaces - UnshareFlags::FILES) }
}

/// Runs `f` on a new thread, so that a change of namespace ends with it.
pub(crate) fn on_a_thread<R: Send>(f: impl FnOnce() -> io::Result<R> + Send) -> io::Result<R> {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name("lab".to_owned()).spawn_scoped(scope, f)?;
        thread.join().unwrap_or_else(|panic| resume_unwind(panic))
    })
}
