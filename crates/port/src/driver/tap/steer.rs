//! Assigns frames of the host to queues of a TAP interface: both directions of a flow have the same queue.
//!
//! Without a program the kernel puts a flow into the queue through which its other direction was last
//! written. That is the queue of the worker that has the link, and it changes with the first reply, so that
//! frames could overtake others.

use crate::bpf::{self, Instruction, Kind};
use crate::system::checked;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

const SET_STEERING: libc::c_ulong = 0x8004_54e0;

/// Offsets of parts of the program.
const V4: i16 = 26;
const PORTS: i16 = 41;
const DONE: i16 = 45;

/// Spreads the flows of `queue`'s interface over its queues.
pub(super) fn by_flow(queue: BorrowedFd<'_>) -> io::Result<()> {
    let program = bpf::load(Kind::SocketFilter, &program(), 0)?;
    let fd = program.as_raw_fd();
    // SAFETY: TUNSETSTEERINGEBPF reads an int; the interface keeps the program.
    checked(unsafe { libc::ioctl(queue.as_raw_fd(), SET_STEERING as _, &raw const fd) }).map(drop)
}

/// The program hashes the addresses, and the ports of unfragmented TCP and UDP packets; the result is zero
/// for other frames. The kernel takes it modulo the number of queues. A load beyond the end of the frame ends
/// the program with zero.
fn program() -> Vec<Instruction> {
    let instruction = |code, registers, offset, immediate| Instruction { code, registers, offset, immediate };
    let byte = |at| instruction(0x30, 0, 0, at);
    let half = |at| instruction(0x28, 0, 0, at);
    let word = |at| instruction(0x20, 0, 0, at);
    // r0 = the two bytes at r8 + at.
    let half_behind = |at| instruction(0x48, 0x80, 0, at);
    // r7 ^= r0.
    let mix = instruction(0xaf, 0x07, 0, 0);
    let mut all = vec![
        // r6 = the packet, for loads; r7 = 0.
        instruction(0xbf, 0x16, 0, 0),
        instruction(0xb7, 7, 0, 0),
        half(12),
    ];
    let jump = |all: &mut Vec<Instruction>, code, value, to: i16| {
        let offset = to - 1 - all.len() as i16;
        all.push(instruction(code, 0, offset, value));
    };
    const ALWAYS: u8 = 0x05;
    const EQUAL: u8 = 0x15;
    const UNEQUAL: u8 = 0x55;
    jump(&mut all, EQUAL, 0x0800, V4);
    jump(&mut all, UNEQUAL, 0x86dd, DONE);
    (22..54).step_by(4).for_each(|at| all.extend([word(at), mix]));
    // r8 = offset of the ports.
    all.extend([byte(20), instruction(0xb7, 8, 0, 54)]);
    jump(&mut all, EQUAL, libc::IPPROTO_TCP, PORTS);
    jump(&mut all, EQUAL, libc::IPPROTO_UDP, PORTS);
    jump(&mut all, ALWAYS, 0, DONE);
    debug_assert_eq!(all.len(), V4 as usize);
    all.extend([word(26), mix, word(30), mix, half(20)]);
    // Fragments: r0 &= 0x3fff.
    all.push(instruction(0x57, 0, 0, 0x3fff));
    jump(&mut all, UNEQUAL, 0, DONE);
    // r8 = 14 + (r0 & 0xf) * 4.
    all.extend([byte(14), instruction(0x57, 0, 0, 0xf), instruction(0x67, 0, 0, 2)]);
    all.extend([instruction(0x07, 0, 0, 14), instruction(0xbf, 0x08, 0, 0), byte(23)]);
    jump(&mut all, EQUAL, libc::IPPROTO_TCP, PORTS);
    jump(&mut all, UNEQUAL, libc::IPPROTO_UDP, DONE);
    debug_assert_eq!(all.len(), PORTS as usize);
    all.extend([half_behind(0), mix, half_behind(2), mix]);
    debug_assert_eq!(all.len(), DONE as usize);
    // r0 = the upper half of r7 * the golden ratio, in 32 bits.
    all.extend([instruction(0xbf, 0x70, 0, 0), instruction(0x24, 0, 0, 0x9e37_79b1_u32.cast_signed())]);
    all.extend([instruction(0x74, 0, 0, 16), instruction(0x95, 0, 0, 0)]);
    all
}
