//! Worker time for moving packets up and down: a share of the time passed to the worker.
//!
//! "Enough of the StrongARM capacity is set aside to meet its obligations to move data to/from the Pentium"
//! (Spalink and others, "Building a robust software-based router using network processors", 4.6). Here the
//! worker moves packets, so a share of its time is set aside, which also limits the levels above. No clock is
//! read: work is counted and priced.

use longwire_units::Nanos;

/// Assumed worker time for a packet that goes up and comes back, in nanoseconds: it is copied, answered, and
/// then classified and forwarded individually. `validate princeton` shows whether it is enough: in its floods
/// at 25 and 100 % a trip takes about 420 ns on a slow machine; with 200 ns regular packets kept 95 to 99 %
/// of their rate.
pub const TRIP: u64 = 400;
/// Additional time for each 64 bytes beyond the first that are copied, in either direction.
pub const COPIED_LINE: u64 = 5;

const SECOND: u64 = 1_000_000_000;
/// Unused time that may be used later.
const DEPTH: u64 = 10_000_000;

/// Cost of copying `bytes` bytes beyond [`TRIP`].
#[inline]
pub(crate) const fn copying(bytes: usize) -> u64 {
    (bytes.saturating_sub(1) / 64) as u64 * COPIED_LINE
}

/// A share of time as a balance: it grows with time, and work is subtracted. Work that begins while it is
/// positive is finished, so that no interval uses more than its share, a 10 ms share, and one piece of work.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Allowance {
    /// Nanoseconds per second; none without a limit.
    rate: Option<u64>,
    /// In billionths of a nanosecond, so that shares of an interval are exact.
    balance: i64,
    told: Nanos,
}

impl Allowance {
    /// No limit.
    pub const UNBOUNDED: Self = Self { rate: None, balance: 0, told: Nanos::ZERO };

    /// An allowance of `rate` nanoseconds per second, with a full balance.
    pub fn new(rate: u64) -> Self {
        let rate = rate.min(SECOND);
        Self { rate: Some(rate), balance: (rate * DEPTH) as i64, told: Nanos::ZERO }
    }

    /// Changes the rate. The balance stays, up to the new rate's limit.
    pub fn change(&mut self, rate: u64) {
        let rate = rate.min(SECOND);
        let depth = (rate * DEPTH) as i64;
        self.balance = if self.rate.is_some() { self.balance.min(depth) } else { depth };
        self.rate = Some(rate);
    }

    /// Whether work may begin at `now`. Times may be slightly out of order.
    #[inline]
    pub fn has(&mut self, now: Nanos) -> bool {
        let Some(rate) = self.rate else { return true };
        if now > self.told {
            let passed = now.since(self.told).0.min(SECOND);
            self.balance = (self.balance + (passed * rate) as i64).min((rate * DEPTH) as i64);
            self.told = now;
        }
        self.balance > 0
    }

    /// Subtracts work in nanoseconds.
    #[inline]
    pub fn spend(&mut self, work: u64) {
        if self.rate.is_some() {
            self.balance -= (work * SECOND) as i64;
        }
    }
}

/// A level's worker time minus the guarantees of its attachments.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SharedAllowance(pub Allowance);

impl SharedAllowance {
    /// Whether an attachment may begin work: with its guarantee, or with unguaranteed time.
    #[inline]
    pub fn allows(&mut self, own: &mut Allowance, now: Nanos) -> bool {
        // Both must advance their time.
        let is_common = self.0.has(now);
        own.has(now) || is_common
    }

    /// Subtracts an attachment's work, from its own guarantee first.
    #[inline]
    pub fn spend(&mut self, own: &mut Allowance, work: u64) {
        if own.rate.is_some() && own.balance > 0 { own.spend(work) } else { self.0.spend(work) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_is_used_than_the_share() {
        // A tenth: 1 ms of 10 ms at first, then 400 ns each 4 us. Requested every microsecond of a second.
        let mut tenth = Allowance::new(SECOND / 10);
        let mut used = 0;
        for at in 1..=1_000_000 {
            if tenth.has(Nanos(at * 1000)) {
                tenth.spend(TRIP);
                used += TRIP;
            }
        }
        assert_eq!(used, 100_000_000 + 1_000_000);
    }

    #[test]
    fn shares_that_do_not_divide_hold_exactly() {
        // A third of the time, requested every nanosecond: pieces of 7 ns. The first request finds the
        // balance full.
        let (rate, asked) = (333_333_333, 2_100_000);
        let mut third = Allowance::new(rate);
        let mut used = 0;
        for at in 1..=asked {
            if third.has(Nanos(at)) {
                third.spend(7);
                used += 1;
            }
        }
        assert_eq!(used, (rate * (DEPTH + asked - 1)).div_ceil(7 * SECOND));
    }

    #[test]
    fn what_was_not_used_is_kept_for_ten_milliseconds_only() {
        let mut all = Allowance::new(SECOND);
        assert!(all.has(Nanos::from_secs(9)));
        all.spend(DEPTH);
        assert!(!all.has(Nanos::from_secs(9)) && all.has(Nanos(9 * SECOND + 1)));
        // A debt is paid back first; a repeated time adds nothing.
        all.spend(1000);
        assert!(!all.has(Nanos(9 * SECOND + 1000)) && !all.has(Nanos(8 * SECOND)));
        assert!(all.has(Nanos(9 * SECOND + 1001)));
        assert!(!Allowance::new(0).has(Nanos::from_secs(1)));
        let mut unbounded = Allowance::UNBOUNDED;
        unbounded.spend(u64::MAX / SECOND);
        assert!(unbounded.has(Nanos::ZERO));
    }

    #[test]
    fn an_attachment_uses_its_guarantee_before_the_common_time() {
        let mut common = SharedAllowance(Allowance::new(SECOND / 10));
        let [mut one, mut other] = [Allowance::new(SECOND / 100); 2];
        let (mut greedy, mut modest) = (0, 0);
        // One demands everything, the other its own: 25 000 packets of 400 ns a second.
        for at in 1..=1_000_000_u64 {
            let now = Nanos(at * 1000);
            while common.allows(&mut one, now) {
                common.spend(&mut one, TRIP);
                greedy += TRIP;
            }
            if at.is_multiple_of(40) {
                assert!(common.allows(&mut other, now), "at {now}");
                common.spend(&mut other, TRIP);
                modest += TRIP;
            }
        }
        // Its own hundredth and the tenth, with the initial 10 ms of both; work begun with a small balance
        // adds one piece of each.
        assert_eq!(modest, 10_000_000);
        assert!((111_100_000..=111_100_000 + 2 * TRIP).contains(&greedy), "{greedy}");
    }
}
