//! The clocks that traffic is measured with, and waiting for a moment.

#![allow(unsafe_code)]

use serde::{Deserialize, Serialize};

/// How long before a moment [`wait_until`] stops sleeping and starts spinning, in nanoseconds: more than a wake-up takes.
const SPIN_NS: u64 = 100_000;

/// CLOCK_MONOTONIC in nanoseconds: what all intervals are measured with.
pub fn monotonic() -> u64 {
    read(libc::CLOCK_MONOTONIC)
}

/// CLOCK_REALTIME in nanoseconds since 1970: what the kernel stamps packets with.
pub fn wall() -> u64 {
    read(libc::CLOCK_REALTIME)
}

fn read(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a valid place for the answer; both clocks always exist, so the call cannot fail.
    unsafe { libc::clock_gettime(clock, &mut time) };
    nanos(&time)
}

/// The nanoseconds of a time since the clock's start, 0 if before.
pub(super) fn nanos(time: &libc::timespec) -> u64 {
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    seconds.saturating_mul(1_000_000_000).saturating_add(u64::try_from(time.tv_nsec).unwrap_or(0))
}

/// Wall clock less monotonic clock, in nanoseconds, read so that being interrupted between the two readings hardly matters.
pub fn wall_minus_monotonic() -> i64 {
    let once = || {
        let before = monotonic();
        let wall = wall();
        let after = monotonic();
        (after - before, wall.wrapping_sub(before + (after - before) / 2).cast_signed())
    };
    let best = [once(), once(), once()].into_iter().min_by_key(|(width, _)| *width);
    best.map_or(0, |(_, offset)| offset)
}

/// Lets this thread's sleeps end when they should, rather than up to 50 µs later (prctl(2), PR_SET_TIMERSLACK).
pub(super) fn precise_sleeps() {
    // SAFETY: the call takes a number and touches no memory; failing only makes sleeps less precise.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1 as libc::c_ulong, 0, 0, 0) };
}

/// Waits until the monotonic clock shows `moment`: sleeps to 100 µs before it, then spins. Returns the time at which it ended.
pub(super) fn wait_until(moment: u64) -> u64 {
    loop {
        let now = monotonic();
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
    let time = timespec(moment);
    // SAFETY: `time` is valid for the call, which writes nothing for an absolute time; interrupted sleeps are the caller's to repeat.
    unsafe { libc::clock_nanosleep(libc::CLOCK_MONOTONIC, libc::TIMER_ABSTIME, &time, std::ptr::null_mut()) };
}

/// `time` in nanoseconds as the system's structure.
pub(super) fn timespec(time: u64) -> libc::timespec {
    // Both parts fit: the quotient is below 2^35 and the remainder below 10^9.
    libc::timespec { tv_sec: (time / 1_000_000_000) as _, tv_nsec: (time % 1_000_000_000) as _ }
}

/// Which clock a process reads: two processes with equal identities read the same one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClockId {
    /// The boot that the monotonic clock counts from, as the kernel names it; empty if it does not say.
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
        let moment = monotonic() + 300_000;
        assert!(wait_until(moment) >= moment);
        assert!(monotonic() >= moment);
        assert!(wait_until(moment - 1) >= moment, "a moment that has passed");
    }

    #[test]
    fn the_clocks_differ_by_a_constant() {
        let (a, b) = (wall_minus_monotonic(), wall_minus_monotonic());
        assert!((a - b).abs() < 1_000_000_000, "{a} {b}");
        assert!(a > 0, "machines boot after 1970");
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

    #[test]
    fn times_convert_both_ways() {
        for time in [0, 1, 999_999_999, 1_000_000_000, 1_700_000_000_123_456_789] {
            assert_eq!(nanos(&timespec(time)), time);
        }
    }
}
