//! A local network on one wire: stations that listen before and during transmission (CSMA/CD).
//!
//! The propagation time is the same between any two stations, as through a hub with cables of one length.
//! Every station follows the processes of IEEE 802.3, 4.2.8, for half duplex: deference, transmission,
//! back-off.

use super::{Access, Frame, Step};
use longwire_block::{Dice, Values};
use longwire_settings::Settings;
use longwire_units::{Nanos, Rate};

/// Preamble and start delimiter; the interpacket gap, of which the first two thirds are sensed; the jam; the
/// attempt limit, and the back-off limit (IEEE 802.3, 4.4.2).
const PREAMBLE: u64 = 64;
const GAP: u64 = 96;
const GAP_LISTENED: u64 = 64;
const JAM: u64 = 32;
const ATTEMPTS: u32 = 16;
const HIGHEST_EXPONENT: u32 = 10;

/// See the module.
#[derive(Debug)]
pub(crate) struct CsmaCd {
    wire: Wire,
    stations: Vec<Station>,
    /// Signals on the wire, until the last station has heard their end.
    signals: Vec<Signal>,
}

/// What the settings say.
#[derive(Debug, Clone, Copy)]
struct Wire {
    rate: u64,
    /// Bits of the shortest transmission, without its preamble.
    slot: u64,
    propagation: Nanos,
    preamble: Nanos,
    jam: Nanos,
    /// The unit of the back-off.
    back_off: Nanos,
    /// The interpacket gap, and the sensed part of it.
    gap: Nanos,
    gap_listened: Nanos,
}

#[derive(Debug, Default)]
struct Station {
    dice: Dice,
    /// Bits of the current frame, without preamble.
    frame: Option<u64>,
    /// Earliest time at which it may be sent.
    ready: Nanos,
    /// Collisions of the current frame, and of all frames.
    attempts: u32,
    collisions: u64,
    sending: Option<Sending>,
    /// Number of signals of others that it hears.
    heard: u32,
    deference: Deference,
}

/// A station's transmission.
#[derive(Debug, Clone, Copy)]
struct Sending {
    start: Nanos,
    end: Nanos,
    jam: bool,
}

/// The deference process of a station.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Deference {
    /// It may start sending.
    #[default]
    Open,
    /// The wire is busy; whether the station itself has sent.
    Carrier { sent: bool },
    /// During the gap; carrier sensed before `listens` restarts it.
    Gap { listens: Nanos, end: Nanos },
}

/// A station's signal as heard by the others: delayed by the propagation time.
#[derive(Debug)]
struct Signal {
    station: usize,
    start: Nanos,
    /// Never, while its station is still sending.
    end: Nanos,
    heard: bool,
    /// Propagation time to the others.
    propagation: Nanos,
}

/// The next event; at equal times the first in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// A station ends its transmission.
    End(usize),
    /// The others no longer hear a signal.
    Silence(usize),
    /// The others start to hear a signal.
    Sound(usize),
    /// Stations with a frame start sending.
    Start,
}

/// Stations on one wire: carrier sense, collisions, truncated binary exponential back-off.
#[derive(Debug, Settings)]
#[settings(
    key = "medium",
    kind = "csma-cd",
    source = "IEEE 802.3, 4.2.8 and 4.4.2; Metcalfe & Boggs, \"Ethernet: distributed packet switching for \
        local computer networks\", CACM 19(7), 1976",
    live
)]
pub(crate) struct CsmaCdSettings {
    /// the wire's rate, 300 bit/s to 400 Gbit/s
    #[setting(default = "10 Mbit/s")]
    rate: Rate,
    /// propagation time between any two stations, at most half a slot
    #[setting(default = "5 us", max = Nanos::from_secs(1))]
    propagation: Nanos,
    /// bit times of a slot, the unit of the back-off; shorter frames are extended to it
    #[setting(default = "512", min = 512, max = 1_000_000)]
    slot: u64,
}

impl CsmaCd {
    pub(crate) fn new(settings: CsmaCdSettings, dice: Vec<Dice>) -> Self {
        let signals = Vec::with_capacity(2 * dice.len());
        let stations = dice.into_iter().map(|dice| Station { dice, ..Station::default() }).collect();
        Self { wire: Wire::new(settings), stations, signals }
    }

    /// The next event and its time.
    fn first(&self) -> (Nanos, Event) {
        let ends = self.stations.iter().enumerate();
        let ends = ends.filter_map(|(at, station)| Some((station.sending?.end, Event::End(at))));
        let heard = self.signals.iter().enumerate().map(|(at, signal)| {
            if signal.heard {
                (signal.end + signal.propagation, Event::Silence(at))
            } else {
                (signal.start + signal.propagation, Event::Sound(at))
            }
        });
        let starts = self.stations.iter().map(|station| (station.start(), Event::Start));
        ends.chain(heard).chain(starts).min().unwrap_or((Nanos::NEVER, Event::Start))
    }

    /// Starts all stations that may send at `now`.
    fn start(&mut self, now: Nanos) {
        let wire = &self.wire;
        let starting = self.stations.iter_mut().enumerate().filter(|(_, station)| station.start() == now);
        for (at, station) in starting {
            let bits = PREAMBLE + station.frame.unwrap_or(0).max(wire.slot);
            let end = now + sending_time(bits, wire.rate);
            station.sending = Some(Sending { start: now, end, jam: false });
            station.deference = Deference::Carrier { sent: true };
            if station.heard > 0 {
                station.collide(now, wire);
            }
            let (end, propagation) = (Nanos::NEVER, wire.propagation);
            self.signals.push(Signal { station: at, start: now, end, heard: false, propagation });
        }
    }

    /// Ends a station's transmission: its frame, or a jam.
    fn end(&mut self, at: usize, now: Nanos) -> Step {
        if let Some(signal) = self.signals.iter_mut().rfind(|signal| signal.station == at) {
            signal.end = now;
        }
        let station = &mut self.stations[at];
        let jam = station.sending.take().is_some_and(|sending| sending.jam);
        station.hush(now, &self.wire);
        if !jam {
            (station.frame, station.attempts) = (None, 0);
            return Step::Sent(at as u32);
        }
        station.attempts += 1;
        if station.attempts == ATTEMPTS {
            (station.frame, station.attempts) = (None, 0);
            return Step::GivenUp(at as u32);
        }
        let slots = station.dice.below(1 << station.attempts.min(HIGHEST_EXPONENT));
        station.ready = now + Nanos(slots * self.wire.back_off.0);
        Step::Unseen
    }

    /// Starts a signal for all others.
    fn sound(&mut self, at: usize, now: Nanos) {
        let signal = &mut self.signals[at];
        signal.heard = true;
        let from = signal.station;
        for (_, station) in self.stations.iter_mut().enumerate().filter(|(other, _)| *other != from) {
            station.settle(now);
            station.heard += 1;
            match station.deference {
                Deference::Open => station.deference = Deference::Carrier { sent: false },
                Deference::Gap { listens, .. } if now < listens => {
                    station.deference = Deference::Carrier { sent: false };
                }
                _ => {}
            }
            station.collide(now, &self.wire);
        }
    }

    /// Ends a signal for all others.
    fn silence(&mut self, at: usize, now: Nanos) {
        let from = self.signals.remove(at).station;
        for (_, station) in self.stations.iter_mut().enumerate().filter(|(other, _)| *other != from) {
            station.settle(now);
            station.heard -= 1;
            station.hush(now, &self.wire);
        }
    }
}

impl Station {
    /// Start of its transmission, if known. After a gap it starts regardless of signals.
    fn start(&self) -> Nanos {
        match self.deference {
            _ if self.frame.is_none() || self.sending.is_some() => Nanos::NEVER,
            Deference::Open => self.ready,
            Deference::Gap { end, .. } if self.ready <= end => end,
            // The back-off extends beyond the gap: the carrier at its end decides.
            Deference::Gap { .. } if self.heard == 0 => self.ready,
            _ => Nanos::NEVER,
        }
    }

    /// Ends the gap of a station that has not started sending at its end, by `now`.
    fn settle(&mut self, now: Nanos) {
        if let Deference::Gap { end, .. } = self.deference
            && end <= now
            && self.start() != end
        {
            self.deference =
                if self.heard > 0 { Deference::Carrier { sent: false } } else { Deference::Open };
        }
    }

    /// Handles a collision: it completes its preamble, if necessary, and jams.
    fn collide(&mut self, now: Nanos, wire: &Wire) {
        if let Some(sending) = &mut self.sending
            && !sending.jam
        {
            sending.jam = true;
            sending.end = now.max(sending.start + wire.preamble) + wire.jam;
            self.collisions += 1;
        }
    }

    /// Starts the gap, if it neither hears nor sends any more.
    fn hush(&mut self, now: Nanos, wire: &Wire) {
        if let Deference::Carrier { sent } = self.deference
            && self.heard == 0
            && self.sending.is_none()
        {
            // A station that has just sent does not listen (4.2.8, process Deference).
            let listens = if sent { now } else { now + wire.gap_listened };
            self.deference = Deference::Gap { listens, end: now + wire.gap };
        }
    }
}

impl Access for CsmaCd {
    fn request(&mut self, station: u32, now: Nanos, frame: Frame) {
        let station = &mut self.stations[station as usize];
        station.settle(now);
        (station.frame, station.ready) = (Some(frame.bytes * 8), now);
    }

    fn next(&self) -> Nanos {
        self.first().0
    }

    fn step(&mut self) -> Step {
        let (now, event) = self.first();
        match event {
            Event::End(at) => return self.end(at, now),
            Event::Silence(at) => self.silence(at, now),
            Event::Sound(at) => self.sound(at, now),
            Event::Start => self.start(now),
        }
        Step::Unseen
    }

    /// Current signals are not affected, and gaps and back-offs in progress keep their length.
    fn change(&mut self, values: &Values, _: Nanos) {
        self.wire = Wire::new(CsmaCdSettings::of(values));
    }

    fn collisions(&self, station: u32) -> u64 {
        self.stations[station as usize].collisions
    }
}

impl Wire {
    fn new(CsmaCdSettings { rate: Rate(rate), propagation, slot }: CsmaCdSettings) -> Self {
        let [preamble, jam, back_off, gap, gap_listened] =
            [PREAMBLE, JAM, slot, GAP, GAP_LISTENED].map(|bits| sending_time(bits, rate));
        Self { rate, slot, propagation, preamble, jam, back_off, gap, gap_listened }
    }
}

/// Whether a station is still sending its shortest frame when it hears another that started before it could
/// hear the first: at most two propagation times after its start, plus the part of the gap that is not
/// sensed.
pub(super) fn notices_collisions(values: &Values) -> bool {
    let CsmaCdSettings { rate, propagation, slot } = CsmaCdSettings::of(values);
    let twice = propagation.0.saturating_mul(2);
    twice <= sending_time(slot, rate.0).0 && GAP - GAP_LISTENED < PREAMBLE
}

/// Duration of `bits` bits, rounded down.
fn sending_time(bits: u64, rate: u64) -> Nanos {
    Nanos((u128::from(bits) * 1_000_000_000 / u128::from(rate)) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::medium::tests::Bench;

    fn wire(stations: u32, given: &[(&str, &str)]) -> Bench<CsmaCd> {
        let values = Values::read(&CsmaCdSettings::SPEC, given).unwrap();
        let dice = (0..stations).map(|station| Dice::named(1, &format!("media/lan/{station}")));
        Bench::new(CsmaCd::new(CsmaCdSettings::of(&values), dice.collect()))
    }

    /// 10 Mbit/s: 100 ns a bit. 1518 bytes and the preamble take 1220.8 µs, and the gap 9.6 µs.
    #[test]
    fn a_station_by_itself_has_the_whole_wire() {
        let mut lan = wire(3, &[]);
        let ends: Vec<_> = lan.saturate(1, 1518, 4_000_000).iter().map(|(end, ..)| *end).collect();
        assert_eq!(ends, [1_220_800, 1_220_800 + 1_230_400, 1_220_800 + 2 * 1_230_400]);
    }

    /// 1518 bytes and the preamble are 12 208 bits. The frame being sent at 10 Mbit/s ends as planned; then
    /// the gap of 9.6 µs, or of 960 ns at 100 Mbit/s if the change came before it.
    #[test]
    fn another_rate_holds_from_the_next_frame_on() {
        let fast =
            Values::read(&CsmaCdSettings::SPEC, &[("rate", "100 Mbit/s"), ("propagation", "1 us")]).unwrap();
        let mut lan = wire(2, &[("propagation", "5 us")]);
        lan.request(0, 0, (1518, 0));
        assert_eq!(lan.run(600_000), []);
        lan.access.change(&fast, Nanos(600_000));
        assert_eq!(lan.run(1_220_800), [(1_220_800, 0, true)]);
        lan.request(0, 1_220_800, (1518, 1_220_800));
        assert_eq!(lan.run(9_000_000), [(1_220_800 + 960 + 122_080, 0, true)]);
        // The end of its next frame reaches the other one after 1 µs.
        lan.request(0, 9_000_000, (1518, 9_000_000));
        assert_eq!(lan.run(9_010_000), []);
        lan.request(1, 9_010_000, (64, 9_010_000));
        let end = 9_000_000 + 122_080;
        assert_eq!(lan.run(10_000_000), [(end, 0, true), (end + 1_000 + 960 + 5_760, 1, true)]);
    }

    #[test]
    fn a_station_that_hears_another_waits_for_the_gap_after_it() {
        let mut lan = wire(2, &[("propagation", "5 us")]);
        lan.request(0, 0, (1518, 0));
        assert_eq!(lan.run(5_000), []);
        lan.request(1, 5_000, (64, 5_000));
        // The end reaches it after 5 µs, and it waits 9.6 µs; 64 bytes and preamble take 57.6 µs.
        assert_eq!(lan.run(9_000_000), [(1_220_800, 0, true), (1_220_800 + 5_000 + 9_600 + 57_600, 1, true)]);
        assert_eq!(lan.access.collisions(0) + lan.access.collisions(1), 0);
    }

    #[test]
    fn two_that_can_not_hear_each_other_yet_collide() {
        let mut lan = wire(2, &[("propagation", "5 us")]);
        lan.request(0, 0, (1518, 0));
        assert_eq!(lan.run(4_999), []);
        lan.request(1, 4_999, (1518, 4_999));
        // The second hears the first at 5 µs, the first the second at 9.999 µs: both end their preambles of
        // 6.4 µs, and jam for 3.2 µs.
        lan.run(5_000);
        let end = |lan: &Bench<CsmaCd>, station: usize| lan.access.stations[station].sending.unwrap().end;
        assert_eq!(end(&lan, 1), Nanos(4_999 + 6_400 + 3_200));
        lan.run(9_999);
        assert_eq!(end(&lan, 0), Nanos(9_999 + 3_200));
        let seen = lan.run(20_000_000);
        let mut stations: Vec<_> = seen.iter().map(|(_, station, sent)| (*station, *sent)).collect();
        stations.sort_unstable();
        assert_eq!(stations, [(0, true), (1, true)]);
        assert!(lan.access.collisions(0) >= 1 && lan.access.collisions(1) >= 1);
    }

    /// Of many stations that start at once some give up, each after 16 collisions of one frame.
    #[test]
    fn gives_up_after_sixteen_attempts() {
        let mut lan = wire(200, &[("propagation", "25 us")]);
        let seen = lan.saturate(200, 1518, 20_000_000_000);
        let given_up = seen.iter().filter(|(.., sent)| !sent).count() as u64;
        let collisions: u64 = (0..200).map(|station| lan.access.collisions(station)).sum();
        assert!(given_up > 0 && collisions >= 16 * given_up, "{given_up} of {collisions}");
    }

    /// No two successful frames overlap: each fits between the end of the previous one and its own.
    #[test]
    fn what_is_sent_has_the_wire_for_itself() {
        let mut lan = wire(20, &[("propagation", "20 us")]);
        let seen = lan.saturate(20, 500, 5_000_000_000);
        let sent: Vec<u64> = seen.iter().filter(|(.., sent)| *sent).map(|(end, ..)| *end).collect();
        assert!(sent.len() > 5_000 && sent.windows(2).all(|w| w[1] - w[0] >= 406_400 + 9_600));
    }

    /// Fraction of time of successful frames, preamble and gap included.
    fn efficiency(stations: u32, bytes: u64, propagation: &str, seconds: u64) -> f64 {
        let mut lan = wire(stations, &[("propagation", propagation)]);
        let seen = lan.saturate(stations, bytes, seconds * 1_000_000_000);
        let sent = seen.iter().filter(|(.., sent)| *sent).count() as f64;
        sent * (8 * bytes + PREAMBLE + GAP) as f64 * 100.0 / seen.last().unwrap().0 as f64
    }

    /// Metcalfe and Boggs' stations have no back-off of their own: with n of them, each tries in a slot (two
    /// propagation times) with probability 1/n, which is optimal. Everything else is as in the
    /// implementation. Their efficiency is 1/(1 + 2 (e − 1) a), or 1/(1 + 3.44 a), of which the usual 1/(1 +
    /// 5 a) is a conservative form: a frame also needs a propagation time to clear the wire, and a collision
    /// its jam and gap.
    #[test]
    fn stations_that_try_at_the_best_rate_reach_one_over_one_plus_five_a() {
        for (bytes, a) in
            [(1518, 25.6 / 1214.4), (512, 25.6 / 409.6), (256, 25.6 / 204.8), (128, 25.6 / 102.4)]
        {
            for stations in [10, 50] {
                let found = best_rate(stations, bytes);
                let (formula, bound) = (1.0 / (1.0 + 5.0 * a), 1.0 / (1.0 + 3.44 * a));
                assert!(formula < found && found < bound, "{bytes} {stations}: {formula} {found} {bound}");
            }
        }
    }

    fn best_rate(stations: u32, bytes: u64) -> f64 {
        let mut lan = wire(stations, &[("propagation", "25.6 us")]);
        (0..stations).for_each(|station| lan.request(station, 0, (bytes, 0)));
        let mut dice = Dice::named(1, "best");
        let (mut sent, mut last) = (0u64, 0);
        while lan.access.next() < Nanos::from_secs(5) {
            let (now, event) = lan.access.first();
            if let Step::Sent(station) = lan.access.step() {
                (sent, last) = (sent + 1, now.0);
                lan.request(station, now.0, (bytes, now.0));
            }
            if matches!(event, Event::Silence(_)) {
                for station in &mut lan.access.stations {
                    station.attempts = 0;
                    station.ready = now + lan.access.wire.gap;
                    while dice.below(u64::from(stations)) > 0 {
                        station.ready += Nanos(51_200);
                    }
                }
            }
        }
        sent as f64 * (8 * bytes + PREAMBLE + GAP) as f64 * 100.0 / last as f64
    }

    /// Two stations whose back-off begins with the same collision collide 1 + 1/2 + 1/2·1/4 + 1/2·1/4·1/8 + …
    /// = 1.6416 times on average: after the k-th collision each draws one of 2^k slots.
    #[test]
    fn two_stations_collide_as_often_as_their_windows_say() {
        let mut lan = wire(2, &[("propagation", "5 us")]);
        let (rounds, mut now) = (20_000, 0);
        for _ in 0..rounds {
            (0..2).for_each(|station| lan.request(station, now, (64, now)));
            let seen = lan.run(u64::MAX - 1);
            now = seen[1].0 + 1_000_000;
        }
        let mean = lan.access.collisions(0) as f64 / f64::from(rounds);
        // The number has a variance of 0.548 (from the same series); four standard errors.
        assert!((mean - 1.6416).abs() < 4.0 * (0.548f64 / f64::from(rounds)).sqrt(), "{mean}");
    }

    /// Standard stations. The formula assumes new contention after each frame; here the station that has just
    /// sent draws from the smallest windows, and takes the wire again before those that have collided often
    /// (the capture effect): the fewer stations and the shorter frames, the higher the utilization.
    #[test]
    fn truncated_binary_exponential_back_off_is_near_the_formula_for_many_stations_and_long_frames() {
        for (bytes, propagation, a) in [
            (1518, "25.6 us", 0.0211),
            (1518, "5 us", 0.0041),
            (512, "25.6 us", 0.0625),
            (64, "5 us", 0.0977),
        ] {
            let formula = 1.0 / (1.0 + 5.0 * a);
            let [two, ten, fifty] = [2, 10, 50].map(|stations| efficiency(stations, bytes, propagation, 10));
            assert!(fifty < ten && ten < two, "{a}: {two} {ten} {fifty}");
            if bytes >= 512 {
                assert!((fifty / formula - 1.0).abs() < 0.04, "{a}: {fifty}, formula {formula}");
            } else {
                assert!(fifty > formula, "{a}: {fifty}, formula {formula}");
            }
        }
    }

    /// In the long run each station gets its share, but a frame is often followed by another of the same
    /// station: with two stations, far more often than every other time.
    #[test]
    fn shares_are_equal_in_the_long_run_and_captured_in_the_short() {
        let mut lan = wire(2, &[]);
        let seen = lan.saturate(2, 512, 60_000_000_000);
        let first = seen.iter().filter(|(_, station, _)| *station == 0).count() as f64 / seen.len() as f64;
        let same = seen.windows(2).filter(|w| w[0].1 == w[1].1).count() as f64 / seen.len() as f64;
        assert!((first - 0.5).abs() < 0.05 && same > 0.8, "{first} {same}");
    }
}
