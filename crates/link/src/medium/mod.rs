//! Shared media: links that send in turns, or get in each other's way.
//!
//! Each member link is a station: it keeps its judges, its queue and its delay, and its transmitter asks the medium. The
//! medium simulates who sends when, and says when a packet was sent, or given up. It has a deadline of its own in the timing
//! wheel, under a number behind those of the links.

mod csma_cd;
mod dcf;
mod half_duplex;

use crate::fifo::Fifo;
use crate::has;
use crate::link::{Link, Surroundings};
use crate::links::{Arrival, Links};
use crate::transmit::Transmit;
use crate::transmit::framing::Framing;
use crate::transmit::shared::{Share, Shared};
use csma_cd::{CsmaCd, CsmaCdSettings};
use dcf::{Dcf, DcfSettings};
use half_duplex::{HalfDuplex, HalfDuplexSettings};
use longwire_block::{Dice, DropReason, Spec, Values};
use longwire_packet::{Handle, Pool};
use longwire_settings::{Setting, Settings};
use longwire_units::{Nanos, Rate};

/// The rows of all kinds of shared media.
pub const MEDIA: &[&Spec] = &[&HalfDuplexSettings::SPEC, &CsmaCdSettings::SPEC, &DcfSettings::SPEC];

/// Where media stand in the order of what happens at one time: behind all links.
const PLACE: u32 = (1 << 31) - 2;

/// What a station wants to send.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Frame {
    /// The bytes that it counts.
    pub bytes: u64,
    /// When it arrived at the link.
    pub arrived: Nanos,
}

/// What has come of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// Something that no link sees.
    Unseen,
    /// This station's frame was sent.
    Sent(u32),
    /// This station gives its frame up.
    GivenUp(u32),
}

/// How stations share a medium: a state machine that is told what they want, and takes one step after the other.
pub(crate) trait Access {
    /// Told before anything else: when the run begins on the engine's clock. Slots count from there.
    fn start(&mut self, _begin: Nanos) {}

    /// A station that had none has a frame to send, from `now` on. All steps before `now` have been taken.
    fn request(&mut self, station: u32, now: Nanos, frame: Frame);

    /// When the next step is taken; never if nobody wants anything.
    fn next(&self) -> Nanos;

    /// Takes the next step.
    fn step(&mut self) -> Step;

    /// Takes other values of its row, which [`check_medium`] has looked at. All steps up to `now` have been taken.
    fn change(&mut self, values: &Values, now: Nanos);

    /// How often the station has sent in vain.
    fn collisions(&self, _station: u32) -> u64 {
        0
    }
}

/// A medium and its stations.
pub(crate) struct Medium {
    access: Box<dyn Access + Send>,
    /// The links, by station.
    members: Vec<u32>,
    /// What waits at the stations.
    backlogs: Backlogs,
    /// Whether packets are sent in the order of their arrival, whoever's they are.
    in_order: bool,
    /// The time at which the timing wheel holds it; never if it does not.
    pub armed: Nanos,
    /// The last step taken: no packet that arrives later counts as arriving before it.
    latest: Nanos,
    /// Whether the run has ended: nothing happens any more.
    ended: bool,
}

/// What waits at the stations of a medium, and how fast packets of all of them have left of late.
struct Backlogs {
    /// Bytes that wait at each station, and at all of them.
    bytes: Vec<u64>,
    all: u64,
    /// At how many stations something waits.
    stations: u64,
    /// Packets that left, and the time that they took: while nothing waits none passes. Those before the last
    /// [`Backlogs::CYCLE`] have half the weight.
    packets: u64,
    time: Nanos,
    /// When the last packet left, or the first came after a pause.
    since: Nanos,
}

impl Backlogs {
    /// Packets of 1024 bytes in the 16 kB after which PIE's estimator averages (RFC 8033, section 5.2, DQ_THRESHOLD).
    const CYCLE: u64 = 16;

    fn new(stations: usize) -> Self {
        let bytes = vec![0; stations];
        Self { bytes, all: 0, stations: 0, packets: 0, time: Nanos::ZERO, since: Nanos::ZERO }
    }

    /// So many bytes wait at a station at `now`.
    fn note(&mut self, station: u32, bytes: u64, now: Nanos) {
        if self.all == 0 {
            self.since = now;
        }
        let known = std::mem::replace(&mut self.bytes[station as usize], bytes);
        self.all = self.all - known + bytes;
        self.stations = self.stations + u64::from(bytes > 0) - u64::from(known > 0);
    }

    /// A packet left at `now`: it was sent, or given up.
    fn left(&mut self, now: Nanos) {
        self.packets += 1;
        self.time += now.since(self.since);
        self.since = now;
        if self.packets == 2 * Self::CYCLE {
            (self.packets, self.time) = (Self::CYCLE, Nanos(self.time.0 / 2));
        }
    }
}

impl Medium {
    /// Tells when the run begins.
    pub(crate) fn start(&mut self, begin: Nanos) {
        self.access.start(begin);
    }

    /// The run ends.
    pub(crate) fn end(&mut self) {
        self.ended = true;
    }

    /// What a station can expect of the medium.
    fn share(&self, station: u32) -> Share {
        let backlogs = &self.backlogs;
        let own = backlogs.bytes[station as usize];
        if self.in_order {
            return Share::InOrder { others: backlogs.all - own };
        }
        let stations = backlogs.stations + u64::from(own == 0);
        Share::Fair { stations, packets: backlogs.packets, time: backlogs.time }
    }
}

/// A link's place at a medium.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Seat {
    medium: u32,
    station: u32,
}

/// Named sets of values for the parameters of a kind of medium: each a name, and parameters with their values.
pub fn medium_profiles(spec: &Spec) -> &'static [(&'static str, &'static [(&'static str, &'static str)])] {
    if spec.is(&DcfSettings::SPEC) { dcf::PROFILES } else { &[] }
}

/// The rate that the stations of a medium share: the first setting of each.
pub fn medium_rate(values: &Values) -> Rate {
    let rate = values.as_slice().first().and_then(Rate::of);
    rate.unwrap_or(Rate::STALLED)
}

/// Finds fault with parameters that don't go together: the parameter, and what is wrong with it and the fix.
///
/// # Errors
/// If there is a fault.
pub fn check_medium(spec: &Spec, values: &Values) -> Result<(), (&'static str, String)> {
    /// The highest rate that a link can have.
    const FASTEST: u64 = 400_000_000_000;
    let rate = medium_rate(values);
    if !(1..=FASTEST).contains(&rate.0) {
        return Err(("rate", format!("{rate} can't be shared; write 300 bit/s to 400 Gbit/s")));
    }
    if spec.is(&CsmaCdSettings::SPEC) && !csma_cd::notices_collisions(values) {
        let what = "a station would have sent its frame before it hears of a collision; make it half a slot at most, \
                    or slot larger";
        return Err(("propagation", what.into()));
    }
    if spec.is(&DcfSettings::SPEC) && DcfSettings::of(values).slot == Nanos::ZERO {
        return Err(("slot", "a slot takes no time; write \"9 us\", say".into()));
    }
    Ok(())
}

/// The bytes of a packet that count on a medium.
fn framing(spec: &Spec, values: &Values) -> Framing {
    match spec.kind {
        "half-duplex" => half_duplex::framing(values),
        "csma-cd" => Framing::ETHERNET,
        _ => Framing::ip(0),
    }
}

impl Links {
    /// Adds a shared medium whose stations are these links, which were added before, with their names. The dice of each
    /// are named by `name` and its own.
    ///
    /// # Panics
    /// If `spec` is none of [`MEDIA`].
    pub fn add_medium(&mut self, name: &str, (spec, values): (&Spec, &Values), stations: &[(u32, &str)]) {
        let dice = stations.iter().map(|(_, link)| Dice::named(self.seed, &format!("media/{name}/{link}")));
        let dice: Vec<Dice> = dice.collect();
        let framing = framing(spec, values);
        let access: Box<dyn Access + Send> = match spec.kind {
            "half-duplex" => Box::new(HalfDuplex::new(HalfDuplexSettings::of(values), dice.len())),
            "csma-cd" => Box::new(CsmaCd::new(CsmaCdSettings::of(values), dice)),
            "dcf" => Box::new(Dcf::new(&DcfSettings::of(values), dice)),
            other => panic!("there is no medium of the kind {other}"),
        };
        let medium = self.media.len() as u32;
        for (station, (link, _)) in (0u32..).zip(stations) {
            let number = *link;
            let link = &mut self.links[number as usize];
            link.pick_up_dice((&mut self.dice, number));
            link.line.features &= !has::DECIDED;
            let share = Share::InOrder { others: 0 };
            link.blocks().transmit =
                Transmit::Shared(Box::new(Shared::new(medium_rate(values), framing, share)));
            link.note_transmit();
            link.line.features |= has::MEDIUM;
            link.note_decidable();
            link.rare().seat = Some(Seat { medium, station });
        }
        let members: Vec<u32> = stations.iter().map(|(link, _)| *link).collect();
        let (backlogs, in_order) = (Backlogs::new(members.len()), spec.is(&HalfDuplexSettings::SPEC));
        self.media.push(Medium {
            access,
            members,
            backlogs,
            in_order,
            armed: Nanos::NEVER,
            latest: Nanos::ZERO,
            ended: false,
        });
        // Each is in there once at most.
        self.stirred.reserve(self.media.iter().map(|medium| medium.members.len() + 1).sum());
    }

    /// Gives a medium, by its number behind those of the links, other values of its row from `now` on.
    ///
    /// # Errors
    /// If they don't go together; nothing has changed then.
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
                shared.share(medium_rate(values), framing);
            }
            self.links[link as usize].note_transmit();
            self.stir(link);
        }
        self.stir(number);
        Ok(())
    }

    /// How many numbers the timing wheel needs: those of links, and of media behind them.
    pub fn slots(&self) -> usize {
        self.links.len() + self.media.len()
    }

    /// A link, or medium, whose deadline has changed because of what happened to another.
    #[inline]
    pub fn take_stirred(&mut self) -> Option<u32> {
        self.stirred.pop()
    }

    /// A packet arrives at a station.
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
        let arrival = self.links[link as usize].arrive((&mut self.dice, link), at, handle);
        self.hand_in(pool, link);
        arrival
    }

    /// Carries out all that happens by `now` on the medium of a link, if it has one.
    pub(crate) fn advance_station(&mut self, pool: &mut Pool, link: u32, now: Nanos) {
        if let Some(seat) = self.links[link as usize].seat() {
            self.advance(pool, seat.medium, now);
            self.note_share(link);
        }
    }

    /// Tells a station how much of the medium it can expect, before something happens at it.
    fn note_share(&mut self, link: u32) {
        let link = &mut self.links[link as usize];
        if let Some(seat) = link.seat()
            && let Transmit::Shared(shared) = &mut link.blocks().transmit
        {
            shared.expect(self.media[seat.medium as usize].share(seat.station));
        }
    }

    /// The time of the last step on a link's medium.
    #[cold]
    pub(crate) fn latest_on_medium(&self, link: u32) -> Nanos {
        let seat = self.links[link as usize].seat();
        seat.map_or(Nanos::ZERO, |seat| self.media[seat.medium as usize].latest)
    }

    /// Tells the medium of a link, if it has one, what the link wants to send.
    pub(crate) fn hand_in(&mut self, pool: &Pool, link: u32) {
        let of = &mut self.links[link as usize];
        let Some(Seat { medium, station }) = of.seat() else { return };
        let of_medium = &mut self.media[medium as usize];
        of_medium.backlogs.note(station, of.waiting.bytes, of.latest.max(of_medium.latest));
        if let Transmit::Shared(shared) = &mut of.blocks().transmit
            && let Some((since, bytes)) = shared.take_wish()
        {
            let arrived = Nanos(pool.meta(of.blocks().sending).arrival);
            let medium = &mut self.media[medium as usize];
            medium.access.request(station, since.max(medium.latest), Frame { bytes, arrived });
        }
        self.stir(self.links.len() as u32 + medium);
    }

    /// When a medium wants to be looked at: at its next step, if anybody sees what comes of it.
    #[cold]
    pub(crate) fn medium_deadline(&self, number: u32) -> Nanos {
        let medium = number - self.links.len() as u32;
        if self.is_seen(medium) {
            return self.first(medium).0;
        }
        let members = self.media[medium as usize].members.iter();
        members.map(|&link| self.links[link as usize].keep_up()).min().unwrap_or(Nanos::NEVER)
    }

    /// Carries out what is due on a medium by `until`.
    #[cold]
    pub(crate) fn expire_medium(&mut self, pool: &mut Pool, number: u32, until: Nanos) {
        if self.medium_deadline(number) > until {
            return;
        }
        let medium = number - self.links.len() as u32;
        let until = if self.is_seen(medium) { until } else { Link::behind(until) };
        self.advance(pool, medium, until);
    }

    /// A medium's place in the order of what happens at one time.
    #[cold]
    pub(crate) fn medium_place(&self) -> u32 {
        PLACE
    }

    pub(crate) fn medium_armed(&mut self, number: u32) -> &mut Nanos {
        &mut self.media[number as usize - self.links.len()].armed
    }

    /// How often a link has sent in vain.
    pub(crate) fn collisions(&self, link: u32) -> u64 {
        let seat = self.links[link as usize].seat();
        seat.map_or(0, |seat| self.media[seat.medium as usize].access.collisions(seat.station))
    }

    /// Whether a station has a packet, or gets one, that is more than background traffic.
    fn is_seen(&self, medium: u32) -> bool {
        let mut members = self.media[medium as usize].members.iter();
        members.any(|&link| {
            let link = &self.links[link as usize];
            link.real_packets() > 0 || link.packets_in_front() > 0
        })
    }

    /// What happens first on a medium: a step of its own, or something at the queue of a link.
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

    /// Carries out all that happens on a medium by `until`, in its order: ends of transmissions come before arrivals.
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
            self.stir(link);
        }
    }

    /// Notes that a link's or medium's deadline may have changed.
    fn stir(&mut self, number: u32) {
        if !self.stirred.contains(&number) {
            self.stirred.push(number);
        }
    }
}

impl Link {
    /// Its place at a medium, if it has one.
    fn seat(&self) -> Option<Seat> {
        self.known_rare()?.seat
    }

    /// The medium is done with the packet at the head: it was sent, or given up.
    fn end_at_station(&mut self, pool: &mut Pool, now: Nanos, sent: bool) {
        if let Transmit::Shared(shared) = &mut self.blocks().transmit {
            shared.end(now);
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

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A medium by itself.
    pub(crate) struct Bench<A> {
        pub access: A,
    }

    impl<A: Access> Bench<A> {
        pub(crate) fn new(access: A) -> Self {
            Self { access }
        }

        /// A frame of so many bytes that arrived then is to be sent.
        pub(crate) fn request(&mut self, station: u32, now: u64, (bytes, arrived): (u64, u64)) {
            self.access.request(station, Nanos(now), Frame { bytes, arrived: Nanos(arrived) });
        }

        /// Everything by `until`: when a frame was sent, or given up, whose, and which of the two.
        pub(crate) fn run(&mut self, until: u64) -> Vec<(u64, u32, bool)> {
            let mut seen = Vec::new();
            while self.access.next() <= Nanos(until) {
                let now = self.access.next().0;
                match self.access.step() {
                    Step::Unseen => {}
                    Step::Sent(station) => seen.push((now, station, true)),
                    Step::GivenUp(station) => seen.push((now, station, false)),
                }
            }
            seen
        }

        /// The same, with stations that always have a next frame of so many bytes.
        pub(crate) fn saturate(&mut self, stations: u32, bytes: u64, until: u64) -> Vec<(u64, u32, bool)> {
            (0..stations).for_each(|station| self.request(station, 0, (bytes, 0)));
            let mut seen = Vec::new();
            while self.access.next() <= Nanos(until) {
                let now = self.access.next().0;
                let (station, sent) = match self.access.step() {
                    Step::Unseen => continue,
                    Step::Sent(station) => (station, true),
                    Step::GivenUp(station) => (station, false),
                };
                seen.push((now, station, sent));
                self.request(station, now, (bytes, now));
            }
            seen
        }
    }

    #[test]
    fn profiles_can_be_read() {
        for spec in MEDIA {
            for (name, values) in medium_profiles(spec) {
                let values = Values::read(spec, values).unwrap_or_else(|error| panic!("{name}: {error}"));
                assert_eq!(check_medium(spec, &values), Ok(()), "{name}");
            }
        }
    }

    #[test]
    fn media_have_rows_as_links_have() {
        for spec in MEDIA {
            assert_eq!(spec.key, "medium");
            let values = Values::read(spec, &[]).unwrap();
            assert_eq!(check_medium(spec, &values), Ok(()), "{}", spec.kind);
            assert!(spec.params.iter().all(|param| !param.help.is_empty()));
        }
        let refused = |spec: &Spec, given: &[(&str, &str)]| {
            check_medium(spec, &Values::read(spec, given).unwrap()).unwrap_err().0
        };
        assert_eq!(refused(&HalfDuplexSettings::SPEC, &[("rate", "unlimited")]), "rate");
        assert_eq!(refused(&DcfSettings::SPEC, &[("rate", "0")]), "rate");
        assert_eq!(refused(&DcfSettings::SPEC, &[("slot", "0 us")]), "slot");
        assert_eq!(refused(&CsmaCdSettings::SPEC, &[("propagation", "26 us")]), "propagation");
    }
}
