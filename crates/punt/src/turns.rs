//! Whose turn it is, of services that share one server: one of the schedulers of `longwire_sched` says.

use longwire_sched::{Estimator, PerByte, Resource, Scheduler, Settings, SettingsError, Ticket, Weight};
use longwire_units::Nanos;
use std::collections::VecDeque;

/// Most that share a server: they are bits of a word.
pub const MOST: usize = 64;
/// The longest turn that is charged: what schedulers take at most.
const LONGEST: u64 = 1 << 30;

/// Turns that one who has something to do waits with: after one was given to it there is another, so that it
/// does not look idle, and keeps the credit of its round.
const TURNS: usize = 2;
/// What a round gives for each unit of weight: the heaviest has at most 66 µs of it.
const QUANTUM: Nanos = Nanos(1);
/// The same where weights count by how often turns come, and the lightest has one turn in 2¹⁵ of the
/// heaviest.
const QUANTUM_OF_GROUPS: Nanos = Nanos(1 << 15);

/// Turns of services, by what each has cost.
///
/// Who has packets waits in the scheduler with two turns; how much is done in a turn is the caller's
/// business, who says afterwards what it cost.
#[derive(Debug)]
pub struct Turns {
    scheduler: Scheduler,
    /// Who waits in it, as bits, and with which turns.
    inside: u64,
    waiting: Box<[VecDeque<Ticket>]>,
    turn: Option<Ticket>,
}

impl Turns {
    /// By the scheduler of this name, one of [`longwire_sched::SPECS`].
    ///
    /// # Errors
    /// There is none of this name.
    pub fn new(scheduler: &str) -> Result<Self, SettingsError> {
        // Turns of who has gone away keep their place until he is looked at again; by then he has come back
        // with new ones.
        let flow_limit = 2 * TURNS as u32;
        let settings = Settings {
            flows: MOST as u32,
            // Half of the places are shared without regard to weights: as many as it may have for each.
            packets: 2 * (MOST as u32 + 2) * flow_limit,
            flow_limit,
            quantum: if scheduler == "gmr3" { QUANTUM_OF_GROUPS } else { QUANTUM },
            port: PerByte::of_ns(0),
            charged: PerByte::of_ns(0),
            // What a turn costs depends on what waits, so that the last one says little; what it cost more is
            // charged to the next.
            estimator: Estimator::HALF,
            budget: LONGEST,
            ..Settings::default()
        };
        let waiting = vec![VecDeque::with_capacity(TURNS); MOST].into();
        Ok(Self { scheduler: Scheduler::new(scheduler, &settings)?, inside: 0, waiting, turn: None })
    }

    /// Gives each its weight. They are brought to a scale of 1 to 65 535, so that the heaviest has at most 65
    /// 535 times what the lightest has.
    pub fn weigh(&mut self, weights: &[(usize, u64)]) {
        let most = weights.iter().map(|&(_, weight)| weight).max().unwrap_or(1).max(1);
        for &(who, weight) in weights.iter().filter(|(who, _)| *who < MOST) {
            let scaled = u128::from(weight) * u128::from(Weight::MOST.number()) / u128::from(most);
            let weight = Weight::new(scaled.max(1) as i64).unwrap_or(Weight::ONE);
            // There is room for all.
            let _ = self.scheduler.set_weight(who as u32, weight);
        }
    }

    /// These have something to do (bits of `ready`). `known` says what a turn will cost, in nanoseconds,
    /// where that is known.
    pub fn enter(&mut self, ready: u64, now: Nanos, known: impl Fn(usize) -> Option<u64>) {
        for who in bits(ready) {
            let turns = &mut self.waiting[who];
            while turns.len() < TURNS {
                let entered = match known(who) {
                    Some(cost) => self.scheduler.enqueue_known(who as u32, who as u32, 0, now, cost),
                    None => self.scheduler.enqueue(who as u32, who as u32, 0, now),
                };
                let Ok(ticket) = entered else { break };
                turns.push_back(ticket);
                self.inside |= 1 << who;
            }
        }
    }

    /// Of those that have entered and still have something, who is next. None if nobody is. Who was picked
    /// before has been charged.
    pub fn pick(&mut self, ready: u64) -> Option<usize> {
        for who in bits(self.inside & !ready) {
            // It has nothing left: its turns cost it nothing.
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

    /// Who was picked last has had so many nanoseconds.
    pub fn charge(&mut self, cost: u64) {
        if let Some(ticket) = self.turn.take() {
            self.scheduler.finish(ticket, cost.min(LONGEST));
            // Nothing is sent: the turn is over.
            self.scheduler.dequeue(Resource::Port(0));
        }
    }
}

/// The places of the bits that are set.
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
        for spec in SPECS.iter().filter(|spec| spec.name != "fifo") {
            for (weights, known) in
                [([1, 2, 5], true), ([1, 2, 5], false), ([7, 3, 1], true), ([7, 3, 1], false)]
            {
                let had = shares(spec.name, weights, known, 20_000);
                let (all, most) = (had.iter().sum::<u64>(), weights.iter().sum::<u64>());
                for (weight, had) in weights.into_iter().zip(had) {
                    // Nobody is further from his share than a round and a half of the heaviest, 65 535 ns
                    // each.
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
                // Of four turns the first asks for one: 200 ns of 500.
                waiting += u64::from(time % 4 == 0);
                let ready = 0b10 | u64::from(waiting > 0);
                turns.enter(ready, Nanos(time), |who| Some(COST[who]));
                let who = turns.pick(ready).unwrap();
                turns.charge(COST[who]);
                had[who] += COST[who];
                waiting -= u64::from(who == 0);
            }
            // He waits for no more than a round of the other, 655 turns.
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
