//! What this queue discipline is for, in a sentence.

use super::{Admission, Discipline, Hall, Next};
use longwire_block::{Block, Dice, DropReason, Param, ParamKind, Spec, Values, Verdict};
use longwire_packet::Handle;

/// First in, first out, with a limit in packets.
#[derive(Debug)]
pub struct Template {
    limit: u64,
}

impl Block for Template {
    const SPEC: Spec = Spec {
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

    /// What it draws, it draws from the dice and from nothing else.
    fn build(values: &Values, _: Dice) -> Self {
        Self { limit: values.integer(0) }
    }

    /// Takes new parameters; packets already waiting stay.
    fn change(&mut self, values: &Values) {
        self.limit = values.integer(0);
    }
}

impl Discipline for Template {
    /// Drops what would exceed the limit.
    #[inline]
    fn admit(&mut self, packet: &Admission<'_>) -> Verdict {
        if packet.packets_waiting < self.limit { Verdict::Pass } else { Verdict::Drop(DropReason::QueueFull) }
    }

    /// Adds a packet that was admitted to the link's list. A discipline with lists of its own also says what `drain` gives back; one
    /// that drops here, how it takes over (`adopt`).
    #[inline]
    fn push(&mut self, hall: &mut Hall<'_>, handle: Handle) {
        hall.append(handle);
    }

    /// Takes the first packet. What a discipline drops of those that have joined, it gives to `hall.drop`.
    #[inline]
    fn pop(&mut self, hall: &mut Hall<'_>) -> Next {
        hall.first().map_or(Next::Empty, Next::Packet)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use longwire_units::{Nanos, Rate};

    #[test]
    fn the_limit_holds() {
        let values = Values::read(&Template::SPEC, &[("limit", "2")]).unwrap();
        let mut queue = Template::build(&values, Dice::named(1, "test/template"));
        for (packets_waiting, accepted) in [(0, true), (1, true), (2, false)] {
            let admission = Admission {
                now: Nanos::ZERO,
                bytes: 1000,
                packets_waiting,
                bytes_waiting: packets_waiting * 1000,
                rate: Rate(1_000_000),
                idle_since: Nanos::ZERO,
                packet: None,
                band: 0,
            };
            assert_eq!(queue.admit(&admission) == Verdict::Pass, accepted, "{packets_waiting}");
        }
    }
}
