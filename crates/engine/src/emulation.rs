//! The links of a worker, and the timing wheel that schedules them. Each link and each medium has at most one
//! entry, at its deadline.

use crate::order::COPIES;
use crate::wheel::{Entry, Wheel};
use longwire_block::change::Blocks;
use longwire_link::{Fifo, Firsts, Joining, Lead, LinkStats, Links};
use longwire_packet::{Handle, Meta, Pool};
use longwire_units::Nanos;

pub(crate) struct Emulation {
    pub links: Links,
    pub wheel: Wheel,
    /// Links that have a packet on an empty line and must be scheduled.
    pub firsts: Firsts,
    /// Packets released by links whose turn comes later at this instant.
    pub due: DueReleases,
    /// Sequence number of the next packet that leaves a link, where links are served in exact order.
    seq: u64,
    /// Simulated runs: time of the last event, or change with packets in flight.
    pub seen: Nanos,
    /// Links with background traffic.
    noisy: Vec<u32>,
    simulated: bool,
    /// Windows: the lead of links that lead to other workers' links, and whether each link does.
    ahead: Option<(Lead, Vec<bool>)>,
}

impl Emulation {
    /// The links of a run that begins at `start`; `ahead` is for windows.
    pub fn new(mut links: Links, start: Nanos, simulated: bool, ahead: Option<(Lead, Vec<bool>)>) -> Self {
        links.start(start);
        let noisy = (0..links.len() as u32).filter(|&link| links.has_background(link)).collect();
        let (wheel, due) = (Wheel::new(links.slots(), start), DueReleases::new(links.slots()));
        Self {
            links,
            wheel,
            firsts: Firsts::default(),
            due,
            seq: 0,
            seen: Nanos::ZERO,
            noisy,
            simulated,
            ahead,
        }
    }

    /// Adds links that begin now, and moves to a larger `wheel` if one is needed.
    pub fn join(&mut self, joining: &mut Joining, wheel: Option<&mut Wheel>, now: Nanos) {
        if let Some(wheel) = wheel {
            wheel.take_over(&mut self.wheel, now);
            std::mem::swap(&mut self.wheel, wheel);
        }
        self.links.join(joining, now);
        for &link in joining.slots() {
            if self.links.has_background(link) {
                self.noisy.push(link);
                self.arm(link);
            }
        }
    }

    pub fn leave(&mut self, pool: &mut Pool, link: u32, now: Nanos, drained: bool) {
        if self.simulated {
            self.noting(link, |links| links.catch_up(pool, link, now));
            if pool.live() > 0 {
                self.seen = self.seen.max(now);
            }
        }
        self.links.leave(pool, link, now, drained);
        self.arm_dirty();
        if drained {
            self.arm(link);
        } else {
            self.noisy.retain(|noisy| *noisy != link);
            self.disarm(link);
        }
    }

    /// Sets the end of the run, in windows: later events need not be found.
    pub fn end_at(&mut self, until: Nanos) {
        if let Some((lead, _)) = &mut self.ahead {
            lead.until = until;
        }
    }

    /// The lead with which a link is served, if any.
    pub fn lead_of(&self, link: u32) -> Option<Lead> {
        let (lead, crossing) = self.ahead.as_ref()?;
        crossing.get(link as usize).is_some_and(|&crossing| crossing).then_some(*lead)
    }

    /// Sets the wheel's entry of a link to its deadline.
    #[inline]
    pub fn arm(&mut self, link: u32) {
        let deadline =
            if self.ahead.is_none() { self.links.deadline(link) } else { self.deadline_in_window(link) };
        let armed = self.links.armed(link);
        if deadline >= *armed {
            if deadline == Nanos::NEVER && self.simulated {
                self.disarm(link);
            }
            return;
        }
        arm_by(&mut self.links, &mut self.wheel, link, deadline);
    }

    /// The deadline of a link that may lead to another worker's.
    fn deadline_in_window(&mut self, link: u32) -> Nanos {
        match self.lead_of(link) {
            None => self.links.deadline(link),
            Some(lead) => self.links.deadline_ahead(link, lead),
        }
    }

    /// Schedules a link that has no entry, if it has a deadline.
    #[inline]
    pub fn arm_at(&mut self, link: u32, deadline: Nanos) {
        *self.links.armed(link) = deadline;
        if deadline != Nanos::NEVER {
            self.wheel.insert(Entry { time: deadline, link });
        }
    }

    /// Removes a link without a deadline from the wheel: in a simulated run its old entry would look like a
    /// pending event.
    fn disarm(&mut self, link: u32) {
        let time = std::mem::replace(self.links.armed(link), Nanos::NEVER);
        if time != Nanos::NEVER {
            self.wheel.remove(Entry { time, link });
        }
    }

    /// Schedules links with background traffic, and media, whose stations may have some, at the start: the
    /// first packet that would schedule them may come late.
    pub fn arm_background(&mut self) {
        for at in 0..self.noisy.len() {
            self.arm(self.noisy[at]);
        }
        for medium in self.links.len()..self.links.slots() {
            self.arm(medium as u32);
        }
    }

    /// Reschedules links and media whose deadlines were changed by events elsewhere.
    #[inline]
    pub fn arm_dirty(&mut self) {
        while let Some(link) = self.links.take_dirty() {
            self.arm(link);
        }
    }

    /// Schedules links that have just received their only packet.
    #[inline(always)]
    pub fn arm_firsts(&mut self) {
        let Self { links, wheel, firsts, .. } = self;
        for &(link, leave) in firsts.as_slice() {
            arm_by(links, wheel, link, leave);
        }
        firsts.clear();
    }

    /// Releases the packets of a due link that leave by `until`, after those already released; a link to
    /// another worker's link is served ahead of time.
    pub fn let_go(&mut self, pool: &mut Pool, link: u32, until: Nanos) -> Fifo {
        *self.links.armed(link) = Nanos::NEVER;
        let mut out = self.due.take(link);
        let before = self.links.latest(link);
        match self.lead_of(link) {
            None => self.links.expire(pool, link, until, &mut out),
            Some(lead) => self.links.expire_ahead(pool, link, until, lead, &mut out),
        }
        match before {
            Some(_) => self.note(link, before),
            // A medium has taken a step.
            None => self.seen = self.seen.max(until),
        }
        self.arm(link);
        self.arm_dirty();
        out
    }

    /// Whether a link is due at this moment.
    #[inline]
    pub fn has_turn(&mut self, link: u32, moment: Nanos) -> bool {
        *self.links.armed(link) == moment
    }

    /// Enters a packet into a link that is due at this instant. Packets that reach the link's end are kept
    /// until its turn. Those that it diverts are returned: when a link is due depends on where it leads to,
    /// and they do not go there.
    #[cold]
    pub fn arrive_before_turn(&mut self, pool: &mut Pool, link: u32, handle: Handle) -> Fifo {
        let (mut left, mut diverted) = (Fifo::EMPTY, Fifo::EMPTY);
        self.noting(link, |links| links.arrive_and_leave(pool, link, handle, &mut left));
        let mut kept = self.due.take(link);
        while let Some(handle) = left.pop(pool) {
            let is_diverted = pool.meta(handle).flags & Meta::DIVERTED != 0;
            if is_diverted { &mut diverted } else { &mut kept }.push(pool, handle);
        }
        self.due.keep(link, kept);
        self.arm_dirty();
        diverted
    }

    /// Assigns the next sequence number to a packet that has left the link at this place, and returns it.
    pub fn number(&mut self, meta: &mut Meta, place: u32) -> u64 {
        let seq = self.next_seq();
        (meta.place, meta.seq) = (place, seq);
        self.seen = self.seen.max(Nanos(meta.leave()));
        seq
    }

    /// Takes the next sequence number.
    pub fn next_seq(&mut self) -> u64 {
        let seq = self.seq;
        self.seq += COPIES;
        seq
    }

    /// Records the last event of a link, whose latest was `before`. Packets lost on the wire count too: with
    /// several workers the link may know of the loss earlier, and the result must not differ.
    #[inline]
    pub fn note(&mut self, link: u32, before: Option<Nanos>) {
        if self.simulated
            && let Some(latest) = self.links.latest(link)
            && before != Some(latest)
        {
            self.seen = self.seen.max(latest + self.links.vain_wait(link));
        }
    }

    /// Calls `act`, and records the last event of a link if it comes from that.
    fn noting<T>(&mut self, link: u32, act: impl FnOnce(&mut Links) -> T) -> T {
        let before = self.links.latest(link);
        let done = act(&mut self.links);
        self.note(link, before);
        done
    }

    /// Bytes in a link's queue at `now`, when a packet arrives.
    pub fn queued_bytes(&mut self, pool: &mut Pool, link: u32, now: Nanos) -> u64 {
        self.noting(link, |links| links.queued_bytes(pool, link, now))
    }

    /// Counters of a link at `now`, before anything else happens then.
    pub fn stats_at(&mut self, pool: &mut Pool, link: u32, now: Nanos) -> LinkStats {
        self.noting(link, |links| links.stats(pool, link, now))
    }

    /// Packets of background traffic in the links.
    pub fn phantoms(&self) -> u64 {
        self.noisy.iter().map(|&link| u64::from(self.links.phantoms(link))).sum()
    }

    /// Changes a link, or a medium, at `now`.
    pub fn change(&mut self, pool: &mut Pool, link: u32, now: Nanos, changes: &Blocks) -> Result<(), String> {
        if self.is_medium(link) {
            for (spec, values) in changes {
                self.links.change_medium(pool, link, now, (spec, values))?;
            }
            self.arm_dirty();
            return Ok(());
        }
        let was_noisy = self.links.has_background(link);
        if self.simulated && !was_noisy {
            // The old delay applies to packets lost so far. Background packets are ignored: the change that
            // created them may have had no effect.
            self.noting(link, |links| links.catch_up(pool, link, now));
        }
        let done = self.links.change(pool, link, now, changes);
        if !was_noisy && self.links.has_background(link) {
            self.noisy.push(link);
        }
        self.arm(link);
        self.arm_dirty();
        done.map_err(|error| error.to_string())
    }

    /// Whether the index belongs to a medium; media follow the links.
    pub fn is_medium(&self, place: u32) -> bool {
        place as usize >= self.links.len()
    }
}

/// Packets that leave a link at the instant at which another packet enters it. Departures come before
/// arrivals, so the link has to release them first. But links earlier in the plan may have departures at the
/// same instant, which come first, so released packets are kept until their link's turn.
///
/// Few links at a time have some, usually none. Sorted, with the first in the plan at the end.
#[derive(Debug)]
pub(crate) struct DueReleases(Vec<(u32, Fifo)>);

impl DueReleases {
    /// For a worker with `links` links.
    pub fn new(links: usize) -> Self {
        const USUAL: usize = 256;
        Self(Vec::with_capacity(links.min(USUAL)))
    }

    /// Takes the packets that the link has already released.
    #[inline]
    pub fn take(&mut self, link: u32) -> Fifo {
        if self.0.is_empty() {
            return Fifo::EMPTY;
        }
        self.place_of(link).map_or(Fifo::EMPTY, |place| self.0.remove(place).1)
    }

    pub fn keep(&mut self, link: u32, left: Fifo) {
        if left != Fifo::EMPTY {
            let place = self.place_of(link).unwrap_or_else(|place| place);
            self.0.insert(place, (link, left));
        }
    }

    /// The index of a link's entry, or where it would be inserted.
    fn place_of(&self, link: u32) -> Result<usize, usize> {
        self.0.binary_search_by(|(kept, _)| link.cmp(kept))
    }
}

/// Reschedules a link for `deadline`, if that is earlier than its entry.
#[inline(always)]
fn arm_by(links: &mut Links, wheel: &mut Wheel, link: u32, deadline: Nanos) {
    let entry = links.armed(link);
    let armed = *entry;
    if deadline < armed {
        *entry = deadline;
        if armed != Nanos::NEVER {
            wheel.remove(Entry { time: armed, link });
        }
        wheel.insert(Entry { time: deadline, link });
    }
}
