//! What this queue discipline is for, in a sentence.

use super::Admission;
use crate::fifo::Fifo;
use longwire_block::{Dice, DropReason, Param, ParamKind, Spec, Value, Values, Verdict};
use longwire_packet::{Handle, Pool};
use longwire_units::Nanos;

/// First in, first out, with a limit in packets.
#[derive(Debug)]
pub struct Template {
    fifo: Fifo,
    limit: u64,
}

impl Template {
    /// Its row in the registry.
    pub const SPEC: Spec = Spec {
        key: "queue",
        kind: "template",
        summary: "First in, first out, with a limit in packets.",
        source: "the RFC or paper that defines it",
        params: &[Param {
            name: "limit",
            kind: ParamKind::Integer { min: 1, max: 1_000_000 },
            default: Some("1000"),
            help: "most packets that may wait, the one being sent included, 1 to 1000000",
        }],
    };

    /// The block with these parameters. What it draws, it draws from the dice and from nothing else.
    pub fn build(values: &Values, _: Dice) -> Self {
        let mut block = Self { fifo: Fifo::EMPTY, limit: 0 };
        block.change(values);
        block
    }

    /// Takes new parameters; packets already waiting stay.
    pub fn change(&mut self, values: &Values) {
        if let Value::Integer(limit) = values.at(0) {
            self.limit = limit;
        }
    }

    /// Drops what would exceed the limit.
    #[inline]
    pub fn admit(&mut self, admission: &Admission) -> Verdict {
        if admission.packets_waiting < self.limit {
            Verdict::Pass
        } else {
            Verdict::Drop(DropReason::QueueFull)
        }
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

#[cfg(test)]
mod tests {
    use super::*;
    use longwire_units::Rate;

    #[test]
    fn the_limit_holds() {
        let values = Values::read(&Template::SPEC, &[("limit", "2")]).unwrap();
        let mut queue = Template::build(&values, Dice::named(1, "test/template"));
        for (packets_waiting, accepted) in [(0, true), (1, true), (2, false)] {
            let bytes_waiting = packets_waiting * 1000;
            let rate = Rate(1_000_000);
            let admission = Admission { now: Nanos::ZERO, bytes: 1000, packets_waiting, bytes_waiting, rate };
            assert_eq!(queue.admit(&admission) == Verdict::Pass, accepted, "{packets_waiting}");
        }
    }
}
