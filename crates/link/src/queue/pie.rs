//! PIE: arrivals are dropped with a probability that a controller steers by the waiting time.

use super::pie_law::{Gains, ONE, Pie as Law, Settings, waiting};
use super::settings::{Limit, ecn_marks, limit, number, signal};
use super::{Admission, Discipline, Hall, Next};
use crate::fifo::Fifo;
use longwire_block::{Block, Dice, DropReason, Param, ParamKind, Spec, Values, Verdict};
use longwire_packet::Handle;
use longwire_units::Nanos;

/// The parameter `target` of PIE.
pub(super) const TARGET: Param = Param {
    name: "target",
    kind: ParamKind::Time { max: Nanos::from_secs(10) },
    default: Some("15 ms"),
    help: "waiting time that the queue is steered to, up to 10 s",
};

/// The parameter `update` of PIE, with a default.
pub(super) const fn update(default: &'static str) -> Param {
    Param {
        name: "update",
        kind: ParamKind::Time { max: Nanos::from_secs(10) },
        default: Some(default),
        help: "time between corrections of the probability, up to 10 s; less than 100 us counts as 100 us",
    }
}

/// The parameter `burst` of PIE.
pub(super) const BURST: Param = Param {
    name: "burst",
    kind: ParamKind::Time { max: Nanos::from_secs(10) },
    default: Some("150 ms"),
    help: "how long a queue that was short may grow before anything is dropped early, up to 10 s",
};

/// A gain of PIE, with a default.
pub(super) const fn gain(name: &'static str, default: &'static str, help: &'static str) -> Param {
    Param { name, kind: ParamKind::Decimal { min: 0, max: 100_000_000 }, default: Some(default), help }
}

/// The parameters `alpha` and `beta`.
pub(super) const ALPHA: &str = "correction for each second that packets wait above the target, 0 to 100";
pub(super) const BETA: &str = "correction for each second that the wait has grown, 0 to 100";

/// The gains that stand from parameter `at` on, as target, update, then `skipped` others, alpha and beta.
pub(super) fn gains(values: &Values, at: usize, skipped: usize) -> Gains {
    Gains {
        target: Nanos(number(values, at)),
        update: Nanos(number(values, at + 1)).max(Nanos::from_micros(100)),
        alpha: number(values, at + 2 + skipped),
        beta: number(values, at + 3 + skipped),
    }
}

/// Whether a packet chosen at this probability may be marked instead of dropped: below 10 % (RFC 8033, section 5.1).
#[inline]
pub(super) fn may_mark(law: &Law) -> bool {
    law.probability() < ONE / 10
}

/// A first-in-first-out queue under PIE.
///
/// The waiting time is what the waiting bytes, the packet being sent included, take at the departure rate. Corrections happen every `update` from the first packet on; those that fell between two packets are made up for when the
/// second comes or is sent, with the queue as it was then. ECN-capable packets are marked, if asked, while the probability is below 10 %.
#[derive(Debug)]
pub struct Pie {
    law: Law,
    settings: Settings,
    limit: Limit,
    marks: bool,
    /// Bytes that wait since the last event.
    backlog: u64,
    dice: Dice,
}

impl Block for Pie {
    const SPEC: Spec = Spec {
        key: "queue",
        kind: "pie",
        summary: "Proportional integral controller enhanced: drops arrivals to hold the waiting time.",
        source: "RFC 8033",
        params: &[
            limit("1000 packets"),
            TARGET,
            update("15 ms"),
            BURST,
            gain("alpha", "0.125", ALPHA),
            gain("beta", "1.25", BETA),
            ecn_marks("no"),
        ],
    };

    fn build(values: &Values, dice: Dice) -> Self {
        let mut block = Self {
            law: Law::default(),
            settings: Settings::default(),
            limit: Limit::Packets(0),
            marks: false,
            backlog: 0,
            dice,
        };
        block.change(values);
        block
    }

    /// Takes new parameters; the probability stays.
    fn change(&mut self, values: &Values) {
        self.limit = Limit::read(values, 0);
        self.settings = Settings { gains: gains(values, 1, 1), burst: Nanos(number(values, 3)) };
        self.marks = number(values, 6) == 1;
    }
}

impl Discipline for Pie {
    #[inline]
    fn admit(&mut self, packet: &Admission<'_>) -> Verdict {
        let backlog = self.backlog;
        self.law.catch_up(&self.settings, packet.now, || waiting(backlog, packet.rate));
        let verdict = if !self.limit.has_room(packet) {
            self.law.overflowed();
            Verdict::Drop(DropReason::QueueFull)
        } else if self.law.chooses(&self.settings, packet.bytes_waiting, &mut self.dice) {
            signal(self.marks && may_mark(&self.law), packet)
        } else {
            Verdict::Pass
        };
        let joins = if matches!(verdict, Verdict::Drop(_)) { 0 } else { packet.bytes };
        self.backlog = packet.bytes_waiting + joins;
        verdict
    }

    #[inline]
    fn push(&mut self, hall: &mut Hall<'_>, handle: Handle) {
        self.backlog = hall.bytes_waiting();
        hall.append(handle);
    }

    fn adopt(&mut self, hall: &mut Hall<'_>, mut packets: Fifo) {
        while let Some(handle) = packets.pop(hall.pool) {
            hall.append(handle);
        }
        self.backlog = hall.bytes_waiting();
        self.law.take_over(&self.settings, hall.now, waiting(self.backlog, hall.rate));
    }

    #[inline(always)]
    fn pop(&mut self, hall: &mut Hall<'_>) -> Next {
        let backlog = self.backlog;
        self.law.catch_up(&self.settings, hall.now, || waiting(backlog, hall.rate));
        self.backlog = hall.bytes_waiting();
        hall.first().map_or(Next::Empty, Next::Packet)
    }

    #[inline]
    fn direct(&self) -> bool {
        true
    }
}
