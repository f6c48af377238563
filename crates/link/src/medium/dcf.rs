//! A Wi-Fi cell: stations that share a channel by the distributed coordination function of IEEE 802.11.
//!
//! All hear each other. Time is divided into slots from the end of the interframe space after each busy
//! period; stations begin to send at the beginning of a slot only, and those that begin in the same slot
//! collide. Slots without a start are skipped: the smallest back-off counter gives their number.

use super::{Access, Frame, Step};
use longwire_block::{Dice, Values};
use longwire_settings::Settings;
use longwire_units::{Nanos, Rate};

/// Values of physical layers (IEEE 802.11-2016: clause 16, HR/DSSS, is 802.11b; clause 17, OFDM, 802.11a;
/// clause 18, ERP, 802.11g). Acknowledgements are sent at the highest basic rate: 2 Mbit/s with the long
/// preamble, 24 Mbit/s with OFDM. After a collision, stations wait for an acknowledgement at the lowest rate,
/// 1 Mbit/s or with OFDM 6 Mbit/s (EIFS = SIFS + ACK + DIFS). 802.11g's frames and acknowledgements end with
/// 6 µs of signal extension, which is counted with their preambles. Headers: 28 bytes of MAC header and FCS,
/// 8 of LLC and SNAP. Attempts are those of `dot11ShortRetryLimit`.
pub(super) const PROFILES: &[(&str, &str)] = &[
    ("fhss", ""),
    (
        "802.11b",
        "rate 11 Mbit/s, slot 20 us, sifs 10 us, difs 50 us, eifs 364 us, preamble 192 us, header 36, \
            ack 248 us, window 32, window-max 1024, attempts 7",
    ),
    (
        "802.11g",
        "rate 54 Mbit/s, slot 9 us, sifs 10 us, difs 28 us, eifs 88 us, preamble 26 us, header 36, \
            ack 34 us, symbol 4 us, window 16, window-max 1024, attempts 7",
    ),
    (
        "802.11a",
        "rate 54 Mbit/s, slot 9 us, sifs 16 us, difs 34 us, eifs 94 us, preamble 20 us, header 36, \
            ack 28 us, symbol 4 us, window 16, window-max 1024, attempts 7",
    ),
];

/// See the module.
#[derive(Debug)]
pub(crate) struct Dcf {
    air: DcfSettings,
    stations: Vec<Station>,
    phase: Phase,
    /// Start of the first slot.
    origin: Nanos,
}

#[derive(Debug, Default)]
struct Station {
    dice: Dice,
    /// Bytes of the current IP packet.
    frame: Option<u64>,
    /// Remaining slots, counted from slot number `from`.
    counter: u64,
    from: u64,
    /// Whether the counter is active: after each transmission it is, with or without a next frame.
    counting: bool,
    window: u64,
    failures: u64,
    /// Whether its frame is part of the current collision.
    collided: bool,
    collisions: u64,
}

#[derive(Debug, Clone, Copy)]
enum Phase {
    /// The channel is idle; counters count from the origin on.
    Counting,
    /// A station sends alone, until this time.
    Sending { station: u32, end: Nanos },
    /// Several stations send, until the longest frame ends.
    Colliding { end: Nanos },
}

/// Wi-Fi stations: carrier sense, back-off counters that freeze, collisions that only a missing
/// acknowledgement reveals.
///
/// The defaults are the FHSS physical layer's values of Bianchi's table II.
#[derive(Debug, Settings)]
#[settings(
    key = "medium",
    kind = "dcf",
    source = "IEEE 802.11, distributed coordination function; Bianchi, \"Performance analysis of the IEEE \
        802.11 distributed coordination function\", IEEE JSAC 18(3), 2000",
    live
)]
pub(crate) struct DcfSettings {
    /// the channel's rate, 300 bit/s to 400 Gbit/s
    #[setting(default = "1 Mbit/s")]
    rate: Rate,
    /// a slot of the back-off
    #[setting(default = "50 us", max = Nanos::from_secs(1))]
    pub(super) slot: Nanos,
    /// the space before an acknowledgement
    #[setting(default = "28 us", max = Nanos::from_secs(1))]
    sifs: Nanos,
    /// the space after a successfully received frame
    #[setting(default = "128 us", max = Nanos::from_secs(1))]
    difs: Nanos,
    /// the space after a collision
    #[setting(default = "128 us", max = Nanos::from_secs(1))]
    eifs: Nanos,
    /// propagation time between any two stations
    #[setting(default = "1 us", max = Nanos::from_secs(1))]
    propagation: Nanos,
    /// preamble and header of the physical layer, before each frame
    #[setting(default = "128 us", max = Nanos::from_secs(1))]
    preamble: Nanos,
    /// bytes of MAC and LLC header and FCS around an IP packet
    #[setting(default = "34", min = 0, max = 1000)]
    header: u64,
    /// duration of an acknowledgement, including its preamble
    #[setting(default = "240 us", max = Nanos::from_secs(1))]
    ack: Nanos,
    /// duration of an RTS, including its preamble; 0 for access without RTS and CTS
    #[setting(default = "0 us", max = Nanos::from_secs(1))]
    rts: Nanos,
    /// duration of a CTS, including its preamble
    #[setting(default = "0 us", max = Nanos::from_secs(1))]
    cts: Nanos,
    /// duration of the symbol that frames fill up, with 22 bits of service and tail (OFDM); 0 for none
    #[setting(default = "0 us", max = Nanos::from_secs(1))]
    symbol: Nanos,
    /// number of values of the first back-off
    #[setting(default = "32", min = 1, max = 32_768)]
    window: u64,
    /// values of the back-off after many collisions
    #[setting(default = "256", min = 1, max = 32_768)]
    window_max: u64,
    /// attempts for a frame before it is dropped; 0 for no limit
    #[setting(default = "0", min = 0, max = 255)]
    attempts: u64,
}

impl Dcf {
    pub(crate) fn new(settings: DcfSettings, dice: Vec<Dice>) -> Self {
        let air = settings.consistent();
        let stations = dice.into_iter();
        let stations =
            stations.map(|dice| Station { dice, window: air.window, ..Station::default() }).collect();
        Self { air, stations, phase: Phase::Counting, origin: Nanos::ZERO }
    }

    /// The number of the next slot with a transmission.
    fn slot(&self) -> Option<u64> {
        let ready = self.stations.iter().filter(|station| station.frame.is_some());
        ready.map(|station| station.from + station.counter).min()
    }

    /// Starts all stations whose counters expire in slot number `slot`; the others' counters freeze.
    fn begin(&mut self, slot: u64) {
        let now = self.origin + Nanos(slot.saturating_mul(self.air.slot.0));
        let (mut senders, mut first, mut longest) = (0, 0, Nanos::ZERO);
        for (number, station) in (0u32..).zip(&mut self.stations) {
            let left = (station.from + station.counter).saturating_sub(slot);
            (station.counter, station.from) = (left, 0);
            match station.frame {
                Some(frame) if left == 0 => {
                    station.collided = true;
                    first = if senders == 0 { number } else { first };
                    (senders, longest) = (senders + 1, longest.max(self.air.frame(frame)));
                }
                Some(_) => {}
                None => station.counting &= left > 0,
            }
        }
        let DcfSettings { propagation, rts, cts, sifs, .. } = self.air;
        if senders == 1 {
            self.stations[first as usize].collided = false;
            let reserved = if rts == Nanos::ZERO {
                Nanos::ZERO
            } else {
                rts + cts + sifs + sifs + propagation + propagation
            };
            self.phase = Phase::Sending { station: first, end: now + reserved + longest + propagation };
        } else {
            let lost = if rts == Nanos::ZERO { longest } else { rts };
            let collided = self.stations.iter_mut().filter(|station| station.collided);
            collided.for_each(|station| station.collisions += 1);
            self.phase = Phase::Colliding { end: now + lost + propagation };
        }
    }

    /// Handles the reception of a frame at `end`: its acknowledgement follows, and then slots for all
    /// stations.
    fn received(&mut self, number: u32, end: Nanos) -> Step {
        let DcfSettings { sifs, ack, difs, propagation, window, .. } = self.air;
        self.origin = end + sifs + ack + propagation + difs;
        self.phase = Phase::Counting;
        let station = &mut self.stations[number as usize];
        (station.frame, station.failures, station.window) = (None, 0, window);
        station.draw();
        Step::Sent(number)
    }

    /// Handles the end of a collision. Returns stations that give up their frames, one by one.
    fn missed(&mut self, end: Nanos) -> Step {
        let DcfSettings { attempts, window, window_max, .. } = self.air;
        for (number, station) in (0u32..).zip(&mut self.stations).filter(|(_, station)| station.collided) {
            station.collided = false;
            station.failures += 1;
            station.window = (2 * station.window).min(window_max);
            let given_up = attempts > 0 && station.failures >= attempts;
            if given_up {
                (station.frame, station.failures, station.window) = (None, 0, window);
            }
            station.draw();
            if given_up {
                return Step::GivenUp(number);
            }
        }
        self.origin = end + self.air.eifs;
        self.phase = Phase::Counting;
        Step::Unseen
    }
}

impl Station {
    /// Starts a back-off with the slot after the busy period.
    fn draw(&mut self) {
        (self.counter, self.from, self.counting) = (self.dice.below(self.window), 0, true);
    }
}

impl DcfSettings {
    /// With a highest window that is no smaller than the first.
    fn consistent(self) -> Self {
        Self { window_max: self.window_max.max(self.window), ..self }
    }

    /// Duration of a frame with an IP packet of this many bytes.
    fn frame(&self, bytes: u64) -> Nanos {
        /// Bits before and after the frame in its symbols (IEEE 802.11-2016, 17.3.5).
        const SERVICE_AND_TAIL: u128 = 16 + 6;
        const SECOND: u128 = 1_000_000_000;
        let bits = u128::from(8 * (self.header + bytes));
        let rate = u128::from(self.rate.0);
        let payload = match u128::from(self.symbol.0) {
            0 => bits * SECOND / rate,
            symbol => ((bits + SERVICE_AND_TAIL) * SECOND).div_ceil(rate * symbol) * symbol,
        };
        self.preamble + Nanos(payload as u64)
    }
}

impl Access for Dcf {
    fn start(&mut self, begin: Nanos) {
        self.origin = begin;
    }

    fn request(&mut self, number: u32, now: Nanos, frame: Frame) {
        let busy = now < self.origin || !matches!(self.phase, Phase::Counting);
        let slot = now.since(self.origin).0.div_ceil(self.air.slot.0);
        let station = &mut self.stations[number as usize];
        station.frame = Some(frame.bytes);
        if busy && !station.counting {
            station.draw();
        } else if !busy && station.from + station.counter < slot {
            // Its back-off had expired before: it sends at once.
            (station.counter, station.from) = (0, slot);
        }
    }

    fn next(&self) -> Nanos {
        match self.phase {
            Phase::Sending { end, .. } | Phase::Colliding { end } => end,
            Phase::Counting => self
                .slot()
                .map_or(Nanos::NEVER, |slot| self.origin + Nanos(slot.saturating_mul(self.air.slot.0))),
        }
    }

    fn step(&mut self) -> Step {
        match self.phase {
            Phase::Sending { station, end } => return self.received(station, end),
            Phase::Colliding { end } => return self.missed(end),
            Phase::Counting => {}
        }
        if let Some(slot) = self.slot() {
            self.begin(slot);
        }
        Step::Unseen
    }

    /// Current transmissions are not affected, nor is an interframe space in progress. Remaining slots are
    /// kept, the current one included.
    fn change(&mut self, values: &Values, now: Nanos) {
        let old = std::mem::replace(&mut self.air, DcfSettings::of(values).consistent());
        if matches!(self.phase, Phase::Counting) && now > self.origin && old.slot != self.air.slot {
            let passed = now.since(self.origin).0 / old.slot.0;
            for station in &mut self.stations {
                let left = (station.from + station.counter).saturating_sub(passed);
                station.from = station.from.saturating_sub(passed);
                station.counter = left - station.from;
            }
            let begun = Nanos(now.since(self.origin).0 % old.slot.0).min(self.air.slot);
            self.origin = now - begun;
        }
        let DcfSettings { window, window_max, .. } = self.air;
        for station in &mut self.stations {
            station.window =
                if station.failures == 0 { window } else { station.window.clamp(window, window_max) };
        }
    }

    fn collisions(&self, station: u32) -> u64 {
        self.stations[station as usize].collisions
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::medium::tests::Bench;

    fn cell(stations: u32, given: &[(&str, &str)]) -> Bench<Dcf> {
        let values = Values::read(&DcfSettings::SPEC, given).unwrap();
        let dice = (0..stations).map(|station| Dice::named(1, &format!("media/cell/{station}")));
        Bench::new(Dcf::new(DcfSettings::of(&values), dice.collect()))
    }

    /// 8184 bits of payload: 128 + 272 + 8184 + 1 µs until the frame is received.
    const FRAME: u64 = 8_585_000;
    const BYTES: u64 = 1023;

    #[test]
    fn a_station_by_itself_sends_at_the_next_slot_after_an_idle_time() {
        let mut cell = cell(1, &[]);
        cell.request(0, 1_000_000, (BYTES, 1_000_000));
        assert_eq!(cell.run(20_000_000), [(1_000_000 + FRAME, 0, true)]);
        // Acknowledgement and DIFS end 28 + 240 + 1 + 128 µs later, and the longest back-off 31 slots after
        // that: a later frame is sent in the next slot.
        let origin: u64 = 1_000_000 + FRAME + 397_000;
        cell.request(0, origin + 40 * 50_000 + 7, (BYTES, 0));
        assert_eq!(cell.run(99_000_000), [(origin + 41 * 50_000 + FRAME, 0, true)]);
    }

    #[test]
    fn a_station_backs_off_after_each_frame() {
        let mut cell = cell(1, &[]);
        let ends: Vec<u64> = cell.saturate(1, BYTES, 10_000_000_000).iter().map(|(end, ..)| *end).collect();
        let slots: Vec<u64> = ends.windows(2).map(|w| w[1] - w[0] - FRAME - 397_000).collect();
        assert!(slots.iter().all(|time| time % 50_000 == 0 && *time <= 31 * 50_000));
        // Uniform over 0 … 31: mean 15.5, standard deviation 9.23; four standard errors.
        let mean = slots.iter().sum::<u64>() as f64 / 50_000.0 / slots.len() as f64;
        assert!((mean - 15.5).abs() < 4.0 * 9.23 / (slots.len() as f64).sqrt(), "{mean} of {}", slots.len());
    }

    #[test]
    fn two_that_begin_in_one_slot_collide_and_give_up_after_their_attempts() {
        // A window of one value: they collide for ever.
        let mut cell = cell(2, &[("window", "1"), ("window-max", "1"), ("attempts", "3")]);
        cell.request(0, 0, (BYTES, 0));
        cell.request(1, 0, (BYTES, 0));
        let end = 3 * FRAME + 2 * 128_000;
        assert_eq!(cell.run(99_000_000), [(end, 0, false), (end, 1, false)]);
        assert_eq!((cell.access.collisions(0), cell.access.collisions(1)), (3, 3));
    }

    #[test]
    fn counters_freeze_while_the_channel_is_busy() {
        let mut cell = cell(2, &[]);
        cell.request(0, 0, (BYTES, 0));
        // It comes during the first transmission and so must back off: counted from the end of the DIFS.
        assert_eq!(cell.run(1_000_000), []);
        cell.request(1, 1_000_000, (BYTES, 1_000_000));
        let counter = cell.access.stations[1].counter;
        let seen = cell.run(99_000_000);
        assert_eq!(seen, [(FRAME, 0, true), (FRAME + 397_000 + counter * 50_000 + FRAME, 1, true)]);
    }

    /// At 1 Mbit/s a frame takes 400 + 8184 + 1 µs, at 2 Mbit/s 128 + 136 + 4092 + 1.
    #[test]
    fn another_rate_holds_from_the_next_frame_on() {
        const FAST: u64 = (128 + 136 + 4092 + 1) * 1000;
        let values = |given: &[(&str, &str)]| Values::read(&DcfSettings::SPEC, given).unwrap();
        let mut cell = cell(2, &[]);
        cell.request(0, 0, (BYTES, 0));
        assert_eq!(cell.run(1_000_000), []);
        cell.request(1, 1_000_000, (BYTES, 1_000_000));
        cell.access.change(&values(&[("rate", "2 Mbit/s")]), Nanos(1_000_000));
        let counter = cell.access.stations[1].counter;
        let origin = FRAME + 397_000;
        let seen = cell.run(99_000_000);
        assert_eq!(seen, [(FRAME, 0, true), (origin + counter * 50_000 + FAST, 1, true)]);
    }

    /// Half-way through the third of its slots of 50 µs they become 10 µs long: that one ends at once, and
    /// the others take 10 µs.
    #[test]
    fn slots_that_are_left_have_the_new_length() {
        let mut cell = cell(2, &[]);
        cell.request(0, 0, (BYTES, 0));
        cell.run(1_000_000);
        cell.request(1, 1_000_000, (BYTES, 1_000_000));
        cell.access.stations[1].counter = 9;
        let origin = FRAME + 397_000;
        assert_eq!(cell.run(origin + 125_000), [(FRAME, 0, true)]);
        let short = Values::read(&DcfSettings::SPEC, &[("slot", "10 us")]).unwrap();
        cell.access.change(&short, Nanos(origin + 125_000));
        assert_eq!(cell.run(99_000_000), [(origin + 125_000 + 6 * 10_000 + FRAME, 1, true)]);
    }

    #[test]
    fn frames_fill_symbols() {
        // 54 Mbit/s: 216 bits a symbol of 4 µs. 36 + 1500 bytes and 22 bits are 12310 bits: 57 symbols.
        let given = [("rate", "54 Mbit/s"), ("symbol", "4 us"), ("preamble", "20 us"), ("header", "36")];
        let cell = cell(1, &given);
        assert_eq!(cell.access.air.frame(1500), Nanos((20 + 57 * 4) * 1000));
    }

    /// Throughput of `stations` that always have a frame: the fraction of time in which payload is sent; and
    /// the numbers of successes and collided transmissions.
    fn saturation(stations: u32, given: &[(&str, &str)], seconds: u64) -> (f64, u64, u64) {
        let mut cell = cell(stations, given);
        let seen = cell.saturate(stations, BYTES, seconds * 1_000_000_000);
        let end = seen.last().unwrap().0;
        let collided = (0..stations).map(|station| cell.access.collisions(station)).sum();
        (seen.len() as f64 * 8184e3 / end as f64, seen.len() as u64, collided)
    }

    /// Compares Bianchi's model (equations 7, 9 and 13), W = 32, m = 3, with simulated stations. In the model
    /// frozen counters count the busy slot, in stations they do not, so they need not agree exactly: one per
    /// cent is allowed for that, plus random variation. The time between two successes has a standard
    /// deviation below its mean.
    #[test]
    fn saturation_throughput_is_near_bianchis_model() {
        for (stations, basic, with_rts) in
            [(5, 0.8097, 0.8342), (10, 0.7532, 0.8371), (20, 0.6788, 0.8356), (50, 0.5529, 0.8270)]
        {
            for (model, given) in [(basic, &[][..]), (with_rts, &[("rts", "288 us"), ("cts", "240 us")])] {
                let (found, successes, _) = saturation(stations, given, 300);
                let chance = 3.0 * found / (successes as f64).sqrt();
                assert!((found - model).abs() < 0.01 * model + chance, "{stations}: {found}, not {model}");
            }
        }
    }

    /// The conditional collision probability p of Bianchi's fixed point (equations 7 and 9).
    #[test]
    fn collisions_are_as_frequent_as_the_model_says() {
        for (stations, model) in [(5, 0.1792), (10, 0.2989), (20, 0.4296), (50, 0.6094)] {
            let (_, successes, collided) = saturation(stations, &[], 300);
            let found = collided as f64 / (successes + collided) as f64;
            // Three standard errors, and one per cent for the model's simplifications.
            let chance = 3.0 * (found * (1.0 - found) / (successes + collided) as f64).sqrt();
            assert!((found - model).abs() < 0.01 + chance, "{stations}: {found}, not {model}");
        }
    }

    /// Of 10 stations each gets a tenth: their draws have the same distribution.
    #[test]
    fn stations_get_equal_shares() {
        let mut cell = cell(10, &[]);
        let seen = cell.saturate(10, BYTES, 300_000_000_000);
        for station in 0..10 {
            let share = seen.iter().filter(|(_, other, _)| *other == station).count() as f64;
            let fair = seen.len() as f64 / 10.0;
            // Binomial, but with runs after a success: twice the binomial deviation, four of them.
            assert!((share - fair).abs() < 8.0 * (fair * 0.9).sqrt(), "{station}: {share} of {fair}");
        }
    }
}
