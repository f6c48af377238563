//! The result of a stream of numbered packets.

use super::spread::{Distribution, Spread};
use super::{Layer, MAX_PACKETS};
use serde::{Deserialize, Serialize};

/// Upper bound on the error of a receive timestamp, in nanoseconds.
const STAMP_ERROR_NS: i64 = 1_000_000;

/// Counts the packets of one flow as they arrive, in memory allocated at the start. Reads no clock and no
/// socket.
#[derive(Debug, Default)]
pub struct Tally {
    seen: Box<[u64]>,
    most: u64,
    unique: u64,
    duplicates: u64,
    foreign: u64,
    reordered: u64,
    latest_by: u64,
    next_expected: u64,
    payload: u64,
    counted: LayerBytes,
    first_arrival: u64,
    last_arrival: u64,
    delays: Spread,
    last_transit: Option<i64>,
    jitter: f64,
}

/// Bytes at the layer of the rate.
#[derive(Clone, Copy, Debug, Default)]
struct LayerBytes {
    all: u64,
    first: u64,
}

/// One packet's arrival.
#[derive(Clone, Copy, Debug)]
pub struct Arrival {
    /// Its number.
    pub sequence: u64,
    /// When it was sent, in nanoseconds of the sender's clock.
    pub sent: u64,
    /// When it arrived, in nanoseconds of the receiver's clock.
    pub arrived: u64,
    /// Bytes of its payload.
    pub payload: u64,
    /// Bytes that count towards the rate.
    pub counted: u64,
}

impl Tally {
    /// For sequence numbers 0 to `most` − 1; `most` is cut to [`MAX_PACKETS`].
    pub fn new(most: u64) -> Self {
        let most = most.min(MAX_PACKETS);
        let seen = vec![0; most.div_ceil(64) as usize].into_boxed_slice();
        Self { seen, most, ..Self::default() }
    }

    /// Counts something that is not a packet of this flow.
    pub fn foreign(&mut self) {
        self.foreign += 1;
    }

    /// Counts a packet. A number out of range is foreign.
    pub fn arrive(&mut self, packet: &Arrival) {
        if packet.sequence >= self.most {
            self.foreign += 1;
            return;
        }
        if self.unique == 0 {
            self.first_arrival = packet.arrived;
            self.counted.first = packet.counted;
        }
        self.last_arrival = self.last_arrival.max(packet.arrived);
        self.payload += packet.payload;
        self.counted.all += packet.counted;
        let (word, bit) = ((packet.sequence / 64) as usize, 1 << (packet.sequence % 64));
        if self.seen[word] & bit != 0 {
            self.duplicates += 1;
            return;
        }
        self.seen[word] |= bit;
        self.unique += 1;
        self.order(packet.sequence);
        self.time(packet);
    }

    /// RFC 4737, section 3.3: a packet is reordered if its number is smaller than one already seen. Copies do
    /// not count (section 3.2).
    fn order(&mut self, sequence: u64) {
        if sequence >= self.next_expected {
            self.next_expected = sequence + 1;
        } else {
            self.reordered += 1;
            self.latest_by = self.latest_by.max(self.next_expected - 1 - sequence);
        }
    }

    /// Delay, and jitter as in RFC 3550, section 6.4.1: the mean deviation of successive packets' transit
    /// times, weighted 1/16.
    fn time(&mut self, packet: &Arrival) {
        let transit = packet.arrived.wrapping_sub(packet.sent).cast_signed();
        self.delays.record(transit);
        if let Some(last) = self.last_transit.replace(transit) {
            let change = transit.saturating_sub(last).saturating_abs();
            self.jitter += (change as f64 - self.jitter) / 16.0;
        }
    }

    /// Distinct packets so far.
    pub fn unique(&self) -> u64 {
        self.unique
    }

    /// All packets of the flow so far.
    pub fn received(&self) -> u64 {
        self.unique + self.duplicates
    }

    /// The result for `sent` packets, with the rate at `layer`. Delays are absolute if `shared_clock`, and
    /// otherwise relative to the smallest.
    pub fn reception(&self, sent: u64, layer: Layer, shared_clock: bool) -> UdpReception {
        let delays = self.delays.distribution();
        // With a shared clock no packet arrives before it was sent, except for timestamp errors. Clones of a
        // virtual machine may have the same boot id without the same clock.
        let shared_clock = shared_clock && delays.is_none_or(|delays| delays.min_ns > -STAMP_ERROR_NS);
        let span = self.last_arrival.saturating_sub(self.first_arrival);
        let bits = (self.counted.all - self.counted.first) as f64 * 8.0;
        UdpReception {
            received: self.received(),
            unique: self.unique,
            lost: sent.saturating_sub(self.unique),
            duplicates: self.duplicates,
            reordered: self.reordered,
            reordered_by_at_most: self.latest_by,
            foreign: self.foreign,
            receiver_drops: 0,
            loss_runs: self.loss_runs(sent),
            payload_bytes: self.payload,
            span_ns: span,
            rate_bits_per_second: (span > 0).then(|| bits * 1e9 / span as f64),
            layer,
            shared_clock,
            delay: if shared_clock { delays } else { None },
            delay_variation: delays.map(|delays| delays.less(delays.min_ns)),
            jitter_ns: self.jitter,
        }
    }

    /// Runs of numbers below `sent` that never came.
    fn loss_runs(&self, sent: u64) -> LossRuns {
        let mut runs = LossRuns::default();
        let mut run = 0;
        for sequence in 0..sent.min(self.most) {
            let seen = self.seen[(sequence / 64) as usize] >> (sequence % 64) & 1 != 0;
            run = if seen { 0 } else { run + 1 };
            runs.count += u64::from(run == 1);
            runs.longest = runs.longest.max(run);
        }
        runs
    }
}

/// Runs of lost packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LossRuns {
    /// Number of runs of consecutive lost packets.
    pub count: u64,
    /// Packets in the longest.
    pub longest: u64,
}

/// The receiver's view of a UDP stream.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct UdpReception {
    /// Packets that arrived, including copies.
    pub received: u64,
    /// Distinct packets that arrived.
    pub unique: u64,
    /// Packets sent that never arrived.
    pub lost: u64,
    /// Copies beyond the first of a packet.
    pub duplicates: u64,
    /// Packets that arrived after one with a larger number (RFC 4737).
    pub reordered: u64,
    /// The largest difference between a reordered packet's number and the largest number before it.
    pub reordered_by_at_most: u64,
    /// Packets that were not of this flow.
    pub foreign: u64,
    /// Of the lost packets, those that reached this host and found the receiving socket's buffer full.
    pub receiver_drops: u64,
    /// Runs of lost packets.
    pub loss_runs: LossRuns,
    /// Payload bytes of all that arrived.
    pub payload_bytes: u64,
    /// From first to last arrival, in nanoseconds.
    pub span_ns: u64,
    /// Bits at `layer` of all packets but the first, over the span; none with fewer than two arrivals.
    pub rate_bits_per_second: Option<f64>,
    /// The bytes that count for the rate.
    pub layer: Layer,
    /// Whether sender and receiver read the same clock.
    pub shared_clock: bool,
    /// One-way delay, if the clock is shared.
    pub delay: Option<Distribution>,
    /// One-way delay minus the smallest one (RFC 5481, packet delay variation).
    pub delay_variation: Option<Distribution>,
    /// Jitter at the end, in nanoseconds (RFC 3550).
    pub jitter_ns: f64,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Packets in the order given, one each millisecond, sent each millisecond by number, with 5 ms added.
    fn stream(most: u64, order: &[u64]) -> Tally {
        let mut tally = Tally::new(most);
        for (at, sequence) in order.iter().enumerate() {
            let arrived = 5_000_000 + at as u64 * 1_000_000;
            tally.arrive(&Arrival {
                sequence: *sequence,
                sent: sequence * 1_000_000,
                arrived,
                payload: 100,
                counted: 146,
            });
        }
        tally
    }

    #[test]
    fn counts_by_hand() {
        // (order of arrival, [lost of 6, duplicates, reordered, by at most, loss runs, longest])
        let table: [(&[u64], [u64; 6]); 7] = [
            (&[0, 1, 2, 3, 4, 5], [0, 0, 0, 0, 0, 0]),
            (&[0, 2, 1, 3, 4, 5], [0, 0, 1, 1, 0, 0]),
            (&[1, 2, 3, 4, 5, 0], [0, 0, 1, 5, 0, 0]),
            (&[5, 4, 3, 2, 1, 0], [0, 0, 5, 5, 0, 0]),
            (&[0, 0, 1, 1, 2, 5, 2], [2, 3, 0, 0, 1, 2]),
            (&[1, 3, 5], [3, 0, 0, 0, 3, 1]),
            (&[], [6, 0, 0, 0, 1, 6]),
        ];
        for (order, expected) in table {
            let got = stream(6, order).reception(6, Layer::Ethernet, true);
            let runs = got.loss_runs;
            let counts =
                [got.lost, got.duplicates, got.reordered, got.reordered_by_at_most, runs.count, runs.longest];
            assert_eq!(counts, expected, "{order:?}");
            assert_eq!(got.received, order.len() as u64);
        }
    }

    #[test]
    fn rate_leaves_the_first_packet_out() {
        // 6 packets over 5 ms: 5 · 146 · 8 bit in 5 ms.
        let got = stream(6, &[0, 1, 2, 3, 4, 5]).reception(6, Layer::Ethernet, true);
        assert_eq!(got.rate_bits_per_second, Some(1_168_000.0));
        assert_eq!(got.payload_bytes, 600);
        assert_eq!(stream(6, &[3]).reception(6, Layer::Ethernet, true).rate_bits_per_second, None);
    }

    #[test]
    fn delays_and_jitter_by_hand() {
        let got = stream(6, &[0, 1, 2, 3, 4, 5]).reception(6, Layer::Ip, true);
        assert_eq!((got.delay.unwrap().mean_ns, got.jitter_ns), (5_000_000.0, 0.0));
        // Numbers 0, 2, 1: delays 5, 4, 6 ms; jitter 1/16 ms, then 1/16 + (2 − 1/16)/16 ms.
        let got = stream(3, &[0, 2, 1]).reception(3, Layer::Ip, true);
        let delay = got.delay.unwrap();
        assert_eq!((delay.min_ns, delay.max_ns, delay.mean_ns), (4_000_000, 6_000_000, 5_000_000.0));
        assert!((got.jitter_ns - 1e6 * (1.0 / 16.0 + (2.0 - 1.0 / 16.0) / 16.0)).abs() < 1e-6);
        assert_eq!(got.delay_variation.unwrap().max_ns, 2_000_000);
    }

    #[test]
    fn clocks_that_are_not_shared_give_no_delay() {
        assert!(stream(3, &[0, 1]).reception(3, Layer::Ip, false).delay.is_none());
        let mut tally = Tally::new(1);
        tally.arrive(&Arrival { sequence: 0, sent: 2_000_000, arrived: 4, payload: 1, counted: 1 });
        let got = tally.reception(1, Layer::Ip, true);
        assert!(!got.shared_clock && got.delay.is_none(), "arrived before it was sent");
        assert_eq!(got.delay_variation.unwrap().min_ns, 0);
    }

    #[test]
    fn numbers_out_of_range_are_foreign() {
        let got = stream(3, &[0, 3, 1 << 40, 1]).reception(3, Layer::Ip, true);
        assert_eq!((got.unique, got.foreign, got.lost), (2, 2, 1));
    }
}
