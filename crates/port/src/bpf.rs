//! BPF programs, loaded with the bare `bpf(2)` system call.
#![allow(unsafe_code)]

use crate::system::checked;
use std::io;
use std::os::fd::{FromRawFd, OwnedFd};

const PROGRAM_LOAD: libc::c_int = 5;

/// Program types: `enum bpf_prog_type`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Examines a packet and returns a number.
    SocketFilter = 1,
    /// Decides about a frame.
    Xdp = 6,
}

/// Loads a program; the meaning of `flags` depends on its type.
pub(crate) fn load(kind: Kind, program: &[Instruction], flags: u32) -> io::Result<OwnedFd> {
    let Some(first) = program.first() else { return Err(io::ErrorKind::InvalidInput.into()) };
    Arguments::new()
        .word(0, kind as u32)
        .word(4, program.len() as u32)
        .pointer(8, first)
        .pointer(16, b"Apache-2.0 OR MIT\0")
        .word(44, flags)
        .descriptor(PROGRAM_LOAD)
}

/// `struct bpf_insn`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct Instruction {
    pub(crate) code: u8,
    pub(crate) registers: u8,
    pub(crate) offset: i16,
    pub(crate) immediate: i32,
}

/// The arguments of `bpf(2)` as words, zero unless set.
#[repr(C, align(8))]
pub(crate) struct Arguments([u32; 32]);

impl Arguments {
    pub(crate) fn new() -> Self {
        Self([0; 32])
    }

    pub(crate) fn word(mut self, at: usize, value: u32) -> Self {
        self.0[at / 4] = value;
        self
    }

    /// Sets a pointer at byte `at`.
    pub(crate) fn pointer<T>(mut self, at: usize, target: &T) -> Self {
        let address = (std::ptr::from_ref(target).expose_provenance() as u64).to_ne_bytes();
        let half = |from: usize| u32::from_ne_bytes(std::array::from_fn(|i| address[from + i]));
        (self.0[at / 4], self.0[at / 4 + 1]) = (half(0), half(4));
        self
    }

    pub(crate) fn call(&mut self, command: libc::c_int) -> io::Result<usize> {
        // SAFETY: the length is that of the arguments; each caller ensures that what they point to outlives
        // the call, and the kernel only reads it.
        checked(unsafe { libc::syscall(libc::SYS_bpf, command, std::ptr::from_mut(self), size_of::<Self>()) })
    }

    pub(crate) fn descriptor(&mut self, command: libc::c_int) -> io::Result<OwnedFd> {
        let fd = self.call(command)?;
        // SAFETY: the command created this descriptor, which nothing else owns.
        Ok(unsafe { OwnedFd::from_raw_fd(fd as libc::c_int) })
    }
}
