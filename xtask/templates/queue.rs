//! The purpose of this queue discipline, in a sentence.

use super::{Admission, Discipline, Next, QueueContext};
use longwire_block::{Block, Dice, DropReason, Verdict};
use longwire_packet::Handle;
use longwire_settings::Settings;

/// First in, first out, with a limit in packets.
#[derive(Debug)]
pub struct Template {
    limit: u64,
}

/// First in, first out, with a limit in packets.
#[derive(Debug, Settings)]
#[settings(key = "queue", kind = "template", source = "the RFC or paper that defines it")]
pub struct TemplateSettings {
    /// most packets that may wait, including the one being sent, 1 to 1000000
    #[setting(default = "1000", min = 1, max = 1_000_000)]
    limit: u64,
}

impl Block for Template {
    type Settings = TemplateSettings;

    /// All random draws come from the dice.
    fn build(settings: TemplateSettings, _: Dice) -> Self {
        Self { limit: settings.limit }
    }

    /// Applies new parameters; waiting packets stay.
    fn change(&mut self, settings: TemplateSettings) {
        self.limit = settings.limit;
    }
}

impl Discipline for Template {
    /// Drops packets that would exceed the limit.
    #[inline]
    fn admit(&mut self, packet: &Admission<'_>) -> Verdict {
        if packet.packets_waiting < self.limit { Verdict::Pass } else { Verdict::Drop(DropReason::QueueFull) }
    }

    /// Adds an admitted packet to the link's list. A discipline with its own lists also implements `drain`;
    /// one that drops here, `adopt`.
    #[inline]
    fn push(&mut self, context: &mut QueueContext<'_>, handle: Handle) {
        context.append(handle);
    }

    /// Takes the first packet. A discipline drops packets that it has accepted with `context.drop`.
    #[inline]
    fn pop(&mut self, context: &mut QueueContext<'_>) -> Next {
        context.first().map_or(Next::Empty, Next::Packet)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use longwire_units::{Nanos, Rate};

    #[test]
    fn the_limit_holds() {
        let values = TemplateSettings::read(&[("limit", "2")]).unwrap();
        let mut queue = Template::build(values, Dice::named(1, "test/template"));
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
