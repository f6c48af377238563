//! PIE: drops arrivals with a probability controlled by the queueing delay.

use super::pie_law::{Gains, Pie as Law, Terms, waiting};
use super::settings::{ECN, LIMIT, Limit, signal};
use super::{Admission, Ahead, Discipline, Foresight, Next, QueueContext};
use crate::fifo::Fifo;
use longwire_block::{Block, Dice, DropReason, Fallback, Param, ParamKind, Verdict};
use longwire_packet::Handle;
use longwire_settings::{Millionths, Settings};
use longwire_units::{Nanos, Rate};

/// The parameter `target` of PIE.
pub(super) const TARGET: Param = Param {
    name: "target",
    kind: ParamKind::Time { min: Nanos::ZERO, max: Nanos::from_secs(10) },
    default: Fallback::Value("15 ms"),
    help: "target of the waiting time, up to 10 s",
    live: true,
};

/// The setting `update` of PIE.
pub(super) const UPDATE: Param = Param {
    name: "update",
    kind: ParamKind::Time { min: Nanos::ZERO, max: Nanos::from_secs(10) },
    default: Fallback::Value("15 ms"),
    help: "time between corrections of the probability, up to 10 s; less than 100 us is treated as 100 us",
    live: true,
};

/// The parameter `burst` of PIE.
pub(super) const BURST: Param = Param {
    name: "burst",
    kind: ParamKind::Time { min: Nanos::ZERO, max: Nanos::from_secs(10) },
    default: Fallback::Value("150 ms"),
    help: "how long a queue that was short may grow before early drops begin, up to 10 s",
    live: true,
};

/// The settings `alpha` and `beta`.
pub(super) const ALPHA: Param = Param {
    name: "alpha",
    kind: GAIN,
    default: Fallback::Value("0.125"),
    help: "correction per second of waiting time above the target, 0 to 100",
    live: true,
};
pub(super) const BETA: Param = Param {
    name: "beta",
    kind: GAIN,
    default: Fallback::Value("1.25"),
    help: "correction per second by which the waiting time has grown, 0 to 100",
    live: true,
};
const GAIN: ParamKind = ParamKind::Decimal { min: 0, max: 100_000_000 };

/// A first-in-first-out queue under PIE.
///
/// The delay is the time of the waiting bytes, the packet being sent included, at the departure rate. Updates
/// happen every `update` from the first packet on; those between two packets are executed when the second
/// comes or is sent, with the queue at their time. ECN-capable packets are marked, if configured, while the
/// probability is below 10 %.
#[derive(Debug, Default)]
pub struct Pie {
    law: Law,
    terms: Terms,
    limit: Limit,
    marks: bool,
    /// Waiting bytes since the last event.
    backlog: u64,
    dice: Dice,
}

/// Proportional integral controller enhanced: drops arrivals to hold the waiting time.
#[derive(Debug, Settings)]
#[settings(key = "queue", kind = "pie", source = "RFC 8033", live)]
pub struct PieSettings {
    #[setting(like = LIMIT)]
    limit: Limit,
    #[setting(like = TARGET)]
    target: Nanos,
    #[setting(like = UPDATE)]
    update: Nanos,
    #[setting(like = BURST)]
    burst: Nanos,
    #[setting(like = ALPHA)]
    alpha: Millionths,
    #[setting(like = BETA)]
    beta: Millionths,
    #[setting(like = ECN)]
    ecn: bool,
}

impl Block for Pie {
    type Settings = PieSettings;

    fn build(settings: PieSettings, dice: Dice) -> Self {
        Self { dice, ..Self::default() }.with(settings)
    }

    /// Applies new parameters; the probability stays.
    fn change(&mut self, settings: PieSettings) {
        self.limit = settings.limit;
        let gains = Gains::new(settings.target, settings.update, settings.alpha, settings.beta);
        self.terms = Terms { gains, burst: settings.burst };
        self.marks = settings.ecn;
    }
}

impl Discipline for Pie {
    #[inline]
    fn admit(&mut self, packet: &Admission<'_>) -> Verdict {
        let backlog = self.backlog;
        self.law.catch_up(&self.terms, packet.now, || waiting(backlog, packet.rate));
        let verdict = if !self.limit.has_room(packet) {
            self.law.overflowed();
            Verdict::Drop(DropReason::QueueFull)
        } else if self.law.chooses(&self.terms, packet.bytes_waiting, &mut self.dice) {
            signal(self.marks && self.law.may_mark(), packet)
        } else {
            Verdict::Pass
        };
        let joins = if matches!(verdict, Verdict::Drop(_)) { 0 } else { packet.bytes };
        self.backlog = packet.bytes_waiting + joins;
        verdict
    }

    #[inline]
    fn foresees(&self) -> bool {
        true
    }

    /// Between updates, and as long as nothing may be dropped early, only the limit matters.
    #[inline]
    fn foresee(&mut self, packet: &Ahead<'_>, rate: impl FnOnce() -> Rate) -> Foresight {
        let passes = packet.now < self.law.due()
            && self.law.spares(&self.terms)
            && self.limit.surely_allows(packet, rate);
        if passes { Foresight::Passes } else { Foresight::Counts }
    }

    #[inline]
    fn due(&self) -> Nanos {
        self.law.due()
    }

    fn sent(&mut self, finish: Nanos, rate: Rate) {
        let backlog = self.backlog;
        self.law.catch_up(&self.terms, finish, || waiting(backlog, rate));
    }

    #[inline]
    fn notice_backlog(&mut self, bytes: u64) {
        self.backlog = bytes;
    }

    #[inline]
    fn push(&mut self, context: &mut QueueContext<'_>, handle: Handle) {
        self.backlog = context.bytes_waiting();
        context.append(handle);
    }

    fn adopt(&mut self, context: &mut QueueContext<'_>, packets: Fifo) {
        context.books.list.append(context.pool, packets);
        self.backlog = context.bytes_waiting();
        self.law.take_over(&self.terms, context.now, waiting(self.backlog, context.rate));
    }

    #[inline(always)]
    fn pop(&mut self, context: &mut QueueContext<'_>) -> Next {
        let backlog = self.backlog;
        self.law.catch_up(&self.terms, context.now, || waiting(backlog, context.rate));
        self.backlog = context.bytes_waiting();
        context.first().map_or(Next::Empty, Next::Packet)
    }

    #[inline]
    fn direct(&self) -> bool {
        true
    }
}
