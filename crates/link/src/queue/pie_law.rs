//! PIE's control law: a drop probability that is updated periodically by the delay and its growth (RFC 8033,
//! sections 4 and 5).

use longwire_block::Dice;
use longwire_settings::Millionths;
use longwire_units::{Nanos, Rate};

/// A probability of 1, in steps of 2⁻⁶².
pub(super) const ONE: u64 = 1 << 62;
/// The longest distinguishable delay, in ns: 34 s.
const LONGEST: u64 = 1 << 35;
/// Most updates executed at once; further ones after a longer pause are skipped.
const MOST: u64 = 1 << 16;
/// Packet size for the minimum queue: with two such packets or less nothing is dropped (RFC 8033, section
/// 4.1; RFC 8034, appendix A.1, gives the number).
const MEAN_PACKET: u64 = 1024;

/// Parameters of a probability controller.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Gains {
    pub target: Nanos,
    /// Time between corrections.
    pub update: Nanos,
    /// Update in millionths per second of delay above the target, and per second of growth.
    pub alpha: u64,
    pub beta: u64,
}

/// Periodic times from the first event on, executed at the next event.
#[derive(Debug, Clone, Default)]
pub(super) struct Ticks {
    next: Nanos,
}

/// The parameters of PIE.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Terms {
    pub gains: Gains,
    /// Time for which a previously short queue may grow before drops begin.
    pub burst: Nanos,
}

/// The state of one queue.
#[derive(Debug, Clone, Default)]
pub(super) struct Pie {
    ticks: Ticks,
    probability: u64,
    /// Delay at the last update, in ns.
    waited: u64,
    /// Remaining burst allowance; none before the first event.
    allowance: Option<Nanos>,
    /// Probability accumulated since the last drop.
    gathered: u64,
}

/// Delay of `bytes` at a rate, in ns (RFC 8033, section 4.3: queue length by departure rate).
pub(super) fn waiting(bytes: u64, rate: Rate) -> u64 {
    if bytes == 0 || rate == Rate::UNLIMITED {
        return 0;
    }
    let nanobits = u128::from(bytes) * 8_000_000_000;
    nanobits.checked_div(u128::from(rate.0)).map_or(LONGEST, |wait| wait.min(LONGEST.into()) as u64)
}

impl Ticks {
    /// Executes every step due by `now`; a step returns whether further ones would change nothing.
    #[inline]
    pub(super) fn catch_up(&mut self, every: Nanos, now: Nanos, mut step: impl FnMut(Nanos) -> bool) {
        if now < self.next {
            return;
        }
        if self.next == Nanos::ZERO {
            self.next = now + every;
            return;
        }
        let mut taken = 0;
        while self.next <= now {
            let settled = step(self.next);
            self.next += every;
            taken += 1;
            if (settled || taken == MOST) && self.next <= now {
                let missed = now.since(self.next).0 / every.0;
                self.next = Nanos(self.next.0 + missed * every.0) + every;
            }
        }
    }
}

impl Gains {
    /// The parameters from settings with these names.
    pub fn new(target: Nanos, update: Nanos, alpha: Millionths, beta: Millionths) -> Self {
        Self { target, update: update.max(Nanos::from_micros(100)), alpha: alpha.0, beta: beta.0 }
    }

    /// The update of a probability, in steps of 2⁻⁶²: α·(wait − target) + β·(wait − last wait).
    pub(super) fn correction(&self, waits: u64, waited: u64) -> i64 {
        let above = |wait: u64, than: u64| i128::from(wait.min(LONGEST)) - i128::from(than.min(LONGEST));
        let sum = i128::from(self.alpha) * above(waits, self.target.0)
            + i128::from(self.beta) * above(waits, waited);
        (sum * i128::from(ONE) / 1_000_000_000_000_000).clamp(-i128::from(ONE), i128::from(ONE)) as i64
    }
}

impl Pie {
    /// Executes the updates due by `now`; since the last event, the delay is `waits` ns.
    #[inline]
    pub(super) fn catch_up(&mut self, settings: &Terms, now: Nanos, waits: impl FnOnce() -> u64) {
        if now < self.ticks.next {
            return;
        }
        let waits = waits();
        let mut ticks = std::mem::take(&mut self.ticks);
        ticks.catch_up(settings.gains.update, now, |_| self.correct(settings, waits));
        self.ticks = ticks;
    }

    /// Starts with a delay of `waits` ns from packets queued before there was a controller. That delay is not
    /// growth: the first update compares with it. (In RFC 8033, appendix B, it is 0 when PIE is switched on
    /// by a filling queue; but that queue was just empty.) Everything else is as after switching on PIE: zero
    /// probability, and a full burst allowance.
    pub(super) fn take_over(&mut self, settings: &Terms, now: Nanos, waits: u64) {
        *self = Self { waited: waits, ..Self::default() };
        self.catch_up(settings, now, || waits);
    }

    /// One update (section 4.2; burst allowance, section 4.4; cap, section 5.5). Returns whether another with
    /// the same delay would change nothing.
    fn correct(&mut self, settings: &Terms, waits: u64) -> bool {
        let before = (self.probability, self.allowance, self.waited);
        let correction = settings.gains.correction(waits, self.waited) / self.caution();
        // Limited growth if many packets are dropped already.
        let fastest = if self.probability >= ONE / 10 { ONE as i64 / 50 } else { i64::MAX };
        let corrected = (self.probability as i64).saturating_add(correction.min(fastest));
        self.probability = corrected.clamp(0, ONE as i64) as u64;
        if waits == 0 && self.waited == 0 {
            self.probability -= self.probability.div_ceil(50);
        }
        let half = settings.gains.target.0 / 2;
        let left = self.allowance.unwrap_or(settings.burst).since(settings.gains.update);
        let calm = self.probability == 0 && waits < half && self.waited < half;
        self.allowance = Some(if calm { settings.burst } else { left });
        self.waited = waits;
        before == (self.probability, self.allowance, self.waited)
    }

    /// Divisor of updates: larger for smaller probabilities (section 4.2, the table of scalings).
    fn caution(&self) -> i64 {
        const SCALES: [(u64, i64); 6] =
            [(1_000_000, 2048), (100_000, 512), (10_000, 128), (1000, 32), (100, 8), (10, 2)];
        let scale = SCALES.iter().find(|(part, _)| self.probability < ONE / part);
        scale.map_or(1, |(_, scale)| *scale)
    }

    /// The time of the next update, or the beginning.
    #[inline]
    pub(super) fn due(&self) -> Nanos {
        self.ticks.next
    }

    /// Whether no packet is dropped early until the next update (sections 4.4 and 5.4).
    #[inline]
    pub(super) fn spares(&self, settings: &Terms) -> bool {
        self.allowance.unwrap_or(settings.burst) > Nanos::ZERO
            || self.waited < settings.gains.target.0 / 2 && self.probability < ONE / 5
    }

    /// Whether to drop a packet early with `backlog` waiting bytes (section 4.1).
    #[inline]
    pub(super) fn chooses(&mut self, settings: &Terms, backlog: u64, dice: &mut Dice) -> bool {
        !self.spares(settings) && backlog > 2 * MEAN_PACKET && self.draw(dice)
    }

    /// Spaces drops: none before accumulated probabilities of 0.85, one at 8.5 at the latest.
    fn draw(&mut self, dice: &mut Dice) -> bool {
        // A sixteenth of the steps, so that 8.5 can be represented.
        let sixteenth = self.probability / 16;
        self.gathered = if sixteenth == 0 { 0 } else { self.gathered + sixteenth };
        if self.gathered < ONE / 1600 * 85 {
            return false;
        }
        let chosen = self.gathered >= ONE / 160 * 85 || dice.draw() >> 2 < self.probability;
        if chosen {
            self.gathered = 0;
        }
        chosen
    }

    /// A packet found the queue full: the distance to the next early drop counts from it (appendix B).
    #[inline]
    pub(super) fn overflowed(&mut self) {
        self.gathered = 0;
    }

    /// Whether a packet selected at this probability may be marked instead of dropped: below 10 % (RFC 8033,
    /// section 5.1).
    #[inline]
    pub(super) fn may_mark(&self) -> bool {
        self.probability < ONE / 10
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SETTINGS: Terms = Terms {
        gains: Gains {
            target: Nanos::from_millis(15),
            update: Nanos::from_millis(15),
            alpha: 125_000,
            beta: 1_250_000,
        },
        burst: Nanos::from_millis(150),
    };

    fn share(pie: &Pie) -> f64 {
        pie.probability as f64 / ONE as f64
    }

    /// Computed by hand: α·(d − 15 ms) + β·(d − last d), divided by 2048, 512 … 1 as p grows.
    #[test]
    fn probability_follows_the_wait() {
        let mut pie = Pie::default();
        let ms = 1_000_000;
        let mut p = 0.0;
        // (delay in ms, divisor of the update)
        let table = [
            // .125·.025 + 1.25·.04 = .053125: p = 2.594e-5
            (40, 2048.0),
            // .125·.085 + 1.25·.06 = .085625: p = 6.949e-4
            (100, 128.0),
            // .125·.185 + 1.25·.1 = .148125: p = .005324
            (200, 32.0),
            // .125·.185 = .023125: p = .008214
            (200, 8.0),
            (200, 8.0),
            // .125·.285 + .125 = .160625: p = .0914
            (300, 2.0),
            (300, 2.0),
            // Above 10 % by at most 2 %.
            (600, 1.0),
        ];
        for (wait, divisor) in table {
            let last = pie.waited as f64 / 1e9;
            let wait_s = f64::from(wait) / 1e3;
            let correction: f64 = (0.125 * (wait_s - 0.015) + 1.25 * (wait_s - last)) / divisor;
            p += if p >= 0.1 { correction.min(0.02) } else { correction };
            pie.correct(&SETTINGS, wait as u64 * ms);
            assert!((share(&pie) / p - 1.0).abs() < 1e-9, "{wait} ms: {} {p}", share(&pie));
        }
        assert!((p - 0.12923).abs() < 1e-5, "{p}");
    }

    /// A queue of 0.6 s that is taken over, and stays, gives an update of .125·.585 / 2048 = 3.571e-5; growth
    /// from zero would give eleven times as much. The burst allowance is full.
    #[test]
    fn what_is_taken_over_has_not_grown() {
        let (begin, wait) = (Nanos::from_secs(7), 600_000_000);
        let mut pie = Pie::default();
        pie.take_over(&SETTINGS, begin, wait);
        pie.catch_up(&SETTINGS, begin + SETTINGS.gains.update, || wait);
        assert!((share(&pie) / (0.125 * 0.585 / 2048.0) - 1.0).abs() < 1e-9, "{}", share(&pie));
        assert_eq!(pie.allowance, Some(SETTINGS.burst.since(SETTINGS.gains.update)));
    }

    /// With an empty queue, each update subtracts α·15 ms, divided according to p, and another 2 %.
    #[test]
    fn drains_when_nothing_waits() {
        let mut pie = Pie { probability: ONE / 2, ..Pie::default() };
        let mut steps = 0;
        while pie.probability > 0 {
            let before = share(&pie);
            pie.correct(&SETTINGS, 0);
            assert!(share(&pie) <= before * 0.98 + 1e-12, "{before}");
            steps += 1;
        }
        // 0.98^n alone takes 80 to fall from .5 to .1, and the subtraction shortens it.
        assert!((80..200).contains(&steps), "{steps}");
        assert!(pie.correct(&SETTINGS, 0), "then nothing more changes");
    }

    /// 150 ms of allowance are ten updates; it is restored when the queue has been short twice.
    #[test]
    fn bursts_pass() {
        let (mut pie, mut dice) = (Pie::default(), Dice::named(1, "pie"));
        pie.probability = ONE;
        for number in 1..=12 {
            assert_eq!(pie.chooses(&SETTINGS, 100_000, &mut dice), number > 10, "{number}");
            pie.correct(&SETTINGS, 1_000_000_000);
        }
        // 1.25 times the delay's decrease of a second subtracts all of the probability at once.
        for allowance in [Nanos::ZERO, SETTINGS.burst] {
            pie.correct(&SETTINGS, 0);
            assert_eq!((pie.probability, pie.allowance), (0, Some(allowance)));
        }
    }

    /// None before 0.85 is accumulated, certainly at 8.5: at p = 0.1 between 9 and 85 packets.
    #[test]
    fn drops_keep_their_distance() {
        let mut dice = Dice::named(2, "pie");
        let mut pie = Pie { probability: ONE / 10, ..Pie::default() };
        let (mut gap, mut least, mut most) = (0, u32::MAX, 0);
        for _ in 0..100_000 {
            gap += 1;
            if pie.draw(&mut dice) {
                (least, most, gap) = (least.min(gap), most.max(gap), 0);
            }
        }
        assert_eq!(least, 9);
        assert!((60..=86).contains(&most), "{most}");
    }

    /// At p = 0.1 eight packets accumulate 0.8, which is not enough; after an overflow, another eight are
    /// needed.
    #[test]
    fn an_overflow_counts_as_a_drop() {
        let mut dice = Dice::named(4, "pie");
        let mut pie = Pie { probability: ONE / 10, ..Pie::default() };
        for _ in 0..2 {
            assert!((0..8).all(|_| !pie.draw(&mut dice)));
            assert_eq!(pie.gathered, 8 * (ONE / 160));
            pie.overflowed();
        }
    }

    /// An hour without events is equivalent to an hour of updates, at the cost of a few.
    #[test]
    fn pauses_are_caught_up() {
        let mut ticks = Ticks::default();
        let mut pie = Pie { probability: ONE / 3, ..Pie::default() };
        ticks.catch_up(SETTINGS.gains.update, Nanos(1), |_| unreachable!());
        let mut steps = 0;
        let hour = Nanos::from_secs(3600);
        ticks.catch_up(SETTINGS.gains.update, hour, |_| {
            steps += 1;
            pie.correct(&SETTINGS, 0)
        });
        assert_eq!(pie.probability, 0);
        assert!(steps < 200 && ticks.next > hour && ticks.next <= hour + SETTINGS.gains.update, "{steps}");
        assert_eq!((ticks.next.0 - 1) % SETTINGS.gains.update.0, 0, "the times stay where they were");
    }

    /// The highest gains, and delays from zero to infinity: the probability stays one.
    #[test]
    fn extremes_do_not_overflow() {
        let mut dice = Dice::named(3, "pie");
        for number in 0..2000 {
            let gain = |dice: &mut Dice| [0, 1, 100_000_000][dice.below(3) as usize];
            let gains = Gains { alpha: gain(&mut dice), beta: gain(&mut dice), ..SETTINGS.gains };
            let mut pie = Pie { probability: [0, ONE / 3, ONE][number % 3], ..Pie::default() };
            for _ in 0..20 {
                let waits = [0, 1, 15_000_000, LONGEST, u64::MAX][dice.below(5) as usize];
                pie.correct(&Terms { gains, ..SETTINGS }, waits);
                assert!(pie.probability <= ONE, "{gains:?}");
                pie.chooses(&SETTINGS, 100_000, &mut dice);
            }
        }
    }

    #[test]
    fn waits_by_the_rate() {
        for (bytes, rate, wait) in [
            (1500, Rate(1_000_000), 12_000_000),
            (0, Rate::STALLED, 0),
            (1, Rate::STALLED, LONGEST),
            (1 << 40, Rate(300), LONGEST),
            (1 << 40, Rate::UNLIMITED, 0),
        ] {
            assert_eq!(waiting(bytes, rate), wait);
        }
    }
}
