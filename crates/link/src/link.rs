//! One link: a packet from its arrival to its departure.
//!
//! A packet arrives at a; filters and impairments draw their verdict, the queue accepts or drops it; its
//! transmission begins at s = max(a, previous f), ends at f, and it leaves at e = f + delay. Moves from the
//! queue to the delay line happen at f, but are executed when the link is next served (see decision 2).

use crate::blocks::Blocks;
use crate::events::report_drop;
use crate::fate::{Arrival, Coming, Fate};
use crate::fifo::Fifo;
use crate::has;
use crate::judge::JudgesVerdict;
use crate::line::Line;
use crate::profile::{Draws, Profile};
use crate::queue::{Joining, Waiting};
use crate::rare::PartlyTaken;
use crate::transmit::framing::Framing;
use longwire_block::DropReason;
use longwire_packet::{Handle, Meta, Pool};
use longwire_units::Nanos;
use std::sync::Arc;

/// A link: two cache lines, so that a million links fit. The first is sufficient for a departing packet,
/// except for the last of a busy period.
///
/// Common properties are in a shared [`Profile`]; state of a link that is not plain, or not served plainly
/// now, is in its [`Blocks`].
#[derive(Debug)]
#[repr(C, align(64))]
pub(crate) struct Link {
    pub line: Line,
    // Counters updated together are not adjacent: compilers would combine both in one register first, which
    // is slower. Each segment of a train is counted.
    pub out_packets: u64,
    /// Time of the link's entry in the timing wheel; never if it has none.
    pub armed: Nanos,
    pub out_bytes: u64,
    /// The lowest lateness in nanoseconds that must be recorded: above the highest so far; `u32::MAX` if
    /// [`Rare::max_late`] has that; 0 for each, if there is a histogram.
    pub notable: u32,
    pub waiting: Waiting,
    /// End of the transmission: as given by the transmitter at its beginning, or at the last change; on a
    /// decided link, of the last packet.
    pub finish: Nanos,
    /// The last executed arrival or end of transmission: no later arrival precedes it.
    pub latest: Nanos,
    /// Remaining work of a plain link's rate at `finish`.
    pub rest: u64,
    pub in_packets: u64,
    pub profile: Arc<Profile>,
    pub in_bytes: u64,
    /// See [`Link::blocks`].
    pub own: Option<Box<Blocks>>,
}

const _: () = assert!(size_of::<Link>() == 128, "a link must fit two cache lines");
const _: () = assert!(std::mem::offset_of!(Link, waiting) < 64 && std::mem::offset_of!(Link, finish) >= 64);

/// The environment of a link for a packet.
pub(crate) struct Surroundings<'a> {
    pub pool: &'a mut Pool,
    /// Segments of a train with departures within this time stay together.
    pub spread: Nanos,
    /// Packets that leave at once.
    pub out: &'a mut Fifo,
}

impl Link {
    /// Effective arrival of a packet stamped `stamp`: never before what the link has already executed.
    #[inline]
    pub(crate) fn effective_arrival(&self, stamp: Nanos) -> Nanos {
        stamp.max(self.latest)
    }

    /// Accepts a packet that arrives at `Meta::arrival`. Other departures at that moment are appended to
    /// `at.out`; a dropped packet is counted and freed.
    #[inline]
    pub(crate) fn arrive(
        &mut self,
        mut dice: Draws<'_>,
        at: &mut Surroundings<'_>,
        handle: Handle,
    ) -> Arrival {
        let mut affected = None;
        let mut fate = self.arrive_plain(|| dice.as_deref_mut(), at.pool, handle, &mut affected);
        if fate == Fate::Asked {
            fate = self.ask(at.pool, handle, dice.as_deref_mut(), &mut affected);
        }
        match fate {
            Fate::NotPlain => self.go_on(dice, at, handle),
            Fate::Affected | Fate::Judged | Fate::Waits => {
                self.finish_arrival(dice, at, handle, fate, &mut affected)
            }
            fate => self.follow_fate(at, handle, fate),
        }
    }

    /// Accepts a packet on a link that is not plain: nothing has happened yet.
    #[inline(never)]
    pub(crate) fn go_on(
        &mut self,
        mut dice: Draws<'_>,
        at: &mut Surroundings<'_>,
        handle: Handle,
    ) -> Arrival {
        let meta = at.pool.meta(handle);
        if self.line.features & has::DECIDABLE == 0 {
            return self.arrive_served(at, handle);
        }
        // A discipline that is asked may ask for the band.
        let is_banded = meta.flags & Meta::BANDED != 0 && self.profile.asks_queue;
        if self.is_decided() && !meta.is_train() && !is_banded {
            let mut affected = None;
            let fate = self.ask_banded(dice.as_deref_mut(), at.pool, handle, &mut affected);
            return match fate {
                Fate::Affected | Fate::Judged | Fate::Waits => {
                    self.finish_arrival(dice, at, handle, fate, &mut affected)
                }
                fate => self.follow_fate(at, handle, fate),
            };
        }
        self.pick_up_dice(dice.as_deref_mut());
        let arrival = self.arrive_served(at, handle);
        self.lay_down_dice(dice);
        arrival
    }

    /// Accepts a packet on a link that serves packets, or is idle; also a train.
    #[inline(always)]
    fn arrive_served(&mut self, at: &mut Surroundings<'_>, handle: Handle) -> Arrival {
        let now = self.effective_arrival(Nanos(at.pool.meta(handle).arrival));
        self.latest = now;
        if self.line.features & (has::EVENTFUL | has::DECIDED) == 0 && self.has_sent(now) {
            self.catch_up_sending(at.pool, now);
        }
        if self.line.features & has::EVENTFUL != 0 {
            // Perhaps only since now: the queue may have made the link wait.
            self.catch_up_with_others(at.pool, now);
            if self.line.features & has::FRONT != 0 {
                self.arrive_before(at, handle, now);
                return Arrival::DeadlineChanged;
            }
        }
        if self.line.is_irregular() && self.line.next() <= now {
            // Departures precede arrivals: otherwise a departing packet would meet the new one, which may
            // overtake it.
            self.release(at.pool, now, at.out);
        }
        let meta = at.pool.meta_mut(handle);
        note_arrival(meta, now);
        if meta.is_train() {
            self.serve(at.pool, now);
            self.arrive_train(at, handle, now);
            return Arrival::DeadlineChanged;
        }
        let frame = meta.wire_len;
        self.begin_to_decide(now);
        let arrival = self.arrive_noted(at, handle, Coming { now, frame });
        if arrival == Arrival::Through && !at.out.is_empty() {
            at.out.push(at.pool, handle);
            return Arrival::Kept;
        }
        arrival
    }

    /// Lets the judges, and then the queue, decide about a packet.
    #[inline(always)]
    fn arrive_noted(&mut self, at: &mut Surroundings<'_>, handle: Handle, coming: Coming) -> Arrival {
        self.in_packets += 1;
        self.in_bytes += u64::from(coming.frame);
        if !self.blocks().before.chain.is_empty() {
            let mut affected = None;
            match self.blocks().before.judge_packet(at.pool, handle, coming, &mut affected) {
                JudgesVerdict::Passes => {}
                JudgesVerdict::Lost(reason) => {
                    self.drop(at.pool, handle, reason);
                    return Arrival::DeadlineChanged;
                }
                JudgesVerdict::Affected => {
                    if let Some(affected) = affected {
                        self.arrive_affected(at, handle, coming, affected);
                    }
                    return Arrival::DeadlineChanged;
                }
            }
        }
        self.join(at, handle, coming)
    }

    /// Lets a packet into the queue, or drops it.
    #[inline(always)]
    pub(crate) fn join(&mut self, at: &mut Surroundings<'_>, handle: Handle, coming: Coming) -> Arrival {
        let Coming { now, frame } = coming;
        if self.is_decided() {
            return self.join_what_decides(at, handle, now);
        }
        let was_idle = !self.serves();
        let bytes = self.counted(at.pool, handle, frame);
        let accepted = self.enter(at.pool, Joining { handle, now, bytes });
        if !was_idle {
            return Arrival::Kept;
        }
        if accepted {
            self.leave_at_once(at, now);
        }
        Arrival::DeadlineChanged
    }

    /// Lets a packet into a decided link on which the decision was not yet recorded.
    #[inline(never)]
    fn join_what_decides(&mut self, at: &mut Surroundings<'_>, handle: Handle, now: Nanos) -> Arrival {
        // A judge on the wire that is asked like one before the queue has not been asked yet.
        let mut affected = None;
        if self.line.features & has::WIRE != 0 && !self.profile.asks_wire {
            self.judge_sent(at.pool, handle, now, &mut affected);
        }
        let fate = match affected {
            Some(_) => Fate::Judged,
            None => {
                let coming = Coming { now, frame: at.pool.meta(handle).wire_len };
                self.join_decided(at.pool, handle, coming, &mut affected)
            }
        };
        if let Some(affected) = affected {
            self.send_judged(at, handle, affected);
            return Arrival::DeadlineChanged;
        }
        self.follow_fate(at, handle, fate)
    }

    /// Counted size of a frame of `frame` bytes with the headers of `handle`.
    #[inline(always)]
    pub(crate) fn counted(&self, pool: &Pool, handle: Handle, frame: u32) -> u64 {
        let framing = self.profile.framing;
        if !framing.counts_ip() {
            return framing.counted_on_wire(frame);
        }
        counted_behind(pool.data(handle), framing, frame)
    }

    /// Executes everything up to `now` except departures.
    #[inline]
    pub(crate) fn catch_up(&mut self, pool: &mut Pool, now: Nanos) {
        if self.line.features & has::OTHERS != 0 {
            return self.catch_up_with_others(pool, now);
        }
        self.catch_up_sending(pool, now);
        if self.line.features & has::WAITING != 0 {
            // The queue may have made the link wait, and the wait may be over by now.
            self.catch_up_with_others(pool, now);
        }
    }

    /// Executes every end of transmission up to `now`. The packet path checks first whether there is one.
    #[inline(never)]
    pub(crate) fn catch_up_sending(&mut self, pool: &mut Pool, now: Nanos) {
        if self.is_decided() {
            return self.recount(pool, now);
        }
        if self.has_sent(now) {
            self.send_off(pool, now);
        }
    }

    /// Whether a transmission ends by `now`.
    #[inline]
    pub(crate) fn has_sent(&self, now: Nanos) -> bool {
        self.serves() && self.finish <= now
    }

    /// Whether a packet is being sent on a served link; false without blocks of its own.
    #[inline]
    pub(crate) fn serves(&self) -> bool {
        self.own.as_ref().is_some_and(|own| !own.sending.is_none())
    }

    /// Releases every packet that leaves by `until`, in order, onto `out`. Ends of transmission are executed
    /// only as far as necessary, so that an arrival stamped slightly earlier still finds the queue as it was.
    #[inline]
    pub(crate) fn expire(&mut self, pool: &mut Pool, until: Nanos, out: &mut Fifo) {
        while self.wake() <= until {
            self.advance(pool, until);
        }
        self.release(pool, until, out);
    }

    /// Whether a packet that is not yet in flight may be the first to leave by `until`.
    #[inline]
    pub(crate) fn may_precede(&self, until: Nanos) -> bool {
        self.line.next() > until || self.line.features & has::DISORDER != 0
    }

    /// The packet that leaves next, as far as known.
    #[inline]
    pub(crate) fn first_to_leave(&self) -> Option<Handle> {
        let sending = || self.own.as_ref().filter(|_| self.serves()).map(|own| own.sending);
        self.line.first().or_else(sending)
    }

    /// The time at which the link must be served next.
    #[inline]
    pub(crate) fn deadline(&self) -> Nanos {
        self.line.next().min(self.wake())
    }

    /// Counts and frees a packet that the link drops.
    #[inline]
    pub(crate) fn drop(&mut self, pool: &mut Pool, handle: Handle, reason: DropReason) {
        self.count_drop(reason, u64::from(pool.meta(handle).segments));
        report_drop(pool, handle, self.latest, reason);
        pool.free(handle);
    }

    /// Drops all packets of the link at `now`, at the end of a run or of the link.
    pub(crate) fn flush(&mut self, pool: &mut Pool, now: Nanos, reason: DropReason) {
        self.latest = self.latest.max(now);
        self.line.features &= !has::DECIDED;
        let (line, own) = (&mut self.line, &mut self.own);
        let heaps = own.as_mut().and_then(|own| own.books.rare.as_mut()).map(|rare| &mut rare.heaps);
        let on_line = line.drain(heaps, pool);
        let [list, queue] = self
            .known_blocks_mut()
            .map_or([Fifo::EMPTY; 2], |blocks| [blocks.books.list.take(), blocks.queue.drain(pool)]);
        let mut lists = [list, queue, on_line, self.drain_front(pool)];
        let sending =
            self.known_blocks_mut().map(|blocks| std::mem::replace(&mut blocks.sending, Handle::NONE));
        if let Some(sending) = sending.filter(|sending| !sending.is_none()) {
            self.drop(pool, sending, reason);
        }
        for list in &mut lists {
            while let Some(handle) = list.pop(pool) {
                self.drop(pool, handle, reason);
            }
        }
        self.waiting = Waiting::default();
        if let Some(rare) = self.known_rare_mut() {
            (rare.phantoms, rare.taken, rare.background) = (0, PartlyTaken::default(), None);
        }
    }

    /// Packets waiting or being sent, except background traffic.
    pub(crate) fn real_packets(&self) -> u32 {
        let rare = self.known_rare();
        let taken = rare.map_or(0, |rare| rare.taken.packets);
        self.waiting.packets + taken - rare.map_or(0, |rare| rare.phantoms)
    }

    /// The next event other than a departure: earliest departure of the packet being sent, or the queue has a
    /// packet again.
    #[inline]
    pub(crate) fn wake(&self) -> Nanos {
        if self.line.features & has::EVENTFUL != 0 {
            return self.wake_for_others();
        }
        if !self.serves() {
            return Nanos::NEVER;
        }
        self.finish + self.travels_at_least()
    }

    /// Minimum delay of the packet being sent: it need not be put in flight before.
    #[inline]
    fn travels_at_least(&self) -> Nanos {
        if self.line.features & has::AHEAD == 0 { self.profile.delay } else { Nanos::ZERO }
    }

    /// The variant for links with other events. Background packets alone wake only for keeping up.
    #[inline(never)]
    fn wake_for_others(&self) -> Nanos {
        if self.line.features & has::MEDIUM != 0 {
            return Nanos::NEVER;
        }
        let arrives = self.keep_up().min(self.next_in_front());
        if self.real_packets() == 0 {
            return arrives;
        }
        let sent = if self.serves() { self.finish } else { Nanos::NEVER };
        let resume = if self.line.features & has::WAITING != 0 { self.resume() } else { Nanos::NEVER };
        sent.min(resume).min(arrives)
    }

    /// Executes the event of [`Link::wake`], which is due by `until`.
    #[inline]
    pub(crate) fn advance(&mut self, pool: &mut Pool, until: Nanos) {
        if self.line.features & has::OTHERS == 0 {
            return self.send_off(pool, self.finish);
        }
        let next = self.wake().min(until);
        if next == self.keep_up() {
            self.catch_up_with_others(pool, Self::behind(next));
        } else {
            self.catch_up_with_others(pool, next);
        }
    }

    #[inline]
    pub(crate) fn release(&mut self, pool: &mut Pool, until: Nanos, out: &mut Fifo) {
        while self.line.next() <= until
            && let Some(handle) = self.take_first(pool)
        {
            out.push(pool, handle);
        }
    }

    /// Takes the first packet off the delay line.
    #[inline(always)]
    pub(crate) fn take_first(&mut self, pool: &mut Pool) -> Option<Handle> {
        if self.line.is_irregular() {
            return self.take_irregular(pool);
        }
        let first = self.line.first()?;
        self.take_regular(pool, first, |_| ());
        Some(first)
    }

    /// Takes the first packet, `handle`, of a line that is in order. Its metadata goes to `out`, before those
    /// of the packet behind it are needed: there are few registers.
    #[inline(always)]
    pub(crate) fn take_regular(&mut self, pool: &mut Pool, handle: Handle, out: impl FnOnce(&Meta)) {
        let (held, meta) = (self.line.packets(), pool.meta(handle));
        // A packet that came while a decided link was served may still be in flight.
        self.line.count_taken(held, meta.segments);
        self.count_out(meta);
        out(meta);
        self.line.take_plain(pool);
        // All packets there were counted as waiting.
        if held == self.waiting.packets && self.is_decided() {
            match self.line.first() {
                None => self.all_sent(),
                behind => self.pass(pool, handle, behind),
            }
        }
    }

    #[inline(always)]
    fn count_out(&mut self, meta: &Meta) {
        self.out_packets += u64::from(meta.segments);
        self.out_bytes += if meta.is_train() { meta.segment_bytes() } else { u64::from(meta.wire_len) };
    }

    #[inline(never)]
    pub(crate) fn take_irregular(&mut self, pool: &mut Pool) -> Option<Handle> {
        let (line, _, blocks) = self.parts();
        let handle = line.take_heaps(&mut blocks.books.rare().heaps, pool)?;
        self.count_out(pool.meta(handle));
        Some(handle)
    }
}

/// Counted size of a frame of `frame` bytes with these headers, of which those before IP are not counted.
#[inline(never)]
fn counted_behind(headers: &[u8], framing: Framing, frame: u32) -> u64 {
    framing.counted(frame, longwire_wire::l3_offset(headers) as u32)
}

/// Records the arrival of a packet or train at a link at `now`.
#[inline]
pub(crate) fn note_arrival(meta: &mut Meta, now: Nanos) {
    meta.arrival = now.0;
    if meta.flags & Meta::BANDED == 0 {
        meta.set_band(Meta::NO_BAND);
    } else {
        meta.flags &= !Meta::BANDED;
    }
}
