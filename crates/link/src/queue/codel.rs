//! CoDel: packets are dropped when they have waited too long for too long.

use super::codel_law::{Codel as Law, Settings, Source};
use super::settings::{Limit, ecn_marks, limit, number};
use super::{Admission, Discipline, Hall, Next};
use crate::fifo::Fifo;
use longwire_block::{Block, Dice, DropReason, Param, ParamKind, Spec, Values, Verdict};
use longwire_packet::{Handle, Pool};
use longwire_units::Nanos;

/// The parameter `target` of CoDel.
pub(super) const TARGET: Param = Param {
    name: "target",
    kind: ParamKind::Time { max: Nanos::from_secs(10) },
    default: Some("5 ms"),
    help: "waiting time that the queue is held below, up to 10 s; at least what one packet takes to send",
};

/// The parameter `interval` of CoDel.
pub(super) const INTERVAL: Param = Param {
    name: "interval",
    kind: ParamKind::Time { max: Nanos::from_secs(100) },
    default: Some("100 ms"),
    help: "how long packets may wait longer than the target before one is dropped: a usual round-trip time, up to 100 s",
};

/// A first-in-first-out queue under CoDel.
///
/// A packet has waited from its arrival until the transmitter takes it. A queue in which no more waits than the longest packet so far
/// is left alone. The RFC (section 5.3) would have the interface's MTU there, which a link has not.
#[derive(Debug)]
pub struct Codel {
    law: Law,
    settings: Settings,
    queue: Queue,
    limit: Limit,
}

/// The packets, and their bytes behind the one that was taken last.
#[derive(Debug)]
struct Queue {
    fifo: Fifo,
    backlog: u64,
}

impl Source for Queue {
    #[inline]
    fn take(&mut self, hall: &mut Hall<'_>) -> Option<Handle> {
        let handle = self.fifo.pop(hall.pool)?;
        self.backlog -= hall.pool.meta(handle).counted();
        Some(handle)
    }

    #[inline]
    fn backlog(&self) -> u64 {
        self.backlog
    }
}

impl Block for Codel {
    const SPEC: Spec = Spec {
        key: "queue",
        kind: "codel",
        summary: "Controlled delay: drops at the head when packets have waited too long for too long.",
        source: "RFC 8289",
        params: &[limit("1000 packets"), TARGET, INTERVAL, ecn_marks("no")],
    };

    fn build(values: &Values, _: Dice) -> Self {
        let settings = Settings { target: Nanos::ZERO, interval: Nanos::ZERO, marks: false, longest: 0 };
        let queue = Queue { fifo: Fifo::EMPTY, backlog: 0 };
        let mut block = Self { law: Law::default(), settings, queue, limit: Limit::Packets(0) };
        block.change(values);
        block
    }

    /// Takes new parameters; a dropping state goes on.
    fn change(&mut self, values: &Values) {
        self.limit = Limit::read(values, 0);
        self.settings.target = Nanos(number(values, 1));
        self.settings.interval = Nanos(number(values, 2));
        self.settings.marks = number(values, 3) == 1;
    }
}

impl Discipline for Codel {
    #[inline]
    fn admit(&mut self, packet: &Admission<'_>) -> Verdict {
        self.settings.longest = self.settings.longest.max(packet.bytes);
        if self.limit.has_room(packet) { Verdict::Pass } else { Verdict::Drop(DropReason::QueueFull) }
    }

    #[inline]
    fn push(&mut self, hall: &mut Hall<'_>, handle: Handle) {
        self.queue.backlog += hall.pool.meta(handle).counted();
        self.queue.fifo.push(hall.pool, handle);
    }

    /// The time that they have waited counts. A dropping state begins an interval from now at the soonest.
    fn adopt(&mut self, hall: &mut Hall<'_>, mut waiting: Fifo) {
        while let Some(handle) = waiting.pop(hall.pool) {
            self.settings.longest = self.settings.longest.max(hall.pool.meta(handle).counted());
            self.push(hall, handle);
        }
    }

    #[inline(always)]
    fn pop(&mut self, hall: &mut Hall<'_>) -> Next {
        self.law.dequeue(&self.settings, hall, &mut self.queue).map_or(Next::Empty, Next::Packet)
    }

    fn drain(&mut self, _: &mut Pool) -> Fifo {
        self.queue.backlog = 0;
        std::mem::take(&mut self.queue.fifo)
    }

    /// A packet that finds the transmitter idle has not waited, and the last look at the empty queue ended any dropping state.
    #[inline]
    fn direct(&self) -> bool {
        true
    }
}
