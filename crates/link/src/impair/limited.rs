//! Independent loss of at most so many packets in a row.

use super::{ECN_PARAM, Place, WHERE_PARAM};
use crate::judge::Judge;
use longwire_block::{Block, Dice, Offer, Verdict};
use longwire_settings::Settings;
use longwire_units::Probability;

/// Loses each packet with the same probability, but never more than `most` in a row: the next one passes.
///
/// With loss probability p and most = m, the share lost is s/(1 + s), where s = p + p² + … + pᵐ: a run of
/// losses has that mean length, and the packet after it passes.
#[derive(Debug)]
pub struct Limited {
    probability: Probability,
    most: u64,
    /// Losses since the last packet that passed.
    in_a_row: u64,
    dice: Dice,
    on_wire: bool,
    mark: bool,
}

/// Loses packets independently, at most so many in a row.
#[derive(Debug, Settings)]
#[settings(key = "loss", kind = "limited", source = "QUIC network simulator, scenario drop-rate", live)]
pub struct LimitedSettings {
    /// probability of a loss, 0 % to 100 %
    probability: Probability,
    /// most losses in a row, 1 to 1000000
    #[setting(min = 1, max = 1_000_000)]
    most: u64,
    #[setting(like = WHERE_PARAM)]
    place: Place,
    #[setting(like = ECN_PARAM)]
    ecn: bool,
}

impl Block for Limited {
    type Settings = LimitedSettings;

    fn build(settings: LimitedSettings, dice: Dice) -> Self {
        let probability = settings.probability;
        let mut block = Self { probability, most: 1, in_a_row: 0, dice, on_wire: false, mark: false };
        block.change(settings);
        block
    }

    fn change(&mut self, settings: LimitedSettings) {
        self.probability = settings.probability;
        self.most = settings.most;
        self.on_wire = settings.place == Place::Wire;
        self.mark = settings.ecn;
    }
}

impl Judge for Limited {
    /// Draws once for each packet, also for one that the limit lets pass.
    #[inline(always)]
    fn judge(&mut self, offer: &mut Offer<'_>) -> Verdict {
        let is_lost = self.probability.happens(self.dice.draw()) && self.in_a_row < self.most;
        self.in_a_row = if is_lost { self.in_a_row + 1 } else { 0 };
        if is_lost { super::lose(offer, self.mark) } else { Verdict::Pass }
    }

    fn on_wire(&self) -> bool {
        self.on_wire
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use longwire_units::Nanos;

    fn runs(probability: &str, most: u64, packets: usize) -> Vec<bool> {
        let most = most.to_string();
        let given = [("probability", probability), ("most", &*most)];
        let mut loss = Limited::build(LimitedSettings::read(&given).unwrap(), Dice::named(3, "test/limited"));
        (0..packets).map(|_| loss.judge(&mut Offer::new(Nanos::ZERO, 1500, &[])) != Verdict::Pass).collect()
    }

    #[test]
    fn no_run_is_longer_than_the_limit() {
        for most in 1..5 {
            let lost = runs("60 %", most, 20_000);
            let longest = lost.split(|lost| !lost).map(<[bool]>::len).max();
            assert_eq!(longest, Some(most as usize));
        }
        assert_eq!(runs("100 %", 2, 7), [true, true, false, true, true, false, true]);
    }

    /// p = 30 %, most = 3: s = 0.417, so 29.43 % are lost; 40 000 packets, four standard deviations of an
    /// independent draw.
    #[test]
    fn the_share_lost_is_that_of_the_formula() {
        let lost = runs("30 %", 3, 40_000).into_iter().filter(|lost| *lost).count();
        assert!((11_406..=12_136).contains(&lost), "{lost}");
    }
}
