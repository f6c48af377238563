//! Links on which all is decided when a packet arrives: a queue that only decides whom to let in (tail drop, RED and those like it), a transmitter that
//! foresees when a packet is sent, a constant delay, and any judges before the queue.
//!
//! f and e follow from what the link knows at the arrival, so a packet goes to the delay line at once and has two events, its arrival and its
//! leaving; nothing happens at f. The packets that still wait are the last ones of the line, from [`Link::sending`] on, and each one's f is its
//! e less the delay. How many these are is counted anew only where it matters: when tail drop would refuse a packet, before another discipline is
//! asked, and when somebody wants to know.
//!
//! Whatever can't be done so makes the link a served one, in which packets wait in a list ([`Link::serve`]): trains, and every change. It is
//! decided again when it is idle, or at the end of the change, unless an earlier delay holds packets up: then e does not tell f.

use crate::delay::Delay;
use crate::fifo::Fifo;
use crate::has;
use crate::impair::Impair;
use crate::judge::{Chain, Either};
use crate::link::{Link, Surroundings};
use crate::links::Arrival;
use crate::plain::Fate;
use crate::queue::Queue;
use crate::transmit::{Sender, Transmit};
use longwire_block::DropReason;
use longwire_packet::{Handle, Pool};
use longwire_units::{Nanos, Rate};

impl Link {
    /// Notes whether all is decided when packets arrive, as the blocks are now. The link must be served.
    pub(crate) fn note_decidable(&mut self) {
        let others = self.features & !(has::DECIDABLE | has::INSTANT | has::PLAIN);
        self.features = others;
        if others != 0 || !self.transmit.foresees() || !matches!(self.delay, Delay::Constant(_)) {
            return;
        }
        self.features |= has::DECIDABLE;
        let (Transmit::Constant(transmit), Queue::TailDrop(_)) = (&mut self.transmit, &self.queue) else {
            return;
        };
        let rate = transmit.rate();
        let drops = match &self.chain {
            Chain::One(Either::Impair(Impair::Independent(loss))) => loss.drops(),
            _ => true,
        };
        // Of others, where the IP header is has to be known.
        if drops && !self.framing.counts_ip() {
            self.features |= has::PLAIN;
        }
        let takes_no_time = rate == Rate::UNLIMITED && self.delay.least() == Nanos::ZERO;
        // The longest packet, whatever it counts.
        if takes_no_time && self.has_room(u32::MAX.into(), rate) {
            self.features |= has::INSTANT;
        }
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

    /// Lets a packet into the queue of a decided link, or drops it.
    #[inline]
    pub(crate) fn join_decided(
        &mut self,
        at: &mut Surroundings<'_>,
        handle: Handle,
        (now, frame): (Nanos, u32),
    ) -> Arrival {
        if self.passes_through(now) {
            self.pass_through(at.pool.meta_mut(handle), now);
            return Arrival::Through;
        }
        if self.has_sent(now) {
            let leave = self.finish + self.delay.least();
            self.all_sent(leave);
        }
        let Some(bytes) = self.let_in_decided(at.pool, handle, (now, frame)) else { return Arrival::Kept };
        if self.features & has::PLAIN != 0 {
            let fate = self.join_plain(at.pool.meta_mut(handle), handle, now, bytes);
            return self.follow_fate(at, handle, fate);
        }
        let pause = self.sending.is_none();
        if pause {
            self.sending = handle;
        }
        self.books.queued_packets += 1;
        self.books.queued_bytes += bytes;
        self.finish = self.transmit.send(pause, if pause { now } else { self.finish }, bytes);
        let leave = self.finish + self.delay.least();
        let fate = match self.line.join_plain(at.pool.meta_mut(handle), handle, leave) {
            None => Fate::First(leave),
            Some(other) => Fate::Behind(other),
        };
        self.follow_fate(at, handle, fate)
    }

    /// What the arrival of a packet means for whoever looks after the link, after what has become of it. What leaves at this moment leaves.
    #[inline]
    pub(crate) fn follow_fate(&mut self, at: &mut Surroundings<'_>, handle: Handle, fate: Fate) -> Arrival {
        let arrival = match fate {
            Fate::Through => return Arrival::Through,
            Fate::Dropped(reason) => {
                self.drop(at.pool, handle, reason);
                return Arrival::Kept;
            }
            Fate::NotPlain | Fate::Judged(_) | Fate::Affected => return Arrival::Kept,
            Fate::First(_) => Arrival::Stirred,
            Fate::Behind(other) => {
                at.pool.meta_mut(other).next = handle.0;
                Arrival::Kept
            }
        };
        let now = self.latest;
        if self.finish <= now && self.line.next() <= now {
            self.release(at.pool, now, at.out);
        }
        arrival
    }

    /// The bytes that a packet counts, if the queue accepts it; else it is dropped. It does not count as waiting yet.
    #[inline]
    fn let_in_decided(&mut self, pool: &mut Pool, handle: Handle, (now, frame): (Nanos, u32)) -> Option<u64> {
        if !matches!(self.queue, Queue::TailDrop(_)) {
            self.recount(pool, now);
            let bytes = self.let_in(pool, handle, (now, frame))?;
            self.unadmit(1, bytes);
            return Some(bytes);
        }
        let bytes = self.counted(pool, handle, frame);
        let rate = self.transmit.rate();
        if !(self.has_room(bytes, rate) || self.has_overcounted(pool, now) && self.has_room(bytes, rate)) {
            self.drop(pool, handle, DropReason::QueueFull);
            return None;
        }
        Some(bytes)
    }

    /// Whether the tail drop of a decided link has room for a packet of `bytes` counted bytes, as far as is known.
    #[inline]
    fn has_room(&mut self, bytes: u64, rate: Rate) -> bool {
        let Queue::TailDrop(queue) = &self.queue else { return false };
        // Where sending takes no time, nothing waits.
        let (packets, waiting) = (self.books.queued_packets.into(), self.books.queued_bytes);
        queue.has_room(if rate == Rate::UNLIMITED { (0, 0) } else { (packets, waiting) }, bytes, rate)
    }

    /// All that a decided link holds is sent; the last one leaves at `leave`.
    #[inline]
    pub(crate) fn all_sent(&mut self, leave: Nanos) {
        self.latest = self.latest.max(self.finish);
        self.line.pass(leave);
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
        if finish == self.finish || next.is_none() {
            // Others may be sent at the same moment: those wait no longer, either.
            return self.all_sent(leave);
        }
        self.latest = self.latest.max(finish);
        self.line.pass(leave);
        self.books.queued_packets -= 1;
        self.books.queued_bytes -= self.counted(pool, handle, meta.wire_len);
        self.sending = next;
        if !matches!(self.transmit, Transmit::Constant(_)) {
            let bytes = self.counted(pool, next, pool.meta(next).wire_len);
            self.transmit.pass(finish, bytes);
        }
    }

    /// Counts what waits at `now`, exactly. Each packet is passed once.
    #[inline]
    pub(crate) fn recount(&mut self, pool: &Pool, now: Nanos) {
        let delay = self.delay.least();
        if !self.sending.is_none() && self.finish <= now {
            return self.all_sent(self.finish + delay);
        }
        while !self.sending.is_none() && Nanos(pool.meta(self.sending).leave).since(delay) <= now {
            self.pass(pool, self.sending);
        }
    }

    /// The queue has refused a packet at `now`: whether that was for packets that wait no longer.
    #[inline(never)]
    pub(crate) fn has_overcounted(&mut self, pool: &Pool, now: Nanos) -> bool {
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
            pool.meta_mut(handle).set_counted(bytes);
            if handle != self.sending {
                list.push(pool, handle);
                behind += bytes;
            }
        }
        self.books.list = list;
        self.transmit.go_back(now, first, self.finish, behind);
        self.finish = first;
    }

    /// After a change: decides about what waits, if the link is one that decides now, unless there is a train, or a packet that does not count
    /// what it would count if it came now.
    pub(crate) fn decide_waiting(&mut self, pool: &mut Pool) {
        let ordinary = |handle: Handle| {
            let meta = pool.meta(handle);
            !meta.is_train() && meta.counted() == self.counted(pool, handle, meta.wire_len)
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
        self.transmit.look_ahead();
        self.line.join_decided(pool, self.sending, self.finish + delay);
        while let Some(handle) = waiting.pop(pool) {
            self.finish = self.transmit.send(false, self.finish, pool.meta(handle).counted());
            self.line.join_decided(pool, handle, self.finish + delay);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::{Fifo, LinkConfig, Links, registry};
    use longwire_block::Values;
    use longwire_packet::Pool;
    use longwire_units::Nanos;

    /// Whether a link with these blocks decides about a packet when it arrives.
    fn decides(blocks: &[(&str, &str, &str)]) -> bool {
        let config = blocks.iter().fold(LinkConfig::default(), |config, (key, kind, text)| {
            let spec = registry().into_iter().find(|spec| (&spec.key, &spec.kind) == (key, kind)).unwrap();
            let given: Vec<_> = text.split(", ").filter_map(|pair| pair.split_once(" = ")).collect();
            config.with(spec, Values::read(spec, &given).unwrap())
        });
        let (mut links, mut pool) = (Links::with_capacity(1, 1, Nanos::ZERO), Pool::new(1 << 20).unwrap());
        links.add(0, "test", &config);
        let handle = pool.alloc(60).unwrap();
        let mut out = Fifo::EMPTY;
        links.arrive_and_leave(&mut pool, 0, handle, &mut out);
        links.links[0].is_decided()
    }

    #[test]
    fn what_is_known_at_the_arrival_is_decided_then() {
        let delay = ("delay", "constant", "delay = 1 ms");
        assert!(decides(&[]));
        for block in [
            ("rate", "constant", "rate = 1 Mbit/s"),
            ("rate", "token-bucket", "rate = 1 Mbit/s, burst = 2 kB"),
            ("rate", "trace", "file = 0 s 1 Mbit/s; 1 s 0; 2 s end"),
            ("rate", "trace", "file = 0 s 1 Mbit/s; 1 s 2 Mbit/s; 2 s 0; 3 s end, end = clear"),
            ("queue", "tail-drop", "limit = 10 packets"),
            ("queue", "red", ""),
            ("queue", "ared", ""),
            ("queue", "sred", ""),
            ("loss", "independent", "probability = 0 %"),
        ] {
            assert!(decides(&[delay, block]), "{block:?}");
        }
        for block in [
            ("rate", "constant", "rate = 0"),
            ("rate", "token-bucket", "rate = 0, burst = 2 kB"),
            ("rate", "token-bucket", "rate = 1 Mbit/s, burst = 2 kB, peak = 0"),
            ("rate", "trace", "file = 0 s 1 Mbit/s; 1 s 0; 2 s end, end = hold"),
            ("rate", "trace", "file = 1;2;3"),
            ("rate", "slotted", "min = 10 ms"),
            ("queue", "codel", ""),
            ("delay", "jitter", "delay = 1 ms, jitter = 1 ms"),
            ("bit-error", "rate", "rate = 0"),
        ] {
            assert!(!decides(&[block]), "{block:?}");
        }
    }
}
