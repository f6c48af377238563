//! Packets that arrive when a rate, which may change from state to state, has produced the work of each.
//!
//! In a state that produces g per nanosecond, t nanoseconds produce g·t. A packet comes after work p
//! (constant rate), or p times an exponential variate of mean 1. The latter is a Poisson process, and with
//! changing rates a Markov-modulated one, because the exponential has no memory. All values are integers;
//! surplus work in a packet's last nanosecond counts for the next packet.

use super::model::{Model, ON};
use super::period;
use crate::math::{NEG_LN_SHIFT, neg_ln};
use longwire_block::Dice;
use longwire_units::Nanos;

/// Number of states passed individually for a packet; further ones are replaced by their mean, from which
/// they hardly differ.
const STATES: u32 = 4096;

/// State of such a process.
#[derive(Debug, Clone)]
pub(super) struct Modulated {
    dice: Dice,
    /// The time reached.
    at: Nanos,
    /// When the state ends.
    until: Nanos,
    state: usize,
    /// Remaining work of the next packet, and a part of its unit, in 2⁻³².
    missing: u128,
    part: u32,
    /// Accumulated rounding error of the work, in units of 2⁻⁵⁸.
    fraction: u64,
}

impl Modulated {
    /// The initial state, drawn from the stationary distribution.
    pub(super) fn begin(model: &Model, now: Nanos, mut dice: Dice) -> Self {
        let state = match model {
            Model::Mmpp { rates, .. } => dice.below(rates.len() as u64) as usize,
            Model::OnOff { means: [on, off], .. } => usize::from(dice.below((*on + *off).0) >= on.0),
            _ => ON,
        };
        let mut begun = Self { dice, at: now, until: Nanos::NEVER, state, missing: 0, part: 0, fraction: 0 };
        begun.until = now + begun.time(model);
        if model.is_poisson() {
            begun.owe(model);
        }
        begun
    }

    /// The current dice.
    pub(super) const fn dice(&self) -> &Dice {
        &self.dice
    }

    /// Adds the work of the next packet.
    #[inline]
    pub(super) fn owe(&mut self, model: &Model) {
        let packet = u128::from(model.packet());
        self.missing += if model.is_poisson() {
            // Below 2⁶³·2⁶⁴ + 2⁵⁸.
            let taken = packet * u128::from(neg_ln(self.dice.draw())) + u128::from(self.fraction);
            self.fraction = (taken & ((1 << NEG_LN_SHIFT) - 1)) as u64;
            taken >> NEG_LN_SHIFT
        } else {
            packet
        };
    }

    /// Advances to the next packet, and returns its arrival time.
    #[inline]
    pub(super) fn advance(&mut self, model: &Model) -> Nanos {
        for _ in 0..STATES {
            let given = model.given(self.state);
            let all = u128::from(given) * u128::from(self.until.since(self.at).0);
            if given > 0 && self.missing <= all {
                let (wait, rest) = divided(self.missing, given);
                self.missing = rest.into();
                self.at += Nanos(wait);
                return self.at;
            }
            if self.until == Nanos::NEVER {
                return self.never();
            }
            self.missing -= all;
            self.at = self.until;
            self.turn(model);
        }
        self.leap(model)
    }

    /// Advances to `now`, which is before the next packet. A time already reached stays.
    pub(super) fn run_to(&mut self, model: &Model, now: Nanos) {
        let mut passed = 0;
        while self.at < now {
            if passed == STATES {
                let (given, time) = model.mean();
                let given = u128::from(now.since(self.at).0).saturating_mul(given) / time.max(1);
                self.missing = self.missing.saturating_sub(given);
                self.at = now;
                return self.turn(model);
            }
            passed += 1;
            let end = self.until.min(now);
            let given = u128::from(model.given(self.state)) * u128::from(end.since(self.at).0);
            self.missing = self.missing.saturating_sub(given);
            self.at = end;
            if self.until <= now && self.until != Nanos::NEVER {
                self.turn(model);
            }
        }
    }

    /// Keeps the remaining share of the packet, and of the state's duration.
    pub(super) fn adapt(&mut self, old: &Model, new: &Model, now: Nanos) {
        let [before, after] = [old, new].map(|model| u128::from(model.packet()));
        let exact = self.missing << u32::BITS | u128::from(self.part);
        // Rounded up: what several changes leave of a whole unit stays one.
        (self.missing, self.part) = match exact.checked_mul(after).map(|product| product.div_ceil(before)) {
            Some(scaled) => (scaled >> u32::BITS, scaled as u32),
            None => (self.missing / before * after, 0),
        };
        if let Model::Mmpp { rates, .. } = new {
            self.state %= rates.len().max(1);
        }
        let rest = u128::from(self.until.since(now).0);
        let [before, after] = [old, new].map(|model| model.mean_time(self.state));
        self.until = match (before, after) {
            (_, Nanos::NEVER) => Nanos::NEVER,
            (Nanos::NEVER | Nanos::ZERO, _) => now + self.time(new),
            _ => now + Nanos(period::saturated(rest * u128::from(after.0) / u128::from(before.0))),
        };
    }

    /// Changes to the next state.
    fn turn(&mut self, model: &Model) {
        self.state = match model {
            Model::Mmpp { rates, .. } => {
                // One of the others: those before this one, then those after it.
                let other = self.dice.below(rates.len() as u64 - 1) as usize;
                other + usize::from(other >= self.state)
            }
            _ => self.state ^ 1,
        };
        self.until = self.at + self.time(model);
    }

    /// How long the state lasts.
    fn time(&mut self, model: &Model) -> Nanos {
        match (model.mean_time(self.state), model) {
            (Nanos::NEVER, _) => Nanos::NEVER,
            (mean, Model::OnOff { shape: Some(shape), .. }) => period::pareto(mean, *shape, self.dice.draw()),
            (mean, _) => period::exponential(mean, self.dice.draw()),
        }
    }

    /// Replaces all remaining states before the packet by one with their mean.
    #[cold]
    fn leap(&mut self, model: &Model) -> Nanos {
        let (given, time) = model.mean();
        if given == 0 {
            return self.never();
        }
        // Below 2⁵⁶ for the largest packet, and 2⁶⁵.
        self.at += Nanos(period::saturated(self.missing * time / given));
        self.missing = 0;
        self.turn(model);
        self.at
    }

    fn never(&mut self) -> Nanos {
        self.at = Nanos::NEVER;
        self.until = Nanos::NEVER;
        Nanos::NEVER
    }
}

/// The quotient, which fits in 64 bits because it is a time before [`Nanos::NEVER`], and the remainder.
#[inline]
fn divided(missing: u128, given: u64) -> (u64, u64) {
    match u64::try_from(missing) {
        Ok(missing) => (missing / given, missing % given),
        Err(_) => ((missing / u128::from(given)) as u64, (missing % u128::from(given)) as u64),
    }
}
