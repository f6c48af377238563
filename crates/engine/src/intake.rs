//! What has come in, and is on its way to links.

use longwire_block::OUTBOX;
use longwire_packet::{BATCH, Handle};

/// See the module.
#[derive(Default)]
pub(crate) struct Intake {
    /// Packets taken in and not yet decided about.
    pub fresh: Vec<Handle>,
    /// Packets with a path, in order, about to enter their first link here; while a step serves these, what
    /// is decided about in its turn.
    pub ready: Vec<Handle>,
    in_turn: Vec<Handle>,
    /// When the run began: a frame that waited in a driver's ring since before then comes to links now, and
    /// is not late.
    pub begin: u64,
}

/// Most room for packets that are ready which is made at the start.
const MOST_READY: usize = 1 << 20;

impl Intake {
    /// For so many ports, and so many packets that other workers hand over in a step.
    pub fn new(ports: usize, handed_over: usize) -> Self {
        let room = BATCH * (ports + 1);
        // A flooded packet becomes one for each port of its node. Where there are many ports, all that come
        // at once are hardly ever flooded: should they be, more is allocated then.
        let ready = (room * ports.max(1)).min(MOST_READY) + handed_over + OUTBOX;
        Self {
            fresh: Vec::with_capacity(room),
            ready: Vec::with_capacity(ready),
            in_turn: Vec::with_capacity(OUTBOX),
            begin: 0,
        }
    }

    /// Takes out what is ready; what is decided about in its turn takes its place until [`Intake::served`].
    pub fn serve(&mut self) -> Vec<Handle> {
        std::mem::replace(&mut self.ready, std::mem::take(&mut self.in_turn))
    }

    /// All that was taken out has entered.
    pub fn served(&mut self, ready: Vec<Handle>) {
        self.in_turn = std::mem::replace(&mut self.ready, ready);
        self.ready.clear();
    }
}
