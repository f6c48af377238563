//! First in, first out; what finds the queue full is dropped.

use super::{Admission, Discipline, Hall, Next};
use crate::fifo::Fifo;
use longwire_block::{Block, Dice, DropReason, Param, ParamKind, Spec, Value, Values, Verdict};
use longwire_packet::{Handle, Pool};
use longwire_units::Rate;

/// A first-in-first-out queue with a limit in packets, bytes or waiting time.
///
/// A packet counts from acceptance until its last bit is sent. Bytes are those that the link's rate counts. A limit
/// in time lets a packet into an empty queue however long it takes to send.
#[derive(Debug)]
pub struct TailDrop {
    fifo: Fifo,
    limit: Limit,
}

#[derive(Debug, Clone, Copy)]
enum Limit {
    Packets(u64),
    Bytes(u64),
    Waiting(u64),
}

impl Block for TailDrop {
    const SPEC: Spec = Spec {
        key: "queue",
        kind: "tail-drop",
        summary: "First in, first out; drops arrivals that find the queue full.",
        source: "RFC 7567, section 2.1",
        params: &[Param {
            name: "limit",
            kind: ParamKind::Limit,
            default: Some("1000 packets"),
            help: "most that may wait, the packet being sent included: packets, bytes or time at the current rate",
        }],
    };

    fn build(values: &Values, _: Dice) -> Self {
        let mut block = Self { fifo: Fifo::EMPTY, limit: Limit::Packets(0) };
        block.change(values);
        block
    }

    /// Takes a new limit; packets already waiting stay, even above it.
    fn change(&mut self, values: &Values) {
        self.limit = match values.at(0) {
            Value::Packets(packets) => Limit::Packets(packets),
            Value::Bytes(bytes) => Limit::Bytes(bytes.0),
            Value::Waiting(time) => Limit::Waiting(time.0),
            _ => return,
        };
    }
}

impl Discipline for TailDrop {
    /// Drops what would exceed the limit.
    #[inline]
    fn admit(&mut self, packet: &Admission<'_>) -> Verdict {
        let room = match self.limit {
            Limit::Packets(limit) => packet.packets_waiting < limit,
            Limit::Bytes(limit) => packet.bytes_waiting + packet.bytes <= limit,
            Limit::Waiting(limit) => packet.packets_waiting == 0 || sent_within(limit, packet),
        };
        if room { Verdict::Pass } else { Verdict::Drop(DropReason::QueueFull) }
    }

    #[inline]
    fn push(&mut self, hall: &mut Hall<'_>, handle: Handle) {
        self.fifo.push(hall.pool, handle);
    }

    #[inline]
    fn pop(&mut self, hall: &mut Hall<'_>) -> Next {
        self.fifo.pop(hall.pool).map_or(Next::Empty, Next::Packet)
    }

    fn drain(&mut self, _: &mut Pool) -> Fifo {
        std::mem::take(&mut self.fifo)
    }

    #[inline]
    fn direct(&mut self) -> bool {
        true
    }

    #[inline]
    fn whole_trains(&mut self) -> bool {
        true
    }
}

/// Whether all that waits and the new packet are sent within `limit` ns at the current rate.
fn sent_within(limit: u64, packet: &Admission<'_>) -> bool {
    let bits = u128::from(packet.bytes_waiting + packet.bytes) * 8;
    packet.rate == Rate::UNLIMITED || bits * 1_000_000_000 <= u128::from(limit) * u128::from(packet.rate.0)
}

#[cfg(test)]
mod tests {
    use super::*;
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
            let values = Values::read(&TailDrop::SPEC, &[("limit", limit)]).unwrap();
            let mut queue = TailDrop::build(&values, Dice::named(0, ""));
            let admission = Admission {
                now: Nanos::ZERO,
                bytes: 1000,
                packets_waiting,
                bytes_waiting,
                rate: Rate(rate),
                frame: &[],
                band: 0,
            };
            assert_eq!(queue.admit(&admission) == Verdict::Pass, accepted, "{limit} {packets_waiting}");
        }
    }
}
