//! The working memory of programs on one thread: a stack, room for packets that grow, and a sampler of what
//! they take.

use super::cost::Sampler;
use crate::meter::Meter;
use longwire_jit::Visit;
use longwire_packet::BATCH;
use longwire_program::Stack;

/// The working memory of a router's programs on one thread, which run one after the other.
pub(crate) struct Bench {
    pub(super) stack: Stack,
    /// A program's verdicts on a batch's packets.
    pub(super) visits: Box<[Visit; BATCH]>,
    /// A packet with room before and behind.
    pub(super) buffer: Box<[u8]>,
    /// Whether no other thread runs the programs.
    pub(super) alone: bool,
    pub(super) sampler: Sampler,
}

/// Bytes before a packet that its program may use, as many as XDP promises, and behind it.
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

    /// One for a thread beside others, that works on packets in buffers of their own, and is told what they
    /// took.
    pub fn beside(meter: Meter) -> Self {
        Self { buffer: Box::default(), alone: false, sampler: Sampler::told(meter), ..Self::new() }
    }
}

/// A place for the longest packet, with room before and behind.
pub(super) fn buffer() -> Box<[u8]> {
    vec![0; ROOM + longwire_packet::MAX_FRAME + ROOM].into()
}
