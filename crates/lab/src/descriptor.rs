//! Passing on a descriptor, with a few bytes, by a socket of this machine (unix(7)).

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, OwnedFd};

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, recvmsg, sendmsg,
};

/// Room for one descriptor.
const ROOM: usize = rustix::cmsg_space!(ScmRights(1));

/// Sends bytes, and a descriptor if there is one. Safe between fork and exec.
pub fn send(line: &OwnedFd, bytes: &[u8], fd: Option<BorrowedFd<'_>>) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); ROOM];
    let mut handed = SendAncillaryBuffer::new(&mut space);
    if fd.is_some() {
        handed.push(SendAncillaryMessage::ScmRights(fd.as_slice()));
    }
    sendmsg(line, &[IoSlice::new(bytes)], &mut handed, SendFlags::NOSIGNAL)?;
    Ok(())
}

/// Receives bytes, and the descriptor that came with them.
pub fn receive(line: &OwnedFd, bytes: &mut [u8], flags: RecvFlags) -> io::Result<Option<OwnedFd>> {
    let mut space = [MaybeUninit::uninit(); ROOM];
    let mut handed = RecvAncillaryBuffer::new(&mut space);
    recvmsg(line, &mut [IoSliceMut::new(bytes)], &mut handed, flags | RecvFlags::CMSG_CLOEXEC)?;
    Ok(handed.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut fds) => fds.next(),
        _ => None,
    }))
}
