//! The links of a worker, and the timing wheel that says when to look at which: of each link, and of each
//! medium, it has one entry at most, at the deadline.

use crate::due::Due;
use crate::order::COPIES;
use crate::wheel::{Entry, Wheel};
use longwire_block::change::Blocks;
use longwire_link::{Fifo, Firsts, Lead, Links};
use longwire_packet::{Handle, Meta, Pool};
use longwire_units::Nanos;

/// See the module.
pub(crate) struct Emulation {
    pub links: Links,
    pub wheel: Wheel,
    /// Links that have a packet on an empty line, and are to be given a place in the wheel.
    pub firsts: Firsts,
    /// What has left links that have their turn later at this moment.
    pub due: Due,
    /// The number of the next packet that leaves a link, where links are served in exact order.
    pub seq: u64,
    /// In a simulated run, when something last happened, or changed while packets were on their way.
    pub seen: Nanos,
    /// Links with background traffic.
    noisy: Vec<u32>,
    simulated: bool,
    /// In windows, how far ahead links are served that lead to other workers' links, and by a link's place
    /// whether it does.
    ahead: Option<(Lead, Vec<bool>)>,
}

impl Emulation {
    /// The links of a run that begins at `start`; `ahead` is for windows.
    pub fn new(mut links: Links, start: Nanos, simulated: bool, ahead: Option<(Lead, Vec<bool>)>) -> Self {
        links.start(start);
        let noisy = (0..links.len() as u32).filter(|&link| links.has_background(link)).collect();
        let (wheel, due) = (Wheel::new(links.slots(), start), Due::new(links.slots()));
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

    /// Says when the run ends, in windows: nothing is looked for beyond.
    pub fn end_at(&mut self, until: Nanos) {
        if let Some((lead, _)) = &mut self.ahead {
            lead.until = until;
        }
    }

    /// How far ahead of its time a link is served, if it is.
    pub fn lead_of(&self, link: u32) -> Option<Lead> {
        let (lead, crossing) = self.ahead.as_ref()?;
        crossing.get(link as usize).is_some_and(|&crossing| crossing).then_some(*lead)
    }

    /// Keeps the wheel's entry for a link at its deadline.
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
        self.arm_by(link, deadline);
    }

    /// When a link wants to be looked at that may lead to another worker's.
    fn deadline_in_window(&mut self, link: u32) -> Nanos {
        match self.lead_of(link) {
            None => self.links.deadline(link),
            Some(lead) => self.links.deadline_ahead(link, lead),
        }
    }

    /// Sees to it that a link is looked at by its deadline, which may be another now.
    #[inline(always)]
    pub fn arm_by(&mut self, link: u32, deadline: Nanos) {
        let armed = *self.links.armed(link);
        if deadline < armed {
            if armed != Nanos::NEVER {
                self.wheel.remove(Entry { time: armed, link });
            }
            self.arm_at(link, deadline);
        }
    }

    /// Gives a link that has no entry one at its deadline, if it has one.
    #[inline]
    pub fn arm_at(&mut self, link: u32, deadline: Nanos) {
        *self.links.armed(link) = deadline;
        if deadline != Nanos::NEVER {
            self.wheel.insert(Entry { time: deadline, link });
        }
    }

    /// Takes a link out of the wheel that has nothing to wait for any more: a simulated run would take the
    /// old deadline for something that is left to happen.
    fn disarm(&mut self, link: u32) {
        let time = std::mem::replace(self.links.armed(link), Nanos::NEVER);
        if time != Nanos::NEVER {
            self.wheel.remove(Entry { time, link });
        }
    }

    /// Lets links be looked at from the beginning that have background traffic, and media, whose stations may
    /// have some: no packet may come for long that would wake them.
    pub fn arm_background(&mut self) {
        for at in 0..self.noisy.len() {
            self.arm(self.noisy[at]);
        }
        for medium in self.links.len()..self.links.slots() {
            self.arm(medium as u32);
        }
    }

    /// The same for links and media whose deadlines have changed because of what happened to another.
    #[inline]
    pub fn arm_stirred(&mut self) {
        while let Some(link) = self.links.take_stirred() {
            self.arm(link);
        }
    }

    /// The same for links that have got their only packet.
    #[inline(always)]
    pub fn arm_firsts(&mut self) {
        for at in 0..self.firsts.as_slice().len() {
            let (link, leave) = self.firsts.as_slice()[at];
            self.arm_by(link, leave);
        }
        self.firsts.clear();
    }

    /// Takes links out of the wheel that are due, and fetches them.
    #[inline(always)]
    pub fn take_due(&mut self, now: Nanos, due: &mut [u32]) -> usize {
        let count = self.wheel.take_due(now, due);
        due[..count].iter().for_each(|&link| self.links.prefetch_leaving(link));
        // Nothing that happens to them meanwhile is to bring them into the wheel again.
        due[..count].iter().for_each(|&link| *self.links.armed(link) = Nanos::ZERO);
        count
    }

    /// Lets a link that is due let go of what leaves by `until`, behind what has left it already; one that
    /// leads to another worker's link, ahead of its time.
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
            // A medium, which has taken a step.
            None => self.seen = self.seen.max(until),
        }
        self.arm(link);
        self.arm_stirred();
        out
    }

    /// Whether a link has its turn at this moment.
    #[inline]
    pub fn has_turn(&mut self, link: u32, moment: Nanos) -> bool {
        *self.links.armed(link) == moment
    }

    /// Lets a packet arrive at a link that has its turn at this moment: what leaves is kept until then.
    #[cold]
    pub fn arrive_before_turn(&mut self, pool: &mut Pool, link: u32, handle: Handle) {
        let mut left = self.due.take(link);
        let before = self.links.latest(link);
        self.links.arrive_and_leave(pool, link, handle, &mut left);
        self.note(link, before);
        self.due.keep(link, left);
        self.arm_stirred();
    }

    /// Numbers a packet that has left the link at this place in the plan, and answers the number.
    pub fn number(&mut self, meta: &mut Meta, place: u32) -> u64 {
        let seq = self.seq;
        (meta.place, meta.seq) = (place, seq);
        self.seen = self.seen.max(Nanos(meta.leave()));
        self.seq += COPIES;
        seq
    }

    /// Notes what has happened on a link since its latest was `before`. What was lost on the wire is waited
    /// for: with several workers the link may have known before, and it must not matter.
    #[inline]
    pub fn note(&mut self, link: u32, before: Option<Nanos>) {
        if self.simulated
            && let Some(latest) = self.links.latest(link)
            && before != Some(latest)
        {
            self.seen = self.seen.max(latest + self.links.vain_wait(link));
        }
    }

    /// Packets of background traffic that links hold.
    pub fn phantoms(&self) -> u64 {
        self.noisy.iter().map(|&link| u64::from(self.links.phantoms(link))).sum()
    }

    /// Changes a link, or a medium, at `now`.
    pub fn change(&mut self, pool: &mut Pool, link: u32, now: Nanos, changes: &Blocks) -> Result<(), String> {
        if self.is_medium(link) {
            for (spec, values) in changes {
                self.links.change_medium(pool, link, now, (spec, values))?;
            }
            self.arm_stirred();
            return Ok(());
        }
        let was_noisy = self.links.has_background(link);
        if self.simulated && !was_noisy {
            // The delay so far decides how long is waited for what was lost so far. Background packets don't
            // count: a change may have brought them that comes in vain.
            let before = self.links.latest(link);
            self.links.catch_up(pool, link, now);
            self.note(link, before);
        }
        let done = self.links.change(pool, link, now, changes);
        if !was_noisy && self.links.has_background(link) {
            self.noisy.push(link);
        }
        self.arm(link);
        self.arm_stirred();
        done.map_err(|error| error.to_string())
    }

    /// Whether a place among the links is that of a medium: these come behind them.
    pub fn is_medium(&self, place: u32) -> bool {
        place as usize >= self.links.len()
    }
}
