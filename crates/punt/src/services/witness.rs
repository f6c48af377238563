//! `witness`: reads every byte, and passes all packets.

use crate::layout::Verdict;
use crate::service::{PuntedPacket, Service, ServiceOutput};
use std::hint::black_box;

#[derive(Default)]
pub(super) struct Witness(u64);

impl Service for Witness {
    fn handle(&mut self, packet: &mut PuntedPacket<'_>, _made: &mut ServiceOutput) -> Verdict {
        let sum = packet.bytes().iter().fold(self.0, |sum, &byte| sum.wrapping_add(byte.into()));
        self.0 = black_box(sum);
        Verdict::Pass
    }
}
