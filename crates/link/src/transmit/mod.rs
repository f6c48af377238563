//! How fast packets are sent, one after the other.

pub mod constant;
pub mod framing;
pub mod shared;
pub mod slotted;
pub mod token_bucket;
pub mod trace;

/// What `cargo xtask new` begins a block with, so that it is one.
#[cfg(test)]
#[path = "../../../../xtask/templates/transmit.rs"]
mod template;

use framing::Framing;
use longwire_block::Block;
use longwire_units::{Nanos, Rate};

/// What waits for a transmitter, the packet being sent and the one that asks to be let in included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backlog {
    /// Segments of a train count one each.
    pub packets: u64,
    /// Their bytes, as the rate counts them.
    pub bytes: u64,
}

/// A transmitter: sends one packet at a time, each from beginning to end.
///
/// Work is reckoned in bits · 10⁹, of which a rate of r bit/s does r in a nanosecond.
pub trait Sender: Block {
    /// What a packet counts, until the next change.
    fn framing(&self) -> Framing;

    /// Begins to send a packet of `bytes` counted bytes at `start`, after a pause.
    fn begin(&mut self, start: Nanos, bytes: u64);

    /// Begins to send a packet at `finish`, the moment at which the one before has ended: the remainder is carried.
    fn follow(&mut self, finish: Nanos, bytes: u64);

    /// When the packet being sent is finished: exact, rounded down; never, if nothing now known ends it. Asked once after it was
    /// begun, and after each change.
    fn finish(&self) -> Nanos;

    /// Begins a packet at `start`, after a pause or at the end of the one before; when it is finished.
    #[inline]
    fn send(&mut self, pause: bool, start: Nanos, bytes: u64) -> Nanos {
        if pause {
            self.begin(start, bytes);
        } else {
            self.follow(start, bytes);
        }
        self.finish()
    }

    /// Before a change at `now`: what is sent by now stays sent, and tokens that have come by now have come. Said to an idle
    /// transmitter, too.
    fn settle(&mut self, now: Nanos);

    /// Whether packets wait in the queue until an opportunity comes to send a part of them: they are taken then, and not before.
    fn by_opportunities(&self) -> bool {
        false
    }

    /// When the transmitter takes the packet that waits behind the one sent at `finish`: at once, where an opportunity is left.
    fn next_opportunity(&self, finish: Nanos) -> Nanos {
        finish
    }

    /// When a transmitter that is idle at `now` takes a packet: what came by then is lost. Never before `now`, which is the answer if
    /// nothing limits it.
    fn opportunity_after(&mut self, now: Nanos) -> Nanos {
        now
    }

    /// The rate at which a packet's bits are sent: the current one, or the mean of a trace.
    fn rate(&self) -> Rate;

    /// The rate at which a queue that holds `backlog` is expected to empty: limits in time and disciplines compute with it.
    fn departure_rate(&self, _backlog: Backlog) -> Rate {
        self.rate()
    }

    /// The highest rate that can go on for long, in packets of `bytes` counted bytes: what has to be reckoned with beforehand.
    fn highest(&self, _bytes: u64) -> Rate {
        self.rate()
    }

    /// The work left of the packet being sent, after [`Sender::settle`]: another transmitter is to go on with it.
    fn work_left(&self) -> u64;

    /// What a constant rate has left over at the end of the packet being sent, `finish`.
    fn rest(&self, _finish: Nanos) -> u64 {
        0
    }

    /// Goes on at `now` with a packet that another transmitter has begun.
    fn take_over(&mut self, now: Nanos, work: u64);

    /// Whether the end of every packet is known when it asks to be let in, as long as nothing changes: those in front of it are sent one
    /// after the other, and never is not among the answers.
    fn foresees(&self) -> bool {
        false
    }

    /// From now on packets are begun before those in front of them are sent, and [`Sender::pass`] tells of each that is. It may be so
    /// after [`Sender::begin`], too, without a word. Said to transmitters that foresee.
    fn look_ahead(&mut self) {}

    /// Of those begun, the first has been sent at `finish`; the one behind it counts `bytes`.
    fn pass(&mut self, _finish: Nanos, _bytes: u64) {}

    /// Takes back what was begun ahead, at `now`: the first that is not yet sent is being sent, and ends at `first`. The last one would
    /// have ended at `last`; all behind the first count `behind` bytes.
    fn go_back(&mut self, _now: Nanos, _first: Nanos, _last: Nanos, _behind: u64) {}

    /// Whether, of the packet being sent, all but the last `bytes` counted bytes are sent by `now`. Asked of trains only.
    fn has_sent_all_but(&self, _bytes: u64, _now: Nanos) -> bool {
        false
    }

    /// Whether several segments of a train may be sent as one packet: not unless [`Sender::has_sent_all_but`]
    /// knows when each of them is sent.
    fn whole_trains(&self) -> bool {
        false
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
    fn send(&mut self, pause: bool, start: Nanos, bytes: u64) -> Nanos;
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
}

/// Begins the next packet as a link does.
#[cfg(test)]
pub(crate) fn follow(link: &mut impl Sender, bytes: u64) {
    let finish = link.finish();
    link.follow(finish, bytes);
}
