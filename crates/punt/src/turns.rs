//! Turns of services that share one server, under one of the schedulers of `longwire_sched`.

use longwire_sched::{Estimator, PerByte, Resource, Scheduler, Settings, SettingsError, Ticket, Weight};
use longwire_units::Nanos;
use std::collections::VecDeque;

/// Most services per server: they are bits of a word.
pub const MOST: usize = 64;
/// Longest turn that is charged, the limit of schedulers.
const LONGEST: u64 = 1 << 30;

/// Turns with which a service with work waits: when one is taken there is another, so that it does not look
/// idle and lose its round's credit.
const TURNS: usize = 2;
/// Quantum for each unit of weight: at most 66 µs for the heaviest.
const QUANTUM: Nanos = Nanos(1);
/// The quantum of schedulers in which weights determine the frequency of turns, and the lightest has one turn
/// in 2¹⁵ of the heaviest.
const QUANTUM_OF_GROUPS: Nanos = Nanos(1 << 15);

/// Turns of services, by the cost of each.
///
/// A service with packets waits in the scheduler with two turns. The caller decides how much work a turn has,
/// and reports its cost afterwards.
#[derive(Debug)]
pub struct Turns {
    scheduler: Scheduler,
    /// Waiting services, as bits, and their turns.
    inside: u64,
    waiting: Box<[VecDeque<Ticket>]>,
    turn: Option<Ticket>,
}

impl Turns {
    /// Turns under the scheduler of this name, one of [`longwire_sched::SPECS`].
    ///
    /// # Errors
    /// The name is unknown.
    pub fn new(scheduler: &str) -> Result<Self, SettingsError> {
        // Turns of a service that has left keep their place until their next selection; by then it may have
        // come back with new ones.
        let flow_limit = 2 * TURNS as u32;
        let settings = Settings {
            flows: MOST as u32,
            // Half of the places are shared regardless of weights: as many as the limit for each.
            packets: 2 * (MOST as u32 + 2) * flow_limit,
            flow_limit,
            quantum: if scheduler == "gmr3" { QUANTUM_OF_GROUPS } else { QUANTUM },
            port: PerByte::of_ns(0),
            charged: PerByte::of_ns(0),
            // The cost of a turn depends on the queue, so that the last one predicts little; an error is
            // charged to the next.
            estimator: Estimator::HALF,
            budget: LONGEST,
            ..Settings::default()
        };
        let waiting = vec![VecDeque::with_capacity(TURNS); MOST].into();
        Ok(Self { scheduler: Scheduler::new(scheduler, &settings)?, inside: 0, waiting, turn: None })
    }

    /// Sets all weights, scaled to 1 to 65 535.
    pub fn weigh(&mut self, weights: &[(usize, u64)]) {
        let most = weights.iter().map(|&(_, weight)| weight).max().unwrap_or(1).max(1);
        for &(who, weight) in weights.iter().filter(|(who, _)| *who < MOST) {
            let scaled = u128::from(weight) * u128::from(Weight::MOST.number()) / u128::from(most);
            let weight = Weight::new(scaled.max(1) as i64).unwrap_or(Weight::ONE);
            // There is room for all.
            let _ = self.scheduler.set_weight(who as u32, weight);
        }
    }

    /// Enters services with work (bits of `ready`). `known` gives the cost of a turn in nanoseconds, if
    /// known.
    pub fn enter(&mut self, ready: u64, now: Nanos, known: impl Fn(usize) -> Option<u64>) {
        for who in bits(ready) {
            let turns = &mut self.waiting[who];
            while turns.len() < TURNS {
                let entered = self.scheduler.enqueue_known(who as u32, who as u32, 0, now, known(who));
                let Ok(ticket) = entered else { break };
                turns.push_back(ticket);
                self.inside |= 1 << who;
            }
        }
    }

    /// Picks the next service among those that have entered and still have work. The previous one must have
    /// been charged.
    pub fn pick(&mut self, ready: u64) -> Option<usize> {
        for who in bits(self.inside & !ready) {
            // It has no work left: its turns are free.
            self.waiting[who].drain(..).for_each(|ticket| {
                self.scheduler.revoke(ticket);
            });
        }
        self.inside &= ready;
        let granted = self.scheduler.dequeue(Resource::Processor)?;
        let who = granted.key as usize;
        self.waiting[who].pop_front();
        self.turn = Some(granted.ticket);
        Some(who)
    }

    /// Charges the service picked last, in nanoseconds.
    pub fn charge(&mut self, cost: u64) {
        if let Some(ticket) = self.turn.take() {
            self.scheduler.finish(ticket, cost.min(LONGEST));
            // There is no port: the turn is over.
            self.scheduler.dequeue(Resource::Port(0));
        }
    }
}

/// Indices of the bits that are set.
fn bits(mut word: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let place = word.trailing_zeros();
        word &= word.wrapping_sub(1);
        (place < u64::BITS).then_some(place as usize)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use longwire_sched::SPECS;

    /// Service time of each of three after `turns` turns, all of which always have work.
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
        for spec in SPECS.iter().filter(|spec| spec.name != "fifo") {
            for (weights, known) in
                [([1, 2, 5], true), ([1, 2, 5], false), ([7, 3, 1], true), ([7, 3, 1], false)]
            {
                let had = shares(spec.name, weights, known, 20_000);
                let (all, most) = (had.iter().sum::<u64>(), weights.iter().sum::<u64>());
                for (weight, had) in weights.into_iter().zip(had) {
                    // No service deviates from its share by more than a round and a half of the heaviest, 65
                    // 535 ns each.
                    let fair = all * weight / most;
                    assert!(
                        had.abs_diff(fair) < 100_000,
                        "{}: {had}, not {fair}, of {all}, {known}",
                        spec.name
                    );
                }
            }
        }
    }

    #[test]
    fn who_asks_for_less_than_his_share_gets_it_though_he_is_often_idle() {
        const COST: [u64; 2] = [200, 100];
        for spec in SPECS.iter().filter(|spec| spec.name != "fifo") {
            let mut turns = Turns::new(spec.name).unwrap();
            turns.weigh(&[(0, 1), (1, 1)]);
            let (mut waiting, mut had) = (0, [0; 2]);
            for time in 0..40_000 {
                // The first needs one turn of four: 200 ns of 500.
                waiting += u64::from(time % 4 == 0);
                let ready = 0b10 | u64::from(waiting > 0);
                turns.enter(ready, Nanos(time), |who| Some(COST[who]));
                let who = turns.pick(ready).unwrap();
                turns.charge(COST[who]);
                had[who] += COST[who];
                waiting -= u64::from(who == 0);
            }
            // It waits for at most a round of the other, 655 turns.
            assert!(waiting <= 656 / 4 + 1, "{}: {waiting} wait, {had:?}", spec.name);
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
