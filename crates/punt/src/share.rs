//! Whose turn it is, of several that share one processor.

/// Chooses who is served next, by what each has cost.
pub trait Share: Send {
    /// Of those that have something (bits of `ready`), who is next. None if nobody has.
    fn pick(&mut self, ready: u64) -> Option<usize>;

    /// Who was picked last has cost so much: any unit, always the same.
    fn charge(&mut self, cost: u64);
}

/// Start-time fair queueing (Goyal, Vin and Cheng, "Start-time fair queueing: a scheduling algorithm for integrated services packet switching
/// networks"): each has a time of its own that runs by cost over weight, and the earliest is next. Who had nothing for a while
/// starts at the time of who is served, and gets nothing for having been away.
#[derive(Debug, Clone)]
pub struct FairTime {
    /// Weight, and when it has finished what it got, in virtual time.
    each: Vec<(u64, u128)>,
    now: u128,
    picked: usize,
}

/// Virtual time of a cost of one and a weight of one.
const SCALE: u32 = 64;

impl FairTime {
    /// For so many as there are weights, 64 at most. A weight of 0 counts as 1.
    pub fn new(weights: &[u64]) -> Self {
        Self { each: weights.iter().map(|&weight| (weight.max(1), 0)).collect(), now: 0, picked: 0 }
    }
}

impl Share for FairTime {
    fn pick(&mut self, ready: u64) -> Option<usize> {
        let candidates = self.each.iter().enumerate().take(64).filter(|(index, _)| ready >> index & 1 == 1);
        let (index, start) = candidates
            .map(|(index, (_, finish))| (index, (*finish).max(self.now)))
            .min_by_key(|&(index, start)| (start, index))?;
        (self.picked, self.now) = (index, start);
        Some(index)
    }

    fn charge(&mut self, cost: u64) {
        if let Some((weight, finish)) = self.each.get_mut(self.picked) {
            *finish = self.now + (u128::from(cost) << SCALE) / u128::from(*weight);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cost_is_shared_by_weight_whatever_a_turn_costs() {
        let mut share = FairTime::new(&[1, 2, 5]);
        let mut cost = [0u64; 3];
        for _ in 0..8000 {
            let who = share.pick(0b111).unwrap();
            let this = [700, 100, 300][who];
            share.charge(this);
            cost[who] += this;
        }
        let all: u64 = cost.iter().sum();
        for (who, eighths) in [1, 2, 5].into_iter().enumerate() {
            assert!((all * eighths / 8).abs_diff(cost[who]) <= 1000, "{cost:?}");
        }
    }

    #[test]
    fn who_was_away_gets_nothing_for_it() {
        let mut share = FairTime::new(&[1, 1]);
        for _ in 0..1000 {
            assert_eq!(share.pick(0b01), Some(0));
            share.charge(10);
        }
        let turns: Vec<_> = (0..6)
            .map(|_| {
                let who = share.pick(0b11).unwrap();
                share.charge(10);
                who
            })
            .collect();
        assert_eq!(turns, [1, 0, 1, 0, 1, 0]);
        assert_eq!(share.pick(0), None);
    }
}
