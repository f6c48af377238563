//! Whether a link carries packets.

use crate::foresight::Foresight;
use crate::judge::Judge;
use longwire_block::{Block, Dice, DropReason, Offer, Stateless, Verdict};
use longwire_settings::Settings;
use longwire_trace::LinkState;
use longwire_units::Nanos;

/// Whether the link accepts packets: while it is down, arrivals are dropped.
///
/// That holds until it is changed. Packets accepted before continue.
#[derive(Debug, Settings)]
#[settings(key = "state", kind = "fixed", source = "RFC 2863, section 3.1.13 (ifOperStatus)", live)]
pub struct Fixed {
    /// up, or down: arrivals are dropped; packets in the queue and in flight go on
    #[setting(default = "up")]
    state: LinkState,
}

impl Stateless for Fixed {}

impl Judge for Fixed {
    #[inline]
    fn judge(&mut self, _: &mut Offer<'_>) -> Verdict {
        if self.state == LinkState::Up { Verdict::Pass } else { Verdict::Drop(DropReason::LinkDown) }
    }

    #[inline(always)]
    fn foresee(&mut self, _: Nanos) -> Option<Foresight> {
        (self.state == LinkState::Up).then_some(Foresight::ALL)
    }

    fn is_up(&self, _: Nanos) -> bool {
        self.state == LinkState::Up
    }
}

/// A link that goes down and comes up again on a schedule.
#[derive(Debug)]
pub struct Flap {
    schedule: FlapSettings,
    begin: Nanos,
    is_up: bool,
    /// Time of the next change.
    edge: Nanos,
}

const LONGEST: Nanos = Nanos::from_secs(1_000_000);

/// Alternates between up and down on a schedule.
#[derive(Debug, Clone, Copy, Settings)]
#[settings(key = "state", kind = "flap", source = "RFC 2863, section 3.1.13 (ifOperStatus)", live)]
pub struct FlapSettings {
    /// length of each time up, 0 to 1000000 s
    #[setting(max = LONGEST)]
    up: Nanos,
    /// length of each time down, 0 to 1000000 s
    #[setting(max = LONGEST)]
    down: Nanos,
    /// start of the first time up, from the start of the run; before that it is up too
    #[setting(default = "0 s", max = LONGEST)]
    start: Nanos,
}

impl Block for Flap {
    type Settings = FlapSettings;

    fn build(settings: FlapSettings, _: Dice) -> Self {
        Self { schedule: settings, begin: Nanos::ZERO, is_up: true, edge: Nanos::ZERO }
    }

    /// Applies a new schedule, as if it had been in effect from the beginning.
    fn change(&mut self, settings: FlapSettings) {
        (self.schedule, self.is_up, self.edge) = (settings, true, Nanos::ZERO);
    }

    fn start(&mut self, begin: Nanos) {
        (self.begin, self.edge) = (begin, Nanos::ZERO);
    }
}

impl Judge for Flap {
    #[inline(always)]
    fn judge(&mut self, offer: &mut Offer<'_>) -> Verdict {
        if offer.now >= self.edge {
            (self.is_up, self.edge) = self.at(offer.now);
        }
        if self.is_up { Verdict::Pass } else { Verdict::Drop(DropReason::LinkDown) }
    }

    #[inline(always)]
    fn foresee(&mut self, _: Nanos) -> Option<Foresight> {
        self.is_up.then_some(Foresight::ALL.before(self.edge))
    }

    /// Does not advance the state: an earlier packet may still come.
    fn is_up(&self, now: Nanos) -> bool {
        self.at(now).0
    }
}

impl Flap {
    /// The scheduled state at `now`, and its end.
    fn at(&self, now: Nanos) -> (bool, Nanos) {
        let FlapSettings { up, down, start } = self.schedule;
        let first = self.begin + start;
        let period = up.0.saturating_add(down.0);
        if now < first || period == 0 {
            return (true, if now < first { first } else { Nanos::NEVER });
        }
        let since = now.since(first).0;
        let (phase, round) = (since % period, Nanos(since - since % period));
        let is_up = phase < up.0;
        let length = if is_up { up } else { Nanos(period) };
        (is_up, first + round + length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_up(block: &mut impl Judge, millis: u64) -> bool {
        let now = Nanos::from_millis(millis);
        let passes = block.judge(&mut Offer::new(now, 60, &[])) == Verdict::Pass;
        assert_eq!(block.is_up(now), passes);
        passes
    }

    #[test]
    fn follows_its_schedule() {
        let given = [("up", "10 ms"), ("down", "5 ms"), ("start", "100 ms")];
        let values = FlapSettings::read(&given).unwrap();
        let mut block = Flap::build(values, Dice::named(0, ""));
        block.start(Nanos::from_millis(1000));
        // Up before 1100 ms and in [1100, 1110), [1115, 1125)…, down in between.
        let table = [
            (1000, true),
            (1099, true),
            (1100, true),
            (1109, true),
            (1110, false),
            (1114, false),
            (1115, true),
            (1124, true),
            (1125, false),
            (1_001_114, true),
            (1_001_115, false),
            (1_001_119, false),
            (1_001_120, true),
        ];
        for (millis, up) in table {
            assert_eq!(is_up(&mut block, millis), up, "{millis} ms");
        }
    }

    #[test]
    fn times_of_zero() {
        for (up, down, state) in [("0 s", "1 s", false), ("1 s", "0 s", true), ("0 s", "0 s", true)] {
            let values = FlapSettings::read(&[("up", up), ("down", down)]).unwrap();
            let mut block = Flap::build(values, Dice::named(0, ""));
            assert!((0..3000).all(|millis| is_up(&mut block, millis) == state), "{up} {down}");
        }
    }

    #[test]
    fn down_until_changed() {
        let values = |state| Fixed::read(&[("state", state)]).unwrap();
        let mut block = Fixed::build(values("down"), Dice::named(0, ""));
        assert!(!is_up(&mut block, 0));
        block.change(values("up"));
        assert!(is_up(&mut block, 0));
    }
}
