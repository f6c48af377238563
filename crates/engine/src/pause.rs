//! Distinguishing a pause of the machine from a worker's own slowness.
//!
//! The kernel reports how long a thread has run and how long it was ready but waiting for a processor
//! (`/proc/thread-self/schedstat`, CONFIG_SCHED_INFO). A gap between two clock readings that was spent
//! waiting is caused by other programs; a gap that neither waiting nor work explains is caused by the
//! (virtual) machine.

use longwire_units::Nanos;
use std::fs::File;
use std::os::unix::fs::FileExt;

/// Shortest gap between two clock readings that is examined; packets handled meanwhile extend it. Asking the
/// kernel costs as much as a packet, and on real ports every full batch would otherwise be examined.
const GAP: Nanos = Nanos::from_micros(50);
const USUAL_PACKET: Nanos = Nanos::from_micros(3);
/// Upper bound on the time for a packet, system calls included: writing to a TAP device also runs the
/// receiver's stack.
const SLOWEST_PACKET: Nanos = Nanos::from_micros(20);

/// A time in which a worker could not run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Pause {
    pub length: Nanos,
    pub end: Nanos,
    /// Whether other programs held the processor; else the machine was stopped, or the kernel was busy with
    /// something else.
    pub is_preemption: bool,
}

impl Pause {
    /// The pause, if any, of a thread that was to wake up at `meant`, did so at `woken`, and `waited` for a
    /// processor.
    pub(crate) fn of_waking(meant: Nanos, woken: Nanos, waited: Nanos) -> Option<Self> {
        let length = woken.since(meant).max(waited);
        let is_preemption = waited.0 * 2 >= length.0;
        (length > GAP).then_some(Self { length, end: woken, is_preemption })
    }
}

/// Finds the pauses of the thread that creates it.
pub(crate) struct PauseMonitor {
    schedstat: Option<File>,
    waited: Nanos,
}

impl PauseMonitor {
    pub(crate) fn new() -> Self {
        let mut watch =
            Self { schedstat: File::open("/proc/thread-self/schedstat").ok(), waited: Nanos::ZERO };
        watch.waited_since();
        watch
    }

    /// Examines the gap between two clock readings in which `packets` were handled.
    #[inline]
    pub(crate) fn look(&mut self, before: Nanos, now: Nanos, packets: usize) -> Option<Pause> {
        let gap = now.since(before);
        if gap > at_work(USUAL_PACKET, packets) { self.look_closer(gap, now, packets) } else { None }
    }

    #[cold]
    fn look_closer(&mut self, gap: Nanos, end: Nanos, packets: usize) -> Option<Pause> {
        let waited = self.waited_since().unwrap_or(Nanos::ZERO);
        let is_preemption = waited.0 * 2 >= gap.0;
        let is_pause = is_preemption || gap > at_work(SLOWEST_PACKET, packets);
        is_pause.then_some(Pause { length: gap, end, is_preemption })
    }

    /// Time for which the thread was ready but not running since the last call; none if the kernel does not
    /// report it.
    pub(crate) fn waited_since(&mut self) -> Option<Nanos> {
        let mut text = [0; 64];
        let length = self.schedstat.as_ref()?.read_at(&mut text, 0).ok()?;
        let mut words = text[..length].split(|byte| *byte == b' ').map(number);
        let waited = Nanos(words.nth(1)??);
        let since = waited.since(self.waited);
        self.waited = waited;
        Some(since)
    }
}

/// The gap explained by `packets` of duration `packet` each.
fn at_work(packet: Nanos, packets: usize) -> Nanos {
    Nanos(GAP.0 + packet.0 * packets as u64)
}

fn number(digits: &[u8]) -> Option<u64> {
    std::str::from_utf8(digits).ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_explains_a_gap_and_idleness_does_not() {
        let mut watch = PauseMonitor { schedstat: None, waited: Nanos::ZERO };
        assert_eq!(watch.look(Nanos(0), Nanos(50_000), 0), None);
        assert_eq!(watch.look(Nanos(0), Nanos(1_330_000), 64), None);
        let pause = Pause { length: Nanos(1_400_000), end: Nanos(1_400_000), is_preemption: false };
        assert_eq!(watch.look(Nanos(0), Nanos(1_400_000), 64), Some(pause));
    }

    #[test]
    fn waking_up_late_is_a_pause() {
        let pause = |meant, woken, waited| Pause::of_waking(Nanos(meant), Nanos(woken), Nanos(waited));
        assert_eq!(pause(100_000, 150_000, 0), None);
        let machine = Pause { length: Nanos(400_000), end: Nanos(500_000), is_preemption: false };
        assert_eq!(pause(100_000, 500_000, 10_000), Some(machine));
        let programs = Pause { is_preemption: true, ..machine };
        assert_eq!(pause(100_000, 500_000, 390_000), Some(programs));
        // Woken by a frame: its arrival time is unknown, but the thread's wait is known.
        assert_eq!(pause(500_000, 500_000, 400_000), Some(programs));
    }

    #[test]
    fn the_kernel_says_how_long_a_thread_waited() {
        // Linux has had this file since 2.6; a kernel built without it has nothing to read.
        let Some(first) = PauseMonitor::new().waited_since() else {
            return println!("skipped: no schedstat");
        };
        assert!(first < Nanos::from_secs(5));
    }
}
