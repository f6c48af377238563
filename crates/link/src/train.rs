//! Trains of segments: each segment is judged, queued and timed as if it had arrived by itself.
//!
//! Segments whose leaving times lie within the spread stay together and leave with the last one; the rest is cut
//! into the fewest sub-trains for which that holds. Lost segments are cut out.

use crate::fifo::Fifo;
use crate::link::Link;
use longwire_block::{DropReason, Offer, Verdict};
use longwire_packet::{Handle, Pool};
use longwire_units::{Nanos, Rate};

/// Consecutive segments that stay together.
#[derive(Debug, Clone, Copy, Default)]
struct Run {
    first: u16,
    count: u16,
    bytes: u64,
}

impl Link {
    /// Takes in a train, whole or cut up.
    pub(crate) fn arrive_train(
        &mut self,
        pool: &mut Pool,
        train: Handle,
        now: Nanos,
        spread: Nanos,
        out: &mut Fifo,
    ) {
        let meta = *pool.meta(train);
        self.counters.in_packets += u64::from(meta.segments);
        self.counters.in_bytes += meta.segment_bytes();
        let full_frame = u32::from(meta.header_len) + u32::from(meta.gso_size);
        let last_frame = meta.wire_len - (u32::from(meta.segments) - 1) * u32::from(meta.gso_size);
        let full = self.counted(pool, train, full_frame);
        let last = self.counted(pool, train, last_frame);
        let longest = self.segments_within(spread, full);
        let mut run = Run::default();
        for segment in 0..meta.segments {
            let (frame, bytes) =
                if segment + 1 == meta.segments { (last_frame, last) } else { (full_frame, full) };
            match self.judge_segment(pool, now, frame, bytes) {
                Verdict::Pass => {}
                Verdict::Drop(reason) => {
                    self.counters.drop(reason, 1);
                    self.close(pool, train, &mut run, now, out);
                    continue;
                }
            }
            if run.count == 0 {
                run.first = segment;
            }
            run.count += 1;
            run.bytes += bytes;
            if u64::from(run.count) >= longest && run.count != meta.segments {
                self.close(pool, train, &mut run, now, out);
            }
        }
        if run.count == meta.segments {
            return self.enqueue(pool, train, now, run.bytes, out);
        }
        self.close(pool, train, &mut run, now, out);
        pool.free(train);
    }

    fn judge_segment(&mut self, pool: &Pool, now: Nanos, frame: u32, bytes: u64) -> Verdict {
        if !self.chain.is_empty()
            && let Verdict::Drop(reason) = self.chain.judge(&Offer { now, bytes: frame })
        {
            return Verdict::Drop(reason);
        }
        self.admit(pool, now, bytes)
    }

    /// Makes a packet of the segments gathered in `run` and queues it.
    fn close(&mut self, pool: &mut Pool, train: Handle, run: &mut Run, now: Nanos, out: &mut Fifo) {
        let Run { first, count, bytes } = std::mem::take(run);
        if count == 0 {
            return;
        }
        match longwire_wire::segment(pool, train, first, count) {
            Some(handle) => {
                // Pieces of a train have an order among themselves, too.
                pool.meta_mut(handle).seq += u64::from(first);
                self.enqueue(pool, handle, now, bytes, out);
            }
            None => {
                self.counters.drop(DropReason::PoolFull, u64::from(count));
                self.unadmit(u32::from(count), bytes);
            }
        }
    }

    /// How many segments of `bytes` counted bytes are sent so close together that first and last leave within `spread`.
    fn segments_within(&mut self, spread: Nanos, bytes: u64) -> u64 {
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
