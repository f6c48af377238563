//! Transmission in slots, as on shared media.

use super::framing::{BYTE, FRAMING_PARAM, Framing, Layer, OVERHEAD_PARAM};
use super::{Backlog, Sender};
use longwire_block::{Block, Dice};
use longwire_settings::Settings;
use longwire_units::{Nanos, Rate};

/// Collects packets and sends them together in slots (netem's `slot`): an approximation of cable, Wi-Fi and
/// LTE.
///
/// A packet that finds the link idle waits for a slot, whose distance from its arrival is drawn uniformly
/// between minimum and maximum. Those that come while it waits, or while others are sent, go in the same
/// slot, one after the other at the rate, up to its limit of packets or bytes (the last packet may exceed the
/// bytes). The next slot then opens at a distance drawn in the same way from that packet's end. A slot that
/// opens when nothing waits passes unused.
#[derive(Debug, Default)]
pub struct Slotted {
    framing: Framing,
    dice: Dice,
    rate: u64,
    min: Nanos,
    /// Width of the range above `min`.
    span: u64,
    /// Limits of a slot.
    packets: u64,
    bytes: u64,
    /// Remaining packets of the current slot.
    packets_left: u64,
    bytes_left: u64,
    /// Start of the current slot.
    slot: Nanos,
    /// Distance of the next slot from the end of the packet being sent, if that is the last of its slot.
    gap: Option<Nanos>,
    /// Beginning of the packet being sent, or the time up to which it is settled.
    start: Nanos,
    /// Remaining work at `start`, the remainder of rounding included.
    work: u64,
    finish: Nanos,
}

/// Longest distance between slots.
const MAX_DISTANCE: Nanos = Nanos::from_secs(1000);

/// Collects packets and sends them in slots at random intervals.
#[derive(Debug, Settings)]
#[settings(
    key = "rate",
    kind = "slotted",
    source = "tc-netem(8), slot; Linux net/sched/sch_netem.c, get_slot_next",
    live
)]
pub struct SlottedSettings {
    /// the rate within a slot: 300 bit/s to 400 Gbit/s, 0 for an outage, or unlimited
    #[setting(default = "unlimited")]
    rate: Rate,
    /// least time to the next slot, up to 1000 s
    #[setting(max = MAX_DISTANCE)]
    min: Nanos,
    /// most time to the next slot; if less than min, it is min
    #[setting(default = "0 ms", max = MAX_DISTANCE)]
    max: Nanos,
    /// most packets in a slot; 0 for no limit
    #[setting(default = "0", min = 0, max = 1_000_000_000)]
    packets: u64,
    /// most bytes in a slot, which the last packet may exceed; 0 for no limit
    #[setting(default = "0", min = 0, max = 1_000_000_000_000)]
    bytes: u64,
    #[setting(like = FRAMING_PARAM)]
    layer: Layer,
    #[setting(like = OVERHEAD_PARAM)]
    overhead: u64,
}

impl Block for Slotted {
    type Settings = SlottedSettings;

    fn build(settings: SlottedSettings, dice: Dice) -> Self {
        Self { dice, ..Self::default() }.with(settings)
    }

    /// Applies a new rate to every bit not yet sent, and new distances and limits to slots drawn from now on.
    fn change(&mut self, settings: SlottedSettings) {
        let unlimited = |count| if count == 0 { u64::MAX } else { count };
        self.rate = settings.rate.0;
        self.min = settings.min;
        self.span = settings.max.since(self.min).0;
        (self.packets, self.bytes) = (unlimited(settings.packets), unlimited(settings.bytes));
        self.framing = Framing::of(settings.layer, settings.overhead);
        self.compute_finish();
    }
}

impl Sender for Slotted {
    #[inline]
    fn framing(&self) -> Framing {
        self.framing
    }

    fn begin(&mut self, start: Nanos, bytes: u64) {
        self.open_next();
        // No slot was open before the first packet.
        if self.slot < start || self.packets_left == 0 {
            let distance = self.distance();
            self.open(start + distance);
        }
        self.start = start.max(self.slot);
        self.work = bytes * BYTE;
        self.spend(bytes);
    }

    fn follow(&mut self, finish: Nanos, bytes: u64) {
        let rest = match self.rate {
            0 | u64::MAX => 0,
            rate => self.work - (finish - self.start).0 * rate,
        };
        self.open_next();
        self.start = finish.max(self.slot);
        self.work = bytes * BYTE + if self.start == finish { rest } else { 0 };
        self.spend(bytes);
    }

    #[inline]
    fn finish(&self) -> Nanos {
        self.finish
    }

    fn settle(&mut self, now: Nanos) {
        if self.finish <= now {
            // It is idle: the next slot counts from the end of the last packet, which gets lost here.
            self.open_next();
        }
        let sent = u128::from(now.since(self.start).0) * u128::from(self.rate);
        self.work -= sent.min(self.work.into()) as u64;
        self.start = self.start.max(now);
    }

    /// The rate in a slot; the highest finite rate if it is unlimited, because packets wait all the same.
    #[inline]
    fn rate(&self) -> Rate {
        Rate(self.rate).min(Rate::MAX)
    }

    /// Bytes of a slot's packets of the backlog's mean size, divided by the time of these and the mean
    /// distance to the next slot. Exact for packets of one size, or slots limited in packets.
    fn departure_rate(&self, backlog: Backlog) -> Rate {
        let endless = self.packets == u64::MAX && self.bytes == u64::MAX;
        if self.rate == 0 || endless || backlog.bytes == 0 {
            return self.rate();
        }
        let (packets, bytes) = (u128::from(backlog.packets.max(1)), u128::from(backlog.bytes));
        let by_bytes = (u128::from(self.bytes) * packets).div_ceil(bytes);
        // A slot's packets are at most 10⁹ and their bytes at most 10¹², so that the product fits.
        let work = by_bytes.min(u128::from(self.packets)) * bytes * u128::from(BYTE) / packets;
        let sending = if self.rate == u64::MAX { 0 } else { work / u128::from(self.rate) };
        let twice = 2 * (sending + u128::from(self.min.0)) + u128::from(self.span);
        let rate = (2 * work).checked_div(twice).unwrap_or(u128::MAX);
        Rate(u64::try_from(rate).unwrap_or(u64::MAX)).min(Rate::MAX)
    }

    /// A slot's packets, divided by the time of these and the minimum distance to the next slot.
    fn highest(&self, bytes: u64) -> Rate {
        let endless = self.packets == u64::MAX && self.bytes == u64::MAX;
        if self.rate == 0 || self.min == Nanos::ZERO || endless {
            return Rate(self.rate);
        }
        let packets = self.packets.min(self.bytes.div_ceil(bytes.max(1)));
        let work = u128::from(packets) * u128::from(bytes) * u128::from(BYTE);
        let sending = if self.rate == u64::MAX { 0 } else { work / u128::from(self.rate) };
        Rate(u64::try_from(work / (sending + u128::from(self.min.0))).unwrap_or(u64::MAX))
    }

    fn work_left(&self) -> u64 {
        self.work
    }

    /// A packet begun by another transmitter needs no slot.
    fn take_over(&mut self, now: Nanos, work: u64) {
        (self.start, self.work) = (now, work);
        self.gap = Some(self.distance());
        self.compute_finish();
    }
}

impl Slotted {
    /// A distance to the next slot.
    fn distance(&mut self) -> Nanos {
        self.min + Nanos(self.dice.below(self.span + 1))
    }

    fn open(&mut self, slot: Nanos) {
        (self.slot, self.packets_left, self.bytes_left) = (slot, self.packets, self.bytes);
    }

    /// Opens the next slot after one was used up.
    fn open_next(&mut self) {
        if let Some(gap) = self.gap.take() {
            self.open(self.finish + gap);
        }
    }

    /// Takes a packet's share of the slot, and draws the next slot if that used it up.
    fn spend(&mut self, bytes: u64) {
        self.packets_left = self.packets_left.saturating_sub(1);
        self.bytes_left = self.bytes_left.saturating_sub(bytes);
        if self.packets_left == 0 || self.bytes_left == 0 {
            self.gap = Some(self.distance());
        }
        self.compute_finish();
    }

    #[inline]
    fn compute_finish(&mut self) {
        self.finish = match self.rate {
            0 => Nanos::NEVER,
            u64::MAX => self.start,
            rate => self.start + Nanos(self.work / rate),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slotted(given: &[(&str, &str)]) -> Slotted {
        let given: Vec<_> = given.iter().copied().chain([("framing", "ip")]).collect();
        Slotted::build(Settings::read(&given).unwrap(), Dice::named(1, "test/rate"))
    }

    fn ends(link: &mut Slotted, start: u64, packets: &[u64]) -> Vec<u64> {
        let send = |(index, &bytes): (usize, &u64)| {
            match index {
                0 => link.begin(Nanos::from_millis(start), bytes),
                _ => crate::transmit::follow(link, bytes),
            }
            link.finish().0 / 1_000_000
        };
        packets.iter().enumerate().map(send).collect()
    }

    /// Packets of 1000 bytes, slots 10 ms apart: the bits in a slot, divided by its time and the distance.
    #[test]
    fn tells_its_highest_rate_beforehand() {
        for (rate, min, packets, bytes, highest) in [
            ("unlimited", "10 ms", "5", "0", Rate(4_000_000)),
            ("unlimited", "10 ms", "0", "3001", Rate(3_200_000)),
            ("unlimited", "10 ms", "5", "1000", Rate(800_000)),
            // 5 ms of sending and 10 ms of waiting for 40 000 bits.
            ("8 Mbit/s", "10 ms", "5", "0", Rate(2_666_666)),
            ("8 Mbit/s", "0 ms", "5", "0", Rate(8_000_000)),
            ("8 Mbit/s", "10 ms", "0", "0", Rate(8_000_000)),
            ("unlimited", "10 ms", "0", "0", Rate::UNLIMITED),
            ("0", "10 ms", "5", "0", Rate(0)),
        ] {
            let given = [("rate", rate), ("min", min), ("packets", packets), ("bytes", bytes)];
            assert_eq!(slotted(&given).highest(1000), highest, "{given:?}");
        }
    }

    /// Slots 10 ms apart; 1000 bytes take 1 ms at 8 Mbit/s.
    #[test]
    fn packets_go_in_slots() {
        let every = [("min", "10 ms")];
        for (more, wanted) in [
            (vec![], [15, 15, 15, 15, 15]),
            (vec![("packets", "2")], [15, 15, 25, 25, 35]),
            (vec![("bytes", "1500")], [15, 15, 25, 25, 35]),
            (vec![("bytes", "1000")], [15, 25, 35, 45, 55]),
            (vec![("rate", "8 Mbit/s")], [16, 17, 18, 19, 20]),
            (vec![("rate", "8 Mbit/s"), ("packets", "2")], [16, 17, 28, 29, 40]),
        ] {
            let mut link = slotted(&[&every[..], &more].concat());
            assert_eq!(ends(&mut link, 5, &[1000; 5]), wanted, "{more:?}");
        }
    }

    #[test]
    fn what_comes_after_a_slot_waits_for_another() {
        let mut link = slotted(&[("min", "10 ms"), ("packets", "2")]);
        // The first at 1 ms opens a slot at 11 ms, which also takes a second one if it comes by then.
        assert_eq!(ends(&mut link, 1, &[100]), [11]);
        assert_eq!(ends(&mut link, 11, &[100]), [11]);
        // It is used up: the next is at 21 ms. A later packet finds it expired.
        assert_eq!(ends(&mut link, 15, &[100]), [21]);
        assert_eq!(ends(&mut link, 30, &[100]), [40]);
        assert_eq!(ends(&mut link, 41, &[100]), [51]);
    }

    /// 20 000 distances uniform in 800 µs to 10 ms: mean 5400 µs, with a standard error of 9200/√12/√20 000 =
    /// 18.8 µs.
    #[test]
    fn distances_are_uniform() {
        let mut link = slotted(&[("min", "800 us"), ("max", "10 ms"), ("packets", "1")]);
        link.begin(Nanos::ZERO, 100);
        let (mut sum, mut before) = (0, link.finish());
        for _ in 0..20_000 {
            crate::transmit::follow(&mut link, 100);
            let distance = (link.finish() - before).0;
            assert!((800_000..=10_000_000).contains(&distance), "{distance}");
            (sum, before) = (sum + distance, link.finish());
        }
        let mean = sum as f64 / 20_000.0;
        assert!((mean - 5_400_000.0).abs() < 4.0 * 18_800.0, "{mean}");
    }

    #[test]
    fn a_change_of_rate_takes_every_bit_not_yet_sent() {
        let set = |link: &mut Slotted, rate| {
            link.change(SlottedSettings::read(&[("rate", rate), ("min", "10 ms")]).unwrap());
        };
        let mut link = slotted(&[("min", "10 ms"), ("rate", "1 Mbit/s")]);
        link.begin(Nanos(0), 1000);
        assert_eq!(link.finish(), Nanos::from_millis(18));
        link.settle(Nanos::from_millis(5));
        set(&mut link, "2 Mbit/s");
        assert_eq!(link.finish(), Nanos::from_millis(14));
        link.settle(Nanos::from_millis(12));
        set(&mut link, "1 Mbit/s");
        assert_eq!((link.finish(), link.work_left()), (Nanos::from_millis(16), 500 * BYTE));
        link.settle(Nanos::from_millis(13));
        set(&mut link, "0");
        assert_eq!(link.finish(), Nanos::NEVER);
    }

    /// The slot behind a packet that ended at 18 ms opens at 28 ms, whatever rate the idle link gets before.
    #[test]
    fn a_change_of_an_idle_link_moves_no_slot() {
        let values = |rate: &str| {
            let given = [("rate", rate), ("min", "10 ms"), ("packets", "1"), ("framing", "ip")];
            SlottedSettings::read(&given).unwrap()
        };
        for rate in ["2 Mbit/s", "0"] {
            let mut link = Slotted::build(values("1 Mbit/s"), Dice::named(1, "test/rate"));
            link.begin(Nanos::ZERO, 1000);
            assert_eq!(link.finish(), Nanos::from_millis(18));
            link.settle(Nanos::from_millis(20));
            link.change(values(rate));
            link.begin(Nanos::from_millis(22), 1000);
            link.settle(Nanos::from_millis(25));
            link.change(values("1 Mbit/s"));
            assert_eq!(link.finish(), Nanos::from_millis(36), "{rate}");
        }
    }

    /// Packets wait although transmission takes no time, so limits in bytes and time must not treat them as
    /// sent.
    #[test]
    fn no_rate_is_not_unlimited() {
        assert_eq!(slotted(&[("min", "1 ms")]).rate(), Rate::MAX);
        assert_eq!(slotted(&[("min", "1 ms"), ("rate", "5 Mbit/s")]).rate(), Rate(5_000_000));
    }
}
