//! First in, first out; what finds the queue full is dropped.

use super::Admission;
use crate::fifo::Fifo;
use longwire_block::{Dice, DropReason, Param, ParamKind, Spec, Value, Values, Verdict};
use longwire_packet::{Handle, Pool};
use longwire_units::{Nanos, Rate};

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

impl TailDrop {
    /// Its row in the registry.
    pub const SPEC: Spec = Spec {
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

    /// The block with these parameters.
    pub fn build(values: &Values, _: Dice) -> Self {
        let mut block = Self { fifo: Fifo::EMPTY, limit: Limit::Packets(0) };
        block.change(values);
        block
    }

    /// Takes a new limit; packets already waiting stay, even above it.
    pub fn change(&mut self, values: &Values) {
        self.limit = match values.at(0) {
            Value::Packets(packets) => Limit::Packets(packets),
            Value::Bytes(bytes) => Limit::Bytes(bytes.0),
            Value::Waiting(time) => Limit::Waiting(time.0),
            _ => return,
        };
    }

    /// Drops what would exceed the limit.
    #[inline]
    pub fn admit(&mut self, admission: &Admission) -> Verdict {
        let room = match self.limit {
            Limit::Packets(limit) => admission.packets_waiting < limit,
            Limit::Bytes(limit) => admission.bytes_waiting + admission.bytes <= limit,
            Limit::Waiting(limit) => admission.packets_waiting == 0 || sent_within(limit, admission),
        };
        if room { Verdict::Pass } else { Verdict::Drop(DropReason::QueueFull) }
    }

    /// Adds a packet at the end.
    #[inline]
    pub fn push(&mut self, pool: &mut Pool, handle: Handle) {
        self.fifo.push(pool, handle);
    }

    /// Takes the first packet.
    #[inline]
    pub fn pop(&mut self, pool: &mut Pool, _: Nanos) -> Option<Handle> {
        self.fifo.pop(pool)
    }

    /// All packets.
    pub fn drain(&mut self, _: &mut Pool) -> Fifo {
        std::mem::replace(&mut self.fifo, Fifo::EMPTY)
    }
}

/// Whether all that waits and the new packet are sent within `limit` ns at the current rate.
fn sent_within(limit: u64, admission: &Admission) -> bool {
    let bits = u128::from(admission.bytes_waiting + admission.bytes) * 8;
    admission.rate == Rate::UNLIMITED
        || bits * 1_000_000_000 <= u128::from(limit) * u128::from(admission.rate.0)
}

#[cfg(test)]
mod tests {
    use super::*;

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
            let admission =
                Admission { now: Nanos::ZERO, bytes: 1000, packets_waiting, bytes_waiting, rate: Rate(rate) };
            assert_eq!(queue.admit(&admission) == Verdict::Pass, accepted, "{limit} {packets_waiting}");
        }
    }
}
