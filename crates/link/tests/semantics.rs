//! A link's formula, in tables that can be checked by hand: as in the design, to the nanosecond.

use longwire_block::{Dice, Values};
use longwire_link::{Fifo, LinkConfig, LinkStats, Links, registry};
use longwire_packet::{Gso, Pool, Train};
use longwire_units::Nanos;
use std::collections::VecDeque;

const SPREAD: Nanos = Nanos::from_micros(10);

/// A link without an engine, driven by hand.
struct Bench {
    pool: Pool,
    links: Links,
    left: Vec<(u64, u32)>,
    /// Number of segments of each departure.
    segments: Vec<u16>,
    next: u32,
}

impl Bench {
    fn new(keys: &[(&str, &str)]) -> Self {
        let config =
            keys.iter().fold(LinkConfig::default(), |c, (key, text)| c.with_text(key, text).unwrap());
        let mut links = Links::with_capacity(1, 1, SPREAD);
        links.add(0, "test", &config);
        Self { pool: Pool::new(16 << 20).unwrap(), links, left: Vec::new(), segments: Vec::new(), next: 0 }
    }

    /// A frame of `bytes` bytes arrives; its number is the order of arrival.
    fn arrive(&mut self, at: u64, bytes: usize) {
        self.advance(at);
        let handle = self.pool.alloc(bytes).unwrap();
        self.pool.meta_mut(handle).arrival = at;
        self.pool.meta_mut(handle).seq = u64::from(self.next);
        self.next += 1;
        let mut out = Fifo::EMPTY;
        self.links.arrive_and_leave(&mut self.pool, 0, handle, &mut out);
        self.collect(out);
    }

    /// Executes all departures by `until`.
    fn advance(&mut self, until: u64) {
        while self.links.deadline(0) <= Nanos(until) {
            let at = self.links.deadline(0);
            let mut out = Fifo::EMPTY;
            self.links.expire(&mut self.pool, 0, at, &mut out);
            self.collect(out);
        }
    }

    fn collect(&mut self, mut out: Fifo) {
        while let Some(handle) = out.pop(&self.pool) {
            let meta = *self.pool.meta(handle);
            self.left.push((meta.leave(), meta.seq as u32));
            self.segments.push(meta.segments);
            self.pool.free(handle);
        }
    }

    fn set(&mut self, at: u64, key: &str, text: &str) {
        let spec = registry().into_iter().find(|spec| spec.key == key).unwrap();
        self.set_kind(at, key, spec.kind, &[(spec.params[0].name, text)]);
    }

    fn set_kind(&mut self, at: u64, key: &str, kind: &str, given: &[(&str, &str)]) {
        self.advance(at);
        let spec = registry().into_iter().find(|spec| (spec.key, spec.kind) == (key, kind)).unwrap();
        let values = Values::read(spec, given).unwrap();
        self.links.change(&mut self.pool, 0, Nanos(at), &[(spec, values)]).unwrap();
    }

    fn stats(&mut self, at: u64) -> LinkStats {
        let stats = self.links.stats(&mut self.pool, 0, Nanos(at));
        assert!(stats.is_conserved(), "{stats:?}");
        stats
    }

    fn times(&self) -> Vec<u64> {
        self.left.iter().map(|(time, _)| *time).collect()
    }
}

const MS: u64 = 1_000_000;

#[test]
fn an_unlimited_link_adds_its_delay_and_nothing_else() {
    let mut link = Bench::new(&[("delay", "5 ms")]);
    [0, 10, 10, 11].iter().for_each(|&at| link.arrive(at, 1514));
    link.advance(u64::MAX - 1);
    assert_eq!(link.times(), [5 * MS, 5 * MS + 10, 5 * MS + 10, 5 * MS + 11]);

    let mut wire = Bench::new(&[]);
    wire.arrive(7, 60);
    assert_eq!(wire.left, [(7, 0)], "without rate and delay a packet leaves the moment it comes");
}

#[test]
fn transmission_is_serial_and_then_the_delay_follows() {
    // 1246-byte frames count 1250 bytes with FCS: 1 ms at 10 Mbit/s.
    let mut link = Bench::new(&[("rate", "10 Mbit/s"), ("delay", "20 ms")]);
    [0, 0, 0, 2_500_000, 10 * MS].iter().for_each(|&at| link.arrive(at, 1246));
    link.advance(u64::MAX - 1);
    // f: 1, 2, 3, max(2.5, 3) + 1 = 4, 10 + 1 = 11 ms
    assert_eq!(link.times(), [21 * MS, 22 * MS, 23 * MS, 24 * MS, 31 * MS]);
}

#[test]
fn a_packet_counts_until_its_last_bit_is_sent_and_no_longer() {
    let mut link = Bench::new(&[("rate", "10 Mbit/s"), ("delay", "100 ms"), ("queue", "2 packets")]);
    // (arrival in ms, accepted): the delay line has no limit, the queue two places.
    for at in [0, 0, 0] {
        link.arrive(at, 1246);
    }
    link.arrive(MS - 1, 1246);
    link.arrive(MS, 1246); // at f = 1 ms the departure precedes the arrival: one place is free
    link.arrive(MS, 1246);
    let stats = link.stats(MS);
    assert_eq!(
        (stats.in_packets, stats.dropped(), stats.queued_packets, stats.travelling_packets),
        (6, 3, 2, 1)
    );
    link.advance(u64::MAX - 1);
    assert_eq!(link.left, [(101 * MS, 0), (102 * MS, 1), (103 * MS, 4)]);
}

#[test]
fn remainders_are_carried_within_a_busy_period() {
    // 64 counted bytes at 3 Gbit/s take 170 2/3 ns.
    let mut link = Bench::new(&[("rate", "3 Gbit/s")]);
    (0..6).for_each(|_| link.arrive(1000, 60));
    link.arrive(5000, 60);
    link.advance(u64::MAX - 1);
    assert_eq!(link.times(), [1170, 1341, 1512, 1682, 1853, 2024, 5170]);
}

#[test]
fn a_change_of_rate_takes_every_bit_not_yet_sent() {
    let mut link = Bench::new(&[("rate", "10 Mbit/s")]);
    (0..3).for_each(|_| link.arrive(0, 1246));
    link.set(MS / 2, "rate", "5 Mbit/s");
    link.advance(u64::MAX - 1);
    // Half of the first is left: 1 ms at half the rate; the others 2 ms each.
    assert_eq!(link.times(), [3 * MS / 2, 7 * MS / 2, 11 * MS / 2]);
}

#[test]
fn an_outage_stalls_and_ends() {
    let mut link = Bench::new(&[("rate", "10 Mbit/s"), ("queue", "2 packets")]);
    (0..2).for_each(|_| link.arrive(0, 1246));
    link.set(MS / 4, "rate", "0");
    link.arrive(50 * MS, 1246);
    assert_eq!(link.stats(60 * MS).dropped(), 1);
    link.set(100 * MS, "rate", "unlimited");
    link.advance(u64::MAX - 1);
    assert_eq!(link.times(), [100 * MS, 100 * MS]);
}

#[test]
fn a_change_of_delay_is_for_packets_whose_transmission_ends_later_and_never_reorders() {
    let mut link = Bench::new(&[("rate", "10 Mbit/s"), ("delay", "20 ms")]);
    (0..3).for_each(|_| link.arrive(0, 1246));
    link.set(3 * MS / 2, "delay", "5 ms");
    link.advance(u64::MAX - 1);
    // The first is in flight (21 ms). The second ends at 2 + 5 = 7, the third at 8, but both wait for the
    // first.
    assert_eq!(link.left, [(21 * MS, 0), (21 * MS, 1), (21 * MS, 2)]);
}

#[test]
fn an_arrival_stamped_before_the_last_one_counts_as_with_it() {
    let mut link = Bench::new(&[("delay", "1 ms")]);
    link.arrive(1000, 60);
    let handle = link.pool.alloc(60).unwrap();
    link.pool.meta_mut(handle).arrival = 900;
    assert_eq!(link.links.effective_arrival(0, Nanos(900)), Nanos(1000));
    let mut out = Fifo::EMPTY;
    link.links.arrive_and_leave(&mut link.pool, 0, handle, &mut out);
    link.advance(u64::MAX - 1);
    assert_eq!(link.times(), [MS + 1000, MS + 1000]);
}

#[test]
fn the_mtu_drops_what_is_longer() {
    let mut link = Bench::new(&[("mtu", "1500")]);
    link.arrive(0, 1514);
    link.arrive(0, 1515);
    let stats = link.stats(0);
    assert_eq!(stats.drops, [("mtu", 1)]);
}

#[test]
fn flushing_accounts_for_everything() {
    let mut link = Bench::new(&[("rate", "1 Mbit/s"), ("delay", "1 s")]);
    (0..10).for_each(|n| link.arrive(n * MS, 1246));
    link.links.flush(&mut link.pool, Nanos(10 * MS));
    let stats = link.stats(10 * MS);
    assert_eq!(stats.drops, [("stopped", 10)]);
    assert_eq!(link.pool.live(), 0);
}

/// A TCP train as from a driver: `payload` bytes in segments of `mss`.
fn train(bench: &mut Bench, at: u64, payload: usize, mss: u16) {
    let header_len = 54;
    let mut frame = vec![0u8; header_len + payload];
    frame[12] = 8;
    frame[14] = 0x45;
    frame[16..18].copy_from_slice(&((40 + payload) as u16).to_be_bytes());
    frame[23] = 6;
    frame[46] = 0x50;
    let handle = bench.pool.insert(&frame).unwrap();
    let meta = bench.pool.meta_mut(handle);
    meta.arrival = at;
    meta.seq = u64::from(bench.next);
    let (segments, header_len) = (payload.div_ceil(mss as usize) as u16, header_len as u16);
    meta.set_train(Train { gso: Gso::TcpV4 as u8, segments, gso_size: mss, header_len });
    bench.next += 1;
    bench.advance(at);
    let mut out = Fifo::EMPTY;
    bench.links.arrive_and_leave(&mut bench.pool, 0, handle, &mut out);
    bench.collect(out);
}

#[test]
fn a_train_stays_whole_where_its_segments_leave_together() {
    // Ten segments of 1246 bytes (1250 counted) at 10 Gbit/s: 1 µs each, 9 µs apart at most.
    let mut link = Bench::new(&[("rate", "10 Gbit/s"), ("delay", "1 ms")]);
    train(&mut link, 0, 1192 * 10, 1192);
    link.advance(u64::MAX - 1);
    assert_eq!(link.times(), [MS + 10_000]);
    let stats = link.stats(2 * MS);
    assert_eq!(
        (stats.in_packets, stats.out_packets, stats.in_bytes, stats.out_bytes),
        (10, 10, 12_460, 12_460)
    );
}

#[test]
fn a_train_is_cut_where_they_do_not() {
    // At 2 Gbit/s a segment takes 5 µs: three within 10 µs, so 10 = 3 + 3 + 3 + 1.
    let mut link = Bench::new(&[("rate", "2 Gbit/s")]);
    train(&mut link, 0, 1192 * 10, 1192);
    link.advance(u64::MAX - 1);
    assert_eq!(link.times(), [15_000, 30_000, 45_000, 50_000]);
    // At 10 Mbit/s each leaves alone.
    let mut slow = Bench::new(&[("rate", "10 Mbit/s")]);
    train(&mut slow, 0, 1192 * 3, 1192);
    slow.advance(u64::MAX - 1);
    assert_eq!(slow.times(), [MS, 2 * MS, 3 * MS]);
}

#[test]
fn segments_meet_the_queue_one_by_one() {
    let mut link = Bench::new(&[("rate", "10 Mbit/s"), ("queue", "4 packets")]);
    train(&mut link, 0, 1192 * 10, 1192);
    link.advance(u64::MAX - 1);
    assert_eq!(link.times(), [MS, 2 * MS, 3 * MS, 4 * MS]);
    assert_eq!(link.stats(10 * MS).drops, [("queue-full", 6)]);
}

/// A train being sent frees its places in the queue segment by segment.
#[test]
fn a_train_being_sent_frees_a_place_at_each_segments_end() {
    let mut link = Bench::new(&[("rate", "2 Gbit/s"), ("queue", "3 packets")]);
    train(&mut link, 0, 1192 * 3, 1192);
    link.arrive(4_999, 1246);
    link.arrive(5_000, 1246);
    link.arrive(9_999, 1246);
    link.arrive(10_000, 1246);
    link.advance(u64::MAX - 1);
    assert_eq!(link.times(), [15_000, 20_000, 25_000]);
    assert_eq!(link.stats(MS).dropped(), 2);
}

#[test]
fn a_lost_segment_is_cut_out_and_the_rest_goes_on() {
    let mut link = Bench::new(&[("loss", "30 %")]);
    train(&mut link, 0, 1192 * 20, 1192);
    let stats = link.stats(0);
    assert!(stats.dropped() > 0 && stats.out_packets > 0);
    // The verdicts are those on single packets.
    let mut single = Bench::new(&[("loss", "30 %")]);
    (0..20).for_each(|_| single.arrive(0, 1246));
    assert_eq!(single.stats(0).dropped(), stats.dropped());
    assert_eq!(link.pool.live(), 0);
}

/// Two trains of nine segments of 1 µs each at 10 Gbit/s come at 0, and the rate changes at 4.5 µs: four and
/// a half segments of the first are sent.
#[test]
fn trains_are_cut_where_a_change_of_rate_parts_their_segments() {
    let slow = |first: u64, step: u64, count: u64| (0..count).map(move |n| (first + n * step, 1u16));
    let table: [(&str, Vec<(u64, u16)>); 5] = [
        // 1.0526 µs a segment: nine still leave within 10 µs.
        ("9.5 Gbit/s", vec![(9_236, 9), (18_710, 9)]),
        // 2 µs: six do. 4.5 segments take 9 µs, and then come 12 and 6.
        ("5 Gbit/s", vec![(13_500, 9), (25_500, 6), (31_500, 3)]),
        // 5 µs: three do. Four are sent, then half a segment and two, two, and those of the second.
        ("2 Gbit/s", vec![(4_500, 4), (17_000, 3), (27_000, 2), (42_000, 3), (57_000, 3), (72_000, 3)]),
        // 1 ms: the fifth has half of it left.
        ("10 Mbit/s", std::iter::once((4_500, 4)).chain(slow(504_500, MS, 14)).collect()),
        ("unlimited", vec![(4_500, 9), (4_500, 9)]),
    ];
    for (rate, wanted) in table {
        let mut link = Bench::new(&[("rate", "10 Gbit/s")]);
        train(&mut link, 0, 1192 * 9, 1192);
        train(&mut link, 0, 1192 * 9, 1192);
        link.set(4_500, "rate", rate);
        let stats = link.stats(4_500);
        let left: u64 = link.segments.iter().map(|&segments| u64::from(segments)).sum();
        assert_eq!(stats.queued_packets + stats.travelling_packets + left, 18, "{rate}");
        link.advance(u64::MAX - 1);
        let left: Vec<_> = std::iter::zip(link.times(), link.segments.clone()).collect();
        assert_eq!(left, wanted, "{rate}");
        let stats = link.stats(100 * MS);
        assert_eq!((stats.out_packets, stats.out_bytes, link.pool.live()), (18, 18 * 1246, 0), "{rate}");
        assert_eq!((stats.queued_packets, stats.queued_bytes), (0, 0), "{rate}");
    }
}

/// Segments of a waiting train get individual delays if the delay becomes jitter, and individual tokens if
/// the rate becomes a bucket.
#[test]
fn trains_are_cut_where_another_kind_parts_their_segments() {
    let mut link = Bench::new(&[("rate", "10 Gbit/s")]);
    train(&mut link, 0, 1192 * 9, 1192);
    train(&mut link, 0, 1192 * 9, 1192);
    link.set_kind(4_500, "delay", "jitter", &[("delay", "1 ms"), ("jitter", "0 ms")]);
    link.advance(u64::MAX - 1);
    let second = (0..9).map(|n| MS + 10_000 + n * 1_000);
    let wanted: Vec<_> = [MS + 9_000; 9].into_iter().chain(second).collect();
    assert_eq!(link.times(), wanted, "the one being sent is sent as a whole");

    // One and a half of three segments are sent. The rest of the second takes 625 of 1250 tokens, and the
    // third waits for as many more.
    let mut link = Bench::new(&[("rate", "10 Gbit/s")]);
    train(&mut link, 0, 1192 * 3, 1192);
    link.set_kind(1_500, "rate", "token-bucket", &[("rate", "10 Mbit/s"), ("burst", "1250 B")]);
    link.advance(u64::MAX - 1);
    assert_eq!(link.times(), [1_500, 1_500, 1_500 + MS / 2]);
}

/// 1250 bytes take 10 ms at 1 Mbit/s. At 5 ms half of the first is left, which takes tokens from a full
/// bucket.
#[test]
fn what_is_left_of_a_packet_takes_tokens() {
    let table = [
        // (burst, ends in ms): 625 of the 1250 are left for the second, which waits 5 ms for the rest.
        ("1250 B", [5, 10, 20]),
        // The first half begins as the bucket is full, and owes 125; 5 ms later it is full again, and so on.
        ("500 B", [5, 10, 20]),
        ("1875 B", [5, 5, 15]),
        ("2500 B", [5, 5, 10]),
    ];
    for (burst, ends) in table {
        let mut link = Bench::new(&[("rate", "1 Mbit/s")]);
        (0..3).for_each(|_| link.arrive(0, 1246));
        link.set_kind(5 * MS, "rate", "token-bucket", &[("rate", "1 Mbit/s"), ("burst", burst)]);
        link.advance(u64::MAX - 1);
        assert_eq!(link.times(), ends.map(|end| end * MS), "{burst}");
    }
}

/// The formula, implemented as plainly as possible, with exact fractions of a nanosecond.
struct Formula {
    rate: u128,
    delay: u64,
    limit: usize,
    /// Exact end of the last transmission, in units of 1/rate ns.
    busy_until: u128,
    ends: VecDeque<u64>,
    last_leave: u64,
}

impl Formula {
    fn arrive(&mut self, at: u64, frame: usize) -> Option<u64> {
        while self.ends.front().is_some_and(|end| *end <= at) {
            self.ends.pop_front();
        }
        if self.ends.len() >= self.limit {
            return None;
        }
        let bits = (frame.max(60) + 4) as u128 * 8;
        let arrival = u128::from(at) * self.rate;
        let idle = at >= (self.busy_until / self.rate) as u64;
        let start = if idle { arrival } else { self.busy_until };
        self.busy_until = start + bits * 1_000_000_000;
        let end = (self.busy_until / self.rate) as u64;
        self.ends.push_back(end);
        self.last_leave = self.last_leave.max(end + self.delay);
        Some(self.last_leave)
    }
}

/// A byte per microsecond: the 500 of the first 500 µs are there at 600 µs, when no more come. Then a byte
/// per nanosecond, from 1 ms on.
#[test]
fn a_policer_makes_what_each_rate_makes_in_its_time() {
    let mut link = Bench::new(&[("filter", "police 8 Mbit/s burst 1 kB")]);
    link.arrive(0, 996);
    link.set(500_000, "filter", "police 0 burst 1 kB");
    [600_000, 600_000].iter().for_each(|&at| link.arrive(at, 496));
    link.set(MS, "filter", "police 8 Gbit/s burst 1 kB");
    [MS, MS + 499, MS + 500].iter().for_each(|&at| link.arrive(at, 496));
    assert_eq!(link.times(), [0, 600_000, MS + 500]);
    assert_eq!(link.stats(MS + 500).drops, [("policed", 3)]);
}

#[test]
fn equals_the_formula_for_random_arrivals() {
    for seed in 0..60u64 {
        let mut dice = Dice::named(seed, "formula");
        let decades = dice.below(9) as u32;
        let rate = 300 + dice.below(400 * 10u64.pow(decades));
        let delay = dice.below(100_000_000);
        let limit = 1 + dice.below(50);
        let (rate_text, delay_text) = (format!("{rate} bit/s"), format!("{delay} ns"));
        let mut link = Bench::new(&[
            ("rate", &rate_text),
            ("delay", &delay_text),
            ("queue", &format!("{limit} packets")),
        ]);
        let mut formula = Formula {
            rate: rate.into(),
            delay,
            limit: limit as usize,
            busy_until: 0,
            ends: VecDeque::new(),
            last_leave: 0,
        };
        let typical = (1000 * 8_000_000_000u64 / rate).max(1);
        let (mut at, mut wanted) = (0, Vec::new());
        for number in 0..2000u32 {
            at += dice.below(2 * typical);
            let bytes = 14 + dice.below(1501) as usize;
            wanted.extend(formula.arrive(at, bytes).map(|leave| (leave, number)));
            link.arrive(at, bytes);
        }
        link.advance(u64::MAX - 1);
        assert_eq!(link.left, wanted, "seed {seed}: {rate_text} {delay_text} {limit}");
        link.stats(at);
        assert_eq!(link.pool.live(), 0);
    }
}
