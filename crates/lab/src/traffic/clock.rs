//! Clocks for measuring traffic, and precise waiting.

use longwire_clock::monotonic;
use rustix::thread::{Timespec, clock_nanosleep_absolute, set_current_timer_slack};
use serde::{Deserialize, Serialize};
use std::num::NonZeroU64;
use std::time::Duration;

/// Time before the deadline at which [`wait_until`] starts spinning, in nanoseconds: more than a wake-up
/// takes.
const SPIN_NS: u64 = 100_000;

/// Makes this thread's sleeps end on time, rather than up to 50 µs later (prctl(2), PR_SET_TIMERSLACK).
pub(super) fn precise_sleeps() {
    // Failure only makes them less precise.
    let _ = set_current_timer_slack(NonZeroU64::new(1));
}

/// Waits until the monotonic clock shows `moment`: sleeps to 100 µs before it, then spins. Returns the time
/// at which it ended.
pub(super) fn wait_until(moment: u64) -> u64 {
    loop {
        let now = monotonic().0;
        if now >= moment {
            return now;
        }
        if moment - now > SPIN_NS {
            sleep_until(moment - SPIN_NS);
        } else {
            std::hint::spin_loop();
        }
    }
}

/// Sleeps until the monotonic clock shows `moment`, or a signal comes.
fn sleep_until(moment: u64) {
    let Ok(time) = Timespec::try_from(Duration::from_nanos(moment)) else { return };
    // The caller repeats interrupted sleeps.
    let _ = clock_nanosleep_absolute(rustix::thread::ClockId::Monotonic, &time);
}

/// Identity of a process's clock: processes with equal identities read the same one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClockId {
    /// The kernel's id of the boot from which the monotonic clock counts; empty if unknown.
    pub boot_id: String,
    /// The time namespace, which may shift the monotonic clock.
    pub time_namespace: String,
}

impl ClockId {
    /// The clock of this process.
    pub fn this() -> Self {
        let boot_id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
        let namespace = std::fs::read_link("/proc/self/ns/time").unwrap_or_default();
        Self { boot_id: boot_id.trim().to_owned(), time_namespace: namespace.to_string_lossy().into_owned() }
    }

    /// Whether both are known and the same.
    pub fn same_as(&self, other: &Self) -> bool {
        !self.boot_id.is_empty() && self == other
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_ends_at_the_moment_or_later() {
        let moment = monotonic().0 + 300_000;
        assert!(wait_until(moment) >= moment);
        assert!(monotonic().0 >= moment);
        assert!(wait_until(moment - 1) >= moment, "a moment that has passed");
    }

    #[test]
    fn identity() {
        let this = ClockId::this();
        assert!(this.same_as(&this.clone()));
        let other = ClockId { boot_id: "other".into(), ..this.clone() };
        assert!(!this.same_as(&other));
        let unknown = ClockId { boot_id: String::new(), ..this };
        assert!(!unknown.same_as(&unknown.clone()), "two unknown clocks are not the same");
    }
}
