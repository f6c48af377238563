//! Shared media: links that take turns, or interfere with each other.
//!
//! Each member link is a station: it keeps its judges, its queue and its delay, and its transmitter asks the
//! medium. The medium simulates who sends when, and reports when a packet was sent or given up. It has its
//! own deadline in the timing wheel, under a number after those of the links.

mod csma_cd;
mod dcf;
mod half_duplex;

use crate::transmit::framing::{Framing, Layer};
use crate::transmit::shared::Share;
use csma_cd::{CsmaCd, CsmaCdSettings};
use dcf::{Dcf, DcfSettings};
use half_duplex::{HalfDuplex, HalfDuplexSettings};
use longwire_block::{Dice, Spec, Values};
use longwire_settings::{Setting, Settings};
use longwire_units::{Nanos, Rate};

/// The rows of all kinds of shared media.
pub const MEDIA: &[&Spec] = &[&HalfDuplexSettings::SPEC, &CsmaCdSettings::SPEC, &DcfSettings::SPEC];

/// A link's place at a medium.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StationRef {
    pub medium: u32,
    pub station: u32,
}

/// A station's request to send.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Frame {
    /// Its counted size.
    pub bytes: u64,
    /// Its arrival at the link.
    pub arrived: Nanos,
}

/// Result of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// Something that no link sees.
    Unseen,
    /// This station's frame was sent.
    Sent(u32),
    /// This station gives up its frame.
    GivenUp(u32),
}

/// Access method of a medium: a state machine that receives requests, and takes one step after the other.
pub(crate) trait Access {
    /// Reports, before anything else, when the run begins on the engine's clock. Slots count from there.
    fn start(&mut self, _begin: Nanos) {}

    /// Requests a frame for a station without one, from `now` on. All steps before `now` have been taken.
    fn request(&mut self, station: u32, now: Nanos, frame: Frame);

    /// Time of the next step; never without requests.
    fn next(&self) -> Nanos;

    /// Takes the next step.
    fn step(&mut self) -> Step;

    /// Applies other values of its row, which [`check_medium`] has checked. All steps up to `now` have been
    /// taken.
    fn change(&mut self, values: &Values, now: Nanos);

    /// Number of failed transmissions of the station.
    fn collisions(&self, _station: u32) -> u64 {
        0
    }
}

/// A medium and its stations.
pub(crate) struct Medium {
    pub access: Box<dyn Access + Send>,
    /// The links, by station.
    pub members: Vec<u32>,
    /// Waiting packets of the stations.
    pub backlogs: Backlogs,
    /// Whether packets of all stations are sent in order of arrival.
    in_order: bool,
    /// Time of its entry in the timing wheel; never if it has none.
    pub armed: Nanos,
    /// The last step taken: no later packet is treated as arriving before it.
    pub latest: Nanos,
    /// Whether the run has ended, so that nothing happens any more.
    pub ended: bool,
}

/// Backlogs of a medium's stations, and the recent departure rate of all of them.
#[derive(Default)]
pub(crate) struct Backlogs {
    /// Waiting bytes at each station, and in total.
    bytes: Vec<u64>,
    all: u64,
    /// Number of stations with waiting packets.
    stations: u64,
    /// Departed packets, and the time they took, without idle times. Packets before the last
    /// [`Backlogs::CYCLE`] have half the weight.
    packets: u64,
    time: Nanos,
    /// Time of the last departure, or of the first arrival after a pause.
    since: Nanos,
}

impl Backlogs {
    /// Packets of 1024 bytes in the 16 kB after which PIE's estimator averages (RFC 8033, section 5.2,
    /// DQ_THRESHOLD).
    const CYCLE: u64 = 16;

    /// Records the waiting bytes of a station at `now`.
    pub(crate) fn note(&mut self, station: u32, bytes: u64, now: Nanos) {
        if self.all == 0 {
            self.since = now;
        }
        let known = std::mem::replace(&mut self.bytes[station as usize], bytes);
        self.all = self.all - known + bytes;
        self.stations = self.stations + u64::from(bytes > 0) - u64::from(known > 0);
    }

    /// Records that a packet was sent or given up at `now`.
    pub(crate) fn left(&mut self, now: Nanos) {
        self.packets += 1;
        self.time += now.since(self.since);
        self.since = now;
        if self.packets == 2 * Self::CYCLE {
            (self.packets, self.time) = (Self::CYCLE, Nanos(self.time.0 / 2));
        }
    }
}

impl Medium {
    /// A medium of this row for these links, with their stations' dice.
    ///
    /// # Panics
    /// If `spec` is not in [`MEDIA`].
    pub(crate) fn new((spec, values): (&Spec, &Values), members: Vec<u32>, dice: Vec<Dice>) -> Self {
        let access: Box<dyn Access + Send> = match spec.kind {
            "half-duplex" => Box::new(HalfDuplex::new(HalfDuplexSettings::of(values), dice.len())),
            "csma-cd" => Box::new(CsmaCd::new(CsmaCdSettings::of(values), dice)),
            "dcf" => Box::new(Dcf::new(DcfSettings::of(values), dice)),
            other => panic!("there is no medium of the kind {other}"),
        };
        let backlogs = Backlogs { bytes: vec![0; members.len()], ..Backlogs::default() };
        let (in_order, armed, latest) = (spec.is(&HalfDuplexSettings::SPEC), Nanos::NEVER, Nanos::ZERO);
        Self { access, members, backlogs, in_order, armed, latest, ended: false }
    }

    /// Expected share of a station.
    pub(crate) fn share(&self, station: u32) -> Share {
        let backlogs = &self.backlogs;
        let own = backlogs.bytes[station as usize];
        if self.in_order {
            return Share::InOrder { others: backlogs.all - own };
        }
        let stations = backlogs.stations + u64::from(own == 0);
        Share::Fair { stations, packets: backlogs.packets, time: backlogs.time }
    }
}

/// Named presets for the parameters of a kind of medium: names, with parameters and values.
pub fn medium_profiles(spec: &Spec) -> Vec<(&'static str, Vec<(&'static str, &'static str)>)> {
    let profiles = if spec.is(&DcfSettings::SPEC) { dcf::PROFILES } else { &[] };
    let pair = |value: &'static str| value.split_once(' ').unwrap_or((value, ""));
    profiles.iter().map(|&(name, text)| (name, text.split_terminator(", ").map(pair).collect())).collect()
}

/// The shared rate of a medium: the first setting of each kind.
pub fn medium_rate(values: &Values) -> Rate {
    let rate = values.as_slice().first().and_then(Rate::of);
    rate.unwrap_or(Rate::STALLED)
}

/// Checks that parameters are consistent: the error names the parameter, what is wrong, and how to fix it.
///
/// # Errors
/// If they are inconsistent.
pub fn check_medium(spec: &Spec, values: &Values) -> Result<(), (&'static str, String)> {
    let rate = medium_rate(values);
    if !(Rate(1)..=Rate::MAX).contains(&rate) {
        return Err(("rate", format!("{rate} can't be shared; write 300 bit/s to 400 Gbit/s")));
    }
    if spec.is(&CsmaCdSettings::SPEC) && !csma_cd::notices_collisions(values) {
        let what = "a station would have sent its frame before it hears of a collision; make it half a slot \
            at most, or slot larger";
        return Err(("propagation", what.into()));
    }
    if spec.is(&DcfSettings::SPEC) && DcfSettings::of(values).slot == Nanos::ZERO {
        return Err(("slot", "a slot takes no time; write \"9 us\", say".into()));
    }
    Ok(())
}

/// The framing of a medium.
pub(crate) fn framing(spec: &Spec, values: &Values) -> Framing {
    match spec.kind {
        "half-duplex" => half_duplex::framing(values),
        "csma-cd" => Framing::ETHERNET,
        _ => Framing::of(Layer::Ip, 0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A medium by itself.
    pub(crate) struct Bench<A> {
        pub access: A,
    }

    impl<A: Access> Bench<A> {
        pub(crate) fn new(access: A) -> Self {
            Self { access }
        }

        /// Requests a frame of this size and arrival time.
        pub(crate) fn request(&mut self, station: u32, now: u64, (bytes, arrived): (u64, u64)) {
            self.access.request(station, Nanos(now), Frame { bytes, arrived: Nanos(arrived) });
        }

        /// Runs until `until`: time, station, and whether each frame was sent or given up.
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

        /// Runs with stations that always have a next frame of this size.
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
                let values = Values::read(spec, &values).unwrap_or_else(|error| panic!("{name}: {error}"));
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
