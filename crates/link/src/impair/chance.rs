//! Random events with a probability, independent or clustered.

use super::foreseen::Process;
use longwire_block::Dice;
use longwire_units::Probability;

/// Draws events of a probability p whose successive outcomes have a correlation ρ: after an event another
/// follows with p + ρ(1 − p), after none one comes with p(1 − ρ). That is the two-state Markov chain with
/// these parameters, so the share of events stays p for any ρ (netem's filter of its random numbers does not
/// preserve it).
#[derive(Debug, Clone)]
pub struct Chance {
    after_event: Probability,
    after_none: Probability,
    event: bool,
    dice: Dice,
}

impl Chance {
    pub(crate) fn new(dice: Dice) -> Self {
        Self { after_event: Probability::ZERO, after_none: Probability::ZERO, event: false, dice }
    }

    /// Applies a new probability and correlation; the state and the stream of draws continue.
    pub(crate) fn change(&mut self, probability: Probability, correlation: Probability) {
        let rest = Probability::ONE.bits() - probability.bits();
        self.after_event = Probability::from_bits(probability.bits() + part(rest, correlation));
        self.after_none = Probability::from_bits(probability.bits() - part(probability.bits(), correlation));
    }

    /// Another draw, for details of the event.
    #[inline]
    pub(crate) fn draw(&mut self) -> u64 {
        self.dice.draw()
    }
}

impl Process for Chance {
    /// Whether the event happens now. Draws once, even at 0 %.
    #[inline]
    fn strikes(&mut self) -> bool {
        let probability = if self.event { self.after_event } else { self.after_none };
        self.event = probability.happens(self.dice.draw());
        self.event
    }
}

/// `share` of `bits`, rounded down.
pub(crate) fn part(bits: u64, share: Probability) -> u64 {
    ((u128::from(bits) * u128::from(share.bits())) >> 63) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Share and lag-1 correlation of 400 000 draws. Their standard deviations are at most
    /// √(p(1 − p)(1 + ρ)/(1 − ρ)/n) and about 1/√n.
    #[test]
    fn share_and_correlation_are_those_asked_for() {
        for (p, rho) in [("1 %", "0 %"), ("10 %", "25 %"), ("30 %", "90 %")] {
            let mut chance = Chance::new(Dice::named(3, p));
            let (p, rho): (Probability, Probability) = (p.parse().unwrap(), rho.parse().unwrap());
            chance.change(p, rho);
            let n = 400_000;
            let events: Vec<bool> = (0..n).map(|_| chance.strikes()).collect();
            let share = events.iter().filter(|&&event| event).count() as f64 / f64::from(n);
            let both = events.windows(2).filter(|w| w[0] && w[1]).count() as f64 / f64::from(n - 1);
            let correlation = (both - share * share) / (share * (1.0 - share));
            let (p, rho) = (p.as_f64(), rho.as_f64());
            let deviation = (p * (1.0 - p) * (1.0 + rho) / (1.0 - rho) / f64::from(n)).sqrt();
            assert!((share - p).abs() < 3.0 * deviation, "{p} {rho}: share {share}");
            // For rare events the estimate's deviation is that of the share of pairs, over the variance p(1 −
            // p).
            let deviation = ((both / f64::from(n)).sqrt() / (p * (1.0 - p))).max(1.0 / f64::from(n).sqrt());
            assert!((correlation - rho).abs() < 4.0 * deviation, "{p} {rho}: correlation {correlation}");
        }
    }
}
