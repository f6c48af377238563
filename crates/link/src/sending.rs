//! A packet's path through a link's queue and transmitter onto its delay line.

use crate::blocks::Blocks;
use crate::delay::Order;
use crate::fate::{Affected, Coming, VerdictWithEffects};
use crate::has;
use crate::judge::JudgesVerdict;
use crate::link::{Link, Surroundings};
use crate::queue::{Admission, Discipline, Joining, Next, Queue, QueueContext, Service, Waiting};
use crate::transmit::Backlog;
use longwire_block::{Effects, Verdict};
use longwire_packet::{Handle, Pool};
use longwire_units::{Nanos, Rate};

/// A link whose discipline is temporarily taken out.
pub(crate) struct ServedLink<'a> {
    pub(crate) link: &'a mut Link,
    pub(crate) pool: &'a mut Pool,
}

impl ServedLink<'_> {
    /// [`Service::begin`] after a pause, out of line for packets that come to a busy transmitter.
    #[inline(never)]
    fn begin_apart<Q: Discipline>(&mut self, queue: &mut Q, start: Nanos) {
        self.begin(queue, start, true);
    }
}

impl Service for ServedLink<'_> {
    #[inline(always)]
    fn enter<Q: Discipline>(&mut self, queue: &mut Q, (handle, now, bytes): (Handle, Nanos, u64)) -> Verdict {
        let packet = Joining { handle, now, bytes };
        let band = self.pool.meta(packet.handle).band();
        let verdict = queue.admit(&self.link.admission(self.pool, packet, band));
        match verdict {
            Verdict::Pass => {}
            Verdict::Mark => self.link.mark(self.pool, packet.handle),
            Verdict::Drop(_) => return verdict,
        }
        self.link.waiting.packets += 1;
        self.link.waiting.bytes += packet.bytes;
        self.join(queue, (handle, now, bytes));
        verdict
    }

    #[inline(always)]
    fn join<Q: Discipline>(&mut self, queue: &mut Q, (handle, now, bytes): (Handle, Nanos, u64)) {
        let Self { link, pool } = self;
        pool.meta_mut(handle).set_counted(bytes);
        let idle = link.blocks().sending.is_none();
        let by_opportunities = link.line.features & has::OPPORTUNITIES != 0;
        if idle && !by_opportunities && queue.direct() {
            return link.begin(handle, now, bytes, true);
        }
        queue.push(&mut link.context(pool, now), handle);
        if idle && !by_opportunities {
            self.begin_apart(queue, now);
        }
    }

    #[inline(always)]
    fn send<Q: Discipline>(&mut self, queue: &mut Q, until: Nanos) {
        loop {
            let finish = self.link.finish;
            self.link.send_first(self.pool, finish);
            self.begin(queue, finish, false);
            if !self.link.has_sent(until) {
                return;
            }
        }
    }

    #[inline(always)]
    fn begin<Q: Discipline>(&mut self, queue: &mut Q, start: Nanos, pause: bool) {
        let Self { link, pool } = self;
        match queue.pop(&mut link.context(pool, start)) {
            Next::Packet(next) => {
                if pause {
                    link.line.features &= !has::WAITING;
                }
                link.begin(next, start, pool.meta(next).counted(), pause);
            }
            other => link.idle(other, start),
        }
    }
}

impl Link {
    /// Calls a function with the discipline and the link.
    #[inline(always)]
    pub(crate) fn with_queue<T>(
        &mut self,
        pool: &mut Pool,
        work: impl FnOnce(&mut Queue, &mut ServedLink<'_>) -> T,
    ) -> T {
        let mut queue = self.take_queue();
        let done = work(&mut queue, &mut ServedLink { link: self, pool });
        self.give_back(queue);
        done
    }

    #[inline(always)]
    fn take_queue(&mut self) -> Queue {
        std::mem::take(&mut self.blocks().queue)
    }

    #[inline(always)]
    fn give_back(&mut self, mut queue: Queue) {
        std::mem::swap(&mut self.blocks().queue, &mut queue);
        // The placeholder needs no drop.
        std::mem::forget(queue);
    }

    /// Puts in flight, and releases, what is sent at once after a packet has joined the queue.
    #[inline(always)]
    pub(crate) fn leave_at_once(&mut self, at: &mut Surroundings<'_>, now: Nanos) {
        if !self.has_sent(now) {
            return;
        }
        self.catch_up_sending(at.pool, now);
        if self.line.next() <= now {
            self.release(at.pool, now, at.out);
        }
    }

    /// Asks the queue about a packet, and lets it join or drops it. Returns whether it was accepted.
    #[inline(always)]
    pub(crate) fn enter(&mut self, pool: &mut Pool, packet: Joining) -> bool {
        let Joining { handle, now, bytes } = packet;
        let mut queue = self.take_queue();
        let verdict = queue.enter(&mut ServedLink { link: self, pool }, handle, now, bytes);
        self.give_back(queue);
        match verdict {
            Verdict::Drop(reason) => {
                self.drop(pool, packet.handle, reason);
                false
            }
            _ => {
                self.await_opportunity_if_idle(pool, packet.now);
                true
            }
        }
    }

    /// Starts to send an admitted packet, or lets it wait.
    #[inline(always)]
    pub(crate) fn wait_or_begin(&mut self, pool: &mut Pool, packet: Joining) {
        self.with_queue(pool, |queue, service| queue.join(service, packet.handle, packet.now, packet.bytes));
        self.await_opportunity_if_idle(pool, packet.now);
    }

    #[inline(always)]
    fn await_opportunity_if_idle(&mut self, pool: &mut Pool, now: Nanos) {
        if self.line.features & has::OPPORTUNITIES != 0 && self.blocks().sending.is_none() {
            self.await_opportunity(pool, now);
        }
    }

    /// Begins to send a packet of `bytes` counted bytes at `start`, after a pause or at the end of the
    /// previous one.
    #[inline(always)]
    fn begin(&mut self, handle: Handle, start: Nanos, bytes: u64, pause: bool) {
        self.transmit(start, bytes, pause);
        self.blocks().sending = handle;
    }

    /// Lets the transmitter begin a packet of this size at `start`, and records when it finishes:
    /// [`Link::finish`].
    #[inline(always)]
    pub(crate) fn transmit(&mut self, start: Nanos, bytes: u64, pause: bool) {
        if self.profile.asks_transmitter {
            self.finish = self.blocks().transmit.send(pause, start, bytes);
        } else {
            let law = self.profile.law;
            // At an unlimited rate the remainder would be everything, and grow with each packet of a moment.
            let rest = if pause || law.rate() == Rate::UNLIMITED { 0 } else { self.rest };
            (self.finish, self.rest) = law.send(start, rest, bytes);
        }
    }

    /// The expected departure rate of a queue with this backlog.
    #[inline(always)]
    fn departure_rate(&self, backlog: Backlog) -> Rate {
        let asked = self.known_blocks().filter(|_| self.profile.asks_transmitter);
        asked.map_or(self.profile.law.rate(), |blocks| blocks.transmit.departure_rate(backlog))
    }

    /// The expected departure rate with this backlog and a packet of `bytes` counted bytes.
    #[inline(always)]
    pub(crate) fn expected_rate(&self, waiting: Waiting, bytes: u64) -> Rate {
        let (packets, bytes) = (u64::from(waiting.packets) + 1, waiting.bytes + bytes);
        self.departure_rate(Backlog { packets, bytes })
    }

    /// The discipline's view of a packet or segment that asks for admission.
    #[inline(always)]
    pub(crate) fn admission<'p>(&mut self, pool: &'p Pool, packet: Joining, band: u8) -> Admission<'p> {
        let Joining { handle, now, bytes } = packet;
        let rate = self.expected_rate(self.waiting, bytes);
        let (sent_packets, sent_bytes) = self.sent_of_train(pool, now, rate);
        Admission {
            now,
            bytes,
            packets_waiting: u64::from(self.waiting.packets) - sent_packets,
            bytes_waiting: self.waiting.bytes - sent_bytes,
            rate,
            idle_since: self.blocks().books.idle_since,
            packet: Some((pool, handle)),
            band,
        }
    }

    /// Asks whether a packet or segment may join, and counts it as waiting if it may.
    pub(crate) fn admit(&mut self, pool: &Pool, packet: Joining, band: u8) -> Verdict {
        let admission = self.admission(pool, packet, band);
        let verdict = self.blocks().queue.admit(&admission);
        if !matches!(verdict, Verdict::Drop(_)) {
            self.waiting.packets += 1;
            self.waiting.bytes += packet.bytes;
        }
        verdict
    }

    /// Puts the packet in flight whose last bit is sent at `finish`, and begins the next.
    pub(crate) fn send_off(&mut self, pool: &mut Pool, finish: Nanos) {
        let mut queue = self.take_queue();
        queue.send(&mut ServedLink { link: self, pool }, finish);
        self.give_back(queue);
    }

    /// Puts the packet in flight whose last bit is sent at `finish`.
    #[inline(always)]
    fn send_first(&mut self, pool: &mut Pool, finish: Nanos) {
        let handle = self.blocks().sending;
        self.latest = self.latest.max(finish);
        self.unqueue(pool.meta(handle));
        if self.line.features & has::BEYOND == 0 || self.passes_wire(pool, handle, finish) {
            self.set_off(pool, handle, finish);
        }
    }

    /// Delays a packet whose last bit is sent at `finish`.
    #[inline(always)]
    pub(crate) fn set_off(&mut self, pool: &mut Pool, handle: Handle, finish: Nanos) {
        let delay = self.blocks().delay.travel(finish);
        self.join_line(pool, handle, finish + delay);
    }

    /// Puts a packet onto the delay line, which it leaves at `leave`, or as its order demands.
    #[inline(always)]
    pub(crate) fn join_line(&mut self, pool: &mut Pool, handle: Handle, leave: Nanos) {
        let (line, _, Blocks { order, last, books, .. }) = self.parts();
        if line.features & has::DISORDER == 0 {
            return line.join(last, pool, handle, leave);
        }
        line.join_heaps((&mut books.rare().heaps, last), pool, handle, (leave, *order));
    }

    /// Puts a packet in flight that is not the one being sent, and whose last bit is sent at `finish`.
    #[inline(never)]
    pub(crate) fn send_on(&mut self, pool: &mut Pool, handle: Handle, finish: Nanos) {
        self.latest = self.latest.max(finish);
        self.unqueue(pool.meta(handle));
        self.cross(pool, handle, finish);
    }

    /// Whether a packet passes the wire without effects of judges. If not, it has been handled.
    #[inline(always)]
    fn passes_wire(&mut self, pool: &mut Pool, handle: Handle, finish: Nanos) -> bool {
        let meta = pool.meta(handle);
        if self.line.features & has::BEYOND != has::WIRE || meta.is_train() || self.line.is_irregular() {
            self.send_off_otherwise(pool, handle, finish);
            return false;
        }
        let mut affected = None;
        let passes = self.judge_sent(pool, handle, finish, &mut affected);
        if let Some(affected) = affected {
            self.send_off_judged(pool, handle, finish, affected);
        }
        passes
    }

    /// Asks the judges on the wire about a packet, not a train, whose last bit is sent at `finish`. Returns
    /// whether they simply pass it; if not, their verdict goes to `affected`.
    #[inline(always)]
    pub(crate) fn judge_sent(
        &mut self,
        pool: &Pool,
        handle: Handle,
        finish: Nanos,
        affected: &mut Affected,
    ) -> bool {
        let coming = Coming { now: finish, frame: pool.meta(handle).wire_len };
        let judged = self.blocks().wire.judge_packet(pool, handle, coming, affected);
        if let JudgesVerdict::Lost(reason) = judged {
            *affected = Some((Verdict::Drop(reason), Effects::default()));
        }
        judged == JudgesVerdict::Passes
    }

    /// Puts a packet in flight with effects of judges on the wire, or drops it.
    #[inline(never)]
    pub(crate) fn send_off_judged(
        &mut self,
        pool: &mut Pool,
        handle: Handle,
        finish: Nanos,
        (verdict, effects): VerdictWithEffects,
    ) {
        self.serve(pool, finish);
        match verdict {
            Verdict::Drop(reason) => self.drop(pool, handle, reason),
            _ => self.go(pool, handle, finish, &effects),
        }
    }

    /// Puts a packet in flight on a link with rare features.
    #[inline(never)]
    fn send_off_otherwise(&mut self, pool: &mut Pool, handle: Handle, finish: Nanos) {
        if self.line.features & has::BEYOND != has::DISORDER || pool.meta(handle).is_train() {
            return self.cross(pool, handle, finish);
        }
        self.set_off(pool, handle, finish);
    }

    /// Begins to send the queue's next packet for a transmitter that was idle at `now`.
    pub(crate) fn begin_next(&mut self, pool: &mut Pool, now: Nanos) {
        if self.line.features & has::OPPORTUNITIES != 0 {
            return self.await_opportunity(pool, now);
        }
        self.with_queue(pool, |queue, service| queue.begin(service, now, true));
    }

    /// Begins the next packet at the end of one.
    pub(crate) fn follow(&mut self, pool: &mut Pool, finish: Nanos) {
        self.with_queue(pool, |queue, service| queue.begin(service, finish, false));
    }

    /// Records that the transmitter has nothing to send.
    #[inline]
    pub(crate) fn idle(&mut self, next: Next, now: Nanos) {
        self.blocks().sending = Handle::NONE;
        self.blocks().books.idle_since = now;
        self.line.features &= !has::WAITING;
        match next {
            // Later means after now: a discipline that rounds a time down would otherwise be asked for ever.
            Next::Later(resume) => self.wait(resume.max(now + Nanos(1))),
            _ => self.line.features &= !has::TRAIN,
        }
    }

    #[inline(never)]
    pub(crate) fn wait(&mut self, resume: Nanos) {
        self.line.features |= has::WAITING;
        self.rare().resume = resume;
    }

    pub(crate) fn resume(&self) -> Nanos {
        self.known_rare().map_or(Nanos::NEVER, |rare| rare.resume)
    }

    /// Puts a packet on the delay line that was sent at `finish`: `longer` than the delay, or `ahead` of it.
    #[inline(never)]
    pub(crate) fn depart(
        &mut self,
        pool: &mut Pool,
        handle: Handle,
        finish: Nanos,
        (longer, ahead): (Nanos, Option<Nanos>),
    ) {
        let (line, _, Blocks { delay, order, last, books, .. }) = self.parts();
        let travel = delay.travel(finish) + longer;
        let leave = finish + travel.since(ahead.unwrap_or(Nanos::ZERO));
        let keeps_place = longer == Nanos::ZERO && ahead.is_none();
        if keeps_place && *order == Order::InOrder && !line.is_irregular() {
            return line.join(last, pool, handle, leave);
        }
        let heaps = &mut books.rare().heaps;
        if keeps_place {
            return line.join_heaps((heaps, last), pool, handle, (leave, *order));
        }
        line.join_apart(heaps, pool, handle, leave);
    }

    /// The context of its queue.
    #[inline(always)]
    pub(crate) fn context<'a>(&'a mut self, pool: &'a mut Pool, now: Nanos) -> QueueContext<'a> {
        let backlog = Backlog { packets: u64::from(self.waiting.packets), bytes: self.waiting.bytes };
        let rate = self.departure_rate(backlog);
        let (_, waiting, Blocks { books, .. }) = self.parts();
        QueueContext { pool, now, rate, waiting, books, link: None }
    }
}
