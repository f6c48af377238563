//! Trains of segments: each segment is judged, queued and timed as if it had arrived by itself.
//!
//! Segments with departures within the spread stay together and leave with the last one; the rest is split
//! into the fewest sub-trains with that property. Lost segments are cut out; effects on some segments and not
//! on others separate them.

use crate::events::report_lost;
use crate::fate::Coming;
use crate::fifo::Fifo;
use crate::has;
use crate::link::{Link, Surroundings};
use crate::queue::{Admission, Joining, Waiting};
use longwire_block::{DropReason, Effects, Offer, Verdict};
use longwire_packet::{Handle, Meta, Pool};
use longwire_units::{Nanos, Rate};

/// Consecutive segments that stay together.
#[derive(Debug, Clone, Copy, Default)]
struct Run {
    first: u16,
    count: u16,
    bytes: u64,
    effects: Effects,
}

/// One segment of a train: frame length and counted bytes.
#[derive(Clone, Copy)]
struct Segment {
    frame: u32,
    bytes: u64,
}

impl Link {
    /// Accepts a train, whole or split.
    #[inline(never)]
    pub(crate) fn arrive_train(&mut self, at: &mut Surroundings<'_>, train: Handle, now: Nanos) {
        let meta = *at.pool.meta(train);
        self.in_packets += u64::from(meta.segments);
        self.in_bytes += meta.segment_bytes();
        let (full, last) = (meta.first_bytes(), meta.last_bytes());
        let full = Segment { frame: full, bytes: self.counted(at.pool, train, full) };
        let last = Segment { frame: last, bytes: self.counted(at.pool, train, last) };
        let longest = self.segments_within(at.spread, full.bytes);
        let whole = Run {
            count: meta.segments,
            bytes: u64::from(meta.segments - 1) * full.bytes + last.bytes,
            ..Run::default()
        };
        if u64::from(meta.segments) <= longest && self.admits_whole(at.pool, (train, now), whole, full) {
            return self.proceed(at, train, whole, now);
        }
        let mut run = Run::default();
        for number in 0..meta.segments {
            let segment = if number + 1 == meta.segments { last } else { full };
            let effects = match self.judge_segment(at, train, now, segment) {
                Ok(effects) => effects,
                Err(reason) => {
                    self.drop_segments(at.pool, train, (reason, 1));
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
                    self.drop_segments(at.pool, train, (reason, 1));
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

    /// Lets all segments of a train into a tail drop at once, if it has room for as many of the longest, and
    /// no judge but random loss is asked, which spares them. If not, nothing has happened yet.
    fn admits_whole(
        &mut self,
        pool: &Pool,
        (handle, now): (Handle, Nanos),
        whole: Run,
        longest: Segment,
    ) -> bool {
        if self.profile.asks_queue {
            return false;
        }
        // What waits grows with each, so the last one finds the least room.
        let before = u32::from(whole.count) - 1;
        let Admission { packets_waiting, bytes_waiting, rate, .. } =
            self.admission(pool, Joining { handle, now, bytes: longest.bytes }, Meta::NO_BAND);
        let waiting = Waiting {
            packets: packets_waiting as u32 + before,
            bytes: bytes_waiting + u64::from(before) * longest.bytes,
        };
        let has_room = self.profile.queue.has_room(waiting, longest.bytes, || rate);
        if !has_room || !self.blocks().before.chain.spares(whole.count) {
            return false;
        }
        self.waiting.packets += u32::from(whole.count);
        self.waiting.bytes += whole.bytes;
        true
    }

    /// Counts and reports segments of a train that are dropped, as if each had the first one's length.
    #[cold]
    pub(crate) fn drop_segments(
        &mut self,
        pool: &mut Pool,
        train: Handle,
        (reason, segments): (DropReason, u16),
    ) {
        self.count_drop(reason, u64::from(segments));
        let bytes = u64::from(segments) * u64::from(pool.meta(train).first_bytes());
        report_lost(pool, train, self.latest, (reason, (segments, bytes)));
    }

    /// Effects of the judges on a segment, or the reason of its drop.
    fn judge_segment(
        &mut self,
        at: &mut Surroundings<'_>,
        train: Handle,
        now: Nanos,
        segment: Segment,
    ) -> Result<Effects, DropReason> {
        if self.blocks().before.chain.is_empty() {
            return Ok(Effects::default());
        }
        let mut offer = Offer::pooled(now, segment.frame, at.pool, train);
        let verdict = self.blocks().before.judge(&mut offer);
        let effects = offer.done().copied().unwrap_or_default();
        match verdict {
            Verdict::Drop(reason) => {
                self.answer(at, train, &effects);
                Err(reason)
            }
            _ => Ok(effects),
        }
    }

    /// Lets a segment into the queue, unless it goes elsewhere; with the queue's mark, if any.
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
        let packet = Joining { handle: train, now, bytes: segment.bytes };
        match self.admit(at.pool, packet, effects.band.unwrap_or(Meta::NO_BAND)) {
            Verdict::Pass => Ok(effects),
            Verdict::Mark => Ok(Effects { mark: true, ..effects }),
            Verdict::Drop(reason) => Err(reason),
        }
    }

    /// Makes a packet of one segment with effects of judges, before the queue sees it.
    fn single_out(
        &mut self,
        at: &mut Surroundings<'_>,
        train: Handle,
        number: u16,
        (now, frame, effects): (Nanos, u32, Effects),
    ) {
        if let Some(handle) = self.segments(at.pool, train, (number, 1)) {
            self.arrive_affected(at, handle, Coming { now, frame }, (Verdict::Pass, effects));
        }
    }

    /// Makes a packet of `count` segments of a train, from segment `first` on, or drops them.
    #[inline]
    pub(crate) fn segments(
        &mut self,
        pool: &mut Pool,
        train: Handle,
        (first, count): (u16, u16),
    ) -> Option<Handle> {
        let made = longwire_wire::segment(pool, train, first, count);
        match made {
            // Pieces of a train are ordered, too.
            Some(handle) => pool.meta_mut(handle).seq += u64::from(first),
            None => self.drop_segments(pool, train, (DropReason::PoolFull, count)),
        }
        made
    }

    /// Makes a packet of the segments collected in `run` and queues it.
    fn close(&mut self, at: &mut Surroundings<'_>, train: Handle, run: &mut Run, now: Nanos) {
        let run = std::mem::take(run);
        if run.count == 0 {
            return;
        }
        match self.segments(at.pool, train, (run.first, run.count)) {
            Some(handle) => self.proceed(at, handle, run, now),
            None if run.effects.steer.is_none() => {
                // Their admission is reverted.
                self.waiting.packets -= u32::from(run.count);
                self.waiting.bytes -= run.bytes;
            }
            None => {}
        }
    }

    /// Queues a packet made of the segments of `run`, with the effects of the judges.
    fn proceed(&mut self, at: &mut Surroundings<'_>, handle: Handle, run: Run, now: Nanos) {
        if run.effects.any() && self.affect(at, handle, now, &run.effects) {
            return;
        }
        self.line.features |= has::TRAIN;
        self.wait_or_begin(at.pool, Joining { handle, now, bytes: run.bytes });
        self.leave_at_once(at, now);
    }

    /// After a change: splits waiting trains whose segments no longer leave together.
    pub(crate) fn part_waiting(&mut self, pool: &mut Pool, spread: Nanos) {
        let waiting = self.blocks().books.list.take();
        let parted = self.parted(pool, waiting, spread);
        self.blocks().books.list = parted;
    }

    /// Splits trains as if they arrived now. A train stays whole if the pool has no room for its segments.
    pub(crate) fn parted(&mut self, pool: &mut Pool, mut waiting: Fifo, spread: Nanos) -> Fifo {
        let mut parted = Fifo::EMPTY;
        while let Some(handle) = waiting.pop(pool) {
            match self.pieces(pool, handle, 0, spread) {
                Some(pieces) => {
                    pool.free(handle);
                    parted.append(pool, pieces);
                }
                None => parted.push(pool, handle),
            }
        }
        parted
    }

    /// After a change of the rate at `now`: splits the train being sent, of which `sent` segments are sent,
    /// if the others no longer leave together. Sent segments are put in flight. Returns the bytes of the
    /// pieces that now wait.
    pub(crate) fn part_sending(&mut self, pool: &mut Pool, now: Nanos, spread: Nanos, sent: u16) -> u64 {
        let train = self.blocks().sending;
        let whole = *pool.meta(train);
        let Some(mut pieces) = self.pieces(pool, train, sent, spread) else { return 0 };
        let gone = if sent > 0 { longwire_wire::segment(pool, train, 0, sent) } else { None };
        if sent > 0 && gone.is_none() {
            free(pool, pieces);
            return 0;
        }
        pool.free(train);
        let left: u64 = pieces.iter(pool).map(|piece| pool.meta(piece).counted()).sum();
        if let Some(gone) = gone {
            let facts = pool.meta_mut(gone);
            facts.set_counted(whole.counted() - left);
            facts.flags = whole.flags;
            self.send_on(pool, gone, now);
        }
        let Some(first) = pieces.pop(pool) else { return 0 };
        self.blocks().sending = first;
        pieces.append(pool, self.blocks().books.list.take());
        self.blocks().books.list = pieces;
        left - pool.meta(first).counted()
    }

    /// The fewest pieces of a waiting train from segment `from` on; none if those leave together, or the pool
    /// has no room. Together with earlier segments their counted bytes are those of the train.
    fn pieces(&mut self, pool: &mut Pool, train: Handle, from: u16, spread: Nanos) -> Option<Fifo> {
        let meta = *pool.meta(train);
        if !meta.is_train() {
            return None;
        }
        // Counted sizes may have changed since the train came.
        let full = self.counted(pool, train, meta.first_bytes());
        let longest = self.segments_within(spread, full).min(u64::from(u16::MAX)) as u16;
        if meta.segments - from <= longest {
            return None;
        }
        let mut made = Fifo::EMPTY;
        let mut left = meta.counted().saturating_sub(u64::from(from) * full);
        let mut first = from;
        while first < meta.segments {
            let count = longest.min(meta.segments - first);
            let Some(piece) = longwire_wire::segment(pool, train, first, count) else {
                free(pool, made);
                return None;
            };
            let bytes = (u64::from(count) * full).min(left);
            let bytes = if first + count == meta.segments { left } else { bytes };
            left -= bytes;
            let facts = pool.meta_mut(piece);
            facts.set_counted(bytes);
            facts.flags = meta.flags;
            facts.seq += u64::from(first);
            made.push(pool, piece);
            first += count;
        }
        Some(made)
    }

    /// Number of segments of `bytes` counted bytes for which the first and last leave within `spread`.
    fn segments_within(&mut self, spread: Nanos, bytes: u64) -> u64 {
        if !self.blocks().queue.plain()
            || !self.blocks().transmit.whole_trains()
            || !self.blocks().delay.whole_trains()
        {
            return 1;
        }
        match self.blocks().transmit.rate() {
            Rate::UNLIMITED => u64::MAX,
            Rate::STALLED => 1,
            Rate(rate) => {
                let nanobits = u128::from(bytes) * 8_000_000_000;
                let more = u128::from(spread.0) * u128::from(rate) / nanobits.max(1);
                u64::try_from(more).map_or(u64::MAX, |more| more.saturating_add(1))
            }
        }
    }

    /// Segments (and their counted bytes) of the train being sent whose last bit is sent by `now`: each
    /// leaves the queue at its own f, though the train is one packet. Where transmission takes no time, only
    /// segments of the arriving train are waiting, each sent before the next is admitted.
    #[inline]
    pub(crate) fn sent_of_train(&mut self, pool: &Pool, now: Nanos, rate: Rate) -> (u64, u64) {
        if rate == Rate::UNLIMITED {
            return (self.waiting.packets.into(), self.waiting.bytes);
        }
        if self.line.features & has::TRAIN == 0 {
            return (0, 0);
        }
        let sending = self.blocks().sending;
        if sending.is_none() || !pool.meta(sending).is_train() {
            return (0, 0);
        }
        self.sent_of_this_train(pool, now)
    }

    /// Segments (and their counted bytes) of the packet being sent whose last bit is sent by `now`, if it is
    /// a train; never all of them.
    #[inline(never)]
    pub(crate) fn sent_of_this_train(&mut self, pool: &Pool, now: Nanos) -> (u64, u64) {
        self.tell_transmitter(now);
        let sending = self.blocks().sending;
        let meta = pool.meta(sending);
        let full = self.counted(pool, sending, meta.first_bytes());
        let transmit = &self.blocks().transmit;
        let is_sent =
            |segments: u64| transmit.has_sent_all_but(meta.counted().saturating_sub(segments * full), now);
        let (mut sent, mut most) = (0, u64::from(meta.segments) - 1);
        while sent < most {
            let middle = (sent + most).div_ceil(2);
            if is_sent(middle) {
                sent = middle;
            } else {
                most = middle - 1;
            }
        }
        (sent, sent * full)
    }
}

fn free(pool: &mut Pool, mut list: Fifo) {
    while let Some(handle) = list.pop(pool) {
        pool.free(handle);
    }
}
