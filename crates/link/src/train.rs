//! Trains of segments: each segment is judged, queued and timed as if it had arrived by itself.
//!
//! Segments whose leaving times lie within the spread stay together and leave with the last one; the rest is cut
//! into the fewest sub-trains for which that holds. Lost segments are cut out; what is done to some segments and not to others parts them.

use crate::link::{Link, Surroundings};
use longwire_block::{DropReason, Effects, Offer, Verdict};
use longwire_packet::{Handle, Meta};
use longwire_units::{Nanos, Rate};

/// Consecutive segments that stay together.
#[derive(Debug, Clone, Copy, Default)]
struct Run {
    first: u16,
    count: u16,
    bytes: u64,
    effects: Effects,
}

/// One segment of a train: length of its frame, and the bytes it counts.
#[derive(Clone, Copy)]
struct Segment {
    frame: u32,
    bytes: u64,
}

impl Link {
    /// Takes in a train, whole or cut up.
    #[inline(never)]
    pub(crate) fn arrive_train(&mut self, at: &mut Surroundings<'_>, train: Handle, now: Nanos) {
        let meta = *at.pool.meta(train);
        self.books.counters.in_packets += u64::from(meta.segments);
        self.books.counters.in_bytes += meta.segment_bytes();
        let full = u32::from(meta.header_len) + u32::from(meta.gso_size);
        let last = meta.wire_len - (u32::from(meta.segments) - 1) * u32::from(meta.gso_size);
        let full = Segment { frame: full, bytes: self.counted(at.pool, train, full) };
        let last = Segment { frame: last, bytes: self.counted(at.pool, train, last) };
        let longest = self.segments_within(at.spread, full.bytes);
        let mut run = Run::default();
        for number in 0..meta.segments {
            let segment = if number + 1 == meta.segments { last } else { full };
            let effects = match self.judge_segment(at, train, now, segment) {
                Ok(effects) => effects,
                Err(reason) => {
                    self.books.counters.drop(reason, 1);
                    self.close(at, train, &mut run, now);
                    continue;
                }
            };
            if effects.rewrite() {
                self.close(at, train, &mut run, now);
                self.single_out(at, train, number, (now, segment.frame, effects));
                continue;
            }
            let effects = match self.admit_segment(at, train, now, segment, effects) {
                Ok(effects) => effects,
                Err(reason) => {
                    self.books.counters.drop(reason, 1);
                    self.close(at, train, &mut run, now);
                    continue;
                }
            };
            if run.count > 0 && effects != run.effects {
                self.close(at, train, &mut run, now);
            }
            if run.count == 0 {
                run = Run { first: number, effects, ..Run::default() };
            }
            run.count += 1;
            run.bytes += segment.bytes;
            if u64::from(run.count) >= longest && run.count != meta.segments {
                self.close(at, train, &mut run, now);
            }
        }
        if run.count == meta.segments {
            return self.proceed(at, train, run, now);
        }
        self.close(at, train, &mut run, now);
        at.pool.free(train);
    }

    /// What the judges do to a segment, or why it is dropped.
    fn judge_segment(
        &mut self,
        at: &mut Surroundings<'_>,
        train: Handle,
        now: Nanos,
        segment: Segment,
    ) -> Result<Effects, DropReason> {
        if self.chain.is_empty() {
            return Ok(Effects::default());
        }
        let mut offer = Offer::pooled(now, segment.frame, at.pool, train);
        let verdict = self.chain.judge(&mut offer);
        let effects = offer.done().copied().unwrap_or_default();
        match verdict {
            Verdict::Drop(reason) => {
                self.answer(at, train, &effects);
                Err(reason)
            }
            _ => Ok(effects),
        }
    }

    /// Lets a segment into the queue, unless it goes elsewhere; with the queue's mark, if it is given one.
    fn admit_segment(
        &mut self,
        at: &mut Surroundings<'_>,
        train: Handle,
        now: Nanos,
        segment: Segment,
        effects: Effects,
    ) -> Result<Effects, DropReason> {
        if effects.steer.is_some() {
            return Ok(effects);
        }
        match self.admit(at.pool, train, now, segment.bytes, effects.band.unwrap_or(Meta::NO_BAND)) {
            Verdict::Pass => Ok(effects),
            Verdict::Mark => Ok(Effects { mark: true, ..effects }),
            Verdict::Drop(reason) => Err(reason),
        }
    }

    /// Makes a packet of one segment to which the judges do something, before the queue sees it.
    fn single_out(
        &mut self,
        at: &mut Surroundings<'_>,
        train: Handle,
        number: u16,
        (now, frame, effects): (Nanos, u32, Effects),
    ) {
        match longwire_wire::segment(at.pool, train, number, 1) {
            Some(handle) => {
                at.pool.meta_mut(handle).seq += u64::from(number);
                self.arrive_affected(at, handle, (now, frame), (Verdict::Pass, effects));
            }
            None => self.books.counters.drop(DropReason::PoolFull, 1),
        }
    }

    /// Makes a packet of the segments gathered in `run` and queues it.
    fn close(&mut self, at: &mut Surroundings<'_>, train: Handle, run: &mut Run, now: Nanos) {
        let run = std::mem::take(run);
        if run.count == 0 {
            return;
        }
        match longwire_wire::segment(at.pool, train, run.first, run.count) {
            Some(handle) => {
                // Pieces of a train have an order among themselves, too.
                at.pool.meta_mut(handle).seq += u64::from(run.first);
                self.proceed(at, handle, run, now);
            }
            None => {
                self.books.counters.drop(DropReason::PoolFull, u64::from(run.count));
                if run.effects.steer.is_none() {
                    self.unadmit(u32::from(run.count), run.bytes);
                }
            }
        }
    }

    /// Queues a packet made of the segments of `run`, with what the judges do to it.
    fn proceed(&mut self, at: &mut Surroundings<'_>, handle: Handle, run: Run, now: Nanos) {
        if run.effects.any() && self.affect(at, handle, now, &run.effects) {
            return;
        }
        self.enqueue(at, handle, now, run.bytes);
    }

    /// How many segments of `bytes` counted bytes are sent so close together that first and last leave within `spread`.
    fn segments_within(&mut self, spread: Nanos, bytes: u64) -> u64 {
        if !self.queue.whole_trains() || !self.transmit.whole_trains() || !self.delay.whole_trains() {
            return 1;
        }
        match self.transmit.rate() {
            Rate::UNLIMITED => u64::MAX,
            Rate::STALLED => 1,
            Rate(rate) => {
                let nanobits = u128::from(bytes) * 8_000_000_000;
                let more = u128::from(spread.0) * u128::from(rate) / nanobits.max(1);
                u64::try_from(more).map_or(u64::MAX, |more| more.saturating_add(1))
            }
        }
    }
}
