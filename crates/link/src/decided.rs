//! Links on which everything is decided when a packet arrives. They have a queue that only decides about
//! admission (tail drop, RED and similar ones) or foresees what it does (see `asked.rs`), a transmitter that
//! can predict when a packet is sent, a constant delay, and any judges before the queue. If transmission
//! takes no time, any delay and judges on the wire are possible, because each packet is sent when it comes.
//!
//! f and e follow from the link's state at the arrival, so a packet goes to the delay line at once and has
//! two events, arrival and departure; nothing happens at f. Packets that still wait are the last ones of the
//! line, from `Line::waits` on, and the f of each is its e minus the delay. Their number is recounted only
//! where it matters: when tail drop would refuse a packet, before another discipline is asked, and for
//! statistics.
//!
//! Everything else turns the link into a served one, in which packets wait in a list ([`Link::serve`]):
//! trains, and every change. It is decided again when it is idle, or at the end of the change, unless an
//! earlier delay holds packets back: then f does not follow from e.

use crate::delay::constant::Constant;
use crate::delay::{Delay, SetOff, SetsOff, Travel};
use crate::fate::{Affected, Arrival, Coming, Fate};
use crate::fifo::Fifo;
use crate::has;
use crate::link::{Link, Surroundings};
use crate::profile::{Loss, Profile};
use crate::queue::Waiting;
use crate::stage::OfStage;
use longwire_packet::{Handle, Pool};
use longwire_units::{Nanos, Rate};
use std::sync::Arc;

impl SetsOff<Delay> for Link {
    #[inline(always)]
    fn set_off_by<D: Travel + OfStage<Delay>>(
        &mut self,
        pool: &mut Pool,
        handle: Handle,
        now: Nanos,
    ) -> Fate {
        (self.finish, self.rest, self.waiting) = (now, 0, Waiting::default());
        let travel = |delay: &mut Delay| D::of(delay).map_or(Nanos::ZERO, |delay| delay.travel(now));
        self.delay_at_once(pool, handle, now, travel)
    }
}

impl Link {
    /// Records whether everything is decided on arrival with the current blocks, and the profile. The link
    /// must be served.
    pub(crate) fn note_decidable(&mut self) {
        self.line.features &= !(has::DECIDABLE | has::INSTANT | has::PLAIN | has::VARIES);
        let mut profile = Profile::of(self.blocks());
        let Profile { law, queue, .. } = profile;
        let at_once = law.rate() == Rate::UNLIMITED && !profile.asks_transmitter;
        let blocks = self.blocks();
        blocks.wire_first = false;
        let wire = Loss::of(&blocks.wire.chain);
        let decidable = blocks.transmit.foresees()
            // A packet that is sent on arrival can be judged then, and its delay drawn.
            && (at_once || !profile.asks_wire && !profile.asks_delay)
            && blocks.queue.foresees();
        let disorder = if profile.asks_delay { has::DISORDER } else { 0 };
        let known = has::WIRE | has::AHEAD | has::TRAIN | disorder;
        let others = self.line.features & !known;
        if decidable && others == 0 {
            self.line.features |= has::DECIDABLE;
            let asks_none = !profile.asks_queue && !profile.asks_delay;
            // The longest packet, whatever it counts.
            let always_has_room = queue.has_room(Waiting::default(), u32::MAX.into(), || law.rate());
            profile.always_admits = profile.asks_behind && !profile.asks_queue && always_has_room;
            if asks_none && at_once && always_has_room {
                self.line.set(has::INSTANT, profile.delay == Nanos::ZERO);
                // Nothing separates judges before the queue from those after it.
                if profile.loss == Loss::None {
                    (profile.loss, profile.asks_wire, profile.asks_behind) = (wire, false, false);
                    self.blocks().wire_first = wire == Loss::Judges;
                }
            }
            let admits_all = profile.always_admits && profile.loss == Loss::None;
            self.line.set(has::VARIES, admits_all && profile.asks_delay && !profile.asks_wire);
            // Others need the offset of the IP header, or the departure rate.
            let by_rate = profile.asks_transmitter && queue.asks_rate();
            let is_plain = asks_none && !profile.asks_wire && !profile.framing.counts_ip() && !by_rate;
            self.line.set(has::PLAIN, is_plain);
        }
        *Arc::make_mut(&mut self.profile) = profile;
    }

    /// The path of a packet that nothing but its delay is asked about.
    #[inline(always)]
    pub(crate) fn delayer(&self) -> SetOff<Self> {
        self.known_blocks().map_or(Self::set_off_by::<Constant>, |blocks| blocks.delay.set_off())
    }

    #[inline]
    pub(crate) fn is_decided(&self) -> bool {
        self.line.features & has::DECIDED != 0
    }

    /// Turns an idle link into a decided one, if possible, before a packet, not a train, that arrives at
    /// `now`.
    #[inline]
    pub(crate) fn begin_to_decide(&mut self, now: Nanos) {
        if self.line.features & (has::DECIDED | has::DECIDABLE) == has::DECIDABLE
            && self.blocks().sending.is_none()
            && (self.profile.asks_delay || self.leaves_in_order(now))
            && self.blocks().queue.begins_to_decide()
        {
            self.line.features |= has::DECIDED;
            if let Some(blocks) = self.known_blocks_mut() {
                blocks.books.due = Nanos::ZERO;
            }
        }
    }

    /// Whether a packet sent at `finish` leaves by its delay, and not because of a previous one.
    #[inline]
    fn leaves_in_order(&self, finish: Nanos) -> bool {
        let least = self.profile.delay;
        !self.line.is_irregular() && self.known_blocks().is_none_or(|blocks| blocks.last <= finish + least)
    }

    /// Effects of a packet's arrival on the link's scheduling, after its fate is known. Departures at this
    /// moment are released.
    #[inline]
    pub(crate) fn follow_fate(&mut self, at: &mut Surroundings<'_>, handle: Handle, fate: Fate) -> Arrival {
        let arrival = match fate {
            Fate::Through => return Arrival::Through,
            Fate::Dropped(reason) => {
                self.drop(at.pool, handle, reason);
                return Arrival::Kept;
            }
            Fate::Waits => return self.wait_served(None, at, handle),
            Fate::NotPlain | Fate::Asked | Fate::Admitted | Fate::Affected | Fate::Judged => {
                return Arrival::Kept;
            }
            Fate::Joined(false) => Arrival::Kept,
            Fate::Joined(true) => Arrival::DeadlineChanged,
        };
        let now = self.latest;
        if self.finish <= now && self.line.next() <= now {
            self.release(at.pool, now, at.out);
        }
        arrival
    }

    /// Marks everything on a decided link as sent.
    #[inline(always)]
    pub(crate) fn all_sent(&mut self) {
        self.latest = self.latest.max(self.finish);
        if self.is_due(self.finish) {
            self.report_sent(self.finish);
        }
        self.waiting = Waiting::default();
        if self.line.features & has::PLAIN == 0 && self.profile.asks_queue {
            // The discipline asks.
            let finish = self.finish;
            self.blocks().books.idle_since = finish;
        }
    }

    /// Removes the first packet counted as waiting, `handle`, because it has been sent; `next` is the one
    /// behind it.
    #[inline(never)]
    pub(crate) fn pass(&mut self, pool: &Pool, handle: Handle, next: Option<Handle>) {
        let meta = pool.meta(handle);
        let finish = Nanos(meta.leave()).since(self.profile.delay);
        let Some(next) = next.filter(|_| finish != self.finish) else {
            // Others may be sent at the same moment, and no longer wait either.
            return self.all_sent();
        };
        self.latest = self.latest.max(finish);
        if self.is_due(finish) {
            self.report_sent(finish);
        }
        self.waiting.packets -= 1;
        self.waiting.bytes -= self.counted(pool, handle, meta.wire_len);
        if self.profile.asks_transmitter {
            let bytes = self.counted(pool, next, pool.meta(next).wire_len);
            self.blocks().transmit.pass(finish, bytes);
        }
    }

    /// Counts waiting packets at `now` exactly. Each packet is passed once.
    #[inline(always)]
    pub(crate) fn recount(&mut self, pool: &Pool, now: Nanos) {
        if self.waiting.packets == 0 {
            return;
        }
        if self.finish <= now && !self.is_due(self.finish) {
            self.all_sent();
        } else if self.first_is_sent(pool, now) {
            self.pass_sent(pool, now);
        }
    }

    /// Whether the first packet counted as waiting has been sent by `now`.
    #[inline(always)]
    fn first_is_sent(&self, pool: &Pool, now: Nanos) -> bool {
        let first = self.line.waiting(pool, self.waiting.packets);
        Nanos(pool.meta(first).leave()).since(self.profile.delay) <= now
    }

    /// Stops counting packets sent by `now`: the first one counted, but not all.
    #[inline(never)]
    fn pass_sent(&mut self, pool: &Pool, now: Nanos) {
        while self.waiting.packets > 0 && self.first_is_sent(pool, now) {
            let waiting = self.waiting.packets;
            let first = self.line.waiting(pool, waiting);
            let next = self.line.pass(pool, waiting);
            self.pass(pool, first, next);
        }
    }

    /// Sends a packet at its arrival, where transmission takes no time.
    #[inline(always)]
    pub(crate) fn send_at_once(
        &mut self,
        pool: &mut Pool,
        handle: Handle,
        Coming { now, frame }: Coming,
        affected: &mut Affected,
    ) -> Fate {
        (self.finish, self.rest) = (now, 0);
        if self.profile.asks_wire && !self.judge_sent(pool, handle, now, affected) {
            self.all_sent();
            return Fate::Judged;
        }
        if self.profile.asks_delay {
            self.all_sent();
            return self.delay_at_once(pool, handle, now, |delay| delay.travel(now));
        }
        self.waiting = Waiting::default();
        let bytes = self.counted(pool, handle, frame);
        Fate::Joined(self.wait_on_line(pool, handle, bytes, self.finish + self.profile.delay))
    }

    /// Delays a packet by `travel` that is sent at its arrival.
    #[inline(always)]
    fn delay_at_once(
        &mut self,
        pool: &mut Pool,
        handle: Handle,
        now: Nanos,
        travel: impl FnOnce(&mut Delay) -> Nanos,
    ) -> Fate {
        let next = self.line.next();
        if self.line.is_irregular() && self.line.features & has::DISORDER == 0 {
            // Judges on the wire have sent others on with delays of their own.
            self.depart(pool, handle, now, (Nanos::ZERO, None));
        } else {
            let delay = travel(&mut self.blocks().delay);
            self.join_line(pool, handle, now + delay);
        }
        Fate::Joined(self.line.next() < next)
    }

    /// Turns a decided link into a served one at `now`: waiting packets return to the transmitter's list.
    #[inline(never)]
    pub(crate) fn serve(&mut self, pool: &mut Pool, now: Nanos) {
        if !self.is_decided() {
            return;
        }
        self.recount(pool, now);
        let (finish, rest) = (self.finish, self.rest);
        self.line.features &= !has::DECIDED;
        let mut waiting = Fifo::EMPTY;
        if self.waiting.packets > 0 {
            waiting = self.line.part_waiting(pool, self.waiting.packets);
        }
        let sent = self.line.last_leaving(pool);
        let (is_constant, backlog) = (!self.profile.asks_transmitter, self.waiting.bytes);
        let blocks = self.blocks();
        blocks.queue.notice_backlog(backlog);
        blocks.last = blocks.last.max(sent);
        if is_constant {
            blocks.transmit.take_over(finish, rest);
        }
        if let Some(first) = waiting.pop(pool) {
            self.wait_again(pool, now, first, waiting);
        }
    }

    /// Moves decided packets to the waiting list, behind the first, which is being sent.
    fn wait_again(&mut self, pool: &mut Pool, now: Nanos, sending: Handle, list: Fifo) {
        let first = Nanos(pool.meta(sending).leave()).since(self.profile.delay);
        let mut count = |handle| {
            let bytes = self.counted(pool, handle, pool.meta(handle).wire_len);
            pool.meta_mut(handle).set_counted(bytes);
            (bytes, Handle(pool.meta(handle).next))
        };
        count(sending);
        let (mut next, mut behind) = (list.first(), 0);
        while let Some(handle) = next {
            let (bytes, after) = count(handle);
            behind += bytes;
            next = (!after.is_none()).then_some(after);
        }
        let last = self.finish;
        let blocks = self.blocks();
        (blocks.sending, blocks.books.list) = (sending, blocks.queue.take_back(pool, sending, list));
        blocks.transmit.go_back(now, first, last, behind);
        let rest = blocks.transmit.rest(first);
        (self.finish, self.rest) = (first, rest);
    }

    /// After a change: decides about what waits, if the link is one that decides now, unless there is a
    /// train, or a packet that does not count what it would count if it came now.
    pub(crate) fn decide_waiting(&mut self, pool: &mut Pool) {
        let decidable = self.line.features & (has::DECIDED | has::DECIDABLE) == has::DECIDABLE;
        if !decidable || self.blocks().sending.is_none() || !self.leaves_in_order(self.finish) {
            return;
        }
        // Others may be about to act on what waits.
        if !self.blocks().queue.plain() {
            return;
        }
        let (sending, mut list) = (self.blocks().sending, self.blocks().books.list);
        let ordinary = |handle: Handle| {
            let meta = pool.meta(handle);
            !meta.is_train() && meta.counted() == self.counted(pool, handle, meta.wire_len)
        };
        if !ordinary(sending) || !list.iter(pool).all(ordinary) {
            return;
        }
        self.line.features |= has::DECIDED;
        let (delay, mut finish) = (self.profile.delay, self.finish);
        self.tell_transmitter(finish);
        let blocks = self.blocks();
        (blocks.sending, blocks.books.list) = (Handle::NONE, Fifo::EMPTY);
        blocks.transmit.look_ahead();
        let bytes = pool.meta(sending).counted();
        self.waiting = Waiting::default();
        self.wait_on_line(pool, sending, bytes, finish + delay);
        while let Some(handle) = list.pop(pool) {
            let bytes = pool.meta(handle).counted();
            finish = self.blocks().transmit.send(false, finish, bytes);
            self.wait_on_line(pool, handle, bytes, finish + delay);
        }
        let rest = self.blocks().transmit.rest(finish);
        (self.finish, self.rest) = (finish, rest);
    }
}

#[cfg(test)]
mod tests {
    use crate::{Fifo, LinkConfig, Links, registry};
    use longwire_block::Values;
    use longwire_packet::Pool;
    use longwire_units::Nanos;

    /// Whether a link with these blocks decides about a packet on arrival.
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
            ("queue", "codel", ""),
            ("queue", "pie", ""),
            ("queue", "fq-codel", ""),
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
            ("queue", "drr", ""),
        ] {
            assert!(!decides(&[block]), "{block:?}");
        }
        // A packet sent on arrival is judged then, on the wire too, and has its delay.
        for block in [
            ("bit-error", "rate", "rate = 0"),
            ("loss", "independent", "probability = 1 %, where = wire"),
            ("delay", "jitter", "delay = 1 ms, jitter = 1 ms"),
        ] {
            assert!(decides(&[block]), "{block:?}");
            assert!(!decides(&[("rate", "constant", "rate = 1 Mbit/s"), block]), "{block:?}");
        }
    }
}
