//! Independent loss of at most so many packets in a row.

use super::foreseen::Process;
use super::lossy::{Loss, Lossy};
use super::{ECN_PARAM, Place, WHERE_PARAM};
use longwire_block::Dice;
use longwire_settings::Settings;
use longwire_units::Probability;

/// Loses each packet with the same probability, but never more than `most` in a row: the next one passes.
///
/// With loss probability p and most = m, the share lost is s/(1 + s), where s = p + p² + … + pᵐ: a run of
/// losses has that mean length, and the packet after it passes.
pub type Limited = Lossy<Rows>;

/// The process of [`Limited`].
#[derive(Debug, Clone)]
pub struct Rows {
    probability: Probability,
    most: u64,
    /// Losses since the last packet that passed.
    in_a_row: u64,
    dice: Dice,
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

impl Loss for Rows {
    type Settings = LimitedSettings;

    fn new(dice: Dice) -> Self {
        Self { probability: Probability::ZERO, most: 1, in_a_row: 0, dice }
    }

    fn change(&mut self, settings: LimitedSettings) -> (Place, bool) {
        (self.probability, self.most) = (settings.probability, settings.most);
        (settings.place, settings.ecn)
    }
}

impl Process for Rows {
    /// Draws once for each packet, also for one that the limit lets pass.
    #[inline]
    fn strikes(&mut self) -> bool {
        let is_lost = self.probability.happens(self.dice.draw()) && self.in_a_row < self.most;
        self.in_a_row = if is_lost { self.in_a_row + 1 } else { 0 };
        is_lost
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::Judge;
    use longwire_block::{Block, Offer, Verdict};
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
