//! The complete plain case: a packet on a link with random loss, a packet limit, a rate and a delay.
//!
//! The packet arrives at a = max(its stamp, the last a), and may be lost. If the queue has room, transmission
//! begins at s = max(a, previous f) and ends at f = s + bits / rate, rounded down with the remainder carried,
//! and the packet leaves at e = f + delay. All of that is known on arrival (see `decided.rs`), so the packet
//! goes to the delay line at once. [`Link::arrive_plain`] reads nothing that such a link does not have, and
//! makes no calls for it. Elsewhere it calls the judges, the transmitter or the discipline that decide, or
//! leaves that to [`Link::ask`]; packets that are not decided on arrival are left to others, unchanged.

use crate::blocks::Blocks;
use crate::chain::{AnyJudge, Chain, Judges};
use crate::fate::{Affected, Arrival, Coming, Fate};
use crate::fifo::Fifo;
use crate::has;
use crate::impair::Impair;
use crate::judge::JudgesVerdict;
use crate::link::{Link, Surroundings};
use crate::links::Links;
use crate::profile::{Draws, Loss};
use crate::queue::Waiting;
use longwire_block::{Dice, DropReason};
use longwire_packet::{AHEAD, BATCH, Handle, Meta, Pool, prefetch_element};
use longwire_units::Nanos;

/// Links with another deadline, mostly because their lines were empty, with that deadline: a batch at a time.
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

    /// Clears the list.
    pub fn clear(&mut self) {
        self.count = 0;
    }
}

/// Reason why a run of packets entering links stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// All have entered.
    Done,
    /// The receiver of immediate departures is full; the last packet has entered.
    Full,
    /// The last packet has entered, and these leave at that moment.
    Left(Fifo),
    /// The next packet's path is not a link here.
    Elsewhere,
}

/// A packet that leaves a link at the moment of its arrival.
#[derive(Debug, Clone, Copy)]
pub struct Departed {
    /// The packet.
    pub handle: Handle,
    /// The time.
    pub leave: Nanos,
    /// The link.
    pub link: u32,
    /// Its destination, as in its `Meta`.
    pub out_port: u16,
}

impl Links {
    /// Lets packets, at most a batch, enter the links of their paths, in order, at `Meta::arrival`. `here` is
    /// the path of the first link of a worker without media
    /// ([`LinkRef::first_of`](longwire_block::path::LinkRef::first_of)). Immediate departures go to `pass`,
    /// which returns whether it is full. Returns how many packets have entered, and why it stopped.
    #[inline(always)]
    pub fn enter<const MANY: bool>(
        &mut self,
        pool: &mut Pool,
        here: u32,
        packets: &[Handle],
        firsts: &mut Firsts,
        mut pass: impl FnMut(Departed) -> bool,
    ) -> (usize, Stop) {
        let mut affected = None;
        let (links, dice) = (self.links.as_mut_slice(), self.dice.as_mut_slice());
        let mut rest = packets;
        let entered = |rest: &[Handle]| packets.len() - rest.len();
        while let Some((&handle, behind)) = rest.split_first() {
            if MANY && let Some(&soon) = behind.get(AHEAD - 1) {
                let at = (pool.meta(soon).path ^ here) as usize;
                prefetch_element(links, at);
                prefetch_element(dice, at);
            }
            let &Meta { path, out_port, .. } = pool.meta(handle);
            // Paths of other workers, empty paths and longer ones give numbers beyond the links here.
            let number = path ^ here;
            let at = number as usize;
            let Some(link) = links.get_mut(at) else { return (entered(rest), Stop::Elsewhere) };
            rest = behind;
            let mut full =
                |link: &Link| pass(Departed { handle, leave: link.latest, link: number, out_port });
            let mut fate = link.arrive_plain(|| dice.get_mut(at), pool, handle, &mut affected);
            if fate == Fate::Asked {
                fate = link.ask(pool, handle, dice.get_mut(at), &mut affected);
            }
            match fate {
                Fate::Through if full(link) => return (entered(rest), Stop::Full),
                Fate::Through | Fate::Joined(false) => {}
                Fate::Joined(true) => firsts.push(number, link.line.next()),
                Fate::Dropped(reason) => link.drop(pool, handle, reason),
                fate => {
                    let mut out = Fifo::EMPTY;
                    let at_link = &mut Surroundings { pool, spread: self.spread, out: &mut out };
                    let arrival = match fate {
                        Fate::NotPlain => link.go_on(dice.get_mut(at), at_link, handle),
                        fate => link.finish_arrival(dice.get_mut(at), at_link, handle, fate, &mut affected),
                    };
                    match arrival {
                        Arrival::Through => out.push(pool, handle),
                        Arrival::DeadlineChanged => firsts.push(number, link.deadline()),
                        Arrival::Kept => {}
                    }
                    if !out.is_empty() {
                        return (entered(rest), Stop::Left(out));
                    }
                }
            }
        }
        (packets.len(), Stop::Done)
    }

    /// Releases the first packet of a link to `out`, with `Meta::leave` set, if it leaves by `until`. Returns
    /// the link's next deadline: at most `until`, if there are more.
    #[inline(always)]
    pub fn release_first(
        &mut self,
        pool: &mut Pool,
        link: u32,
        until: Nanos,
        out: impl FnOnce(Handle, &Meta),
    ) -> Nanos {
        let link = &mut self.links[link as usize];
        // An empty line's next departure is never.
        let until = until.min(Nanos(Nanos::NEVER.0 - 1));
        if link.is_decided() && !link.line.is_irregular() {
            if link.line.next() <= until {
                let first = link.line.first_known();
                link.take_regular(pool, first, |meta| out(first, meta));
            }
            return link.line.next();
        }
        // The others, apart: a link that serves packets, or on which packets overtake.
        if !link.is_decided() {
            link.precede(pool, until);
        }
        if link.line.next() <= until {
            if !link.line.is_irregular() {
                let first = link.line.first_known();
                link.take_regular(pool, first, |meta| out(first, meta));
            } else if let Some(handle) = link.take_irregular(pool) {
                out(handle, pool.meta(handle));
            }
        }
        if link.is_decided() { link.line.next() } else { link.deadline() }
    }
}

/// The judges before the queue, or those on the wire if nothing separates them from the arrival.
#[inline(always)]
fn first_judges(blocks: &mut Blocks) -> &mut Judges {
    if blocks.wire_first { &mut blocks.wire } else { &mut blocks.before }
}

impl Link {
    /// Accepts a packet that arrives at `Meta::arrival`. `dice` are looked up only if they are needed.
    #[inline(always)]
    pub(crate) fn arrive_plain<'d>(
        &mut self,
        dice: impl FnOnce() -> Draws<'d>,
        pool: &mut Pool,
        handle: Handle,
        affected: &mut Affected,
    ) -> Fate {
        let (features, meta) = (self.line.features, pool.meta_mut(handle));
        if features & has::DECIDED == 0 || meta.is_train() || meta.flags & Meta::BANDED != 0 {
            return Fate::NotPlain;
        }
        let (now, frame) = (self.effective_arrival(Nanos(meta.arrival)), meta.wire_len);
        if features & has::PLAIN == 0 {
            if features & has::VARIES != 0 {
                self.note_arrival(meta, now, frame);
                return self.delayer()(self, pool, handle, now);
            }
            if self.asks_judges() {
                return Fate::Asked;
            }
            self.note_arrival(meta, now, frame);
            return self.decider()(self, pool, handle, Coming { now, frame });
        }
        if self.passes_through() {
            self.note_arrival(meta, now, frame);
            let meta = match self.profile.loss.strikes(dice) {
                Some(false) => meta,
                Some(true) => return Fate::Dropped(DropReason::Loss),
                None if self.is_foreseen(now, frame) => meta,
                None => match self.judge(pool, handle, Coming { now, frame }, affected) {
                    JudgesVerdict::Passes => pool.meta_mut(handle),
                    judged => return self.fate_by(judged),
                },
            };
            self.pass_through(meta, now);
            return Fate::Through;
        }
        // There are few registers: what the link and its profile know is read where it is needed.
        self.end_busy_period(now);
        let bytes = self.profile.framing.counted_on_wire(frame);
        if !self.profile.queue.has_room(self.waiting, bytes, || self.profile.law.rate()) {
            return Fate::Asked;
        }
        self.note_arrival(meta, now, frame);
        let meta = match self.profile.loss.strikes(dice) {
            Some(false) => meta,
            Some(true) => return Fate::Dropped(DropReason::Loss),
            None if self.is_foreseen(now, frame) => meta,
            None => match self.judge(pool, handle, Coming { now, frame }, affected) {
                JudgesVerdict::Passes => pool.meta_mut(handle),
                judged => return self.fate_by(judged),
            },
        };
        if self.profile.asks_transmitter {
            self.ask_transmitter(bytes);
        } else {
            (self.finish, self.rest) = self.profile.law.send(self.finish, self.rest, bytes);
        }
        // As in [`Link::wait_on_line`], with metadata that need not be looked up again.
        let leave = self.finish + self.profile.delay;
        let waits = self.note_waiting(meta, bytes, leave);
        Fate::Joined(self.line.join_plain(pool, handle, leave, waits))
    }

    /// Asks judges, queue and transmitter, as required, about a packet to which nothing has happened yet.
    /// Further effects of judges go to `affected`.
    #[inline(never)]
    pub(crate) fn ask(
        &mut self,
        pool: &mut Pool,
        handle: Handle,
        dice: Draws<'_>,
        affected: &mut Affected,
    ) -> Fate {
        let meta = pool.meta_mut(handle);
        let coming = Coming { now: self.effective_arrival(Nanos(meta.arrival)), frame: meta.wire_len };
        self.note_arrival(meta, coming.now, coming.frame);
        if !self.asks_judges() {
            return self.decider()(self, pool, handle, coming);
        }
        self.ask_all(pool, handle, coming, dice, affected)
    }

    /// Whether a packet may be lost before the queue, or blocks behind it are asked.
    #[inline(always)]
    fn asks_judges(&self) -> bool {
        self.profile.loss != Loss::None || self.profile.asks_behind
    }

    /// Lets a transmitter other than a constant rate send a packet at [`Link::finish`].
    #[cold]
    #[inline(never)]
    fn ask_transmitter(&mut self, bytes: u64) {
        let (start, is_idle) = (self.finish, self.waiting.packets == 0);
        self.finish = self.blocks().transmit.send(is_idle, start, bytes);
    }

    /// See [`Link::ask`]: for links with judges, or with random delays.
    #[inline(never)]
    fn ask_all(
        &mut self,
        pool: &mut Pool,
        handle: Handle,
        coming: Coming,
        dice: Draws<'_>,
        affected: &mut Affected,
    ) -> Fate {
        match self.profile.loss.strikes(|| dice) {
            Some(false) => {}
            Some(true) => return Fate::Dropped(DropReason::Loss),
            None if self.is_foreseen(coming.now, coming.frame) => {}
            None => match self.judge(pool, handle, coming, affected) {
                JudgesVerdict::Passes => {}
                judged => return self.fate_by(judged),
            },
        }
        self.join_decided(pool, handle, coming, affected)
    }

    /// Fate of a packet that its judges do not simply pass.
    #[cold]
    #[inline(never)]
    fn fate_by(&self, judged: JudgesVerdict) -> Fate {
        match judged {
            JudgesVerdict::Lost(reason) => Fate::Dropped(reason),
            _ if self.known_blocks().is_some_and(|blocks| blocks.wire_first) => Fate::Judged,
            _ => Fate::Affected,
        }
    }

    /// Whether the judge that [`Link::judge`] would ask has foreseen this packet.
    #[inline(always)]
    fn is_foreseen(&mut self, now: Nanos, frame: u32) -> bool {
        self.known_blocks_mut().is_some_and(|blocks| first_judges(blocks).foresees(now, frame))
    }

    /// Asks the judges that are first about a packet that is not foreseen. Further effects go to `affected`.
    /// Out of line, for links without judges.
    #[cold]
    #[inline(never)]
    fn judge(
        &mut self,
        pool: &Pool,
        handle: Handle,
        coming: Coming,
        affected: &mut Affected,
    ) -> JudgesVerdict {
        // A link without blocks of its own has no judges. So this is only a jump to the judge.
        let Some(blocks) = self.known_blocks_mut() else { return JudgesVerdict::Passes };
        first_judges(blocks).ask(pool, handle, coming, affected)
    }

    /// Handles a packet with a band, which matters if the queue is replaced later.
    #[inline(never)]
    pub(crate) fn ask_banded(
        &mut self,
        dice: Draws<'_>,
        pool: &mut Pool,
        handle: Handle,
        affected: &mut Affected,
    ) -> Fate {
        let meta = pool.meta_mut(handle);
        let band = meta.band();
        meta.flags &= !Meta::BANDED;
        let fate = self.ask(pool, handle, dice, affected);
        pool.meta_mut(handle).set_band(band);
        fate
    }

    /// Returns its dice to a decided link, before it may begin to serve.
    pub(crate) fn pick_up_dice(&mut self, dice: Draws<'_>) {
        if self.is_decided()
            && matches!(self.profile.loss, Loss::Chance(_))
            && let (Some(own), Some(beside)) = (self.own_dice(), dice)
        {
            *own = beside.clone();
        }
    }

    /// Stores the dice of a link that may have become a decided one beside the links.
    pub(crate) fn lay_down_dice(&mut self, dice: Draws<'_>) {
        if self.is_decided()
            && matches!(self.profile.loss, Loss::Chance(_))
            && let (Some(own), Some(beside)) = (self.own_dice(), dice)
        {
            *beside = own.clone();
        }
    }

    /// The dice of the block that loses packets by chance.
    fn own_dice(&mut self) -> Option<&mut Dice> {
        let Blocks { before, wire, .. } = self.blocks();
        [before, wire].into_iter().find_map(|judges| match &mut judges.chain {
            Chain::One(AnyJudge::Impair(Impair::Independent(loss))) => Some(loss.dice()),
            _ => None,
        })
    }

    /// Counts an arriving packet.
    #[inline(always)]
    fn note_arrival(&mut self, meta: &mut Meta, now: Nanos, frame: u32) {
        self.latest = now;
        meta.arrival = now.0;
        meta.set_band(Meta::NO_BAND);
        self.in_packets += 1;
        self.in_bytes += u64::from(frame);
    }

    /// Whether a packet that arrives now is sent and leaves at that moment, because the link is empty and
    /// neither takes time.
    #[inline(always)]
    fn passes_through(&self) -> bool {
        self.line.features & has::INSTANT != 0 && self.line.next() == Nanos::NEVER
    }

    /// Lets such a packet pass.
    #[inline(always)]
    fn pass_through(&mut self, meta: &mut Meta, now: Nanos) {
        self.finish = now;
        meta.set_leave(now.0);
        self.out_packets += 1;
        self.out_bytes += u64::from(meta.wire_len);
    }

    /// Takes a packet that has been counted, and that passed the judges, through a decided link, into its
    /// queue, or returns the drop.
    #[inline(always)]
    pub(crate) fn join_decided(
        &mut self,
        pool: &mut Pool,
        handle: Handle,
        Coming { now, frame }: Coming,
        affected: &mut Affected,
    ) -> Fate {
        if self.passes_through() {
            if self.profile.asks_wire && !self.judge_sent(pool, handle, now, affected) {
                return Fate::Judged;
            }
            self.pass_through(pool.meta_mut(handle), now);
            return Fate::Through;
        }
        if !self.profile.always_admits {
            let fate = self.decider()(self, pool, handle, Coming { now, frame });
            if !matches!(fate, Fate::Admitted) {
                return fate;
            }
        }
        self.send_at_once(pool, handle, Coming { now, frame }, affected)
    }

    /// If nothing is being sent any more at `now`: nothing waits, and the next packet is sent from now on.
    #[inline(always)]
    fn end_busy_period(&mut self, now: Nanos) {
        if !self.is_sending(now) {
            (self.waiting, self.finish, self.rest) = (Waiting::default(), now, 0);
        }
    }

    /// Counts a packet of this counted size as waiting, until it leaves at `leave` or before. Returns whether
    /// it waits behind others.
    #[inline(always)]
    fn note_waiting(&mut self, meta: &mut Meta, bytes: u64, leave: Nanos) -> bool {
        let waits = self.waiting.packets > 0;
        self.waiting.packets += 1;
        self.waiting.bytes += bytes;
        meta.set_leave(leave.0);
        waits
    }

    /// Puts a packet of this counted size onto the delay line, where it may still wait. Returns whether the
    /// line was empty.
    #[inline(always)]
    pub(crate) fn wait_on_line(&mut self, pool: &mut Pool, handle: Handle, bytes: u64, leave: Nanos) -> bool {
        let waits = self.note_waiting(pool.meta_mut(handle), bytes, leave);
        self.line.join_plain(pool, handle, leave, waits)
    }

    /// Puts in flight what may be the first to leave by `until`.
    #[inline]
    fn precede(&mut self, pool: &mut Pool, until: Nanos) {
        while self.may_precede(until) && self.wake() <= until.min(self.line.next()) {
            self.advance(pool, until);
        }
    }

    /// Whether a packet is still being sent at `now`. Never, where transmission takes no time.
    #[inline(always)]
    pub(crate) fn is_sending(&self, now: Nanos) -> bool {
        self.waiting.packets > 0 && self.finish > now
    }
}
