//! The XDP program that passes each frame to the socket of its receive queue.

use super::socket::Buffers;
use crate::bpf::{self, Arguments, Instruction, Kind};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};

// From linux/bpf.h; missing in libc.
const MAP_CREATE: libc::c_int = 0;
const MAP_UPDATE: libc::c_int = 2;
const LINK_CREATE: libc::c_int = 28;
const MAP_OF_SOCKETS: u32 = 17;
const ATTACH_XDP: u32 = 37;
const REDIRECT_MAP: i32 = 51;
const XDP_PASS: i32 = 2;
const PSEUDO_MAP_FD: u8 = 1;
const HAS_FRAGMENTS: u32 = 1 << 5;

/// How the program is attached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Attach {
    /// In the driver, before the kernel allocates a packet.
    Native = 1 << 2,
    /// After that, for drivers without XDP.
    Generic = 1 << 1,
}

/// The program with its table of sockets. It is detached when this is dropped or the process ends.
pub(super) struct Redirect {
    _link: OwnedFd,
    _map: OwnedFd,
}

impl Redirect {
    /// Attaches the program to the interface with this index in the caller's namespace; `sockets` are by
    /// receive queue.
    pub(super) fn attach(
        index: u32,
        sockets: &[BorrowedFd<'_>],
        attach: Attach,
        buffers: Buffers,
    ) -> io::Result<Self> {
        let count = sockets.len() as u32;
        let map = Arguments::new()
            .word(0, MAP_OF_SOCKETS)
            .word(4, 4)
            .word(8, 4)
            .word(12, count)
            .descriptor(MAP_CREATE)?;
        for (queue, socket) in (0u32..).zip(sockets) {
            let fd = socket.as_raw_fd();
            let map = map.as_raw_fd() as u32;
            Arguments::new().word(0, map).pointer(8, &queue).pointer(16, &fd).call(MAP_UPDATE)?;
        }
        let program = load(map.as_raw_fd(), buffers)?;
        let link = Arguments::new()
            .word(0, program.as_raw_fd() as u32)
            .word(4, index)
            .word(8, ATTACH_XDP)
            .word(12, attach as u32)
            .descriptor(LINK_CREATE)?;
        Ok(Self { _link: link, _map: map })
    }
}

/// Six instructions: `return bpf_redirect_map(&sockets, ctx->rx_queue_index, XDP_PASS)`. A frame of a queue
/// without a socket goes on to the machine's own stack.
fn load(map: libc::c_int, buffers: Buffers) -> io::Result<OwnedFd> {
    let flags = if buffers == Buffers::Several { HAS_FRAGMENTS } else { 0 };
    let instruction = |code, registers, offset, immediate| Instruction { code, registers, offset, immediate };
    let program = [
        // r2 = *(u32 *)(r1 + 16): struct xdp_md, rx_queue_index.
        instruction(0x61, 0x12, 16, 0),
        // r1 = the map: one instruction of two slots.
        instruction(0x18, PSEUDO_MAP_FD << 4 | 1, 0, map),
        instruction(0, 0, 0, 0),
        // r3 = XDP_PASS.
        instruction(0xb7, 3, 0, XDP_PASS),
        instruction(0x85, 0, 0, REDIRECT_MAP),
        instruction(0x95, 0, 0, 0),
    ];
    bpf::load(Kind::Xdp, &program, flags)
}
