//! Working memory of programs on one thread: a stack, a buffer for packets that grow, and a sampler of costs.

use super::cost::Sampler;
use crate::meter::Meter;
use longwire_jit::Visit;
use longwire_packet::BATCH;
use longwire_program::Stack;

/// Working memory of a router's programs on one thread, which run one after the other.
pub(crate) struct Bench {
    pub(super) stack: Stack,
    /// A program's verdicts on a batch's packets.
    pub(super) visits: Box<[Visit; BATCH]>,
    /// A packet with headroom and tailroom.
    pub(super) buffer: Box<[u8]>,
    /// Whether no other thread runs the programs.
    pub(super) alone: bool,
    pub(super) sampler: Sampler,
}

/// Headroom for programs, as much as XDP promises, and tailroom.
pub(super) const ROOM: usize = 256;

impl Bench {
    pub fn new() -> Self {
        Self {
            stack: Stack::trusting(),
            visits: Box::new([Visit::NONE; BATCH]),
            buffer: buffer(),
            alone: true,
            sampler: Sampler::OFF,
        }
    }

    /// For one of several threads, which works on packets in their own buffers, and is told their cost.
    pub fn beside(meter: Meter) -> Self {
        Self { buffer: Box::default(), alone: false, sampler: Sampler::told(meter), ..Self::new() }
    }
}

/// A buffer for the longest packet, with headroom and tailroom.
pub(super) fn buffer() -> Box<[u8]> {
    vec![0; ROOM + longwire_packet::MAX_FRAME + ROOM].into()
}
