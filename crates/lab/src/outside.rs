//! Sockets of this process's network before it entered a user namespace.
//!
//! A process in a user namespace can't return. So a child stays behind, which creates sockets there and
//! passes them on; a socket works wherever it is used. The child ends with this process.
#![allow(unsafe_code)]

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType, recvmsg, sendmsg, socket_with, socketpair,
};
use rustix::process::{Pid, WaitOptions, waitpid};

/// Room for one descriptor.
const ROOM: usize = rustix::cmsg_space!(ScmRights(1));

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
        let mut none = SendAncillaryBuffer::default();
        sendmsg(line, &[IoSlice::new(&wanted)], &mut none, SendFlags::NOSIGNAL)?;
        let mut space = [MaybeUninit::uninit(); ROOM];
        let mut handed = RecvAncillaryBuffer::new(&mut space);
        let mut byte = [0];
        recvmsg(line, &mut [IoSliceMut::new(&mut byte)], &mut handed, RecvFlags::CMSG_CLOEXEC)?;
        let mut fds = handed.drain().filter_map(|message| match message {
            RecvAncillaryMessage::ScmRights(mut fds) => fds.next(),
            _ => None,
        });
        fds.next().ok_or_else(|| io::Error::other("no socket could be made outside the user namespace"))
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
        let mut none = RecvAncillaryBuffer::default();
        let asked = recvmsg(line, &mut [IoSliceMut::new(&mut wanted)], &mut none, RecvFlags::empty());
        if !asked.is_ok_and(|asked| asked.bytes == wanted.len()) {
            // SAFETY: ends this process at once, which has nothing to clean up.
            unsafe { libc::_exit(0) };
        }
        let family = if wanted[0] == 0 { AddressFamily::INET } else { AddressFamily::INET6 };
        let kind = if wanted[1] == 0 { SocketType::STREAM } else { SocketType::DGRAM };
        let made = socket_with(family, kind, SocketFlags::CLOEXEC, None);
        let fds = made.as_ref().map(|socket| [socket.as_fd()]);
        let mut space = [MaybeUninit::uninit(); ROOM];
        let mut handed = SendAncillaryBuffer::new(&mut space);
        if let Ok(fds) = &fds {
            handed.push(SendAncillaryMessage::ScmRights(fds));
        }
        let _ = sendmsg(line, &[IoSlice::new(&[0])], &mut handed, SendFlags::NOSIGNAL);
    }
}
