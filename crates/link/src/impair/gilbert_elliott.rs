//! Loss in bursts: a channel with a good and a bad state.

use super::foreseen::Process;
use super::lossy::{Loss, Lossy};
use super::{ECN_PARAM, Place, WHERE_PARAM};
use longwire_block::Dice;
use longwire_settings::{Millionths, Settings};
use longwire_units::Probability;

/// A channel in a good or a bad state, each with its own probability of reception.
///
/// The mean loss is (1 − k)·r/(p + r) + (1 − h)·p/(p + r), the mean duration of the bad state 1/r packets.
pub type GilbertElliott = Lossy<Channel>;

/// The channel itself.
#[derive(Debug, Clone)]
pub struct Channel {
    /// Probabilities of leaving the good state, and the bad one.
    p: Probability,
    r: Probability,
    /// Loss in the good state, and in the bad one.
    lost_good: Probability,
    lost_bad: Probability,
    bad: bool,
    dice: Dice,
}

impl Process for Channel {
    /// Draws twice: for the state, then for the packet.
    #[inline]
    fn strikes(&mut self) -> bool {
        let leaves = if self.bad { self.r } else { self.p };
        self.bad ^= leaves.happens(self.dice.draw());
        let lost = if self.bad { self.lost_bad } else { self.lost_good };
        if lost == Probability::ZERO {
            // Whatever is drawn, and mostly so.
            self.dice.skip();
            return false;
        }
        lost.happens(self.dice.draw())
    }
}

/// Loses packets in bursts: a channel with a good and a bad state.
#[derive(Debug, Settings)]
#[settings(
    key = "loss",
    kind = "gilbert-elliott",
    source = "Gilbert, Capacity of a burst-noise channel, 1960; Elliott, Estimates of error rates for codes \
        on burst-noise channels, 1963",
    live
)]
pub struct GilbertElliottSettings {
    /// probability from good to bad, at each packet
    p: Probability,
    /// probability from bad to good, at each packet; the mean burst is 1/r
    r: Probability,
    /// share of packets delivered in the bad state
    #[setting(default = "0 %")]
    h: Probability,
    /// share of packets delivered in the good state
    #[setting(default = "100 %")]
    k: Probability,
    #[setting(like = WHERE_PARAM)]
    place: Place,
    #[setting(like = ECN_PARAM)]
    ecn: bool,
}

impl Loss for Channel {
    type Settings = GilbertElliottSettings;

    fn new(dice: Dice) -> Self {
        let zero = Probability::ZERO;
        Self { p: zero, r: zero, lost_good: zero, lost_bad: zero, bad: false, dice }
    }

    fn change(&mut self, settings: GilbertElliottSettings) -> (Place, bool) {
        (self.p, self.r) = (settings.p, settings.r);
        (self.lost_bad, self.lost_good) = (not(settings.h), not(settings.k));
        (settings.place, settings.ecn)
    }
}

/// A Gilbert-Elliott channel by other parameters: the share of packets lost, and the mean length of a burst.
pub type Burst = Lossy<Bursts>;

/// The channel of [`Burst`].
#[derive(Debug, Clone)]
pub struct Bursts(Channel);

impl Process for Bursts {
    #[inline]
    fn strikes(&mut self) -> bool {
        self.0.strikes()
    }
}

/// Loses a share of the packets in bursts of a mean length.
#[derive(Debug, Settings)]
#[settings(
    key = "loss",
    kind = "burst",
    source = "Gilbert, Capacity of a burst-noise channel, 1960, with h = 0 and k = 1",
    live
)]
pub struct BurstSettings {
    /// share of packets lost, 0 % to 100 %
    loss: Probability,
    /// mean number of consecutive losses, 1 to 1000000; longer where the loss requires it: above burst /
    /// (burst + 1)
    #[setting(default = "4", min = 1_000_000, max = 1_000_000_000_000)]
    burst: Millionths,
    #[setting(like = WHERE_PARAM)]
    place: Place,
    #[setting(like = ECN_PARAM)]
    ecn: bool,
}

impl Loss for Bursts {
    type Settings = BurstSettings;

    fn new(dice: Dice) -> Self {
        Self(Channel { lost_bad: Probability::ONE, ..Channel::new(dice) })
    }

    fn change(&mut self, settings: BurstSettings) -> (Place, bool) {
        (self.0.p, self.0.r) = transitions(settings.loss, settings.burst.0);
        (settings.place, settings.ecn)
    }
}

/// p and r of a channel that loses `loss` in bursts of `burst` millionths of a packet: r = 1/burst, p =
/// r·loss/(1 − loss). If that exceeds 1, p = 1 and r = (1 − loss)/loss: the loss is kept, and bursts are
/// longer.
fn transitions(loss: Probability, burst: u64) -> (Probability, Probability) {
    let one = u128::from(Probability::ONE.bits());
    let lost = u128::from(loss.bits());
    let r = one * 1_000_000 / u128::from(burst.max(1_000_000));
    let probability = |bits: u128| Probability::from_bits(u64::try_from(bits).unwrap_or(u64::MAX));
    if lost == one {
        return (Probability::ONE, Probability::ZERO);
    }
    let p = r * lost / (one - lost);
    if p <= one {
        (probability(p), probability(r))
    } else {
        (Probability::ONE, probability(one * (one - lost) / lost))
    }
}

fn not(probability: Probability) -> Probability {
    Probability::from_bits(Probability::ONE.bits() - probability.bits())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::Judge;
    use longwire_block::{Offer, Verdict};
    use longwire_units::Nanos;

    fn fates<B: Judge>(given: &[(&str, &str)], n: u32) -> Vec<bool> {
        let mut block = B::build(Settings::read(given).unwrap(), Dice::named(1, "test/loss"));
        let mut offer = Offer::new(Nanos::ZERO, 1500, &[]);
        (0..n).map(|_| block.judge(&mut offer) != Verdict::Pass).collect()
    }

    fn share_and_burst(fates: &[bool]) -> (f64, f64) {
        let lost = fates.iter().filter(|&&lost| lost).count() as f64;
        let bursts = fates.windows(2).filter(|w| !w[0] && w[1]).count() as f64;
        (lost / fates.len() as f64, lost / bursts)
    }

    /// p = .01, r = .25, h = 0, k = 1 lose p/(p + r) = 3.846 % in bursts of 4. Over n packets the share's
    /// deviation is √(π(1 − π)(1 + λ)/(1 − λ)/n) with λ = 1 − p − r, a burst's is √(1 − r)/r.
    #[test]
    fn loses_what_the_formula_says() {
        let n = 1_000_000;
        let fates = fates::<GilbertElliott>(&[("p", "1 %"), ("r", "25 %")], n);
        let (share, burst) = share_and_burst(&fates);
        let (pi, lambda) = (0.01f64 / 0.26, 0.74f64);
        let deviation = (pi * (1.0 - pi) * (1.0 + lambda) / (1.0 - lambda) / f64::from(n)).sqrt();
        assert!((share - pi).abs() < 3.0 * deviation, "{share}");
        let bursts = f64::from(n) * 0.01 * 0.25 / 0.26;
        assert!((burst - 4.0).abs() < 3.0 * (0.75f64.sqrt() / 0.25) / bursts.sqrt(), "{burst}");
    }

    #[test]
    fn both_states_may_lose() {
        let given = [("p", "2 %"), ("r", "10 %"), ("h", "40 %"), ("k", "99 %")];
        let fates = fates::<GilbertElliott>(&given, 1_000_000);
        // .01·10/12 + .6·2/12 = .10833; the deviation of the time in the bad state, times .59.
        let deviation = 0.59 * (2.0 / 12.0 * 10.0 / 12.0 * 1.88 / 0.12 / 1e6f64).sqrt();
        assert!((share_and_burst(&fates).0 - 0.108_333).abs() < 3.0 * deviation.max(0.001));
    }

    #[test]
    fn bursts_as_people_think_of_them() {
        for (loss, burst, pi) in [("5 %", "10", 0.05f64), ("30 %", "2.5", 0.3), ("1 %", "1", 0.01)] {
            let n = 1_000_000;
            let (share, mean) = share_and_burst(&fates::<Burst>(&[("loss", loss), ("burst", burst)], n));
            let r = 1.0 / burst.parse::<f64>().unwrap();
            let lambda = 1.0 - r - r * pi / (1.0 - pi);
            let deviation = (pi * (1.0 - pi) * (1.0 + lambda) / (1.0 - lambda) / f64::from(n)).sqrt();
            assert!((share - pi).abs() < 3.0 * deviation, "{loss} {burst}: {share}");
            let of_mean = (1.0 - r).sqrt() / r / (f64::from(n) * pi * r).sqrt();
            assert!((mean - 1.0 / r).abs() < 3.0 * of_mean + 1e-9, "{loss} {burst}: {mean}");
        }
    }

    #[test]
    fn a_loss_that_the_burst_can_not_have_is_kept() {
        // Bursts of 1 lose at most every second packet: at 80 %, bursts are 4 packets long.
        let (share, burst) = share_and_burst(&fates::<Burst>(&[("loss", "80 %"), ("burst", "1")], 1_000_000));
        assert!((share - 0.8).abs() < 0.002 && (burst - 4.0).abs() < 0.03, "{share} {burst}");
        assert!(fates::<Burst>(&[("loss", "100 %")], 1000).iter().all(|&lost| lost));
        assert!(fates::<Burst>(&[("loss", "0 %")], 1000).iter().all(|&lost| !lost));
    }
}
