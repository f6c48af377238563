//! Fidelity of the most recent part of a run: a sliding window. Workers copy their counters ten times per
//! window on request; a window is the difference of two copies, so packets cost nothing more.

use crate::fidelity::{Fidelity, JudgedWindow, Sample, Tolerance, TunnelRecord, WindowVerdicts};
use crate::own_losses::OwnLosses;
use crate::remote::{Remote, RemoteError};
use longwire_units::Nanos;
use std::collections::VecDeque;
use std::sync::Arc;

/// Samples a window.
const STEPS: u64 = 10;

/// See the module.
pub struct SlidingWindow {
    length: Nanos,
    tolerance: Tolerance,
    started: Nanos,
    /// The newest last, with their times from the start.
    samples: VecDeque<(Nanos, Sample)>,
    /// Memory for the workers' answers.
    spare: Vec<Sample>,
    verdicts: Option<WindowVerdicts>,
    worst: Severity,
}

impl SlidingWindow {
    /// `started` is the start of the run.
    pub fn new(length: Nanos, tolerance: Tolerance, started: Nanos) -> Self {
        let samples = VecDeque::from([(Nanos::ZERO, Sample::default())]);
        let worst = Severity::default();
        Self { length, tolerance, started, samples, spare: Vec::new(), verdicts: None, worst }
    }

    /// Time between two samples.
    pub const fn step(&self) -> Nanos {
        Nanos(self.length.0 / STEPS)
    }

    /// Asks the workers for a sample, and judges the window that ends with it.
    ///
    /// # Errors
    /// If a worker has ended or does not answer.
    pub fn look(&mut self, remote: &Remote) -> Result<(), RemoteError> {
        let mut all = Sample::default();
        for sample in remote.samples(&mut self.spare)? {
            all.lateness.merge(&sample.lateness);
            all.losses = all.losses.plus(sample.losses);
            TunnelRecord::merge(&mut all.tunnels, &sample.tunnels);
            self.spare.push(sample);
        }
        self.add(longwire_clock::monotonic().since(self.started), all);
        Ok(())
    }

    /// The verdicts so far; none before the end of the first window.
    pub const fn verdicts(&self) -> Option<&WindowVerdicts> {
        self.verdicts.as_ref()
    }

    /// Judges the window that ends with a sample of this time.
    fn add(&mut self, at: Nanos, sample: Sample) {
        self.samples.push_back((at, sample));
        // The window begins with the last sample that is old enough: samples come a little late, some more
        // and some less.
        let nearly = Nanos(self.step().0 / 2);
        let start = (at + nearly).since(self.length);
        while self.samples.get(1).is_some_and(|(second, _)| *second <= start) {
            self.samples.pop_front();
        }
        let is_whole = at + nearly >= self.length;
        let Some((from, first)) = self.samples.front().filter(|_| is_whole) else { return };
        let Some((_, last)) = self.samples.back() else { return };
        let later = self.samples.iter().skip(1);
        let longest = later.map(|(_, sample)| sample.lateness.longest_lately).max().unwrap_or_default();
        let lateness = last.lateness.since(&first.lateness, longest);
        let losses = last.losses.since(first.losses);
        let tunnels = last.tunnels.iter().map(|tunnel| tunnel.since(&first.tunnels)).collect();
        let fidelity = Fidelity::judge(&lateness, losses, tunnels, self.tolerance);
        let badness = Severity::of(&fidelity, losses);
        let window = Arc::new(JudgedWindow { from: *from, to: at, fidelity });
        let verdicts = self.verdicts.get_or_insert_with(|| WindowVerdicts {
            length: self.length,
            judged: 0,
            faithful: 0,
            last: Arc::clone(&window),
            worst: None,
        });
        if badness.packets > 0 {
            verdicts.judged += 1;
            verdicts.faithful += u64::from(window.fidelity.faithful);
            if badness > self.worst {
                self.worst = badness;
                verdicts.worst = Some(Arc::clone(&window));
            }
        }
        verdicts.last = window;
    }
}

/// Order of windows: unfaithful ones are worse, then those with a larger share of packets late or lost.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Severity {
    is_unfaithful: bool,
    bad: u64,
    packets: u64,
}

impl Severity {
    fn of(fidelity: &Fidelity, losses: OwnLosses) -> Self {
        let late = &fidelity.lateness;
        let lost = losses.total() + fidelity.tunnels.iter().map(|tunnel| tunnel.lost).sum::<u64>();
        let bad = late.late.max(late.waited_too_long) + lost;
        Self { is_unfaithful: !fidelity.faithful, bad, packets: late.packets + lost }
    }
}

impl PartialOrd for Severity {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        let shares = |one: &Self, two: &Self| u128::from(one.bad) * u128::from(two.packets.max(1));
        let by_share = shares(self, other).cmp(&shares(other, self));
        Some(self.is_unfaithful.cmp(&other.is_unfaithful).then(by_share))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    /// A run whose windows are 10 s long: in each second so many packets leave in time, late, and get lost.
    fn run(seconds: &[(u64, u64, u64)]) -> SlidingWindow {
        let length = Nanos::from_secs(10);
        let mut window = SlidingWindow::new(length, Tolerance::default(), Nanos::ZERO);
        let mut all = Sample::default();
        for (second, &(punctual, late, lost)) in (1..).zip(seconds) {
            let mut leave = |late: u64, packets: u64| {
                for _ in 0..packets {
                    all.lateness.record(Nanos(SECOND), Nanos(SECOND + late));
                }
            };
            leave(1000, punctual);
            leave(2_000_000, late);
            all.losses.ring += lost;
            window.add(Nanos::from_secs(second), all.clone());
        }
        window
    }

    #[test]
    fn a_bad_second_is_forgotten_after_a_window() {
        let mut seconds = vec![(100, 0, 0); 40];
        seconds[14] = (50, 50, 0);
        let window = run(&seconds);
        let verdicts = window.verdicts().unwrap();
        // Windows end after 10, 11, … 40 s; those that end after 15 to 24 s have the bad second.
        assert_eq!((verdicts.judged, verdicts.faithful), (31, 21));
        assert!(verdicts.last.fidelity.faithful);
        assert_eq!((verdicts.last.from, verdicts.last.to), (Nanos::from_secs(30), Nanos::from_secs(40)));
        assert_eq!(verdicts.last.fidelity.lateness.packets, 1000);
        let worst = verdicts.worst.as_ref().unwrap();
        assert_eq!((worst.from, worst.to), (Nanos::from_secs(5), Nanos::from_secs(15)));
        assert_eq!((worst.fidelity.lateness.late, worst.fidelity.faithful), (50, false));
        assert_eq!(verdicts.last.fidelity.lateness.all.max, Nanos(1007));
    }

    #[test]
    fn no_window_is_judged_before_it_is_complete() {
        assert!(run(&[(10, 0, 0); 9]).verdicts().is_none());
        assert_eq!(run(&[(10, 0, 0); 10]).verdicts().map(|verdicts| verdicts.judged), Some(1));
    }

    #[test]
    fn windows_without_packets_are_not_counted() {
        let mut seconds = vec![(0, 0, 0); 30];
        seconds[0] = (10, 0, 0);
        let window = run(&seconds);
        assert_eq!(window.verdicts().map(|verdicts| (verdicts.judged, verdicts.faithful)), Some((1, 1)));
        assert!(window.verdicts().unwrap().worst.is_none());
        // The clock of a tunnel jumped, and nothing came by it.
        let mut window = SlidingWindow::new(Nanos::from_secs(10), Tolerance::default(), Nanos::ZERO);
        let jumped =
            TunnelRecord { name: "far".into(), overdue: 0, lost: 0, clock_jumps: 1, clock_error: None };
        window.add(Nanos::from_secs(10), Sample { tunnels: vec![jumped], ..Sample::default() });
        let verdicts = window.verdicts().unwrap();
        assert!(!verdicts.last.fidelity.faithful);
        assert_eq!((verdicts.judged, verdicts.worst.is_some()), (0, false));
    }

    #[test]
    fn a_window_in_which_a_tunnel_lost_all_packets_is_judged() {
        let mut window = SlidingWindow::new(Nanos::from_secs(10), Tolerance::default(), Nanos::ZERO);
        let lossy =
            TunnelRecord { name: "far".into(), overdue: 0, lost: 3, clock_jumps: 0, clock_error: None };
        window.add(Nanos::from_secs(10), Sample { tunnels: vec![lossy], ..Sample::default() });
        let verdicts = window.verdicts().unwrap();
        assert_eq!((verdicts.judged, verdicts.faithful, verdicts.worst.is_some()), (1, 0, true));
    }

    #[test]
    fn a_window_that_lost_a_packet_is_worse_than_one_with_a_few_late() {
        let mut seconds = vec![(1000, 0, 0); 60];
        seconds[12] = (990, 9, 0);
        seconds[35] = (999, 0, 1);
        let window = run(&seconds);
        let verdicts = window.verdicts().unwrap();
        assert_eq!(verdicts.judged - verdicts.faithful, 10);
        let worst = verdicts.worst.as_ref().unwrap();
        assert_eq!((worst.to, worst.fidelity.faithful), (Nanos::from_secs(36), false));
        assert_eq!(worst.fidelity.brief.as_deref(), Some("worker overloaded (1 packet dropped)"));
    }

    #[test]
    fn samples_that_come_late_make_no_window_much_shorter() {
        let mut window = SlidingWindow::new(Nanos::from_secs(10), Tolerance::default(), Nanos::ZERO);
        for at in [4, 9, 13, 22] {
            window.add(Nanos::from_secs(at), Sample::default());
        }
        let last = &window.verdicts().unwrap().last;
        assert_eq!((last.from, last.to), (Nanos::from_secs(9), Nanos::from_secs(22)));
        window.add(Nanos::from_millis(22_900), Sample::default());
        let last = &window.verdicts().unwrap().last;
        assert_eq!((last.from, last.to), (Nanos::from_secs(13), Nanos::from_millis(22_900)));
    }
}
