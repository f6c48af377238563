//! Loss by a Markov chain of four states.

use super::foreseen::Process;
use super::lossy::{Loss, Lossy};
use super::{ECN_PARAM, Place, WHERE_PARAM};
use longwire_block::Dice;
use longwire_settings::Settings;
use longwire_units::Probability;

/// A chain of four states: received in a gap (1), received in a burst (2), lost in a burst (3), isolated loss
/// (4). From 4 it always returns to 1. The chain moves at each packet, and the new state is the packet's
/// fate.
pub type Markov = Lossy<States>;

/// The process of [`Markov`].
#[derive(Debug, Clone)]
pub struct States {
    p13: u64,
    p31: u64,
    p32: u64,
    p23: u64,
    p14: u64,
    state: MarkovState,
    dice: Dice,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum MarkovState {
    ReceivedInGap,
    ReceivedInBurst,
    LostInBurst,
    LostAlone,
}

/// Loses packets by a Markov chain of four states, in bursts and isolated.
#[derive(Debug, Settings)]
#[settings(
    key = "loss",
    kind = "markov",
    source = "Salsano et al., Definition of a general and intuitive loss model for packet networks \
        (GIModel); tc-netem(8), loss state",
    live
)]
pub struct MarkovSettings {
    /// from a gap into a burst
    p13: Probability,
    /// from a loss in a burst into a gap
    p31: Probability,
    /// from a loss in a burst to a packet received in it
    #[setting(default = "0 %")]
    p32: Probability,
    /// from a packet received in a burst to a loss in it
    #[setting(default = "100 %")]
    p23: Probability,
    /// from a gap to an isolated loss
    #[setting(default = "0 %")]
    p14: Probability,
    #[setting(like = WHERE_PARAM)]
    place: Place,
    #[setting(like = ECN_PARAM)]
    ecn: bool,
}

impl Loss for States {
    type Settings = MarkovSettings;

    fn new(dice: Dice) -> Self {
        let (state, zero) = (MarkovState::ReceivedInGap, 0);
        Self { p13: zero, p31: zero, p32: zero, p23: zero, p14: zero, state, dice }
    }

    fn change(&mut self, settings: MarkovSettings) -> (Place, bool) {
        let MarkovSettings { p13, p31, p32, p23, p14, .. } = settings;
        [self.p13, self.p31, self.p32, self.p23, self.p14] = [p13, p31, p32, p23, p14].map(Probability::bits);
        (settings.place, settings.ecn)
    }
}

impl Process for States {
    #[inline]
    fn strikes(&mut self) -> bool {
        // If two transitions have probabilities that add up to more than one, the first named takes
        // precedence.
        let draw = self.dice.draw() >> 1;
        let before = |first: u64, second: u64| Probability::from_bits(first.saturating_add(second)).bits();
        self.state = match self.state {
            MarkovState::ReceivedInGap if draw < self.p14 => MarkovState::LostAlone,
            MarkovState::ReceivedInGap if draw < before(self.p14, self.p13) => MarkovState::LostInBurst,
            MarkovState::ReceivedInGap | MarkovState::LostAlone => MarkovState::ReceivedInGap,
            MarkovState::ReceivedInBurst if draw < self.p23 => MarkovState::LostInBurst,
            MarkovState::ReceivedInBurst => MarkovState::ReceivedInBurst,
            MarkovState::LostInBurst if draw < self.p32 => MarkovState::ReceivedInBurst,
            MarkovState::LostInBurst if draw < before(self.p32, self.p31) => MarkovState::ReceivedInGap,
            MarkovState::LostInBurst => MarkovState::LostInBurst,
        };
        matches!(self.state, MarkovState::LostInBurst | MarkovState::LostAlone)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::Judge;
    use longwire_block::{Block, Offer, Verdict};
    use longwire_units::Nanos;

    fn share(given: &[(&str, &str)], n: u32) -> f64 {
        let mut block = Markov::build(Settings::read(given).unwrap(), Dice::named(1, "test/loss"));
        let mut offer = Offer::new(Nanos::ZERO, 1500, &[]);
        let lost = (0..n).filter(|_| block.judge(&mut offer) != Verdict::Pass).count();
        lost as f64 / f64::from(n)
    }

    /// With p32 = p14 = 0 this is Gilbert's chain: π₃ = p13/(p13 + p31). In general, the balance of the four
    /// states gives π₁ = 1/(1 + p14 + p13/p31·(1 + p32/p23)), loss π₁·(p13/p31 + p14).
    #[test]
    fn the_share_is_the_stationary_one() {
        let two = share(&[("p13", "1 %"), ("p31", "25 %")], 1_000_000);
        // As for the Gilbert-Elliott channel: a deviation of .0005.
        assert!((two - 0.01 / 0.26).abs() < 0.0015, "{two}");
        let all = [("p13", "2 %"), ("p31", "20 %"), ("p32", "30 %"), ("p23", "50 %"), ("p14", "1 %")];
        let gap = 1.0 / (1.0 + 0.01 + 0.1 * 1.6);
        let four = share(&all, 1_000_000);
        assert!((four - gap * 0.11).abs() < 0.0015, "{four} {}", gap * 0.11);
    }

    #[test]
    fn losses_alone_are_alone() {
        let given = [("p13", "0 %"), ("p31", "100 %"), ("p14", "100 %")];
        let mut block = Markov::build(Settings::read(&given).unwrap(), Dice::named(1, "test"));
        let mut offer = Offer::new(Nanos::ZERO, 1500, &[]);
        let fates: Vec<bool> = (0..6).map(|_| block.judge(&mut offer) != Verdict::Pass).collect();
        assert_eq!(fates, [true, false, true, false, true, false]);
    }
}
