//! Links on which all is decided when a packet arrives: tail drop, a constant rate, a constant delay, and any judges before the queue.
//!
//! f and e follow from what the link knows at the arrival, so a packet goes to the delay line at once and has two events, its arrival and its
//! leaving; nothing happens at f. The packets that still wait are the last ones of the line, from [`Link::sending`] on, and each one's f is its
//! e less the delay. How many these are is counted anew only where it matters: when the queue would refuse a packet, and when somebody asks.
//!
//! Whatever can't be done so makes the link a served one, in which packets wait in a list ([`Link::serve`]): trains, and every change. It is
//! decided again when it is idle, or at the end of the change, unless an earlier delay holds packets up: then e does not tell f.

use crate::delay::Delay;
use crate::fifo::Fifo;
use crate::link::{Link, Surroundings, has};
use crate::queue::Queue;
use crate::transmit::{Sender, Transmit};
use longwire_block::DropReason;
use longwire_packet::{Handle, Pool};
use longwire_units::{Nanos, Rate};

impl Link {
    /// Notes whether all is decided when packets arrive, as the blocks are now. The link must be served.
    pub(crate) fn note_decidable(&mut self) {
        let blocks = matches!(self.queue, Queue::TailDrop(_))
            && matches!(self.transmit, Transmit::Constant(_))
            && matches!(self.delay, Delay::Constant(_));
        let others = self.features & !(has::DECIDABLE | has::INSTANT);
        self.features = others;
        let rate = self.transmit.rate();
        if blocks && others == 0 && rate != Rate(0) {
            self.features |= has::DECIDABLE;
            // The longest packet, whatever it counts.
            let takes_no_time = rate == Rate::UNLIMITED && self.delay.least() == Nanos::ZERO;
            if takes_no_time && self.has_room(u32::MAX.into()) {
                self.features |= has::INSTANT;
            }
        }
    }

    /// Lets a packet through that is sent and leaves when it arrives: the link holds nothing, and all that [`Link::decide`] would find is known.
    #[inline]
    pub(crate) fn pass_through(&mut self, at: &mut Surroundings<'_>, handle: Handle, now: Nanos) {
        self.finish = now;
        self.line.pass(now);
        self.books.idle_since = now;
        let meta = at.pool.meta_mut(handle);
        meta.leave = now.0;
        self.books.counters.out_packets += 1;
        self.books.counters.out_bytes += u64::from(meta.wire_len);
        at.out.push(at.pool, handle);
    }

    #[inline]
    pub(crate) fn is_decided(&self) -> bool {
        self.features & has::DECIDED != 0
    }

    /// Before a packet, and no train, that arrives at `now`: an idle link becomes a decided one, if it can.
    #[inline]
    pub(crate) fn begin_to_decide(&mut self, now: Nanos) {
        if self.features & (has::DECIDED | has::DECIDABLE) == has::DECIDABLE
            && self.sending.is_none()
            && self.leaves_in_order(now)
        {
            self.features |= has::DECIDED;
        }
    }

    /// Whether a packet that is sent at `finish` leaves when the delay says, and not because of one before it.
    #[inline]
    fn leaves_in_order(&mut self, finish: Nanos) -> bool {
        !self.line.is_irregular() && self.line.last() <= finish + self.delay.least()
    }

    /// Lets a packet into the queue of a decided link, or drops it. Whether [`Link::deadline`] may have changed.
    #[inline]
    pub(crate) fn join_decided(
        &mut self,
        at: &mut Surroundings<'_>,
        handle: Handle,
        (now, frame): (Nanos, u32),
    ) -> bool {
        if self.features & has::INSTANT != 0 && self.sending.is_none() && self.line.is_over(now) {
            self.pass_through(at, handle, now);
            return false;
        }
        if self.has_sent(now) {
            self.all_sent();
        }
        let first = self.line.next() == Nanos::NEVER;
        let bytes = self.counted(at.pool, handle, frame);
        let fits = self.has_room(bytes) || self.has_overcounted(at.pool, now) && self.has_room(bytes);
        if !fits {
            self.drop(at.pool, handle, DropReason::QueueFull);
            return first;
        }
        self.books.queued_packets += 1;
        self.books.queued_bytes += bytes;
        self.decide(at, handle, now, bytes);
        first
    }

    /// Whether the queue of a decided link has room for a packet of `bytes` counted bytes, as far as is known. Where sending takes no time,
    /// nothing waits.
    #[inline]
    fn has_room(&mut self, bytes: u64) -> bool {
        let (Queue::TailDrop(queue), Transmit::Constant(transmit)) = (&self.queue, &mut self.transmit) else {
            return false;
        };
        let rate = transmit.rate();
        if rate == Rate::UNLIMITED {
            return queue.has_room((0, 0), bytes, rate);
        }
        queue.has_room((self.books.queued_packets.into(), self.books.queued_bytes), bytes, rate)
    }

    /// Decides about an admitted packet of `bytes` counted bytes.
    #[inline]
    fn decide(&mut self, at: &mut Surroundings<'_>, handle: Handle, now: Nanos, bytes: u64) {
        let Transmit::Constant(transmit) = &mut self.transmit else {
            return self.drop(at.pool, handle, DropReason::QueueFull);
        };
        if self.sending.is_none() {
            transmit.begin(now, bytes);
            self.sending = handle;
        } else {
            transmit.follow(self.finish, bytes);
        }
        self.finish = transmit.finish();
        self.line.join_decided(at.pool, handle, self.finish + self.delay.least());
        if self.finish <= now && self.line.next() <= now {
            self.release(at.pool, now, at.out);
        }
    }

    /// All that a decided link holds is sent by `now`.
    #[inline]
    pub(crate) fn all_sent(&mut self) {
        self.latest = self.latest.max(self.finish);
        self.line.pass(self.finish + self.delay.least());
        self.sending = Handle::NONE;
        self.books.idle_since = self.finish;
        (self.books.queued_packets, self.books.queued_bytes) = (0, 0);
    }

    /// The first packet that was thought to wait has been sent.
    #[inline]
    pub(crate) fn pass(&mut self, pool: &Pool, handle: Handle) {
        let meta = pool.meta(handle);
        let (leave, next) = (Nanos(meta.leave), Handle(meta.next));
        let finish = leave.since(self.delay.least());
        if finish == self.finish {
            // Others may be sent at the same moment: those wait no longer, either.
            return self.all_sent();
        }
        self.latest = self.latest.max(finish);
        self.line.pass(leave);
        self.books.queued_packets -= 1;
        self.books.queued_bytes -= self.counted(pool, handle, meta.wire_len);
        self.sending = next;
    }

    /// Counts what waits at `now`, exactly. Each packet is passed once.
    #[inline(never)]
    pub(crate) fn recount(&mut self, pool: &Pool, now: Nanos) {
        if !self.sending.is_none() && self.finish <= now {
            return self.all_sent();
        }
        let delay = self.delay.least();
        while !self.sending.is_none() && Nanos(pool.meta(self.sending).leave).since(delay) <= now {
            self.pass(pool, self.sending);
        }
    }

    /// The queue has refused a packet at `now`: whether that was for packets that wait no longer.
    #[inline(never)]
    fn has_overcounted(&mut self, pool: &Pool, now: Nanos) -> bool {
        let before = self.books.queued_packets;
        self.recount(pool, now);
        self.books.queued_packets < before
    }

    /// Makes a decided link a served one at `now`: what waits goes back to where it waits for the transmitter.
    #[inline(never)]
    pub(crate) fn serve(&mut self, pool: &mut Pool, now: Nanos) {
        if !self.is_decided() {
            return;
        }
        self.recount(pool, now);
        self.features &= !has::DECIDED;
        if self.sending.is_none() {
            return;
        }
        let delay = self.delay.least();
        let mut waiting = self.line.part_from(pool, self.sending);
        let first = Nanos(pool.meta(self.sending).leave).since(delay);
        let (mut list, mut behind) = (Fifo::EMPTY, 0);
        while let Some(handle) = waiting.pop(pool) {
            let bytes = self.counted(pool, handle, pool.meta(handle).wire_len);
            pool.meta_mut(handle).leave = bytes;
            if handle != self.sending {
                list.push(pool, handle);
                behind += bytes;
            }
        }
        self.books.list = list;
        if let Transmit::Constant(transmit) = &mut self.transmit {
            transmit.go_back(now, first, (self.finish, behind));
        }
        self.finish = first;
    }

    /// After a change: decides about what waits, if the link is one that decides now, unless there is a train, or a packet that does not count
    /// what it would count if it came now.
    pub(crate) fn decide_waiting(&mut self, pool: &mut Pool) {
        let ordinary = |handle: Handle| {
            let meta = pool.meta(handle);
            !meta.is_train() && meta.leave == self.counted(pool, handle, meta.wire_len)
        };
        if self.features & (has::DECIDED | has::DECIDABLE) != has::DECIDABLE
            || self.sending.is_none()
            || !ordinary(self.sending)
            || !self.books.list.iter(pool).all(ordinary)
            || !self.leaves_in_order(self.finish)
        {
            return;
        }
        self.features |= has::DECIDED;
        let delay = self.delay.least();
        let mut waiting = self.books.list.take();
        self.line.join_decided(pool, self.sending, self.finish + delay);
        while let Some(handle) = waiting.pop(pool) {
            self.transmit.follow(self.finish, pool.meta(handle).leave);
            self.finish = self.transmit.finish();
            self.line.join_decided(pool, handle, self.finish + delay);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::{Fifo, LinkConfig, Links};
    use longwire_packet::Pool;
    use longwire_units::Nanos;

    /// Whether a link with these keys decides about a packet when it arrives.
    fn decides(keys: &[(&str, &str)]) -> bool {
        let config = LinkConfig::default();
        let config = keys.iter().fold(config, |config, (key, text)| config.with_text(key, text).unwrap());
        let (mut links, mut pool) = (Links::with_capacity(1, 1, Nanos::ZERO), Pool::new(1 << 20).unwrap());
        links.add(0, "test", &config);
        let handle = pool.alloc(60).unwrap();
        let mut out = Fifo::EMPTY;
        links.arrive(&mut pool, 0, handle, &mut out);
        links.links[0].is_decided()
    }

    #[test]
    fn what_is_known_at_the_arrival_is_decided_then() {
        let busy = [("rate", "1 Mbit/s"), ("delay", "1 ms"), ("queue", "10 packets"), ("loss", "0 %")];
        assert!(decides(&[]) && decides(&busy));
        for other in [("rate", "0"), ("bit-error", "0")] {
            assert!(!decides(&[other]), "{other:?}");
        }
    }
}
