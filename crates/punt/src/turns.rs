//! Whose turn it is, of services that share one server: one of the schedulers of `longwire_sched` says.

use longwire_sched::{Estimator, PerByte, Resource, Scheduler, Settings, SettingsError, Ticket, Weight};
use longwire_units::Nanos;

/// Most that share a server: they are bits of a word.
pub const MOST: usize = 64;
/// The longest turn that is charged: what schedulers take at most.
const LONGEST: u64 = 1 << 30;

/// Turns of services, by what each has cost.
///
/// Who has packets waits in the scheduler with one turn, never more; how much is done in a turn is the caller's business, who says afterwards
/// what it cost.
#[derive(Debug)]
pub struct Turns {
    scheduler: Scheduler,
    /// Who waits in it, as bits.
    inside: u64,
    turn: Option<Ticket>,
}

impl Turns {
    /// By the scheduler of this name, one of [`longwire_sched::SPECS`].
    ///
    /// # Errors
    /// There is none of this name.
    pub fn new(scheduler: &str) -> Result<Self, SettingsError> {
        let settings = Settings {
            flows: MOST as u32,
            // One that is served can have entered again.
            packets: 2 * MOST as u32,
            flow_limit: 1,
            port: PerByte::of_ns(0),
            charged: PerByte::of_ns(0),
            // What a turn costs depends on what waits, so that the last one says little; what it cost more is charged to the next.
            estimator: Estimator::HALF,
            budget: LONGEST,
            ..Settings::default()
        };
        Ok(Self { scheduler: Scheduler::new(scheduler, &settings)?, inside: 0, turn: None })
    }

    /// Gives each its weight. They are brought to a scale of 1 to 65 535, so that the heaviest has at most 65 535 times what the lightest has.
    pub fn weigh(&mut self, weights: &[(usize, u64)]) {
        let most = weights.iter().map(|&(_, weight)| weight).max().unwrap_or(1).max(1);
        for &(who, weight) in weights.iter().filter(|(who, _)| *who < MOST) {
            let scaled = u128::from(weight) * u128::from(Weight::MOST.number()) / u128::from(most);
            let weight = Weight::new(scaled.max(1) as i64).unwrap_or(Weight::ONE);
            // There is room for all.
            let _ = self.scheduler.set_weight(who as u32, weight);
        }
    }

    /// These have something (bits of `ready`) from now on, if they did not before. `known` says what a turn will cost, in nanoseconds, where that is known.
    pub fn enter(&mut self, ready: u64, now: Nanos, known: impl Fn(usize) -> Option<u64>) {
        let mut coming = ready & !self.inside;
        while coming != 0 {
            let who = coming.trailing_zeros();
            coming &= coming - 1;
            let entered = match known(who as usize) {
                Some(cost) => self.scheduler.enqueue_known(who, who, 0, now, cost),
                None => self.scheduler.enqueue(who, who, 0, now),
            };
            self.inside |= u64::from(entered.is_ok()) << who;
        }
    }

    /// Of those that have entered and still have something, who is next. None if nobody is. Who was picked before has been charged.
    pub fn pick(&mut self, ready: u64) -> Option<usize> {
        loop {
            let granted = self.scheduler.dequeue(Resource::Processor)?;
            self.inside &= !(1 << granted.key);
            self.turn = Some(granted.ticket);
            if ready >> granted.key & 1 == 1 {
                return Some(granted.key as usize);
            }
            // It has gone away meanwhile.
            self.charge(0);
        }
    }

    /// Who was picked last has had so many nanoseconds.
    pub fn charge(&mut self, cost: u64) {
        if let Some(ticket) = self.turn.take() {
            self.scheduler.finish(ticket, cost.min(LONGEST));
            // Nothing is sent: the turn is over.
            self.scheduler.dequeue(Resource::Port(0));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use longwire_sched::SPECS;

    /// What each of three has had after so many turns, of which all want one at any time.
    fn shares(scheduler: &str, weights: [u64; 3], known: bool, turns: usize) -> [u64; 3] {
        const COST: [u64; 3] = [700, 100, 300];
        let mut served = Turns::new(scheduler).unwrap();
        served.weigh(&[(0, weights[0]), (1, weights[1]), (2, weights[2])]);
        let mut had = [0; 3];
        for _ in 0..turns {
            served.enter(0b111, Nanos::ZERO, |who| known.then_some(COST[who]));
            let who = served.pick(0b111).unwrap();
            served.charge(COST[who]);
            had[who] += COST[who];
        }
        had
    }

    #[test]
    fn cost_is_shared_by_weight_whatever_a_turn_costs() {
        for known in [true, false] {
            let had = shares("sfq", [1, 2, 5], known, 8000);
            let all: u64 = had.iter().sum();
            for (weight, had) in [1, 2, 5].into_iter().zip(had) {
                // A turn is less than a thousandth of it all.
                let (ppm, fair) = (had * 1_000_000 / all, weight * 125_000);
                assert!(ppm.abs_diff(fair) < 2000, "{had} of {all}, known: {known}");
            }
        }
    }

    #[test]
    fn every_scheduler_serves_everybody() {
        for spec in SPECS {
            for known in [true, false] {
                let had = shares(spec.name, [1, 1, 1], known, 3000);
                assert!(had.iter().all(|&had| had > 0), "{}: {had:?}", spec.name);
            }
        }
        assert!(Turns::new("none").is_err());
    }

    #[test]
    fn who_was_away_gets_nothing_for_it() {
        let mut turns = Turns::new("sfq").unwrap();
        turns.weigh(&[(0, 1), (1, 1)]);
        for _ in 0..1000 {
            turns.enter(0b01, Nanos::ZERO, |_| None);
            assert_eq!(turns.pick(0b01), Some(0));
            turns.charge(100);
        }
        let mut had = [0; 2];
        for _ in 0..100 {
            turns.enter(0b11, Nanos::ZERO, |_| None);
            let who = turns.pick(0b11).unwrap();
            turns.charge(100);
            had[who] += 1;
        }
        assert!(had[0] >= 49 && had[1] >= 49, "{had:?}");
    }

    #[test]
    fn who_has_gone_away_is_passed_over() {
        let mut turns = Turns::new("sfq").unwrap();
        turns.weigh(&[(0, 1), (1, 1), (63, 1)]);
        turns.enter(1 << 63 | 0b11, Nanos::ZERO, |_| Some(5));
        assert_eq!(turns.pick(1 << 63 | 0b11), Some(0));
        turns.charge(5);
        assert_eq!(turns.pick(1 << 63), Some(63));
        turns.charge(5);
        assert_eq!(turns.pick(0), None);
    }
}
