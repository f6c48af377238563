//! Retransmission by a client.

/// The next action.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RetryAction {
    /// Send it.
    Send,
    /// Wait until this time for an answer.
    Wait(u64),
    /// No answer in time.
    GiveUp,
}

/// The first and the longest waiting time for an answer, in nanoseconds.
const FIRST: u64 = 200_000_000;
const LONGEST: u64 = 2_000_000_000;

/// Retransmission schedule of one message: each wait is twice as long as the previous one. Times are
/// nanoseconds on any clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retry {
    end: u64,
    next: u64,
    wait: u64,
    /// Number of transmissions.
    pub sent: u32,
}

impl Retry {
    /// A schedule that gives up `patience` after `now`.
    pub const fn new(now: u64, patience: u64) -> Self {
        Self { end: now.saturating_add(patience), next: now, wait: FIRST, sent: 0 }
    }

    /// The action at `now`. After [`RetryAction::Send`] the message is treated as sent.
    pub fn due(&mut self, now: u64) -> RetryAction {
        if now >= self.end {
            return RetryAction::GiveUp;
        }
        if now < self.next {
            return RetryAction::Wait(self.next.min(self.end));
        }
        self.next = now.saturating_add(self.wait);
        self.wait = (self.wait * 2).min(LONGEST);
        self.sent += 1;
        RetryAction::Send
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_two_seconds() {
        let (mut now, mut sent) = (1_000, Vec::new());
        let mut retry = Retry::new(now, 9_000_000_000);
        loop {
            match retry.due(now) {
                RetryAction::Send => sent.push((now - 1_000) / 1_000_000),
                RetryAction::Wait(until) => now = until,
                RetryAction::GiveUp => break,
            }
        }
        assert_eq!(sent, [0, 200, 600, 1400, 3000, 5000, 7000]);
        assert_eq!((retry.sent, now), (7, 9_000_001_000));
    }
}
