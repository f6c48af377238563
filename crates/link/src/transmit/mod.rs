//! Transmission of packets in sequence.

pub mod constant;
pub mod framing;
pub mod shared;
pub mod slotted;
pub mod token_bucket;
pub mod trace;

/// The template of `cargo xtask new`, compiled as a block.
#[cfg(test)]
#[path = "../../../../xtask/templates/transmit.rs"]
mod template;

use framing::Framing;
use longwire_block::Block;
use longwire_units::{Nanos, Rate};

/// Backlog before a transmitter, the packet being sent and the one that asks for admission included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backlog {
    /// Each segment of a train is counted.
    pub packets: u64,
    /// Their bytes, as counted by the rate.
    pub bytes: u64,
}

/// A transmitter: sends one packet at a time, each completely.
///
/// Work is in bits · 10⁹: a rate of r bit/s does r of it per nanosecond.
pub trait Sender: Block {
    /// The framing, until the next change.
    fn framing(&self) -> Framing;

    /// Begins to send a packet of `bytes` counted bytes at `start`, after a pause.
    fn begin(&mut self, start: Nanos, bytes: u64);

    /// Begins to send a packet at `finish`, the end of the previous one: the remainder is carried.
    fn follow(&mut self, finish: Nanos, bytes: u64);

    /// Completion of the packet being sent: exact, rounded down; never, if it is unknown. Called once after
    /// its beginning, and after each change.
    fn finish(&self) -> Nanos;

    /// Begins a packet at `start`, after a pause or at the end of the previous one; returns its completion.
    #[inline]
    fn send(&mut self, pause: bool, start: Nanos, bytes: u64) -> Nanos {
        if pause {
            self.begin(start, bytes);
        } else {
            self.follow(start, bytes);
        }
        self.finish()
    }

    /// Called before a change at `now`: bits sent by now stay sent, and tokens are added up to now. Also
    /// called for an idle transmitter.
    fn settle(&mut self, now: Nanos);

    /// Whether packets wait in the queue until an opportunity comes to send a part of them: they are taken
    /// then, and not earlier.
    fn by_opportunities(&self) -> bool {
        false
    }

    /// The time at which the transmitter takes the packet behind the one sent at `finish`: at once, if a part
    /// of an opportunity is left.
    fn next_opportunity(&self, finish: Nanos) -> Nanos {
        finish
    }

    /// The time at which a transmitter that is idle at `now` takes a packet: earlier opportunities are lost.
    /// Never before `now`, which is returned without a limit.
    fn opportunity_after(&mut self, now: Nanos) -> Nanos {
        now
    }

    /// The rate of a packet's bits: the current one, or the mean of a trace.
    fn rate(&self) -> Rate;

    /// The expected departure rate of a queue with this `backlog`, for time limits and disciplines.
    fn departure_rate(&self, _backlog: Backlog) -> Rate {
        self.rate()
    }

    /// The highest sustained rate, in packets of `bytes` counted bytes, for planning.
    fn highest(&self, _bytes: u64) -> Rate {
        self.rate()
    }

    /// Remaining work of the packet being sent, after [`Sender::settle`], for another transmitter.
    fn work_left(&self) -> u64;

    /// A constant rate's remainder at the end of the packet being sent, `finish`.
    fn rest(&self, _finish: Nanos) -> u64 {
        0
    }

    /// Continues at `now` with a packet that another transmitter has begun.
    fn take_over(&mut self, now: Nanos, work: u64);

    /// Whether the end of every packet is known at its admission, as long as nothing changes: packets are
    /// sent one after the other, and never is not among the answers.
    fn foresees(&self) -> bool {
        false
    }

    /// Announces that packets are begun before previous ones are sent; [`Sender::pass`] reports each that is.
    /// That may also happen after [`Sender::begin`], without this call. Only for transmitters that can
    /// predict.
    fn look_ahead(&mut self) {}

    /// Reports that the first of those begun was sent at `finish`; the one behind it counts `bytes`.
    fn pass(&mut self, _finish: Nanos, _bytes: u64) {}

    /// Reverts transmissions begun ahead, at `now`: the first packet not yet sent is being sent, and ends at
    /// `first`. The last one would have ended at `last`; all behind the first count `behind` bytes.
    fn go_back(&mut self, _now: Nanos, _first: Nanos, _last: Nanos, _behind: u64) {}

    /// Whether all but the last `bytes` counted bytes of the packet being sent are sent by `now`. Only for
    /// trains.
    fn has_sent_all_but(&self, _bytes: u64, _now: Nanos) -> bool {
        false
    }

    /// Whether several segments of a train may be sent as one packet: only if [`Sender::has_sent_all_but`]
    /// knows when each is sent.
    fn whole_trains(&self) -> bool {
        false
    }
}

/// The state at the packet being sent, while later ones are begun ahead.
#[derive(Debug, Default)]
struct Ahead<S> {
    behind: S,
    is_ahead: bool,
}

impl<S: Copy> Ahead<S> {
    /// Keeps the state before the first packet that may be begun ahead: one after a pause costs no copy.
    #[inline]
    fn leave_behind(&mut self, state: &S) {
        if !std::mem::replace(&mut self.is_ahead, true) {
            self.behind = *state;
        }
    }

    /// Restores the state at the packet being sent.
    fn go_back(&mut self, state: &mut S) {
        if std::mem::take(&mut self.is_ahead) {
            *state = self.behind;
        }
    }
}

crate::stage::stage! {
    /// A transmitter.
    Transmit: Sender {
        inline {
            Constant = constant::Constant,
        }
        boxed {
            TokenBucket = token_bucket::TokenBucket,
            Trace = trace::Trace,
            Slotted = slotted::Slotted,
            Shared = shared::Shared,
        }
    }
    fn begin(&mut self, start: Nanos, bytes: u64);
    fn follow(&mut self, finish: Nanos, bytes: u64);
    fn settle(&mut self, now: Nanos);
    fn opportunity_after(&mut self, now: Nanos) -> Nanos;
    fn take_over(&mut self, now: Nanos, work: u64);
    fn look_ahead(&mut self);
    fn pass(&mut self, finish: Nanos, bytes: u64);
    fn go_back(&mut self, now: Nanos, first: Nanos, last: Nanos, behind: u64);
    ask
    fn framing(&self) -> Framing;
    fn finish(&self) -> Nanos;
    fn by_opportunities(&self) -> bool;
    fn next_opportunity(&self, finish: Nanos) -> Nanos;
    fn rate(&self) -> Rate;
    fn departure_rate(&self, backlog: Backlog) -> Rate;
    fn highest(&self, bytes: u64) -> Rate;
    fn work_left(&self) -> u64;
    fn rest(&self, finish: Nanos) -> u64;
    fn foresees(&self) -> bool;
    fn has_sent_all_but(&self, bytes: u64, now: Nanos) -> bool;
    fn whole_trains(&self) -> bool;
    apart
    fn send(&mut self, pause: bool, start: Nanos, bytes: u64) -> Nanos;
}

/// Begins the next packet as a link does.
#[cfg(test)]
pub(crate) fn follow(link: &mut impl Sender, bytes: u64) {
    let finish = link.finish();
    link.follow(finish, bytes);
}
