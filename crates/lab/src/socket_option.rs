//! Socket options that rustix lacks, by the kernel's numbers.
#![allow(unsafe_code)]

use std::ffi::c_int;
use std::io;
use std::mem::{size_of, size_of_val};
use std::os::fd::{AsFd, AsRawFd};

use crate::system_call::checked;

/// Sets an option that is a number.
pub fn set(socket: &impl AsFd, level: c_int, name: c_int, value: c_int) -> io::Result<()> {
    let (socket, length) = (socket.as_fd().as_raw_fd(), size_of::<c_int>() as libc::socklen_t);
    // SAFETY: the pointer and the length describe `value`, which outlives the call.
    let result = unsafe { libc::setsockopt(socket, level, name, (&raw const value).cast(), length) };
    checked(result).map(drop)
}

/// Binds a socket to an interface of the calling thread's namespace.
pub fn bind_to_interface(socket: &impl AsFd, index: u32) -> io::Result<()> {
    /// `SO_BINDTOIFINDEX` of asm-generic/socket.h.
    const BIND_TO_INTERFACE: c_int = 62;
    set(socket, libc::SOL_SOCKET, BIND_TO_INTERFACE, index.cast_signed())
}

/// Makes a connection end with a reset when it is closed.
pub fn reset_on_close(socket: &impl AsFd) -> io::Result<()> {
    Ok(rustix::net::sockopt::set_socket_linger(socket, Some(std::time::Duration::ZERO))?)
}

/// Reads an option into `words`; returns the number of bytes written.
pub fn read(socket: &impl AsFd, level: c_int, name: c_int, words: &mut [u32]) -> io::Result<usize> {
    let mut length = size_of_val(words) as libc::socklen_t;
    let socket = socket.as_fd().as_raw_fd();
    // SAFETY: the pointer and the length describe `words`; the kernel writes no more than that.
    let result = unsafe { libc::getsockopt(socket, level, name, words.as_mut_ptr().cast(), &raw mut length) };
    checked(result).map(|_| length as usize)
}
