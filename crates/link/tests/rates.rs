//! Links with token buckets, traces and slots, observed from outside.

use longwire_block::{Dice, Spec, Values};
use longwire_link::{Fifo, LinkConfig, Links, registry};
use longwire_packet::Pool;
use longwire_units::Nanos;

fn spec(key: &str, kind: &str) -> &'static Spec {
    registry().into_iter().find(|spec| (spec.key, spec.kind) == (key, kind)).unwrap()
}

fn link(kind: &str, given: &[(&str, &str)], queue: &str) -> LinkConfig {
    let spec = spec("rate", kind);
    let config = LinkConfig::default().with_text("queue", queue).unwrap();
    config.with(spec, Values::read(spec, given).unwrap())
}

/// Links that accept packets and release them at every deadline.
struct Bench {
    pool: Pool,
    links: Links,
    left: Vec<(u64, u64)>,
    next: u64,
}

impl Bench {
    fn new(configs: &[LinkConfig], begin: Nanos) -> Self {
        let mut links = Links::with_capacity(configs.len(), 1, Nanos::ZERO);
        for (place, config) in (0..).zip(configs) {
            links.add(place, &format!("link{place}"), config);
        }
        links.start(begin);
        Self { pool: Pool::new(96 << 20).unwrap(), links, left: Vec::new(), next: 0 }
    }

    /// Lets a frame of this size arrive at `at` nanoseconds.
    fn arrive(&mut self, link: u32, at: u64, bytes: usize) {
        self.advance(link, at);
        let handle = self.pool.insert(&vec![0; bytes]).unwrap();
        let meta = self.pool.meta_mut(handle);
        (meta.arrival, meta.seq) = (at, self.next);
        self.next += 1;
        let mut out = Fifo::EMPTY;
        self.links.arrive_and_leave(&mut self.pool, link, handle, &mut out);
        self.collect(out);
    }

    fn advance(&mut self, link: u32, until: u64) {
        while self.links.deadline(link) <= Nanos(until) {
            let deadline = self.links.deadline(link);
            let mut out = Fifo::EMPTY;
            self.links.expire(&mut self.pool, link, deadline, &mut out);
            self.collect(out);
        }
    }

    fn collect(&mut self, mut out: Fifo) {
        while let Some(handle) = out.pop(&self.pool) {
            let meta = self.pool.meta(handle);
            self.left.push((meta.seq, meta.leave()));
            self.pool.free(handle);
        }
    }

    fn times(&self) -> Vec<u64> {
        self.left.iter().map(|packet| packet.1).collect()
    }
}

/// Ports are read while the clock goes on, so a packet may have arrived after the moment of a change, which
/// is then made at its arrival. At an unlimited rate the packet is sent by then, and delays nothing that
/// comes later; at another one, all of it is sent at the new rate: 100 bytes with FCS at 1 Mbit/s.
#[test]
fn a_packet_that_arrives_after_the_moment_of_a_change_holds_up_nothing() {
    let rate =
        |rate| (spec("rate", "constant"), Values::read(spec("rate", "constant"), &[("rate", rate)]).unwrap());
    let delay = Values::read(spec("delay", "constant"), &[("delay", "1 ms")]).unwrap();
    for kind in ["tail-drop", "fq-codel"] {
        let queue = Values::read(spec("queue", kind), &[]).unwrap();
        let config = |(of, values)| {
            let config = LinkConfig::default().with(of, values).with(spec("queue", kind), queue.clone());
            config.with(spec("delay", "constant"), delay.clone())
        };
        for (before, leaves) in [("unlimited", [1000, 802_000]), ("400 Gbit/s", [801_000, 1_601_000])] {
            let mut bench = Bench::new(&[config(rate(before))], Nanos::ZERO);
            bench.arrive(0, 1000, 96);
            bench.links.change(&mut bench.pool, 0, Nanos(900), &[rate("1 Mbit/s")]).unwrap();
            bench.arrive(0, 2000, 96);
            bench.advance(0, 10 * MILLI);
            assert_eq!(bench.times(), leaves.map(|time| time + MILLI), "{before}, {kind}");
        }
    }
}

const MILLI: u64 = 1_000_000;

/// A model of mahimahi's link from its code: before a packet is queued, earlier opportunities are spent on
/// waiting packets; each is worth 1504 bytes, and its rest is lost when the queue is empty.
fn mahimahi(times: &[u64], packets: &[(u64, u64)]) -> Vec<u64> {
    let length = times[times.len() - 1];
    let (mut waiting, mut ends, mut arrivals) =
        (std::collections::VecDeque::new(), Vec::new(), packets.iter());
    let mut arriving = arrivals.next();
    for round in 0.. {
        for time in times.iter().map(|time| (round * length + time) * MILLI) {
            while let Some(&(_, bytes)) = arriving.filter(|packet| packet.0 < time) {
                waiting.push_back(bytes);
                arriving = arrivals.next();
            }
            let mut left = 1504;
            while let Some(first) = waiting.front_mut().filter(|_| left > 0) {
                let taken = left.min(*first);
                (*first, left) = (*first - taken, left - taken);
                if *first == 0 {
                    waiting.pop_front();
                    ends.push(time);
                }
            }
            if ends.len() == packets.len() {
                return ends;
            }
        }
    }
    ends
}

#[test]
fn a_link_with_delivery_opportunities_does_what_mahimahi_does() {
    for seed in 0..20 {
        let mut dice = Dice::named(seed, "mahimahi");
        let mut at = 0;
        let times: Vec<u64> = (0..200)
            .map(|_| {
                at += dice.below(5);
                at
            })
            .chain([1000])
            .collect();
        let text: String = times.iter().map(|time| format!("{time}\n")).collect();
        let mut bench = Bench::new(&[link("trace", &[("file", &text)], "unlimited")], Nanos::ZERO);
        let mut now = 0;
        let packets: Vec<(u64, usize)> = (0..2000)
            .map(|_| {
                now += [0, dice.below(MILLI), dice.below(20 * MILLI)][dice.below(3) as usize];
                // Some at the exact time of an opportunity.
                now = if dice.below(4) == 0 { now.next_multiple_of(MILLI) } else { now };
                (now, 34 + dice.below(1481) as usize)
            })
            .collect();
        for &(at, bytes) in &packets {
            bench.arrive(0, at, bytes);
        }
        bench.advance(0, u64::MAX - 1);
        // It counts the IP packet and four bytes: ten less than the frame.
        let counted: Vec<_> = packets.iter().map(|&(at, bytes)| (at, bytes as u64 - 10)).collect();
        assert_eq!(bench.times(), mahimahi(&times, &counted), "seed {seed}");
    }
}

/// 100 µs of 12 Mbit/s every millisecond. One link is busy from the start, another has its first packet in
/// the 500th round, and the run begins at 3 s of the engine's clock.
#[test]
fn links_with_the_same_trace_are_in_step() {
    let begin = 3_000 * MILLI;
    let file = [("file", "0 s 0; 900 us 12 Mbit/s; 1 ms end"), ("framing", "ip")];
    let config = link("trace", &file, "unlimited");
    let mut bench = Bench::new(&[config.clone(), config], Nanos(begin));
    for _ in 0..600 {
        bench.arrive(0, begin, 164);
    }
    bench.advance(0, u64::MAX - 1);
    let one = std::mem::take(&mut bench.left);
    for _ in 0..100 {
        bench.arrive(1, begin + 500 * MILLI, 164);
    }
    bench.advance(1, u64::MAX - 1);
    // 150 bytes take 100 µs: one packet at the end of every round.
    assert_eq!(one[0].1, begin + MILLI);
    for (round, packet) in bench.left.iter().enumerate() {
        assert_eq!(packet.1, one[500 + round].1, "round {round}");
    }
}

/// Packets that wait for an opportunity, a slot or tokens count towards the queue's limit although
/// transmission takes no time.
#[test]
fn who_waits_takes_room_in_the_queue() {
    for (kind, given) in [
        ("trace", vec![("file", "5;10"), ("framing", "ethernet")]),
        ("trace", vec![("file", "0 s 0; 1 s unlimited; 2 s end")]),
        ("slotted", vec![("min", "5 ms")]),
        ("token-bucket", vec![("rate", "300 bit/s"), ("burst", "1 B")]),
    ] {
        for limit in ["4 packets", "400 B"] {
            let mut bench = Bench::new(&[link(kind, &given, limit)], Nanos::ZERO);
            for _ in 0..10 {
                bench.arrive(0, MILLI, 96);
            }
            let stats = bench.links.stats(&mut bench.pool, 0, Nanos(MILLI));
            let dropped: u64 = stats.drops.iter().map(|drop| drop.1).sum();
            // The bucket lets the first packet leave at once.
            let gone = u64::from(kind == "token-bucket");
            assert_eq!((stats.queued_packets, dropped), (4, 6 - gone), "{kind} {limit}");
        }
    }
}

/// A rate that changes every 10 µs, over a million steps through a whole link: every packet ends when the
/// integral of the rate says.
#[test]
fn a_trace_of_ten_microseconds_is_followed_exactly() {
    let rate = |step: u64| 1_000_000 + step * 7919 % 99_000_000;
    let text: String = (0..1_000_000).map(|step| format!("{step}0 us,{}\n", rate(step))).collect();
    let given = [("file", text.as_str()), ("end", "hold"), ("framing", "ip")];
    let mut bench = Bench::new(&[link("trace", &given, "unlimited")], Nanos::ZERO);
    for _ in 0..40_000 {
        bench.arrive(0, 0, 1514);
    }
    bench.advance(0, u64::MAX - 1);
    let (mut done, mut step) = (0u128, 0u64);
    for (packet, left) in (1u128..).zip(bench.times()) {
        let needed = packet * 1500 * 8 * 1_000_000_000;
        while done + u128::from(rate(step)) * 10_000 < needed {
            done += u128::from(rate(step)) * 10_000;
            step += 1;
        }
        assert_eq!(
            left,
            step * 10_000 + ((needed - done) / u128::from(rate(step))) as u64,
            "packet {packet}"
        );
    }
    assert!(step > 900_000, "{step}");
}
