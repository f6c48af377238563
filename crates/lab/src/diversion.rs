//! Packets of an interface that take a detour: whatever would leave by it or has come in by it goes to
//! another interface of the same namespace instead, and what comes back from there goes on where it was
//! taken.
//!
//! Programs at the interface's hooks (tcx, Linux 6.6) do that. The kernel detaches them when their
//! descriptors are closed, so that an interface is as it was when this process ends, however it ends.

use std::io;
use std::os::fd::OwnedFd;

use crate::bpf::{Instruction, Kind, exchange, instruction, link, load};

/// `BPF_TCX_INGRESS` and `BPF_TCX_EGRESS`.
const INGRESS: u32 = 46;
const EGRESS: u32 = 47;

/// What a packet that comes back is known by on its way between two hooks. Other programs that give marks
/// don't see it: it is taken off before the packet goes on.
const MARK: u32 = 0x4c57_0001;

/// Where `struct __sk_buff` has a packet's mark.
const MARK_OFFSET: i16 = 8;
/// The helper `bpf_redirect`, and its flag that the packet comes in by the interface rather than leaving.
const REDIRECT: u32 = 23;
const AS_INCOMING: u32 = 1;
/// `TCX_NEXT`: other programs, and then the kernel, go on with the packet.
const GO_ON: u32 = u32::MAX;

/// The interfaces of a detour, by their indices.
#[derive(Debug, Clone, Copy)]
pub struct Detour {
    /// The one whose packets are taken.
    pub interface: u32,
    /// Where packets go that its machine sends, and come from that its machine receives.
    pub inner: u32,
    /// Where packets go that have come in by it, and come from that leave by it.
    pub outer: u32,
}

/// A detour that is taken until this is dropped.
#[derive(Debug)]
pub struct Diversion {
    /// At the interface: what leaves, and what comes in.
    taken: [OwnedFd; 2],
    /// At the ends of the detour.
    _returned: [OwnedFd; 2],
}

impl Diversion {
    /// Begins it, in the calling thread's namespace.
    ///
    /// # Errors
    /// When the kernel refuses, as one before Linux 6.6 does.
    pub fn begin(detour: Detour) -> io::Result<Self> {
        let Detour { interface, inner, outer } = detour;
        let attach = |code: &[Instruction], to: u32, place: u32| {
            link(&load(Kind::Classifier, place, code)?, to, place)
        };
        let returned = [
            attach(&come_back(interface, AS_INCOMING), inner, INGRESS)?,
            attach(&come_back(interface, 0), outer, INGRESS)?,
        ];
        // Only now is anything taken: it finds its way back.
        let taken = [attach(&take(inner), interface, EGRESS)?, attach(&take(outer), interface, INGRESS)?];
        Ok(Self { taken, _returned: returned })
    }

    /// Takes no more packets; those that are under way still come back.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn let_pass(&self) -> io::Result<()> {
        for (link, place) in self.taken.iter().zip([EGRESS, INGRESS]) {
            exchange(link, &load(Kind::Classifier, place, &pass())?)?;
        }
        Ok(())
    }
}

/// Takes a packet's mark off, and lets it go on.
const UNMARK: [Instruction; 4] = [
    // r2 = 0, the mark = r2; r0 = "go on"; exit.
    instruction(0xb4, 0x02, 0, 0),
    instruction(0x63, 0x21, MARK_OFFSET, 0),
    instruction(0xb7, 0x00, 0, GO_ON),
    instruction(0x95, 0x00, 0, 0),
];

/// Lets packets pass, those that have come back without their mark.
fn pass() -> Vec<Instruction> {
    // Past taking the mark off.
    [&if_back(UNMARK.len() as i16 - 2)[..], &UNMARK].concat()
}

/// Sends a packet to an interface; one that has come back goes on.
fn take(to: u32) -> Vec<Instruction> {
    [&if_back(UNMARK.len() as i16)[..], &UNMARK, &redirect(to, 0)].concat()
}

/// r2 = the mark; unless it is that of a packet that has come back, goes on `distance` instructions further.
const fn if_back(distance: i16) -> [Instruction; 2] {
    [instruction(0x61, 0x12, MARK_OFFSET, 0), instruction(0x55, 0x02, distance, MARK)]
}

/// Marks a packet and sends it on by an interface, or as one that has come in by it.
fn come_back(interface: u32, direction: u32) -> Vec<Instruction> {
    let mark = [instruction(0xb4, 0x02, 0, MARK), instruction(0x63, 0x21, MARK_OFFSET, 0)];
    [&mark[..], &redirect(interface, direction)].concat()
}

/// r1 = the interface, r2 = the flags; exits with what the helper says.
const fn redirect(interface: u32, flags: u32) -> [Instruction; 4] {
    [
        instruction(0xb7, 0x01, 0, interface),
        instruction(0xb7, 0x02, 0, flags),
        instruction(0x85, 0x00, 0, REDIRECT),
        instruction(0x95, 0x00, 0, 0),
    ]
}
