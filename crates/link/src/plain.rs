//! The plain case, whole: what happens to a packet on a link that loses by chance, lets so many wait, and has a rate and a delay.
//!
//! The packet arrives at a = max(its stamp, the last a), and may be lost. If the queue has room, sending begins at s = max(a, previous f) and ends at
//! f = s + bits / rate, rounded down with the remainder carried, and the packet leaves at e = f + delay. All of that is known at the arrival
//! (`decided.rs` says why, and what of links that are not so plain), so the packet goes to the delay line at once. Nothing here looks at what such a link
//! does not have, and nothing is called: what is not so plain is left to others, untouched.

use crate::delay::Delay;
use crate::has;
use crate::impair::Impair;
use crate::judge::{Chain, Either};
use crate::link::Link;
use crate::links::Links;
use crate::queue::Queue;
use crate::transmit::{Sender, Transmit};
use longwire_block::DropReason;
use longwire_packet::{BATCH, Handle, Meta, Pool};
use longwire_units::{Nanos, Rate};

/// What becomes of a packet that arrives at a plain link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It leaves at this very moment, and nothing is in front of it.
    Through,
    /// It travels until then, and is the first on its way.
    First(Nanos),
    /// It travels behind this one.
    Behind(Handle),
    /// It is lost. It has not been dropped yet.
    Lost,
    /// The link, or the packet, is not plain: nothing has happened yet.
    NotPlain,
}

/// Links whose lines were empty, and when what was put there leaves: a batch at a time.
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
    /// The links and times.
    pub fn as_slice(&self) -> &[(u32, Nanos)] {
        &self.firsts[..self.count]
    }

    /// Forgets them.
    pub fn clear(&mut self) {
        self.count = 0;
    }
}

/// Why a run of packets that enter plain links ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// All have entered.
    Done,
    /// Whoever takes what leaves at once has no room for more; the last packet has entered.
    Full,
    /// The last packet was lost. It is to be given to [`Links::lose`].
    Lost(u32),
    /// The next packet is not plain, or its link is not.
    NotPlain,
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
    /// Lets packets, a batch at most, enter the plain links that their paths name, in order, at `Meta::arrival`. Paths are those of a worker whose first link
    /// has the path `here` ([`LinkRef::first_of`](longwire_block::path::LinkRef::first_of)). What leaves at once is given to `pass`, which says whether it has no room
    /// for another. How many packets have entered, and why no more have.
    #[inline(always)]
    pub fn enter_plain(
        &mut self,
        pool: &mut Pool,
        here: u32,
        packets: &[Handle],
        firsts: &mut Firsts,
        mut pass: impl FnMut(Passed) -> bool,
    ) -> (usize, Stop) {
        for (at, &handle) in packets.iter().enumerate() {
            let meta = pool.meta_mut(handle);
            // No link here has the number that another worker's, or none, or a longer path, comes to.
            let number = meta.path ^ here;
            let out_port = meta.out_port;
            let Some(link) = self.links.get_mut(number as usize) else { return (at, Stop::NotPlain) };
            match link.arrive_plain(meta, handle) {
                Fate::Through => {
                    let leave = link.latest;
                    if pass(Passed { handle, leave, link: number, out_port }) {
                        return (at + 1, Stop::Full);
                    }
                }
                Fate::First(leave) => {
                    firsts.firsts[firsts.count % BATCH] = (number, leave);
                    firsts.count += 1;
                }
                Fate::Behind(other) => pool.meta_mut(other).next = handle.0,
                Fate::Lost => return (at + 1, Stop::Lost(number)),
                Fate::NotPlain => return (at, Stop::NotPlain),
            }
        }
        (packets.len(), Stop::Done)
    }

    /// Drops a packet that a link has lost.
    pub fn lose(&mut self, pool: &mut Pool, link: u32, handle: Handle) {
        self.links[link as usize].drop(pool, handle, DropReason::Loss);
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
        let now = self.effective_arrival(Nanos(meta.arrival));
        if self.passes_through(now) {
            let Some(lost) = self.loses() else { return Fate::NotPlain };
            self.note_plain(meta, now);
            if lost {
                return Fate::Lost;
            }
            self.pass_through(meta, now);
            return Fate::Through;
        }
        let bytes = self.framing.counted_on_wire(meta.wire_len);
        if !self.has_room_at(now, bytes) {
            return Fate::NotPlain;
        }
        let Some(lost) = self.loses() else { return Fate::NotPlain };
        self.note_plain(meta, now);
        if lost { Fate::Lost } else { self.join_plain(meta, handle, now, bytes) }
    }

    /// Whether the link loses the next packet; none if that is not all that its judges may do.
    #[inline(always)]
    fn loses(&mut self) -> Option<bool> {
        if let Chain::One(Either::Impair(Impair::Independent(loss))) = &mut self.chain {
            Some(loss.strikes())
        } else {
            matches!(self.chain, Chain::None).then_some(false)
        }
    }

    /// Counts a packet as having come at `now`.
    #[inline(always)]
    fn note_plain(&mut self, meta: &mut Meta, now: Nanos) {
        self.latest = now;
        (meta.arrival, meta.band) = (now.0, Meta::NO_BAND);
        self.books.counters.in_packets += 1;
        self.books.counters.in_bytes += u64::from(meta.wire_len);
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
        let (Transmit::Constant(transmit), Delay::Constant(delay)) = (&mut self.transmit, &self.delay) else {
            return Fate::NotPlain;
        };
        let delay = delay.delay();
        let busy = !self.sending.is_none() && self.finish > now;
        if busy {
            self.finish = transmit.send(false, self.finish, bytes);
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

    /// Whether the tail drop of a plain link has room at `now` for a packet of `bytes` counted bytes, as far as is known without counting anew.
    #[inline(always)]
    fn has_room_at(&mut self, now: Nanos, bytes: u64) -> bool {
        let (Transmit::Constant(transmit), Queue::TailDrop(queue)) = (&mut self.transmit, &self.queue) else {
            return false;
        };
        let rate = transmit.rate();
        // Where sending takes no time, nothing waits.
        let idle = self.sending.is_none() || self.finish <= now || rate == Rate::UNLIMITED;
        let (packets, waiting) = (self.books.queued_packets.into(), self.books.queued_bytes);
        queue.has_room(if idle { (0, 0) } else { (packets, waiting) }, bytes, rate)
    }
}
