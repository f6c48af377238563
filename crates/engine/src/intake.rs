//! Received packets before they enter links.

use longwire_block::OUTBOX;
use longwire_packet::{BATCH, Handle};

#[derive(Default)]
pub(crate) struct Intake {
    /// Received packets before their node's decision.
    pub fresh: Vec<Handle>,
    /// Packets with a path, in order, that have not entered their first link here. While a step serves these,
    /// packets from decisions in turn.
    pub ready: Vec<Handle>,
    in_turn: Vec<Handle>,
    /// Start of the run: a frame that arrived in a driver's ring before it enters links now and is not late.
    pub begin: u64,
}

/// Limit on the capacity for ready packets that is allocated at the start.
const MOST_READY: usize = 1 << 20;

impl Intake {
    /// For `ports` ports, and `handed_over` packets from other workers per step.
    pub fn new(ports: usize, handed_over: usize) -> Self {
        let room = BATCH * (ports + 1);
        // A flooded packet becomes one for each port of its node. With many ports all arriving packets are
        // rarely flooded; if they are, the list grows.
        let ready = (room * ports.max(1)).min(MOST_READY) + handed_over + OUTBOX;
        Self {
            fresh: Vec::with_capacity(room),
            ready: Vec::with_capacity(ready),
            in_turn: Vec::with_capacity(OUTBOX),
            begin: 0,
        }
    }

    /// Takes the ready packets; packets from decisions in turn take their place until [`Intake::served`].
    pub fn serve(&mut self) -> Vec<Handle> {
        std::mem::replace(&mut self.ready, std::mem::take(&mut self.in_turn))
    }

    /// Called when all taken packets have entered.
    pub fn served(&mut self, ready: Vec<Handle>) {
        self.in_turn = std::mem::replace(&mut self.ready, ready);
        self.ready.clear();
    }
}
