//! Sockets of this process's network before it entered a user namespace.
//!
//! A process in a user namespace can't return. So a child stays behind, which creates sockets there and
//! passes them on; a socket works wherever it is used. The child ends with this process.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use rustix::net::{AddressFamily, RecvFlags, SocketFlags, SocketType, recv, socket_with, socketpair};
use rustix::process::{Pid, WaitOptions, waitpid};

use crate::descriptor;

/// The child, until dropped.
#[derive(Debug)]
pub struct OutsideSockets {
    line: Mutex<Option<OwnedFd>>,
    child: Pid,
}

impl OutsideSockets {
    /// Leaves a child in this process's network. Must be called before a second thread exists.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn stay() -> io::Result<Self> {
        let flags = SocketFlags::CLOEXEC;
        let (own, its) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?;
        // rustix has no fork. SAFETY: this process has one thread, so the child's memory is consistent.
        let child = unsafe { libc::fork() };
        if child == 0 {
            drop(own);
            serve(&its);
        }
        let child = Some(child).filter(|child| *child > 0).and_then(Pid::from_raw);
        Ok(Self { line: Mutex::new(Some(own)), child: child.ok_or_else(io::Error::last_os_error)? })
    }

    /// A socket of that network.
    ///
    /// # Errors
    /// If the system refuses, or the child has ended.
    pub fn socket(&self, family: AddressFamily, kind: SocketType) -> io::Result<OwnedFd> {
        let line = self.line.lock().unwrap_or_else(PoisonError::into_inner);
        let line = line.as_ref().ok_or(io::ErrorKind::BrokenPipe)?;
        let wanted = [(family == AddressFamily::INET6).into(), (kind == SocketType::DGRAM).into()];
        descriptor::send(line, &wanted, None)?;
        let socket = descriptor::receive(line, &mut [0], RecvFlags::empty())?;
        socket.ok_or_else(|| io::Error::other("no socket could be made outside the user namespace"))
    }

    /// The folder of that network's tables (proc_net(5)).
    pub(crate) fn tables(&self) -> PathBuf {
        PathBuf::from(format!("/proc/{}/net", self.child.as_raw_nonzero()))
    }
}

impl Drop for OutsideSockets {
    fn drop(&mut self) {
        // The child ends with the connection.
        self.line.lock().unwrap_or_else(PoisonError::into_inner).take();
        let _ = waitpid(Some(self.child), WaitOptions::empty());
    }
}

/// Runs the child: creates requested sockets until the connection ends.
fn serve(line: &OwnedFd) -> ! {
    // SAFETY: system calls without pointers. Signals of the terminal are for the parent, which ends this
    // process by closing the connection.
    unsafe { libc::setsid() };
    let mut wanted = [0; 2];
    loop {
        if !recv(line, &mut wanted[..], RecvFlags::empty()).is_ok_and(|(bytes, _)| bytes == 2) {
            // SAFETY: ends this process at once, which has nothing to clean up.
            unsafe { libc::_exit(0) };
        }
        let family = if wanted[0] == 0 { AddressFamily::INET } else { AddressFamily::INET6 };
        let kind = if wanted[1] == 0 { SocketType::STREAM } else { SocketType::DGRAM };
        let made = socket_with(family, kind, SocketFlags::CLOEXEC, None).ok();
        let _ = descriptor::send(line, &[0], made.as_ref().map(AsFd::as_fd));
    }
}
