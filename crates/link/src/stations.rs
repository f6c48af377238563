//! Links that are stations of a shared medium: what they report to it, and its effects on them.

use crate::fate::Arrival;
use crate::fifo::Fifo;
use crate::has;
use crate::link::{Link, Surroundings};
use crate::links::Links;
use crate::medium::{Frame, Medium, StationRef, Step, check_medium, framing, medium_rate};
use crate::transmit::Transmit;
use crate::transmit::shared::{Share, Shared};
use longwire_block::{Dice, DropReason, Spec, Values};
use longwire_packet::{Handle, Pool};
use longwire_units::Nanos;

impl Links {
    /// Adds a shared medium with these links, added before, as its stations, with their names. The dice of
    /// each are named by `name` and its own.
    ///
    /// # Panics
    /// If `spec` is not in [`MEDIA`](crate::MEDIA).
    pub fn add_medium(&mut self, name: &str, (spec, values): (&Spec, &Values), stations: &[(u32, &str)]) {
        let dice = stations.iter().map(|(_, link)| Dice::named(self.seed, &format!("media/{name}/{link}")));
        let dice: Vec<Dice> = dice.collect();
        let framing = framing(spec, values);
        let medium = self.media.len() as u32;
        for (station, (link, _)) in (0u32..).zip(stations) {
            let number = *link;
            let link = &mut self.links[number as usize];
            link.pick_up_dice(self.dice.get_mut(number as usize));
            link.line.features &= !has::DECIDED;
            let share = Share::InOrder { others: 0 };
            link.blocks().transmit =
                Transmit::Shared(Box::new(Shared::new(medium_rate(values), framing, share)));
            link.note_transmit();
            link.line.features |= has::MEDIUM;
            link.note_decidable();
            link.rare().station_ref = Some(StationRef { medium, station });
        }
        let members: Vec<u32> = stations.iter().map(|(link, _)| *link).collect();
        self.media.push(Medium::new((spec, values), members, dice));
        // Each is in the list at most once.
        self.dirty.reserve(self.media.iter().map(|medium| medium.members.len() + 1).sum());
    }

    /// Changes the values of a medium, by its number after those of the links, from `now` on.
    ///
    /// # Errors
    /// If they are inconsistent; nothing has changed then.
    #[cold]
    pub fn change_medium(
        &mut self,
        pool: &mut Pool,
        number: u32,
        now: Nanos,
        (spec, values): (&Spec, &Values),
    ) -> Result<(), String> {
        check_medium(spec, values).map_err(|(name, what)| format!("{name}: {what}"))?;
        let medium = number - self.links.len() as u32;
        self.advance(pool, medium, now);
        self.media[medium as usize].access.change(values, now);
        let framing = framing(spec, values);
        for at in 0..self.media[medium as usize].members.len() {
            let link = self.media[medium as usize].members[at];
            if let Transmit::Shared(shared) = &mut self.links[link as usize].blocks().transmit {
                (shared.rate, shared.framing) = (medium_rate(values), framing);
            }
            self.links[link as usize].note_transmit();
            self.mark_dirty(link);
        }
        self.mark_dirty(number);
        Ok(())
    }

    /// Numbers used in the timing wheel: links, followed by media.
    pub fn slots(&self) -> usize {
        self.links.len() + self.media.len()
    }

    /// Takes a link, or medium, whose deadline has changed because of an event elsewhere.
    #[inline]
    pub fn take_dirty(&mut self) -> Option<u32> {
        self.dirty.pop()
    }

    /// Lets a packet arrive at a station.
    #[cold]
    pub(crate) fn arrive_at_station(
        &mut self,
        pool: &mut Pool,
        link: u32,
        handle: Handle,
        out: &mut Fifo,
    ) -> Arrival {
        let now = self.effective_arrival(link, Nanos(pool.meta(handle).arrival));
        self.advance_station(pool, link, now);
        let spread = self.spread;
        self.links[link as usize].latest = now;
        let at = &mut Surroundings { pool, spread, out };
        let arrival = self.links[link as usize].arrive(self.dice.get_mut(link as usize), at, handle);
        self.hand_in(pool, link);
        arrival
    }

    /// Executes all events by `now` on the medium of a link, if it has one.
    pub(crate) fn advance_station(&mut self, pool: &mut Pool, link: u32, now: Nanos) {
        if let Some(at) = self.links[link as usize].station_ref() {
            self.advance(pool, at.medium, now);
            self.note_share(link);
        }
    }

    /// Informs a station of its expected share of the medium, before an event.
    fn note_share(&mut self, link: u32) {
        let link = &mut self.links[link as usize];
        if let Some(at) = link.station_ref()
            && let Transmit::Shared(shared) = &mut link.blocks().transmit
        {
            shared.share = self.media[at.medium as usize].share(at.station);
        }
    }

    /// Time of the last step on a link's medium.
    #[cold]
    pub(crate) fn latest_on_medium(&self, link: u32) -> Nanos {
        let at = self.links[link as usize].station_ref();
        at.map_or(Nanos::ZERO, |at| self.media[at.medium as usize].latest)
    }

    /// Informs the medium of a link, if it has one, of the packet that the link is to send.
    pub(crate) fn hand_in(&mut self, pool: &Pool, link: u32) {
        let of = &mut self.links[link as usize];
        let Some(StationRef { medium, station }) = of.station_ref() else { return };
        let of_medium = &mut self.media[medium as usize];
        of_medium.backlogs.note(station, of.waiting.bytes, of.latest.max(of_medium.latest));
        if let Transmit::Shared(shared) = &mut of.blocks().transmit
            && let Some((since, bytes)) = shared.request.take()
        {
            let arrived = Nanos(pool.meta(of.blocks().sending).arrival);
            let medium = &mut self.media[medium as usize];
            medium.access.request(station, since.max(medium.latest), Frame { bytes, arrived });
        }
        self.mark_dirty(self.links.len() as u32 + medium);
    }

    /// The time at which a medium must be served: its next step, if that has visible effects.
    #[cold]
    pub(crate) fn medium_deadline(&self, number: u32) -> Nanos {
        let medium = number - self.links.len() as u32;
        if self.is_seen(medium) {
            return self.first(medium).0;
        }
        let members = self.media[medium as usize].members.iter();
        members.map(|&link| self.links[link as usize].keep_up()).min().unwrap_or(Nanos::NEVER)
    }

    /// Executes due events of a medium by `until`.
    #[cold]
    pub(crate) fn expire_medium(&mut self, pool: &mut Pool, number: u32, until: Nanos) {
        if self.medium_deadline(number) > until {
            return;
        }
        let medium = number - self.links.len() as u32;
        let until = if self.is_seen(medium) { until } else { Link::behind(until) };
        self.advance(pool, medium, until);
    }

    /// Number of failed transmissions of a link.
    pub(crate) fn collisions(&self, link: u32) -> u64 {
        let at = self.links[link as usize].station_ref();
        at.map_or(0, |at| self.media[at.medium as usize].access.collisions(at.station))
    }

    /// Whether a station has, or will get, a packet other than background traffic.
    fn is_seen(&self, medium: u32) -> bool {
        let mut members = self.media[medium as usize].members.iter();
        members.any(|&link| {
            let link = &self.links[link as usize];
            link.real_packets() > 0 || link.packets_in_front() > 0
        })
    }

    /// The first event on a medium: its own step, or an event at the queue of a link.
    fn first(&self, medium: u32) -> (Nanos, Option<u32>) {
        let medium = &self.media[medium as usize];
        if medium.ended {
            return (Nanos::NEVER, None);
        }
        let mut first = (medium.access.next(), None);
        for &link in &medium.members {
            let at_queue = self.links[link as usize].next_at_queue();
            if at_queue < first.0 {
                first = (at_queue, Some(link));
            }
        }
        first
    }

    /// Executes all events on a medium by `until`, in order: ends of transmissions precede arrivals.
    fn advance(&mut self, pool: &mut Pool, number: u32, until: Nanos) {
        loop {
            let (now, link) = self.first(number);
            if now > until || now == Nanos::NEVER {
                return;
            }
            let medium = &mut self.media[number as usize];
            medium.latest = medium.latest.max(now);
            if let Some(link) = link {
                self.note_share(link);
                self.links[link as usize].catch_up(pool, now);
                self.hand_in(pool, link);
                continue;
            }
            let (station, sent) = match medium.access.step() {
                Step::Unseen => continue,
                Step::Sent(station) => (station, true),
                Step::GivenUp(station) => (station, false),
            };
            medium.backlogs.left(now);
            let link = medium.members[station as usize];
            self.note_share(link);
            self.links[link as usize].end_at_station(pool, now, sent);
            self.hand_in(pool, link);
            self.mark_dirty(link);
        }
    }

    /// Marks a link's or medium's deadline as changed.
    fn mark_dirty(&mut self, number: u32) {
        if !self.dirty.contains(&number) {
            self.dirty.push(number);
        }
    }
}

impl Link {
    /// Its station at a medium, if any.
    fn station_ref(&self) -> Option<StationRef> {
        self.known_rare()?.station_ref
    }

    /// Ends the head packet at the medium: it was sent, or given up.
    fn end_at_station(&mut self, pool: &mut Pool, now: Nanos, sent: bool) {
        if let Transmit::Shared(shared) = &mut self.blocks().transmit {
            shared.finish = now;
        }
        self.finish = now;
        if sent { self.send_off(pool, now) } else { self.give_up(pool, now) }
    }

    /// Drops the packet being sent, and begins the next.
    fn give_up(&mut self, pool: &mut Pool, now: Nanos) {
        let handle = self.blocks().sending;
        self.latest = self.latest.max(now);
        self.unqueue(pool.meta(handle));
        self.drop(pool, handle, DropReason::Collisions);
        self.follow(pool, now);
    }
}
