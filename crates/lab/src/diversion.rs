//! Diverts packets of an interface: those that would leave by it or have arrived by it go to another
//! interface of the same namespace instead, and packets from there continue where they were taken.
//!
//! This is done by BPF programs at the interface's hooks (tcx, Linux 6.6). The kernel detaches them when
//! their descriptors are closed, so that the interface is restored when this process ends, however it ends.

use std::io;
use std::os::fd::OwnedFd;

use crate::bpf::{Instruction, exchange, instruction, link, load};

/// `BPF_TCX_INGRESS` and `BPF_TCX_EGRESS`.
const INGRESS: u32 = 46;
const EGRESS: u32 = 47;

/// Marks returning packets between two hooks. Other programs don't see the mark, which is removed before the
/// packet continues.
const MARK: u32 = 0x4c57_0001;

/// Offset of the mark in `struct __sk_buff`.
const MARK_OFFSET: i16 = 8;
/// The helper `bpf_redirect`, and its flag for packets that arrive by the interface rather than leave.
const REDIRECT: u32 = 23;
const AS_INCOMING: u32 = 1;
/// `TCX_NEXT`: other programs, and then the kernel, continue with the packet.
const GO_ON: u32 = u32::MAX;

/// The interfaces of a detour, by their indices.
#[derive(Debug, Clone, Copy)]
pub struct Detour {
    /// The interface whose packets are diverted.
    pub interface: u32,
    /// Carries packets that its machine sends and receives.
    pub inner: u32,
    /// Carries packets that arrive and leave by it.
    pub outer: u32,
}

/// An active detour, until dropped.
#[derive(Debug)]
pub struct Diversion {
    /// Programs at the interface, for leaving and arriving packets.
    taken: [OwnedFd; 2],
    /// Programs at the ends of the detour.
    _returned: [OwnedFd; 2],
}

impl Diversion {
    /// Begins the detour, in the calling thread's namespace.
    ///
    /// # Errors
    /// If the kernel refuses, as before Linux 6.6.
    pub fn begin(detour: Detour) -> io::Result<Self> {
        let Detour { interface, inner, outer } = detour;
        let attach = |code: &[Instruction], to: u32, place: u32| link(&load(place, code)?, to, place);
        let returned = [
            attach(&come_back(interface, AS_INCOMING), inner, INGRESS)?,
            attach(&come_back(interface, 0), outer, INGRESS)?,
        ];
        // Packets are diverted only now that their way back exists.
        let taken = [attach(&take(inner), interface, EGRESS)?, attach(&take(outer), interface, INGRESS)?];
        Ok(Self { taken, _returned: returned })
    }

    /// Stops diverting packets; those in transit still return.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn let_pass(&self) -> io::Result<()> {
        for (link, place) in self.taken.iter().zip([EGRESS, INGRESS]) {
            exchange(link, &load(place, &pass())?)?;
        }
        Ok(())
    }
}

/// Removes a packet's mark, and lets it continue.
const UNMARK: [Instruction; 4] = [
    // r2 = 0, the mark = r2; r0 = "go on"; exit.
    instruction(0xb4, 0x02, 0, 0),
    instruction(0x63, 0x21, MARK_OFFSET, 0),
    instruction(0xb7, 0x00, 0, GO_ON),
    instruction(0x95, 0x00, 0, 0),
];

/// Lets packets pass, and removes the mark of returning ones.
fn pass() -> Vec<Instruction> {
    // Skips removing the mark.
    [&if_back(UNMARK.len() as i16 - 2)[..], &UNMARK].concat()
}

/// Sends a packet to an interface; a returning one continues.
fn take(to: u32) -> Vec<Instruction> {
    [&if_back(UNMARK.len() as i16)[..], &UNMARK, &redirect(to, 0)].concat()
}

/// r2 = the mark; skips `distance` instructions unless it is that of a returning packet.
const fn if_back(distance: i16) -> [Instruction; 2] {
    [instruction(0x61, 0x12, MARK_OFFSET, 0), instruction(0x55, 0x02, distance, MARK)]
}

/// Marks a packet and redirects it to an interface, as leaving or as arriving.
fn come_back(interface: u32, direction: u32) -> Vec<Instruction> {
    let mark = [instruction(0xb4, 0x02, 0, MARK), instruction(0x63, 0x21, MARK_OFFSET, 0)];
    [&mark[..], &redirect(interface, direction)].concat()
}

/// r1 = the interface, r2 = the flags; exits with the helper's result.
const fn redirect(interface: u32, flags: u32) -> [Instruction; 4] {
    [
        instruction(0xb7, 0x01, 0, interface),
        instruction(0xb7, 0x02, 0, flags),
        instruction(0x85, 0x00, 0, REDIRECT),
        instruction(0x95, 0x00, 0, 0),
    ]
}
