//! The plain case, whole: what happens to a packet on a link that loses by chance, lets so many wait, and has a rate and a delay.
//!
//! The packet arrives at a = max(its stamp, the last a). The judges draw. If the queue has room, sending begins at s = max(a, previous f) and ends at
//! f = s + bits / rate, and the packet leaves at e = f + delay. All of that is known at the arrival ([`crate::decided`] says why, and what of links that are not so
//! plain), so the packet goes to the delay line at once. Nothing here looks at what such a link does not have.

use crate::delay::Delay;
use crate::has;
use crate::judge::Chain;
use crate::link::Link;
use crate::queue::Queue;
use crate::transmit::{Sender, Transmit};
use longwire_block::{DropReason, Effects, Offer, Verdict};
use longwire_packet::{Handle, Meta, Pool};
use longwire_units::{Nanos, Rate};

/// What has become of a packet that arrived at a plain link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// It leaves at this very moment, and nothing is in front of it.
    Through(Nanos),
    /// It travels, and is the first on its way: so the link has a deadline now.
    First(Nanos),
    /// It travels behind others.
    Behind,
    /// It was dropped, and counted.
    Dropped,
    /// The link, or the packet, is not plain: nothing has happened yet.
    NotPlain,
    /// Its judges do something to it: [`Link::arrive_affected`] is to go on with that.
    Affected,
}

/// What the judges do to a packet that is more than to let it pass or drop it.
pub type Affected = (Verdict, Effects);

impl Link {
    /// Takes a packet in that arrives at `Meta::arrival`. What its judges do to it, if anything, goes to `affected`.
    #[inline(always)]
    pub(crate) fn arrive_plain(
        &mut self,
        pool: &mut Pool,
        handle: Handle,
        affected: &mut Option<Affected>,
    ) -> Fate {
        const PLAIN: u16 = has::PLAIN | has::DECIDED;
        let meta = pool.meta_mut(handle);
        if self.features & PLAIN != PLAIN || meta.is_train() || meta.flags & Meta::BANDED != 0 {
            return Fate::NotPlain;
        }
        let now = self.effective_arrival(Nanos(meta.arrival));
        self.latest = now;
        (meta.arrival, meta.band) = (now.0, Meta::NO_BAND);
        let frame = meta.wire_len;
        self.books.counters.in_packets += 1;
        self.books.counters.in_bytes += u64::from(frame);
        if !matches!(self.chain, Chain::None) {
            let mut offer = Offer::pooled(now, frame, pool, handle);
            let verdict = self.chain.judge_one(&mut offer);
            if let Some(effects) = offer.done() {
                *affected = Some((verdict, *effects));
                return Fate::Affected;
            }
            if let Verdict::Drop(reason) = verdict {
                self.drop(pool, handle, reason);
                return Fate::Dropped;
            }
        }
        self.join_plain(pool, handle, now, frame)
    }

    /// Lets a packet of `frame` bytes into the queue, and onto the delay line, or drops it.
    #[inline(always)]
    pub(crate) fn join_plain(&mut self, pool: &mut Pool, handle: Handle, now: Nanos, frame: u32) -> Fate {
        let (Transmit::Constant(transmit), Delay::Constant(delay)) = (&mut self.transmit, &self.delay) else {
            return Fate::NotPlain;
        };
        let (rate, delay) = (transmit.rate(), delay.delay());
        if self.features & has::INSTANT != 0 && self.sending.is_none() && self.line.is_over(now) {
            self.pass_through(pool, handle, now);
            return Fate::Through(now);
        }
        if self.has_sent(now) {
            self.all_sent(self.finish + delay);
        }
        let bytes = self.counted(pool, handle, frame);
        if !self.has_room(bytes, rate) && !(self.has_overcounted(pool, now) && self.has_room(bytes, rate)) {
            self.drop(pool, handle, DropReason::QueueFull);
            return Fate::Dropped;
        }
        self.books.queued_packets += 1;
        self.books.queued_bytes += bytes;
        let pause = self.sending.is_none();
        if pause {
            self.sending = handle;
        }
        let Transmit::Constant(transmit) = &mut self.transmit else { return Fate::NotPlain };
        self.finish = transmit.send(pause, if pause { now } else { self.finish }, bytes);
        let leave = self.finish + delay;
        if self.line.join_decided(pool, handle, leave) { Fate::First(leave) } else { Fate::Behind }
    }

    /// Lets a packet through that is sent and leaves when it arrives: the link holds nothing, and all that [`Link::join_plain`] would find is known.
    #[inline(always)]
    fn pass_through(&mut self, pool: &mut Pool, handle: Handle, now: Nanos) {
        self.finish = now;
        self.line.pass(now);
        self.books.idle_since = now;
        let meta = pool.meta_mut(handle);
        meta.leave = now.0;
        self.books.counters.out_packets += 1;
        self.books.counters.out_bytes += u64::from(meta.wire_len);
    }

    /// Whether the tail drop of a decided link has room for a packet of `bytes` counted bytes, as far as is known.
    #[inline(always)]
    pub(crate) fn has_room(&mut self, bytes: u64, rate: Rate) -> bool {
        let Queue::TailDrop(queue) = &self.queue else { return false };
        // Where sending takes no time, nothing waits.
        let waiting = match rate {
            Rate::UNLIMITED => (0, 0),
            _ => (self.books.queued_packets.into(), self.books.queued_bytes),
        };
        queue.has_room(waiting, bytes, rate)
    }
}
