//! Small BPF programs, loaded with the bare `bpf(2)` system call and attached while a descriptor is open: the
//! kernel detaches them when this process ends, however it ends.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use crate::system_call::checked;

const PROG_LOAD: libc::c_long = 5;
const LINK_CREATE: libc::c_long = 28;
const LINK_UPDATE: libc::c_long = 29;

/// Of `enum bpf_prog_type`: decides about a packet at an interface.
const CLASSIFIER: u32 = 3;

/// An instruction: opcode, registers (source in the upper half), offset, immediate.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Instruction {
    pub opcode: u8,
    pub registers: u8,
    pub offset: i16,
    pub immediate: u32,
}

pub const fn instruction(opcode: u8, registers: u8, offset: i16, immediate: u32) -> Instruction {
    Instruction { opcode, registers, offset, immediate }
}

/// Loads a classifier for an attachment type (`enum bpf_attach_type`).
pub fn load(place: u32, code: &[Instruction]) -> io::Result<OwnedFd> {
    /// The head of `union bpf_attr` for `BPF_PROG_LOAD`, up to the attachment type.
    #[repr(C)]
    struct Load {
        kind: u32,
        count: u32,
        code: u64,
        license: u64,
        log: [u64; 2],
        kernel: u32,
        flags: u32,
        name: [u8; 16],
        interface: u32,
        place: u32,
    }
    let load = Load {
        kind: CLASSIFIER,
        count: code.len() as u32,
        code: code.as_ptr() as u64,
        license: c"Apache-2.0".as_ptr() as u64,
        log: [0; 2],
        kernel: 0,
        flags: 0,
        name: *b"longwire\0\0\0\0\0\0\0\0",
        interface: 0,
        place,
    };
    // SAFETY: the structure is the head of what the kernel takes for this command; code and licence outlive
    // the call. The command returns a new descriptor.
    unsafe { bpf(PROG_LOAD, &load).map(|fd| OwnedFd::from_raw_fd(fd)) }
}

/// Attaches a program to a target (a descriptor, or the index of an interface in the calling thread's
/// namespace), while the returned descriptor is open.
pub fn link(program: &OwnedFd, target: u32, place: u32) -> io::Result<OwnedFd> {
    #[repr(C)]
    struct Create {
        program: u32,
        target: u32,
        place: u32,
        flags: u32,
    }
    let create = Create { program: program.as_raw_fd().cast_unsigned(), target, place, flags: 0 };
    // SAFETY: the structure is the head of what the kernel takes for this command; the program is open. The
    // command returns a new descriptor.
    unsafe { bpf(LINK_CREATE, &create).map(|fd| OwnedFd::from_raw_fd(fd)) }
}

/// Replaces an attached program between two packets.
pub fn exchange(link: &OwnedFd, program: &OwnedFd) -> io::Result<()> {
    #[repr(C)]
    struct Update {
        link: u32,
        program: u32,
        flags: u32,
        old: u32,
    }
    let [link, program] = [link, program].map(|fd| fd.as_raw_fd().cast_unsigned());
    // SAFETY: the structure is the head of what the kernel takes for this command; both descriptors are open.
    unsafe { bpf(LINK_UPDATE, &Update { link, program, flags: 0, old: 0 }).map(drop) }
}

/// Calls bpf(2), which rustix lacks.
///
/// # Safety
/// `attributes` must be the head of `union bpf_attr` for the command; what it points to must be live.
unsafe fn bpf<T>(command: libc::c_long, attributes: &T) -> io::Result<libc::c_int> {
    // SAFETY: pointer and length describe `attributes`, which the caller guarantees to suit the command.
    let done =
        unsafe { libc::syscall(libc::SYS_bpf, command, std::ptr::from_ref(attributes), size_of::<T>()) };
    checked(done).map(|done| done as libc::c_int)
}
