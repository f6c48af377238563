//! The plain case, whole: what happens to a packet on a link that loses by chance, lets so many wait, and has a rate and a delay.
//!
//! The packet arrives at a = max(its stamp, the last a), and may be lost. If the queue has room, sending begins at s = max(a, previous f) and ends at
//! f = s + bits / rate, rounded down with the remainder carried, and the packet leaves at e = f + delay. All of that is known at the arrival
//! (`decided.rs` says why, and what of links that are not so plain), so the packet goes to the delay line at once. Nothing here looks at what such a link
//! does not have, and nothing is called: what is not so plain is left to others, untouched.

use crate::delay::Delay;
use crate::fifo::Fifo;
use crate::has;
use crate::impair::Impair;
use crate::judge::{Chain, Either};
use crate::link::{Link, Surroundings};
use crate::links::{Arrival, Links};
use crate::queue::Queue;
use crate::transmit::{Sender, Transmit};
use longwire_block::{DropReason, Effects, Offer, Verdict};
use longwire_packet::{BATCH, Handle, Meta, Pool};
use longwire_units::Nanos;

/// What becomes of a packet that arrives at a plain link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It leaves at this very moment, and nothing is in front of it.
    Through,
    /// It travels until then, and is the first on its way.
    First(Nanos),
    /// It travels behind this one.
    Behind(Handle),
    /// It is lost, for this reason. It has not been dropped yet.
    Dropped(DropReason),
    /// Its judges are to be asked: [`Link::ask_judges`]. Nothing has happened yet.
    Judged(Coming),
    /// Its judges do more to it: [`Link::arrive_affected`] is to go on with that.
    Affected,
    /// The link, or the packet, is not plain: nothing has happened yet.
    NotPlain,
}

/// What the judges do to a packet that is more than to let it pass or drop it.
pub(crate) type Affected = (Verdict, Effects);

/// A packet that comes to a plain link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Coming {
    now: Nanos,
    /// Bytes of its frame.
    frame: u32,
    /// Bytes that it counts in the queue; none if it passes through without waiting there.
    bytes: Option<u64>,
}

/// Links that have another deadline, mostly because their lines were empty, and when that is: a batch at a time.
#[derive(Debug)]
pub struct Firsts {
    firsts: [(u32, Nanos); BATCH],
    count: usize,
}

impl Default for Firsts {
    fn default() -> Self {
        Self { firsts: [(0, Nanos::NEVER); BATCH], count: 0 }
    }
}

impl Firsts {
    #[inline(always)]
    fn push(&mut self, link: u32, deadline: Nanos) {
        self.firsts[self.count % BATCH] = (link, deadline);
        self.count += 1;
    }

    /// The links and times.
    pub fn as_slice(&self) -> &[(u32, Nanos)] {
        &self.firsts[..self.count]
    }

    /// Forgets them.
    pub fn clear(&mut self) {
        self.count = 0;
    }
}

/// Why a run of packets that enter links ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// All have entered.
    Done,
    /// Whoever takes what leaves at once has no room for more; the last packet has entered.
    Full,
    /// The last packet has entered, and these leave at that moment.
    Left(Fifo),
    /// The next packet's path is no link here.
    Elsewhere,
}

/// A packet that leaves a link at the moment at which it came.
#[derive(Debug, Clone, Copy)]
pub struct Passed {
    /// The packet.
    pub handle: Handle,
    /// When.
    pub leave: Nanos,
    /// The link.
    pub link: u32,
    /// Where it goes, as in its `Meta`.
    pub out_port: u16,
}

impl Links {
    /// Lets packets, a batch at most, enter the links that their paths name, in order, at `Meta::arrival`. Paths are those of a worker whose first
    /// link has the path `here` ([`LinkRef::first_of`](longwire_block::path::LinkRef::first_of)), and which has no media. What leaves at once is given
    /// to `pass`, which says whether it has no room for another. How many packets have entered, and why no more have.
    #[inline(always)]
    pub fn enter(
        &mut self,
        pool: &mut Pool,
        here: u32,
        packets: &[Handle],
        firsts: &mut Firsts,
        mut pass: impl FnMut(Passed) -> bool,
    ) -> (usize, Stop) {
        let mut affected = None;
        for (at, &handle) in packets.iter().enumerate() {
            let meta = pool.meta_mut(handle);
            let &mut Meta { path, out_port, .. } = meta;
            // No link here has the number that another worker's, or none, or a longer path, comes to.
            let number = path ^ here;
            let Some(link) = self.links.get_mut(number as usize) else { return (at, Stop::Elsewhere) };
            let mut fate = link.arrive_plain(meta, handle);
            if let Fate::Judged(coming) = fate {
                fate = link.ask_judges(pool, handle, coming, &mut affected);
            }
            match fate {
                Fate::Through => {
                    let leave = link.latest;
                    if pass(Passed { handle, leave, link: number, out_port }) {
                        return (at + 1, Stop::Full);
                    }
                }
                Fate::First(leave) => firsts.push(number, leave),
                Fate::Behind(other) => pool.meta_mut(other).next = handle.0,
                Fate::Dropped(reason) => link.drop(pool, handle, reason),
                Fate::Affected | Fate::NotPlain | Fate::Judged(_) => {
                    let mut out = Fifo::EMPTY;
                    let at_link = &mut Surroundings { pool, spread: self.spread, out: &mut out };
                    match link.go_on(at_link, handle, affected.take()) {
                        Arrival::Through => out.push(pool, handle),
                        Arrival::Stirred => firsts.push(number, link.deadline()),
                        Arrival::Kept => {}
                    }
                    if !out.is_empty() {
                        return (at + 1, Stop::Left(out));
                    }
                }
            }
        }
        (packets.len(), Stop::Done)
    }
}

impl Link {
    /// Takes a packet in that arrives at `Meta::arrival`.
    #[inline(always)]
    pub(crate) fn arrive_plain(&mut self, meta: &mut Meta, handle: Handle) -> Fate {
        const PLAIN: u16 = has::PLAIN | has::DECIDED;
        if self.features & PLAIN != PLAIN || meta.is_train() || meta.flags & Meta::BANDED != 0 {
            return Fate::NotPlain;
        }
        let (now, frame) = (self.effective_arrival(Nanos(meta.arrival)), meta.wire_len);
        if self.passes_through(now) {
            let Some(lost) = self.loses() else {
                return Fate::Judged(Coming { now, frame, bytes: None });
            };
            self.note_arrival(meta, now, frame);
            if lost {
                return Fate::Dropped(DropReason::Loss);
            }
            self.pass_through(meta, now);
            return Fate::Through;
        }
        let bytes = self.framing.counted_on_wire(frame);
        if !self.has_room_for(bytes, self.is_sending(now)) {
            return Fate::NotPlain;
        }
        let Some(lost) = self.loses() else {
            return Fate::Judged(Coming { now, frame, bytes: Some(bytes) });
        };
        self.note_arrival(meta, now, frame);
        if lost { Fate::Dropped(DropReason::Loss) } else { self.join_plain(meta, handle, now, bytes) }
    }

    /// Whether the link loses the next packet; none if it has judges that are to be asked.
    #[inline(always)]
    fn loses(&mut self) -> Option<bool> {
        if let Chain::One(Either::Impair(Impair::Independent(loss))) = &mut self.chain {
            Some(loss.strikes())
        } else {
            matches!(self.chain, Chain::None).then_some(false)
        }
    }

    /// Asks the judges about a packet to which nothing has happened yet. What they do to it besides goes to `affected`.
    #[inline(never)]
    pub(crate) fn ask_judges(
        &mut self,
        pool: &mut Pool,
        handle: Handle,
        Coming { now, frame, bytes }: Coming,
        affected: &mut Option<Affected>,
    ) -> Fate {
        let mut offer = Offer::pooled(now, frame, pool, handle);
        let verdict = self.chain.judge_one(&mut offer);
        let done = offer.done().copied();
        let meta = pool.meta_mut(handle);
        self.note_arrival(meta, now, frame);
        match (done, verdict, bytes) {
            (Some(effects), ..) => {
                *affected = Some((verdict, effects));
                Fate::Affected
            }
            (None, Verdict::Drop(reason), _) => Fate::Dropped(reason),
            (None, _, Some(bytes)) => self.join_plain(meta, handle, now, bytes),
            (None, _, None) => {
                self.pass_through(meta, now);
                Fate::Through
            }
        }
    }

    /// Counts a packet that has come.
    #[inline(always)]
    fn note_arrival(&mut self, meta: &mut Meta, now: Nanos, frame: u32) {
        self.latest = now;
        (meta.arrival, meta.band) = (now.0, Meta::NO_BAND);
        self.books.counters.in_packets += 1;
        self.books.counters.in_bytes += u64::from(frame);
    }

    /// Whether a packet that comes at `now` is sent and leaves at that moment, because the link holds nothing and neither takes time there.
    #[inline(always)]
    pub(crate) fn passes_through(&self, now: Nanos) -> bool {
        self.features & has::INSTANT != 0 && self.sending.is_none() && self.line.is_over(now)
    }

    /// Lets such a packet pass.
    #[inline(always)]
    pub(crate) fn pass_through(&mut self, meta: &mut Meta, now: Nanos) {
        self.finish = now;
        self.line.pass_over(now);
        self.books.idle_since = now;
        meta.leave = now.0;
        self.books.counters.out_packets += 1;
        self.books.counters.out_bytes += u64::from(meta.wire_len);
    }

    /// Lets a packet that counts so many bytes, and for which there is room, into the queue, and onto the delay line.
    #[inline(always)]
    pub(crate) fn join_plain(&mut self, meta: &mut Meta, handle: Handle, now: Nanos, bytes: u64) -> Fate {
        let sending = self.is_sending(now);
        let (Transmit::Constant(transmit), Delay::Constant(delay)) = (&mut self.transmit, &self.delay) else {
            return Fate::NotPlain;
        };
        let delay = delay.delay();
        if sending {
            self.finish = transmit.send_behind(self.finish, bytes);
            self.books.queued_packets += 1;
            self.books.queued_bytes += bytes;
        } else {
            if !self.sending.is_none() {
                // All that was there is sent.
                self.line.pass(self.finish + delay);
                self.books.idle_since = self.finish;
            }
            self.finish = transmit.send(true, now, bytes);
            self.sending = handle;
            (self.books.queued_packets, self.books.queued_bytes) = (1, bytes);
        }
        let leave = self.finish + delay;
        match self.line.join_plain(meta, handle, leave) {
            None => Fate::First(leave),
            Some(other) => Fate::Behind(other),
        }
    }

    /// Lets go of packets that leave by `until`, until `out` says that it has enough. When the link wants to be looked at next.
    #[inline(always)]
    pub(crate) fn release_each(
        &mut self,
        pool: &mut Pool,
        until: Nanos,
        mut out: impl FnMut(Handle, &Meta) -> bool,
    ) -> Nanos {
        if self.is_decided() {
            self.release_decided(pool, until, out);
            return self.line.next();
        }
        loop {
            self.precede(pool, until);
            if self.line.next() > until {
                break;
            }
            let Some((handle, meta)) = self.take_first(pool) else { break };
            if out(handle, meta) {
                break;
            }
        }
        self.deadline()
    }

    /// Sends what may be the first to leave by `until` on its way.
    #[inline]
    fn precede(&mut self, pool: &mut Pool, until: Nanos) {
        while self.may_precede(until) && self.wake() <= until.min(self.line.next()) {
            self.advance(pool, until);
        }
    }

    /// Lets go of packets of a decided link that leave by `until`, until `out` says that it has enough: all are in order.
    #[inline(always)]
    pub(crate) fn release_decided(
        &mut self,
        pool: &Pool,
        until: Nanos,
        mut out: impl FnMut(Handle, &Meta) -> bool,
    ) {
        let (mut packets, mut bytes) = (0, 0);
        while self.line.next() <= until
            && let Some((handle, meta)) = self.line.take_plain(pool)
        {
            // One that came while the link served may still be on its way.
            packets += u32::from(meta.segments);
            bytes += if meta.is_train() { meta.segment_bytes() } else { u64::from(meta.wire_len) };
            if handle == self.sending {
                if self.line.next() == Nanos::NEVER {
                    self.all_sent(Nanos(meta.leave));
                } else {
                    self.pass(pool, handle);
                }
            }
            if out(handle, meta) {
                break;
            }
        }
        self.line.count_taken(packets);
        self.books.counters.out_packets += u64::from(packets);
        self.books.counters.out_bytes += bytes;
    }

    /// Whether something is still to be sent at `now`. Where sending takes no time, nothing ever is.
    #[inline(always)]
    fn is_sending(&self, now: Nanos) -> bool {
        !self.sending.is_none() && self.finish > now
    }

    /// Whether the tail drop of a plain link has room for a packet of `bytes` counted bytes, as far as is known without counting anew.
    #[inline(always)]
    fn has_room_for(&mut self, bytes: u64, sending: bool) -> bool {
        let (Transmit::Constant(transmit), Queue::TailDrop(queue)) = (&mut self.transmit, &self.queue) else {
            return false;
        };
        let (packets, waiting) = (self.books.queued_packets.into(), self.books.queued_bytes);
        queue.has_room(if sending { (packets, waiting) } else { (0, 0) }, bytes, transmit.rate())
    }
}
