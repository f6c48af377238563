//! An interface belongs to one instance at a time.

use super::{Interface, OpenError};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::time::{Duration, Instant};

/// The right to use an interface, held until dropped.
///
/// It is a listening Unix socket with an abstract name made from the interface's index. The kernel keeps such names per
/// network namespace, and frees them when the holder ends, however it ends: no file, nothing to clean up.
#[derive(Debug)]
pub struct Claim {
    socket: OwnedFd,
}

/// How long a claim that was given up may take to vanish: a program that the holder is just starting has a copy of its
/// files for a moment.
const PARTING: Duration = Duration::from_secs(1);

/// Challengers that connect to learn the holder's process are never accepted: so many may come before the next are
/// told only that there is one.
const CHALLENGERS: i32 = 4096;

impl Claim {
    /// Claims `interface`. Call it in the namespace of the interface.
    ///
    /// # Errors
    /// It is claimed already: the error names the process.
    pub fn take(interface: &Interface) -> Result<Self, OpenError> {
        let name = interface.name();
        let (address, length) = address_of(interface.index());
        let at = (&raw const address).cast();
        let socket = stream_socket().map_err(|e| OpenError::from_io(name, "claim it", e))?;
        let deadline = Instant::now() + PARTING;
        // SAFETY: `at` points to a socket address of at least `length` bytes that outlives the call.
        while unsafe { libc::bind(socket.as_raw_fd(), at, length) } != 0 {
            let error = io::Error::last_os_error();
            if error.raw_os_error() != Some(libc::EADDRINUSE) {
                return Err(OpenError::from_io(name, "claim it", error));
            }
            match holder(&address, length) {
                Holder::Gone if Instant::now() < deadline => std::thread::sleep(PARTING / 1000),
                Holder::Gone | Holder::Unknown => {
                    return Err(OpenError::Claimed { name: name.into(), pid: None });
                }
                Holder::Process(pid) => return Err(OpenError::Claimed { name: name.into(), pid: Some(pid) }),
            }
        }
        // SAFETY: listen takes no pointers.
        if unsafe { libc::listen(socket.as_raw_fd(), CHALLENGERS) } != 0 {
            return Err(OpenError::last(name, "claim it"));
        }
        Ok(Self { socket })
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        // From now on challengers are refused, which tells them that nobody holds it.
        // SAFETY: shutdown takes no pointers.
        unsafe { libc::shutdown(self.socket.as_raw_fd(), libc::SHUT_RDWR) };
    }
}

/// Who holds a claim.
enum Holder {
    Process(u32),
    /// It was given up.
    Gone,
    /// A process of a process-id namespace that we can't see, or one with too many challengers.
    Unknown,
}

/// Who holds the claim at `address`.
fn holder(address: &libc::sockaddr_un, length: libc::socklen_t) -> Holder {
    let Ok(socket) = stream_socket() else { return Holder::Unknown };
    let at = std::ptr::from_ref(address).cast();
    // SAFETY: `at` points to a socket address of at least `length` bytes that outlives the call.
    if unsafe { libc::connect(socket.as_raw_fd(), at, length) } != 0 {
        return match io::Error::last_os_error().raw_os_error() {
            Some(libc::ECONNREFUSED) => Holder::Gone,
            _ => Holder::Unknown,
        };
    }
    let mut peer = libc::ucred { pid: 0, uid: 0, gid: 0 };
    let mut size = size_of::<libc::ucred>() as libc::socklen_t;
    // SAFETY: `peer` is a ucred of `size` bytes, which is what SO_PEERCRED writes.
    let result = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_PEERCRED,
            (&raw mut peer).cast(),
            &raw mut size,
        )
    };
    if result == 0 && peer.pid > 0 { Holder::Process(peer.pid as u32) } else { Holder::Unknown }
}

fn stream_socket() -> io::Result<OwnedFd> {
    let kind = libc::SOCK_STREAM | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
    // SAFETY: socket takes no pointers; the descriptor it returns is owned by nobody else.
    unsafe {
        match libc::socket(libc::AF_UNIX, kind, 0) {
            fd if fd >= 0 => Ok(OwnedFd::from_raw_fd(fd)),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

/// The abstract address (its first byte is zero) of the claim on the interface with this index.
fn address_of(index: u32) -> (libc::sockaddr_un, libc::socklen_t) {
    let mut address = libc::sockaddr_un { sun_family: libc::AF_UNIX as u16, sun_path: [0; 108] };
    let name = format!("longwire/port/{index}");
    for (to, from) in address.sun_path[1..].iter_mut().zip(name.bytes()) {
        *to = from as libc::c_char;
    }
    let length = std::mem::offset_of!(libc::sockaddr_un, sun_path) + 1 + name.len();
    (address, length as libc::socklen_t)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_claim_names_the_holder_and_waits_for_its_end() {
        // Claims need no privileges, and nobody else claims the loopback.
        let lo = Interface::open("lo").unwrap();
        let first = Claim::take(&lo).unwrap();
        for _ in 0..3 {
            match Claim::take(&lo) {
                Err(OpenError::Claimed { pid, .. }) => assert_eq!(pid, Some(std::process::id())),
                other => panic!("{other:?}"),
            }
        }
        drop(first);
        Claim::take(&lo).unwrap();
    }
}
