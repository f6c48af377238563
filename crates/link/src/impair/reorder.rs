//! Packets that overtake others.

use super::chance::Chance;
use super::foreseen::{Foreseen, Process};
use crate::foresight::Foresight;
use crate::judge::Judge;
use longwire_block::{Block, Dice, Offer, Verdict};
use longwire_settings::{Choice, Settings};
use longwire_units::{Nanos, Probability};

/// Lets some packets have less than the link's delay, so that they overtake earlier ones, or leave on
/// arrival, so that they overtake waiting ones, too. The others keep their delay.
///
/// netem puts an early packet at the head of its queue, with the current time: delay, rate and slots do not
/// apply to it, nor does the rate count it when timing later packets (Linux net/sched/sch_netem.c,
/// `netem_enqueue` and `netem_dequeue`).
#[derive(Debug)]
pub struct Reorder {
    turns: Foreseen<Turns>,
    by: Nanos,
    /// Whether they bypass the whole link.
    past_link: bool,
}

/// Which packets overtake others.
#[derive(Debug, Clone)]
struct Turns {
    chance: Chance,
    gap: u64,
    /// Packets since the last that overtook.
    since: u64,
}

impl Process for Turns {
    /// Only draws for packets whose turn it is.
    #[inline]
    fn strikes(&mut self) -> bool {
        self.since += 1;
        let overtakes = self.since >= self.gap && self.chance.strikes();
        if overtakes {
            self.since = 0;
        }
        overtakes
    }
}

/// Words of `past`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Choice)]
pub(crate) enum Past {
    Delay,
    Link,
}

/// Lets some packets overtake others.
#[derive(Debug, Settings)]
#[settings(
    key = "reorder",
    kind = "independent",
    source = "tc-netem(8), reorder and gap; RFC 4737 (what reordering is)",
    live
)]
pub struct ReorderSettings {
    /// share of eligible packets that overtake
    probability: Probability,
    /// correlation of each outcome with the one before, 0 % to 100 %
    #[setting(default = "0 %")]
    correlation: Probability,
    /// eligible are packets at least this many after the last one that overtook; 1 for every packet
    #[setting(default = "1", min = 1, max = 1_000_000_000)]
    gap: u64,
    /// how much shorter their delay is, at most all of it
    #[setting(default = "100 s", max = Nanos::from_secs(100))]
    by: Nanos,
    /// what they skip: delay (by the amount "by"), or link: queue, rate and delay, so that they leave on
    /// arrival
    #[setting(default = "delay")]
    past: Past,
}

impl Block for Reorder {
    type Settings = ReorderSettings;

    fn build(settings: ReorderSettings, dice: Dice) -> Self {
        let turns = Foreseen::new(Turns { chance: Chance::new(dice), gap: 1, since: 0 });
        Self { turns, by: Nanos::ZERO, past_link: false }.with(settings)
    }

    fn change(&mut self, settings: ReorderSettings) {
        let turns = self.turns.process();
        turns.chance.change(settings.probability, settings.correlation);
        turns.gap = settings.gap;
        (self.by, self.past_link) = (settings.by, settings.past == Past::Link);
    }
}

impl Judge for Reorder {
    #[inline(always)]
    fn judge(&mut self, offer: &mut Offer<'_>) -> Verdict {
        if self.turns.strikes() {
            if self.past_link {
                offer.effects().past = true;
            } else {
                offer.effects().ahead = Some(self.by);
            }
        }
        Verdict::Pass
    }

    #[inline(always)]
    fn foresee(&mut self, _: Nanos) -> Option<Foresight> {
        self.turns.foresee()
    }

    fn recall(&mut self, unused: u32) {
        self.turns.recall(unused);
    }

    fn on_wire(&self) -> bool {
        !self.past_link
    }

    fn hastens(&self) -> bool {
        !self.past_link
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gap_is_kept() {
        let given = [("probability", "100 %"), ("gap", "5"), ("by", "3 ms")];
        let mut block = Reorder::build(Settings::read(&given).unwrap(), Dice::named(1, "x"));
        let ahead: Vec<Option<Nanos>> = (0..11)
            .map(|_| {
                let mut offer = Offer::new(Nanos::ZERO, 60, &[]);
                assert_eq!(block.judge(&mut offer), Verdict::Pass);
                offer.effects().ahead
            })
            .collect();
        let chosen: Vec<usize> = (0..11).filter(|&n| ahead[n].is_some()).collect();
        assert_eq!(chosen, [4, 9]);
        assert_eq!(ahead[4], Some(Nanos::from_millis(3)));
    }
}
