//! Memory shared with another process, and the socket that its descriptor goes through. All `unsafe` of this
//! crate is here.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::ptr::NonNull;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

/// Required seals: shrinking would kill readers of the memory, and the seals are final.
const SEALS: libc::c_int = libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_SEAL;

/// Shared memory of words that are read and written atomically; another process may write any of them at any
/// time.
#[derive(Debug)]
pub struct Memory {
    first: NonNull<AtomicU64>,
    words: usize,
    fd: OwnedFd,
}

// SAFETY: only atomic words are accessible through it, which threads may share; the mapping belongs to no
// thread.
unsafe impl Send for Memory {}
// SAFETY: as above.
unsafe impl Sync for Memory {}

impl Memory {
    /// Allocates `words` zeroed words, sealed against shrinking.
    ///
    /// # Errors
    /// The system has none.
    pub fn create(words: usize) -> io::Result<Self> {
        // SAFETY: the name is a string that ends with zero; the result is a new descriptor or -1.
        let fd =
            unsafe { libc::memfd_create(c"longwire".as_ptr(), libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING) };
        let fd = owned(fd)?;
        let bytes = libc::off_t::try_from(words * 8).map_err(io::Error::other)?;
        // SAFETY: plain numbers, and a descriptor that is ours.
        checked(unsafe { libc::ftruncate(fd.as_raw_fd(), bytes) })?;
        // SAFETY: as above.
        checked(unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_ADD_SEALS, SEALS) })?;
        Self::map(fd, words)
    }

    /// Maps all of the memory created by another process.
    ///
    /// # Errors
    /// It can't be mapped, is empty, or could shrink.
    pub fn open(fd: OwnedFd) -> io::Result<Self> {
        // SAFETY: a query about a descriptor that is ours.
        let seals = checked(unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_GET_SEALS) })?;
        if seals & libc::F_SEAL_SHRINK == 0 {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "the shared memory is not sealed against shrinking",
            ));
        }
        let file = std::fs::File::from(fd);
        let words = usize::try_from(file.metadata()?.len() / 8).map_err(io::Error::other)?;
        if words == 0 {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "the shared memory is empty"));
        }
        Self::map(file.into(), words)
    }

    /// The words.
    #[inline]
    pub fn words(&self) -> &[AtomicU64] {
        // SAFETY: the mapping has this many words, aligned to pages, readable and writable, for the lifetime
        // of `self`; the file can't shrink (`SEALS`). Any bit pattern is valid, and atomics may be written by
        // others.
        unsafe { std::slice::from_raw_parts(self.first.as_ptr(), self.words) }
    }

    /// The descriptor, to be sent to the other process.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    fn map(fd: OwnedFd, words: usize) -> io::Result<Self> {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_SHARED | libc::MAP_POPULATE;
        // SAFETY: requests a new mapping at any address, without affecting existing ones.
        let start =
            unsafe { libc::mmap(std::ptr::null_mut(), words * 8, protection, flags, fd.as_raw_fd(), 0) };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let first = NonNull::new(start.cast()).ok_or_else(|| io::Error::other("mapped at zero"))?;
        Ok(Self { first, words, fd })
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: exactly what was mapped, without remaining references: `words` borrows `self`.
        unsafe { libc::munmap(self.first.as_ptr().cast(), self.words * 8) };
    }
}

/// Sends all of `bytes`, with a descriptor, without blocking.
///
/// # Errors
/// The socket is closed, or has no room for them.
pub fn send(socket: &UnixStream, bytes: &[u8], fd: Option<BorrowedFd<'_>>) -> io::Result<()> {
    let mut part = libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
    let mut control = Control([0; CONTROL]);
    // SAFETY: all fields may be zero.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    (message.msg_iov, message.msg_iovlen) = (&raw mut part, 1);
    if let Some(fd) = fd {
        (message.msg_control, message.msg_controllen) = (control.0.as_mut_ptr().cast(), ONE_FD as _);
        // SAFETY: the control buffer is aligned, outlives the message and has room for one header and one
        // descriptor.
        unsafe {
            let header = libc::CMSG_FIRSTHDR(&raw const message);
            (*header).cmsg_level = libc::SOL_SOCKET;
            (*header).cmsg_type = libc::SCM_RIGHTS;
            (*header).cmsg_len = libc::CMSG_LEN(size_of::<RawFd>() as u32) as _;
            libc::CMSG_DATA(header).cast::<RawFd>().write_unaligned(fd.as_raw_fd());
        }
    }
    let flags = libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT;
    // SAFETY: `message` points at `bytes` and `control`, which outlive the call; sending changes neither.
    let sent = unsafe { libc::sendmsg(socket.as_raw_fd(), &raw const message, flags) };
    match usize::try_from(sent) {
        Ok(sent) if sent == bytes.len() => Ok(()),
        Ok(_) => Err(io::Error::new(io::ErrorKind::WriteZero, "the socket took part of a message")),
        Err(_) => Err(io::Error::last_os_error()),
    }
}

/// Receives up to `bytes.len()` bytes, with the first descriptor; blocks if the socket does.
///
/// # Errors
/// The socket failed.
pub fn receive(socket: &UnixStream, bytes: &mut [u8]) -> io::Result<(usize, Option<OwnedFd>)> {
    let mut part = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() };
    let mut control = Control([0; CONTROL]);
    // SAFETY: all fields may be zero.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    (message.msg_iov, message.msg_iovlen) = (&raw mut part, 1);
    // Without the padding of `ONE_FD`, in which a second descriptor would fit, which nobody would close.
    (message.msg_control, message.msg_controllen) = (control.0.as_mut_ptr().cast(), ONE_FD_EXACTLY as _);
    // SAFETY: `message` points at `bytes` and `control`, with their lengths, and both outlive the call.
    let count = unsafe { libc::recvmsg(socket.as_raw_fd(), &raw mut message, libc::MSG_CMSG_CLOEXEC) };
    let count = usize::try_from(count).map_err(|_| io::Error::last_os_error())?;
    // SAFETY: the kernel has filled in the control buffer, whose first header is valid if there is one; its
    // descriptor is new and ours. There is room for one only.
    let fd = unsafe {
        let header = libc::CMSG_FIRSTHDR(&raw const message);
        let carries = !header.is_null()
            && (*header).cmsg_level == libc::SOL_SOCKET
            && (*header).cmsg_type == libc::SCM_RIGHTS
            && (*header).cmsg_len as usize >= libc::CMSG_LEN(size_of::<RawFd>() as u32) as usize;
        carries.then(|| OwnedFd::from_raw_fd(libc::CMSG_DATA(header).cast::<RawFd>().read_unaligned()))
    };
    Ok((count, fd))
}

/// Sends one byte without blocking. Failure does not matter: a full socket already wakes its reader, and a
/// closed one has none.
#[inline]
pub fn ring(socket: &UnixStream) {
    let byte = 1u8;
    let flags = libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT;
    // SAFETY: reads one byte that is there.
    unsafe { libc::send(socket.as_raw_fd(), (&raw const byte).cast(), 1, flags) };
}

/// The process at the other end of a socket, as reported by the kernel; none if it is this one, as in tests
/// and benchmarks.
pub fn peer(socket: &UnixStream) -> Option<libc::pid_t> {
    let mut peer = libc::ucred { pid: 0, uid: 0, gid: 0 };
    let mut size = size_of::<libc::ucred>() as libc::socklen_t;
    // SAFETY: the kernel writes at most `size` bytes, the size of `peer`.
    let answer = unsafe {
        let (level, option) = (libc::SOL_SOCKET, libc::SO_PEERCRED);
        libc::getsockopt(socket.as_raw_fd(), level, option, (&raw mut peer).cast(), &raw mut size)
    };
    let own = std::process::id();
    (answer == 0 && peer.pid > 0 && u32::try_from(peer.pid) != Ok(own)).then_some(peer.pid)
}

/// Processor time of all threads of a process; none if it has ended.
pub fn processor_time(process: libc::pid_t) -> Option<Duration> {
    let (mut clock, mut time) = (0, libc::timespec { tv_sec: 0, tv_nsec: 0 });
    // SAFETY: both calls only write to their pointers, which have the right types.
    let answers = unsafe {
        match libc::clock_getcpuclockid(process, &raw mut clock) {
            0 => libc::clock_gettime(clock, &raw mut time),
            _ => -1,
        }
    };
    let seconds = u64::try_from(time.tv_sec).ok().filter(|_| answers == 0)?;
    Some(Duration::new(seconds, u32::try_from(time.tv_nsec).ok()?))
}

/// Waits until one of the sockets is readable or closed, at most for `time`, and returns which.
pub fn wait(sockets: &[BorrowedFd<'_>], time: Duration) -> Vec<bool> {
    let entry = |fd: &BorrowedFd<'_>| libc::pollfd { fd: fd.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    let mut entries: Vec<_> = sockets.iter().map(entry).collect();
    let milliseconds = i32::try_from(time.as_millis()).unwrap_or(i32::MAX);
    // SAFETY: `entries` has the given length.
    unsafe { libc::poll(entries.as_mut_ptr(), entries.len() as libc::nfds_t, milliseconds) };
    entries.iter().map(|entry| entry.revents != 0).collect()
}

/// Size of a header and one descriptor.
const ONE_FD: usize = {
    // SAFETY: computes a length.
    unsafe { libc::CMSG_SPACE(size_of::<RawFd>() as u32) as usize }
};
/// Size of both without padding at the end.
const ONE_FD_EXACTLY: usize = {
    // SAFETY: computes a length.
    unsafe { libc::CMSG_LEN(size_of::<RawFd>() as u32) as usize }
};
const CONTROL: usize = 64;
const _: () = assert!(ONE_FD <= CONTROL);

/// Buffer for control messages, aligned for their headers.
#[repr(C, align(8))]
struct Control([u8; CONTROL]);

fn owned(fd: RawFd) -> io::Result<OwnedFd> {
    checked(fd)?;
    // SAFETY: a new descriptor that nothing else owns.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

fn checked(answer: libc::c_int) -> io::Result<libc::c_int> {
    if answer < 0 { Err(io::Error::last_os_error()) } else { Ok(answer) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::sync::atomic::Ordering;

    #[test]
    fn both_sides_see_the_same_words_and_neither_can_shorten_them() {
        let (here, there) = UnixStream::pair().unwrap();
        let memory = Memory::create(1024).unwrap();
        send(&here, b"hello", Some(memory.fd())).unwrap();
        let mut bytes = [0; 16];
        let (count, fd) = receive(&there, &mut bytes).unwrap();
        assert_eq!(&bytes[..count], b"hello");
        let fd = fd.unwrap();
        let file = std::fs::File::from(fd.try_clone().unwrap());
        assert!(file.set_len(8).is_err() && file.set_len(1 << 20).is_err());
        let other = Memory::open(fd).unwrap();
        other.words()[1023].store(7, Ordering::Relaxed);
        assert_eq!((memory.words()[1023].load(Ordering::Relaxed), other.words().len()), (7, 1024));
    }

    #[test]
    fn of_two_descriptors_none_is_left_open() {
        let (here, there) = UnixStream::pair().unwrap();
        let (reader, writer) = UnixStream::pair().unwrap();
        let (byte, fds) = (1u8, [writer.as_raw_fd(); 2]);
        let mut part = libc::iovec { iov_base: (&raw const byte).cast_mut().cast(), iov_len: 1 };
        let mut control = Control([0; CONTROL]);
        // SAFETY: all fields may be zero.
        let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
        (message.msg_iov, message.msg_iovlen) = (&raw mut part, 1);
        // SAFETY: the control buffer is aligned, outlives the message and has room for one header and two
        // descriptors; sending changes nothing.
        let sent = unsafe {
            let length = size_of_val(&fds) as u32;
            message.msg_control = control.0.as_mut_ptr().cast();
            message.msg_controllen = libc::CMSG_SPACE(length) as _;
            let header = libc::CMSG_FIRSTHDR(&raw const message);
            (*header).cmsg_level = libc::SOL_SOCKET;
            (*header).cmsg_type = libc::SCM_RIGHTS;
            (*header).cmsg_len = libc::CMSG_LEN(length) as _;
            libc::CMSG_DATA(header).cast::<[RawFd; 2]>().write_unaligned(fds);
            libc::sendmsg(here.as_raw_fd(), &raw const message, 0)
        };
        assert_eq!(sent, 1);
        let (count, fd) = receive(&there, &mut [0; 16]).unwrap();
        assert_eq!((count, fd.is_some()), (1, true));
        drop((fd, writer));
        reader.set_nonblocking(true).unwrap();
        assert_eq!((&reader).read(&mut [0]).unwrap(), 0, "nobody has the other end");
    }

    #[test]
    fn memory_that_can_shrink_or_is_none_is_refused() {
        let (here, _there) = UnixStream::pair().unwrap();
        assert!(Memory::open(here.into()).is_err());
        let file = std::fs::File::open("/proc/self/exe").unwrap();
        assert!(Memory::open(file.into()).is_err());
    }

    #[test]
    fn the_processor_time_of_another_process_is_known() {
        let (here, _there) = UnixStream::pair().unwrap();
        assert_eq!(peer(&here), None, "it is this process");
        let own = libc::pid_t::try_from(std::process::id()).unwrap();
        let before = processor_time(own).unwrap();
        while processor_time(own).unwrap() < before + Duration::from_millis(5) {}
        assert_eq!(processor_time(-7), None);
    }

    #[test]
    fn ringing_never_waits() {
        let (here, there) = UnixStream::pair().unwrap();
        for _ in 0..100_000 {
            ring(&here);
        }
        assert_eq!(wait(&[there.as_fd(), here.as_fd()], Duration::ZERO), [true, false]);
        drop(there);
        ring(&here);
        assert!(send(&here, b"x", None).is_err());
    }
}
