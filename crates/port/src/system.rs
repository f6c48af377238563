//! System calls that several drivers make: descriptors, options of sockets, and memory of the kernel.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::ptr::{self, NonNull};

/// The value that a system call returned.
///
/// # Errors
/// It is negative: the call failed just now.
#[inline]
pub(crate) fn checked(returned: impl TryInto<usize>) -> io::Result<usize> {
    returned.try_into().map_err(|_| io::Error::last_os_error())
}

/// The descriptor that a system call returned.
///
/// # Errors
/// As [`checked`].
///
/// # Safety
/// The descriptor is new: nothing else owns it.
pub(crate) unsafe fn owned(returned: RawFd) -> io::Result<OwnedFd> {
    checked(returned)?;
    // SAFETY: the caller ensures that nothing else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(returned) })
}

/// Sets an option of a socket, given by its level and number. The kernel checks the length of the value.
pub(crate) fn set_option<T>(
    socket: BorrowedFd<'_>,
    (level, option): (libc::c_int, libc::c_int),
    value: &T,
) -> io::Result<()> {
    let (fd, length) = (socket.as_raw_fd(), size_of::<T>() as libc::socklen_t);
    // SAFETY: `value` has `length` bytes, and what it points to outlives the call; the kernel copies it.
    checked(unsafe { libc::setsockopt(fd, level, option, ptr::from_ref(value).cast(), length) }).map(drop)
}

/// Reads an option of a socket that consists of at most `N` words; the others are zero.
pub(crate) fn read_option<const N: usize>(
    socket: BorrowedFd<'_>,
    (level, option): (libc::c_int, libc::c_int),
) -> io::Result<[u32; N]> {
    let mut words = [0; N];
    let (fd, mut length) = (socket.as_raw_fd(), size_of_val(&words) as libc::socklen_t);
    // SAFETY: the kernel writes at most `length` bytes, which `words` has.
    checked(unsafe { libc::getsockopt(fd, level, option, words.as_mut_ptr().cast(), &raw mut length) })?;
    Ok(words)
}

/// Makes room for `bytes` in a queue of a socket, by the option that needs a privilege or else by the other.
/// A refusal is ignored: a shorter queue is full earlier.
pub(crate) fn grow(socket: BorrowedFd<'_>, [forced, plain]: [libc::c_int; 2], bytes: libc::c_int) {
    let set = |option| set_option(socket, (libc::SOL_SOCKET, option), &bytes);
    let _ = set(forced).or_else(|_| set(plain));
}

/// Mapped memory, which does not move until this is dropped.
pub(crate) struct MappedMemory {
    start: NonNull<u8>,
    bytes: usize,
}

// SAFETY: the mapping belongs to this value, which only gives its address.
unsafe impl Send for MappedMemory {}

impl MappedMemory {
    /// Maps `bytes` bytes and touches them: those of a descriptor from byte `from` on, which the kernel
    /// shares, or else new ones.
    pub(crate) fn map(of: Option<BorrowedFd<'_>>, from: i64, bytes: usize) -> io::Result<Self> {
        let kind = if of.is_some() { libc::MAP_SHARED } else { libc::MAP_PRIVATE | libc::MAP_ANONYMOUS };
        let (flags, fd) = (kind | libc::MAP_POPULATE, of.map_or(-1, |of| of.as_raw_fd()));
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new mapping, at an address that the kernel chooses, overlaps nothing.
        let start = unsafe { libc::mmap(ptr::null_mut(), bytes, protection, flags, fd, from) };
        match NonNull::new(start.cast()) {
            Some(mapped) if start != libc::MAP_FAILED => Ok(Self { start: mapped, bytes }),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// The first byte.
    #[inline]
    pub(crate) fn start(&self) -> NonNull<u8> {
        self.start
    }

    /// Number of bytes.
    #[inline]
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }
}

impl Drop for MappedMemory {
    fn drop(&mut self) {
        // SAFETY: `map` created the mapping with this length, and nothing borrows from it any more.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.bytes) };
    }
}
