//! A forwarder's counters, written by the threads that run it and readable by all.

use longwire_program::{Effects, Verdict};
use std::sync::atomic::{AtomicU64, Ordering};

/// Number of a program's own drop reasons.
pub const REASONS: usize = Effects::REASONS as usize;

/// A forwarder's counters, in packets: packets = passed + transmitted + redirected + dropped + aborted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ForwarderStats {
    /// Packets on which it ran.
    pub packets: u64,
    /// Passed on to the next forwarder.
    pub passed: u64,
    /// Sent back out of their ingress port.
    pub transmitted: u64,
    /// Redirected.
    pub redirected: u64,
    /// Dropped.
    pub dropped: u64,
    /// Dropped because the program failed, or returned an invalid value.
    pub aborted: u64,
    /// Marked.
    pub marked: u64,
    /// Dropped with its own reason, by number.
    pub reasons: [u64; REASONS],
    /// Dropped with any other number.
    pub other_reasons: u64,
}

#[derive(Default)]
pub(super) struct Counters {
    passed: Counter,
    transmitted: Counter,
    redirected: Counter,
    dropped: Counter,
    aborted: Counter,
    marked: Counter,
    reasons: Reasons,
}

/// The last one counts all other numbers.
struct Reasons(Box<[Counter; REASONS + 1]>);

#[derive(Default)]
struct Counter(AtomicU64);

impl Counter {
    /// Only one thread writes it if `alone`: adding need not be atomic.
    #[inline]
    fn add(&self, packets: u64, alone: bool) {
        if alone {
            self.0.store(self.read() + packets, Ordering::Relaxed);
        } else {
            self.0.fetch_add(packets, Ordering::Relaxed);
        }
    }

    #[inline]
    fn read(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl Default for Reasons {
    fn default() -> Self {
        Self(Box::new(std::array::from_fn(|_| Counter::default())))
    }
}

impl Counters {
    /// Counts the outcome of a packet. `alone` means that no other thread counts here.
    #[inline]
    pub fn note(&self, verdict: Verdict, effects: &Effects, alone: bool) {
        match verdict {
            Verdict::Pass => &self.passed,
            Verdict::Transmit => &self.transmitted,
            Verdict::Redirect(_) => &self.redirected,
            Verdict::Drop(reason) => {
                if let Some(reason) = reason {
                    self.reasons.0[usize::from(reason).min(REASONS)].add(1, alone);
                }
                &self.dropped
            }
            Verdict::Aborted(_) => &self.aborted,
        }
        .add(1, alone);
        if effects.mark.is_some() {
            self.marked.add(1, alone);
        }
    }

    /// Counts packets that passed without any request.
    #[inline]
    pub fn passed(&self, packets: u64, alone: bool) {
        self.passed.add(packets, alone);
    }

    /// Counts a redirection without a destination.
    #[cold]
    pub fn redirected_nowhere(&self) {
        self.redirected.0.fetch_sub(1, Ordering::Relaxed);
        self.aborted.add(1, false);
    }

    pub fn read(&self) -> ForwarderStats {
        let [passed, transmitted, redirected, dropped, aborted, marked] =
            [&self.passed, &self.transmitted, &self.redirected, &self.dropped, &self.aborted, &self.marked]
                .map(Counter::read);
        ForwarderStats {
            packets: passed + transmitted + redirected + dropped + aborted,
            passed,
            transmitted,
            redirected,
            dropped,
            aborted,
            marked,
            reasons: std::array::from_fn(|at| self.reasons.0[at].read()),
            other_reasons: self.reasons.0[REASONS].read(),
        }
    }
}
