//! The delay before the queue: packets are delayed first, and arrive at the queue afterwards.
//!
//! The Osaka paper's propagation delay ("Realizing a Network Emulator System with Intel IXP1200 Network
//! Processor", II-B.2) precedes the output port's buffer. Filters and impairments judge a packet when it
//! enters the link, as always.

use crate::delay::constant::Constant;
use crate::delay::{Delay, Order};
use crate::fate::Coming;
use crate::fifo::Fifo;
use crate::front::Front;
use crate::has;
use crate::line::{Heaps, Line};
use crate::link::{Link, Surroundings, note_arrival};
use crate::queue::Joining;
use longwire_block::{DropReason, Offer, Verdict};
use longwire_packet::{Handle, Pool};
use longwire_units::Nanos;

impl Link {
    pub(crate) fn front(&mut self) -> Option<&mut Front> {
        self.known_rare_mut()?.front.as_deref_mut()
    }

    /// Places the link's delay before the queue, or after it. Returns whether that is a change.
    ///
    /// A link that has had a delay before its queue keeps one, of zero: new packets stay behind those in
    /// flight there.
    pub(crate) fn place_delay(&mut self, before: bool) -> bool {
        if before == self.front().is_some_and(|front| front.holds) {
            return false;
        }
        let none = || {
            let (delay, line) = (Delay::Constant(Constant::new(Nanos::ZERO)), Line::default());
            Box::new(Front { delay, holds: false, line, last: Nanos::ZERO, heaps: Heaps::default() })
        };
        let blocks = self.blocks();
        let front = blocks.books.rare().front.get_or_insert_with(none);
        std::mem::swap(&mut blocks.delay, &mut front.delay);
        front.holds = before;
        self.line.features |= has::FRONT;
        true
    }

    /// Separates packets sorted before a change of the delay from those sorted after it.
    pub(crate) fn part_line(&mut self, before: bool) {
        if !before {
            let blocks = self.blocks();
            if blocks.order == Order::Sorted {
                blocks.books.rare().heaps.floor = blocks.last;
            }
        } else if let Some(front) = self.front() {
            front.heaps.floor = front.last;
        }
    }

    /// Accepts a packet, or the segments of a train individually.
    #[inline(never)]
    pub(crate) fn arrive_before(&mut self, at: &mut Surroundings<'_>, handle: Handle, now: Nanos) {
        note_arrival(at.pool.meta_mut(handle), now);
        let meta = *at.pool.meta(handle);
        self.in_packets += u64::from(meta.segments);
        self.in_bytes += meta.segment_bytes();
        if meta.is_train() {
            for number in 0..meta.segments {
                if let Some(segment) = self.segments(at.pool, handle, (number, 1)) {
                    self.judge_before(at, segment, now);
                }
            }
            at.pool.free(handle);
        } else {
            self.judge_before(at, handle, now);
        }
        // A delay of no time.
        self.catch_up_with_others(at.pool, now);
        if self.line.next() <= now {
            self.release(at.pool, now, at.out);
        }
    }

    fn judge_before(&mut self, at: &mut Surroundings<'_>, handle: Handle, now: Nanos) {
        let frame = at.pool.meta(handle).wire_len;
        if !self.blocks().before.chain.is_empty() {
            let mut offer = Offer::pooled(now, frame, at.pool, handle);
            let verdict = self.blocks().before.judge(&mut offer);
            if let Some(&effects) = offer.done() {
                return self.arrive_affected(at, handle, Coming { now, frame }, (verdict, effects));
            }
            if let Verdict::Drop(reason) = verdict {
                return self.drop(at.pool, handle, reason);
            }
        }
        self.delay_before(at.pool, handle, now);
    }

    /// Delays a packet that arrives at `now` on its way to the queue, or loses it.
    pub(crate) fn delay_before(&mut self, pool: &mut Pool, handle: Handle, now: Nanos) {
        let Some(front) = self.front() else { return };
        if front.delay.may_lose() && front.delay.loses() {
            return self.drop(pool, handle, DropReason::Loss);
        }
        front.join(pool, handle, now);
    }

    /// Time at which the next delayed packet reaches the queue; never if there is none.
    pub(crate) fn next_in_front(&self) -> Nanos {
        let rare = self.known_rare();
        rare.and_then(|rare| rare.front.as_ref()).map_or(Nanos::NEVER, |front| front.line.next())
    }

    /// Packets in flight to the queue.
    pub(crate) fn packets_in_front(&self) -> u32 {
        let rare = self.known_rare();
        rare.and_then(|rare| rare.front.as_ref()).map_or(0, |front| front.line.packets())
    }

    /// Lets the packet whose delay ended at `now` join the queue, or drops it.
    pub(crate) fn arrive_from_front(&mut self, pool: &mut Pool, now: Nanos) {
        let Some(handle) = self.front().and_then(|front| front.take(pool)) else { return };
        self.latest = self.latest.max(now);
        let meta = pool.meta_mut(handle);
        // Its queue ignores the time before.
        meta.arrival = now.0;
        let frame = meta.wire_len;
        let bytes = self.counted(pool, handle, frame);
        self.enter(pool, Joining { handle, now, bytes });
    }

    /// Removes all packets in flight to the queue, at the end of a run.
    pub(crate) fn drain_front(&mut self, pool: &mut Pool) -> Fifo {
        self.front().map_or(Fifo::EMPTY, |front| front.line.drain(Some(&mut front.heaps), pool))
    }
}
