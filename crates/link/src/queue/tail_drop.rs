//! First in, first out; arrivals at a full queue are dropped.

use super::settings::{LIMIT, Limit};
use super::{Admission, Ahead, Discipline, Foresight, Waiting};
use longwire_block::{DropReason, Stateless, Verdict};
use longwire_settings::Settings;
use longwire_units::Rate;

/// First in, first out; drops arrivals that find the queue full.
///
/// The limit is in packets, bytes or time. A packet counts from acceptance until its last bit is sent. Bytes
/// are counted as in the link's rate. A time limit lets a packet into an empty queue whatever its
/// transmission time. After the limit was lowered, waiting packets stay, even above it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Settings)]
#[settings(key = "queue", kind = "tail-drop", source = "RFC 7567, section 2", live)]
pub struct TailDrop {
    #[setting(like = LIMIT)]
    limit: Limit,
}

impl Stateless for TailDrop {}

impl TailDrop {
    /// Whether there is room for `bytes` with this backlog; the departure rate is only computed if needed.
    #[inline(always)]
    pub(crate) fn has_room(&self, waiting: Waiting, bytes: u64, rate: impl FnOnce() -> Rate) -> bool {
        self.limit.has_room_in(waiting, bytes, rate)
    }

    /// Whether its limit depends on the departure rate.
    pub(crate) fn asks_rate(&self) -> bool {
        matches!(self.limit, Limit::Waiting(_))
    }
}

impl Discipline for TailDrop {
    /// Drops packets that would exceed the limit.
    #[inline]
    fn admit(&mut self, packet: &Admission<'_>) -> Verdict {
        if self.limit.has_room(packet) { Verdict::Pass } else { Verdict::Drop(DropReason::QueueFull) }
    }

    #[inline]
    fn foresee(&mut self, packet: &Ahead, rate: impl FnOnce() -> Rate) -> Foresight {
        if self.limit.surely_allows(packet, rate) { Foresight::Passes } else { Foresight::Counts }
    }

    #[inline]
    fn plain(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use longwire_block::{Block, Dice};
    use longwire_units::Nanos;

    #[test]
    fn limits_in_each_unit() {
        // (limit, packets waiting, bytes waiting, rate, accepted) for an arrival of 1000 bytes.
        let table = [
            ("2 packets", 1, 1000, 1_000_000, true),
            ("2 packets", 2, 2000, 1_000_000, false),
            ("0 packets", 0, 0, 1_000_000, false),
            ("2 kB", 1, 1000, 1_000_000, true),
            ("2 kB", 1, 1001, 1_000_000, false),
            // 2000 bytes at 1 Mbit/s take 16 ms.
            ("16 ms", 1, 1000, 1_000_000, true),
            ("15999 us", 1, 1000, 1_000_000, false),
            ("1 ms", 0, 0, 1_000_000, true),
            ("1 ms", 5, 5000, u64::MAX, true),
            ("1 s", 1, 1000, 0, false),
            ("unlimited", 1 << 40, 1 << 50, 300, true),
        ];
        for (limit, packets_waiting, bytes_waiting, rate, accepted) in table {
            let values = TailDrop::read(&[("limit", limit)]).unwrap();
            let mut queue = TailDrop::build(values, Dice::named(0, ""));
            let admission = Admission {
                idle_since: Nanos::ZERO,
                now: Nanos::ZERO,
                bytes: 1000,
                packets_waiting,
                bytes_waiting,
                rate: Rate(rate),
                packet: None,
                band: 0,
            };
            assert_eq!(queue.admit(&admission) == Verdict::Pass, accepted, "{limit} {packets_waiting}");
        }
    }
}
