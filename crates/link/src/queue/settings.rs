//! Parameters shared by several disciplines, and their meaning.

use super::{Admission, Ahead, QueueContext, Waiting};
use longwire_block::{DropReason, Fallback, Param, ParamKind, Value, Verdict};
use longwire_settings::{Choice, Setting};
use longwire_units::{Bytes, Rate};
use longwire_wire::{Ecn, ecn};

/// The most that may wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Limit {
    Packets(u64),
    Bytes(u64),
    /// A time limit in nanoseconds; one packet may always wait.
    Waiting(u64),
}

/// The setting `limit`.
pub(super) const LIMIT: Param = Param {
    name: "limit",
    kind: ParamKind::Limit,
    default: Fallback::Value("1000 packets"),
    help: "most that may wait, the packet being sent included: packets, bytes, or time at the departure rate",
    live: true,
};

/// The setting `ecn`.
pub(super) const ECN: Param = Param {
    name: "ecn",
    kind: ParamKind::Choice(<bool as Choice>::WORDS),
    default: Fallback::Value("no"),
    help: "yes: ECN-capable packets are marked CE where others are dropped early",
    live: true,
};

/// The setting `mean-packet` of the RED family.
pub(super) const MEAN_PACKET: Param = Param {
    name: "mean-packet",
    kind: ParamKind::Size { min: Bytes(40), max: Bytes(65_536) },
    default: Fallback::Value("500 B"),
    help: "typical packet size: while the link is idle, the average falls as if such packets were sent",
    live: true,
};

/// The setting `weight` of the RED family.
pub(super) const WEIGHT: Param = Param {
    name: "weight",
    kind: ParamKind::Decimal { min: 1, max: 1_000_000 },
    default: Fallback::Value("0.002"),
    help: "weight of each arrival in the average, 0.000001 to 1",
    live: true,
};

/// The setting `flows` of disciplines with flow queues.
pub(super) const FLOWS: Param = Param {
    name: "flows",
    kind: ParamKind::Integer { min: 1, max: 65_536 },
    default: Fallback::Value("1024"),
    help: "number of flow queues, 1 to 65536; flows with the same hash share one",
    live: true,
};

/// The setting `quantum` of disciplines that take turns.
pub(super) const QUANTUM: Param = Param {
    name: "quantum",
    kind: ParamKind::Size { min: Bytes(64), max: Bytes(1_000_000) },
    default: Fallback::Value("1514 B"),
    help: "bytes that a flow may send in its turn, 64 to 1000000",
    live: true,
};

/// The verdict on a packet whose sender should slow down.
#[inline]
pub(super) fn signal(marks: bool, packet: &Admission<'_>) -> Verdict {
    if marks && ecn(packet.frame()) != Ecn::NotCapable {
        Verdict::Mark
    } else {
        Verdict::Drop(DropReason::Aqm)
    }
}

impl Setting for Limit {
    fn of(value: &Value) -> Option<Self> {
        match *value {
            Value::Bytes(bytes) => Some(Self::Bytes(bytes.0)),
            Value::Waiting(time) => Some(Self::Waiting(time.0)),
            Value::Packets(packets) => Some(Self::Packets(packets)),
            _ => None,
        }
    }
}

impl Default for Limit {
    /// No limit.
    fn default() -> Self {
        Self::Packets(u64::MAX)
    }
}

impl Limit {
    /// Whether a packet may still join.
    #[inline]
    pub(super) fn has_room(self, packet: &Admission<'_>) -> bool {
        self.allows((packet.packets_waiting, packet.bytes_waiting), packet.bytes, packet.rate)
    }

    /// Whether a packet may still join, however much of the backlog has been sent.
    #[inline(always)]
    pub(super) fn surely_allows(self, packet: &Ahead<'_>, rate: impl FnOnce() -> Rate) -> bool {
        self.has_room_in(packet.waiting, packet.bytes, rate)
    }

    /// Whether there is room for `bytes` with this backlog; the departure rate is only computed if needed.
    #[inline(always)]
    pub(super) fn has_room_in(self, waiting: Waiting, bytes: u64, rate: impl FnOnce() -> Rate) -> bool {
        match self {
            Self::Packets(limit) => u64::from(waiting.packets) < limit,
            other => other.allows((waiting.packets.into(), waiting.bytes), bytes, rate()),
        }
    }

    /// Whether `bytes` may join this backlog of packets and bytes, which drains at this rate.
    #[inline]
    pub(super) fn allows(self, (packets, waiting): (u64, u64), bytes: u64, rate: Rate) -> bool {
        match self {
            Self::Packets(limit) => packets < limit,
            Self::Bytes(limit) => waiting + bytes <= limit,
            Self::Waiting(limit) => packets == 0 || sent_within(limit, waiting + bytes, rate),
        }
    }

    /// Whether the backlog is at least the n-th part of the limit.
    #[inline]
    pub(super) fn is_filled_to(self, nth: u64, packet: &Admission<'_>) -> bool {
        match self {
            Self::Packets(limit) => packet.packets_waiting.saturating_mul(nth) >= limit,
            Self::Bytes(limit) => packet.bytes_waiting.saturating_mul(nth) >= limit,
            Self::Waiting(limit) => {
                !sent_within(limit, packet.bytes_waiting.saturating_mul(nth), packet.rate)
            }
        }
    }

    /// Whether the backlog exceeds the limit, given the backlog `before` an arrival. A queue that exceeded it
    /// then, because its limit or rate was lowered, may stay as long: packets that joined under other rules
    /// are not dropped.
    #[inline]
    pub(super) fn is_overrun(self, context: &QueueContext<'_>, before: (u64, u64)) -> bool {
        let (packets, bytes) = (context.packets_waiting(), context.bytes_waiting());
        let has_grown = match self {
            Self::Packets(_) => packets > before.0,
            Self::Bytes(_) | Self::Waiting(_) => bytes > before.1,
        };
        has_grown && self.is_exceeded(packets, bytes, context.rate)
    }

    /// Whether this many packets and bytes exceed the limit.
    #[inline]
    pub(super) fn is_exceeded(self, packets: u64, bytes: u64, rate: Rate) -> bool {
        match self {
            Self::Packets(limit) => packets > limit,
            Self::Bytes(limit) => bytes > limit,
            Self::Waiting(limit) => packets > 1 && !sent_within(limit, bytes, rate),
        }
    }
}

/// Whether `bytes` are sent within `limit` ns at a rate.
fn sent_within(limit: u64, bytes: u64, rate: Rate) -> bool {
    let nanobits = u128::from(bytes) * 8 * 1_000_000_000;
    rate == Rate::UNLIMITED || nanobits <= u128::from(limit) * u128::from(rate.0)
}
