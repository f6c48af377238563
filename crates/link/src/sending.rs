//! The way of a packet through a link's queue and transmitter onto its delay line.

use crate::blocks::Blocks;
use crate::delay::Order;
use crate::has;
use crate::link::{Link, Surroundings};
use crate::plain::Affected;
use crate::queue::{Hall, Next, Queue};
use crate::transmit::Backlog;
use longwire_block::{Offer, Verdict};
use longwire_packet::{Handle, Pool};
use longwire_units::Nanos;

impl Link {
    /// Starts to send an admitted packet of `bytes` counted bytes, or lets it wait.
    #[inline(always)]
    pub(crate) fn enqueue(&mut self, at: &mut Surroundings<'_>, handle: Handle, now: Nanos, bytes: u64) {
        self.wait_or_begin(at.pool, handle, now, bytes);
        if !self.has_sent(now) {
            return;
        }
        self.catch_up_sending(at.pool, now);
        if self.line.next() <= now {
            self.release(at.pool, now, at.out);
        }
    }

    /// The same without looking at whether it is sent at once.
    #[inline(always)]
    pub(crate) fn wait_or_begin(&mut self, pool: &mut Pool, handle: Handle, now: Nanos, bytes: u64) {
        pool.meta_mut(handle).set_counted(bytes);
        if self.blocks().sending.is_none()
            && self.line.features & (has::DISCIPLINE | has::DIRECT) != has::DISCIPLINE
        {
            self.begin(handle, now, bytes);
        } else if self.line.features & has::DISCIPLINE == 0 {
            self.blocks().books.list.push(pool, handle);
        } else {
            self.push(pool, handle, now);
        }
    }

    /// The same by a discipline that has more to it.
    #[inline]
    fn push(&mut self, pool: &mut Pool, handle: Handle, now: Nanos) {
        let (queue, mut hall) = self.hall(pool, now);
        queue.push(&mut hall, handle);
        if self.blocks().sending.is_none() {
            self.begin_next(pool, now);
        }
    }

    /// Begins to send a packet of `bytes` counted bytes after a pause.
    #[inline]
    fn begin(&mut self, handle: Handle, now: Nanos, bytes: u64) {
        let transmit = &mut self.blocks().transmit;
        transmit.begin(now, bytes);
        self.finish = transmit.finish();
        self.blocks().sending = handle;
    }

    /// Sends the packet whose last bit is sent at `finish` on its way, and begins the next.
    #[inline(always)]
    pub(crate) fn send_off(&mut self, pool: &mut Pool, finish: Nanos) {
        let handle = self.blocks().sending;
        self.latest = self.latest.max(finish);
        self.unqueue(pool.meta(handle));
        if self.line.features & has::BEYOND == 0 || self.passes_wire(pool, handle, finish) {
            let (line, _, Blocks { delay, last, .. }) = self.parts();
            let leave = finish + delay.travel(finish);
            line.join(last, pool, handle, leave);
        }
        self.follow(pool, finish);
    }

    /// Sends a packet on its way that is not the one being sent, and whose last bit is sent at `finish`.
    #[inline(never)]
    pub(crate) fn send_on(&mut self, pool: &mut Pool, handle: Handle, finish: Nanos) {
        self.latest = self.latest.max(finish);
        self.unqueue(pool.meta(handle));
        self.cross(pool, handle, finish);
    }

    /// Whether a packet goes its way as if the link had nothing that few have: its judges let it pass, and did nothing to it.
    /// If not, it has been seen to.
    #[inline(always)]
    fn passes_wire(&mut self, pool: &mut Pool, handle: Handle, finish: Nanos) -> bool {
        let meta = pool.meta(handle);
        if self.line.features & has::BEYOND != has::WIRE || meta.is_train() || self.line.is_irregular() {
            self.send_off_otherwise(pool, handle, finish);
            return false;
        }
        let judged = self.judge_sent(pool, handle, finish);
        if let Some((verdict, effects)) = judged {
            self.send_off_judged(pool, handle, finish, (verdict, effects));
        }
        judged.is_none()
    }

    /// Asks the judges on the wire about a packet, and no train, whose last bit is sent at `finish`: none if they just let it pass.
    #[inline(always)]
    pub(crate) fn judge_sent(&mut self, pool: &Pool, handle: Handle, finish: Nanos) -> Option<Affected> {
        let mut offer = Offer::pooled(finish, pool.meta(handle).wire_len, pool, handle);
        let verdict = self.blocks().wire.judge_one(&mut offer);
        let done = offer.done();
        if !matches!(verdict, Verdict::Drop(_)) && done.is_none() {
            return None;
        }
        Some((verdict, done.copied().unwrap_or_default()))
    }

    /// Sends a packet on its way to which judges on the wire have done something, or drops it.
    #[inline(never)]
    pub(crate) fn send_off_judged(
        &mut self,
        pool: &mut Pool,
        handle: Handle,
        finish: Nanos,
        (verdict, effects): Affected,
    ) {
        self.serve(pool, finish);
        match verdict {
            Verdict::Drop(reason) => self.drop(pool, handle, reason),
            _ => self.go(pool, handle, finish, &effects),
        }
    }

    /// Sends a packet on its way on a link that has what few have.
    #[inline(never)]
    fn send_off_otherwise(&mut self, pool: &mut Pool, handle: Handle, finish: Nanos) {
        if self.line.features & has::BEYOND != has::DISORDER || pool.meta(handle).is_train() {
            return self.cross(pool, handle, finish);
        }
        let (line, _, Blocks { delay, order, last, books, .. }) = self.parts();
        let leave = finish + delay.travel(finish);
        line.join_heaps((&mut books.rare().heaps, last), pool, handle, (leave, *order));
    }

    /// Begins the next packet at the end of one.
    #[inline(always)]
    pub(crate) fn follow(&mut self, pool: &mut Pool, finish: Nanos) {
        if self.line.features & has::DISCIPLINE != 0 {
            return self.pop(pool, finish);
        }
        match self.blocks().books.list.pop(pool) {
            Some(next) => {
                let transmit = &mut self.blocks().transmit;
                transmit.follow(finish, pool.meta(next).counted());
                self.finish = transmit.finish();
                self.blocks().sending = next;
            }
            None => {
                self.blocks().sending = Handle::NONE;
                self.blocks().books.idle_since = finish;
            }
        }
    }

    /// The same by a discipline that has more to it.
    #[inline]
    fn pop(&mut self, pool: &mut Pool, finish: Nanos) {
        let (queue, mut hall) = self.hall(pool, finish);
        match queue.pop(&mut hall) {
            Next::Packet(next) => {
                let transmit = &mut self.blocks().transmit;
                transmit.follow(finish, pool.meta(next).counted());
                self.finish = transmit.finish();
                self.blocks().sending = next;
            }
            other => self.idle(other, finish),
        }
    }

    /// Begins to send what the queue has for a transmitter that was idle at `now`.
    pub(crate) fn begin_next(&mut self, pool: &mut Pool, now: Nanos) {
        if self.line.features & has::OPPORTUNITIES != 0 {
            return self.await_opportunity(pool, now);
        }
        let (queue, mut hall) = self.hall(pool, now);
        match queue.pop(&mut hall) {
            Next::Packet(next) => {
                self.line.features &= !has::WAITING;
                self.begin(next, now, pool.meta(next).counted());
            }
            other => self.idle(other, now),
        }
    }

    /// The transmitter has nothing to send.
    #[inline]
    pub(crate) fn idle(&mut self, next: Next, now: Nanos) {
        self.blocks().sending = Handle::NONE;
        self.blocks().books.idle_since = now;
        self.line.features &= !has::WAITING;
        if let Next::Later(resume) = next {
            // Later is not now: a discipline that has rounded a time down would be asked for ever.
            self.wait(resume.max(now + Nanos(1)));
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

    /// Puts a packet on the delay line that was sent at `finish`: `longer` than the delay says, or `ahead` of it.
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

    /// The queue, and what it works in.
    #[inline]
    pub(crate) fn hall<'a>(&'a mut self, pool: &'a mut Pool, now: Nanos) -> (&'a mut Queue, Hall<'a>) {
        let backlog = Backlog { packets: u64::from(self.waiting.packets), bytes: self.waiting.bytes };
        let (_, waiting, Blocks { transmit, queue, books, .. }) = self.parts();
        let rate = transmit.departure_rate(backlog);
        (queue, Hall { pool, now, rate, waiting, books, link: None })
    }
}
