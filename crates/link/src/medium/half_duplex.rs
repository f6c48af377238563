//! One transmitter for several stations: the packet that has waited longest is sent next.

use super::{Access, Frame, Step};
use crate::transmit::Sender;
use crate::transmit::constant::{Constant, ConstantSettings};
use crate::transmit::framing::{FRAMING_PARAM, Framing, Layer, OVERHEAD_PARAM};
use longwire_block::{Block, Dice, Values};
use longwire_settings::Settings;
use longwire_units::{Nanos, Rate};

/// Sends the packet at the head of a queue that arrived first; at equal times, that of the first station.
/// Times are those of one link of constant rate: within a busy period the remainder is carried.
#[derive(Debug)]
pub(crate) struct HalfDuplex {
    transmit: Constant,
    waiting: Vec<Option<Frame>>,
    sending: Option<u32>,
    /// Time of the next choice, if no packet is being sent.
    choice: Nanos,
    /// The end of the last transmission.
    end: Nanos,
}

/// Stations share one transmitter, in the order in which their packets arrive.
#[derive(Debug, Settings)]
#[settings(
    key = "medium",
    kind = "half-duplex",
    source = "High capacity network link emulation using network processors, section 4.2.1",
    live
)]
pub(crate) struct HalfDuplexSettings {
    /// the shared rate, 300 bit/s to 400 Gbit/s
    #[setting(default = "10 Mbit/s")]
    rate: Rate,
    #[setting(like = FRAMING_PARAM)]
    layer: Layer,
    #[setting(like = OVERHEAD_PARAM)]
    overhead: u64,
}

impl HalfDuplex {
    pub(crate) fn new(settings: HalfDuplexSettings, stations: usize) -> Self {
        Self {
            transmit: Constant::build(settings.into(), Dice::default()),
            waiting: vec![None; stations],
            sending: None,
            choice: Nanos::NEVER,
            end: Nanos::ZERO,
        }
    }

    /// Starts the packet that has waited longest.
    fn choose(&mut self) {
        let now = std::mem::replace(&mut self.choice, Nanos::NEVER);
        let heads = self.waiting.iter().enumerate();
        let first = heads.filter_map(|(station, frame)| Some((frame.as_ref()?.arrived, station))).min();
        let Some((_, station)) = first else { return };
        let Some(frame) = self.waiting[station].take() else { return };
        if now == self.end && frame.arrived < now {
            self.transmit.follow(self.end, frame.bytes);
        } else {
            self.transmit.begin(now, frame.bytes);
        }
        self.sending = Some(station as u32);
    }
}

impl Access for HalfDuplex {
    fn request(&mut self, station: u32, now: Nanos, frame: Frame) {
        self.waiting[station as usize] = Some(frame);
        if self.sending.is_none() {
            self.choice = self.choice.min(now);
        }
    }

    fn next(&self) -> Nanos {
        if self.sending.is_some() { self.transmit.finish() } else { self.choice }
    }

    fn step(&mut self) -> Step {
        let Some(station) = self.sending.take() else {
            self.choose();
            return Step::Unseen;
        };
        self.end = self.transmit.finish();
        if self.waiting.iter().any(Option::is_some) {
            self.choice = self.end;
        }
        Step::Sent(station)
    }

    /// Applies a new rate to every bit not yet sent.
    fn change(&mut self, values: &Values, now: Nanos) {
        self.transmit.settle(now);
        self.transmit.change(HalfDuplexSettings::of(values).into());
    }
}

impl From<HalfDuplexSettings> for ConstantSettings {
    fn from(HalfDuplexSettings { rate, layer, overhead }: HalfDuplexSettings) -> Self {
        Self { rate, layer, overhead }
    }
}

/// The bytes that count.
pub(super) fn framing(values: &Values) -> Framing {
    let HalfDuplexSettings { layer, overhead, .. } = HalfDuplexSettings::of(values);
    Framing::of(layer, overhead)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::medium::tests::Bench;

    /// 8 Mbit/s: a microsecond per byte. Two stations with 100-byte packets that always have one take turns
    /// without a gap; of two simultaneous arrivals the first station's is first.
    #[test]
    fn takes_packets_in_the_order_of_their_arrival() {
        let values = Values::read(&HalfDuplexSettings::SPEC, &[("rate", "8 Mbit/s")]).unwrap();
        let mut bench = Bench::new(HalfDuplex::new(HalfDuplexSettings::of(&values), 3));
        bench.request(2, 0, (100, 0));
        bench.request(0, 0, (100, 0));
        bench.request(1, 10_000, (50, 10_000));
        assert_eq!(bench.run(300_000), [(100_000, 0, true), (200_000, 2, true), (250_000, 1, true)]);
        // An earlier arrival that could not be requested before precedes one requested earlier.
        bench.request(0, 300_000, (100, 300_000));
        bench.request(1, 320_000, (100, 320_000));
        bench.request(2, 330_000, (100, 310_000));
        assert_eq!(bench.run(700_000), [(400_000, 0, true), (500_000, 2, true), (600_000, 1, true)]);
    }

    /// 100 bytes at 8 Mbit/s, half sent at 50 µs; the other half takes 25 µs at 16 Mbit/s, as does half of
    /// the next one, whose other half takes 100 µs at 4 Mbit/s.
    #[test]
    fn another_rate_holds_for_bits_not_yet_sent() {
        let values = |rate| Values::read(&HalfDuplexSettings::SPEC, &[("rate", rate)]).unwrap();
        let mut bench = Bench::new(HalfDuplex::new(HalfDuplexSettings::of(&values("8 Mbit/s")), 2));
        bench.request(0, 0, (100, 0));
        bench.request(1, 0, (100, 0));
        assert_eq!(bench.run(50_000), []);
        bench.access.change(&values("16 Mbit/s"), Nanos(50_000));
        assert_eq!(bench.run(100_000), [(75_000, 0, true)]);
        bench.access.change(&values("4 Mbit/s"), Nanos(100_000));
        assert_eq!(bench.run(300_000), [(200_000, 1, true)]);
        // While nobody sends, too.
        bench.access.change(&values("8 Mbit/s"), Nanos(400_000));
        bench.request(0, 500_000, (100, 500_000));
        assert_eq!(bench.run(900_000), [(600_000, 0, true)]);
    }

    /// 10 Gbit/s: 64 bytes take 51.2 ns. Ends of a busy period are those of one link: 51, 102, 153, 204, 256.
    #[test]
    fn carries_the_remainder_from_station_to_station() {
        let values = Values::read(&HalfDuplexSettings::SPEC, &[("rate", "10 Gbit/s")]).unwrap();
        let mut bench = Bench::new(HalfDuplex::new(HalfDuplexSettings::of(&values), 5));
        (0..5).for_each(|station| bench.request(station, 0, (64, 0)));
        let ends: Vec<u64> = bench.run(1000).iter().map(|(time, ..)| *time).collect();
        assert_eq!(ends, [51, 102, 153, 204, 256]);
    }
}
