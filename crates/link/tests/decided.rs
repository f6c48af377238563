//! Compares a link on which everything is decided on arrival with one that serves packets: the same seed,
//! arrivals and changes give the same trace.
//!
//! The latter is configured to serve, so that its packets wait until they are sent.

use longwire_block::{Dice, Spec, Values};
use longwire_link::{Fifo, LinkConfig, Links, registry};
use longwire_packet::{Gso, Meta, Pool, Train};
use longwire_units::Nanos;

const HEADERS: usize = 54;
const SEGMENT: usize = 1000;

/// A block: key, kind, parameters.
type Chosen = (&'static str, &'static str, Vec<(&'static str, &'static str)>);

fn read((key, kind, given): &Chosen) -> (&'static Spec, Values) {
    let spec = registry().into_iter().find(|spec| (spec.key, spec.kind) == (*key, *kind)).unwrap();
    (spec, Values::read(spec, given).unwrap())
}

/// A link, its packets, and their outcomes.
struct Side {
    pool: Pool,
    links: Links,
    trace: Vec<String>,
}

impl Side {
    fn new(seed: u64, blocks: &[Chosen], served: bool) -> Self {
        let mut config = LinkConfig::default();
        for (spec, values) in blocks.iter().map(read) {
            config = config.with(spec, values);
        }
        config.served = served;
        let mut links = Links::with_capacity(1, seed, Nanos(10_000));
        links.add(0, "test", &config);
        Self { pool: Pool::new(8 << 20).unwrap(), links, trace: Vec::new() }
    }

    fn arrive(&mut self, number: u64, at: u64, (bytes, flow): (usize, u8), segments: u16) {
        let mut frame =
            vec![0; if segments == 1 { bytes } else { HEADERS + usize::from(segments) * SEGMENT }];
        if segments > 1 {
            (frame[12], frame[14], frame[23], frame[46]) = (8, 0x45, 6, 0x50);
            let total = (frame.len() - 14) as u16;
            frame[16..18].copy_from_slice(&total.to_be_bytes());
            frame[35] = flow;
        } else if frame.len() >= 38 {
            (frame[12], frame[14], frame[23], frame[35]) = (8, 0x45, 17, flow);
            // Some senders are ECN-capable.
            frame[15] = if number.is_multiple_of(2) { 2 } else { 0 };
        }
        let handle = self.pool.insert(&frame).unwrap();
        let meta = self.pool.meta_mut(handle);
        (meta.arrival, meta.seq) = (at, number << 16);
        if number.is_multiple_of(7) {
            // As a router's program does.
            meta.set_band((number % 3) as u8);
            meta.flags |= Meta::BANDED;
        }
        if segments > 1 {
            let (gso_size, header_len) = (SEGMENT as u16, HEADERS as u16);
            meta.set_train(Train { gso: Gso::TcpV4 as u8, segments, gso_size, header_len });
        }
        let mut out = Fifo::EMPTY;
        self.links.arrive_and_leave(&mut self.pool, 0, handle, &mut out);
        self.collect(out);
    }

    fn expire(&mut self, until: u64, one_by_one: bool) {
        let mut out = Fifo::EMPTY;
        if one_by_one {
            let mut left = Vec::new();
            let mut release = |left: &mut Vec<_>| {
                self.links.release_first(&mut self.pool, 0, Nanos(until), |handle, _| left.push(handle))
            };
            while release(&mut left) <= Nanos(until) {}
            left.into_iter().for_each(|handle| out.push(&mut self.pool, handle));
        } else {
            self.links.expire(&mut self.pool, 0, Nanos(until), &mut out);
        }
        self.collect(out);
    }

    fn collect(&mut self, mut out: Fifo) {
        while let Some(handle) = out.pop(&self.pool) {
            let meta = self.pool.meta(handle);
            // Its effective arrival: not before what was executed by then.
            self.trace.push(format!("{} came at {} and leaves at {}", meta.seq, meta.arrival, meta.leave()));
            self.pool.free(handle);
        }
    }

    fn change(&mut self, now: u64, block: &Chosen) {
        self.links.change(&mut self.pool, 0, Nanos(now), &[read(block)]).unwrap();
    }

    fn count(&mut self, now: u64) {
        let stats = self.links.stats(&mut self.pool, 0, Nanos(now));
        assert!(stats.is_conserved(), "{stats:?}");
        self.trace.push(format!("{stats:?}"));
    }
}

const RATES: [&str; 9] = [
    "unlimited",
    "300 bit/s",
    "64 kbit/s",
    "1 Mbit/s",
    "97000003 bit/s",
    "1 Gbit/s",
    "10 Gbit/s",
    "400 Gbit/s",
    "0",
];
const DELAYS: [&str; 5] = ["0 ns", "1 ns", "777 ns", "50 us", "10 ms"];
const LIMITS: [&str; 8] =
    ["0 packets", "1 packets", "2 packets", "5 packets", "1000 packets", "3 kB", "20 us", "30 ms"];
const FRAMINGS: [&str; 4] = ["ethernet", "ip", "wire", "atm"];

fn one_of<'t>(dice: &mut Dice, texts: &[&'t str]) -> &'t str {
    texts[dice.below(texts.len() as u64) as usize]
}

/// Rates that change, of which the last end in an outage.
const TRACES: [&str; 6] = [
    "0 s 1 Mbit/s; 3 ms 97000003 bit/s; 7 ms 0; 9 ms end",
    "0 s 10 Mbit/s; 1001 us 0; 1 s 3 Mbit/s; 2 s unlimited; 2001 ms end",
    "0 s unlimited; 5 ms 2 Mbit/s; 6 ms end",
    "0 s 64 kbit/s",
    "0 s 0; 4 ms 1 Gbit/s; 10 ms end",
    "0 s 5 Mbit/s; 20 ms 0; 21 ms end",
];

/// A transmitter, and the approximate duration of a packet.
fn rate(dice: &mut Dice) -> (Chosen, u64) {
    let (chosen, usual) = match dice.below(5) {
        0..3 => {
            let rate = one_of(dice, &RATES);
            (("rate", "constant", vec![("rate", rate), ("framing", one_of(dice, &FRAMINGS))]), usual(rate))
        }
        3 => {
            let rate = one_of(dice, &RATES);
            let burst = one_of(dice, &["1 B", "500 B", "4 kB", "100 kB"]);
            let peak = one_of(dice, &["unlimited", "unlimited", "10 Mbit/s", "97000003 bit/s", "0"]);
            let given = vec![("rate", rate), ("burst", burst), ("peak", peak)];
            (("rate", "token-bucket", given), usual(rate))
        }
        _ => {
            let end = one_of(dice, &["loop", "loop", "hold", "clear"]);
            (("rate", "trace", vec![("file", one_of(dice, &TRACES)), ("end", end)]), 400_000)
        }
    };
    (chosen, usual)
}

/// A queue that decides about admission, or foresees what it does when a packet is sent.
fn queue(dice: &mut Dice) -> Chosen {
    let limit = ("limit", one_of(dice, &LIMITS));
    let marks = ("ecn", one_of(dice, &["yes", "no"]));
    match dice.below(15) {
        12.. => ("queue", "priority", bands(dice, limit)),
        9..12 => {
            let target = ("target", one_of(dice, &["0 ns", "300 us", "5 ms", "1 s"]));
            let memory = ("memory", one_of(dice, &["1 kB", "32 MB", "32 MB"]));
            let flows = ("flows", one_of(dice, &["1", "2", "1024"]));
            let quantum = ("quantum", one_of(dice, &["64 B", "300 B", "1514 B"]));
            ("queue", "fq-codel", vec![limit, marks, target, memory, flows, quantum])
        }
        6 => {
            let target = ("target", one_of(dice, &["0 ns", "1 us", "300 us", "5 ms", "1 s"]));
            (
                "queue",
                "codel",
                vec![limit, marks, target, ("interval", one_of(dice, &["0 ns", "1 ms", "100 ms"]))],
            )
        }
        7 | 8 => {
            let update = ("update", one_of(dice, &["100 us", "1 ms", "15 ms"]));
            let target = ("target", one_of(dice, &["0 ns", "10 us", "1 ms", "15 ms"]));
            let burst = ("burst", one_of(dice, &["0 ns", "1 ms", "150 ms"]));
            ("queue", "pie", vec![limit, marks, update, target, burst, ("alpha", "100"), ("beta", "100")])
        }
        0 => {
            let unit = ("unit", one_of(dice, &["packets", "bytes"]));
            let profile = ("profile", one_of(dice, &["floyd", "floyd", "osaka"]));
            ("queue", "red", vec![limit, ("weight", "0.1"), ("min", "2"), ("max", "6"), marks, unit, profile])
        }
        1 => ("queue", "ared", vec![limit, marks]),
        2 => ("queue", "sred", vec![limit]),
        _ => ("queue", "tail-drop", vec![limit]),
    }
}

/// Bands by a filter or the node, or by conditions; the last are never foreseen.
fn bands(dice: &mut Dice, limit: (&'static str, &'static str)) -> Vec<(&'static str, &'static str)> {
    let classes = |text| vec![("classes", text)];
    match dice.below(6) {
        0..3 => {
            vec![limit, ("bands", one_of(dice, &["1", "2", "3"])), ("default", one_of(dice, &["0", "1"]))]
        }
        3 => classes("a limit 3 packets if udp src port 1\nb limit 30 ms if udp src port 2\nc limit 3 kB"),
        4 => classes("a if less 800\nb limit 4 packets"),
        _ => classes("a queue codel if udp src port 1\nb limit 5 packets"),
    }
}

fn delay(dice: &mut Dice) -> Chosen {
    ("delay", "constant", vec![("delay", one_of(dice, &DELAYS))])
}

/// A delay that differs from packet to packet.
fn varied_delay(dice: &mut Dice) -> Chosen {
    let jitter =
        |order| ("delay", "jitter", vec![("delay", "100 us"), ("jitter", "50 us"), ("order", order)]);
    match dice.below(3) {
        0 => jitter("keep"),
        1 => jitter("reorder"),
        _ => ("delay", "trace", vec![("file", "0 s 200 us; 2 ms 30 us; 3 ms 100 us; 4 ms end")]),
    }
}

/// Judges of packets when they are sent, and a delay that varies.
fn on_the_wire(dice: &mut Dice) -> Vec<Chosen> {
    let all: [Chosen; 4] = [
        ("bit-error", "rate", vec![("rate", "1e-4")]),
        ("duplicate", "independent", vec![("probability", "10 %")]),
        ("reorder", "independent", vec![("probability", "10 %"), ("by", "300 us")]),
        ("loss", "gilbert-elliott", vec![("p", "5 %"), ("r", "25 %"), ("where", "wire")]),
    ];
    let mut some: Vec<_> = all.into_iter().filter(|_| dice.below(3) == 0).collect();
    if dice.below(3) == 0 {
        some.push(varied_delay(dice));
    }
    some
}

/// Approximate duration of a packet at a rate.
fn usual(rate: &str) -> u64 {
    let bits: u64 = match rate {
        "unlimited" | "0" => return 500,
        text => text.parse::<longwire_units::Rate>().unwrap().0,
    };
    (8_000_000_000 * 300 / bits).max(2)
}

/// Runs both, and returns the number of dropped packets.
fn compare(case: u64) -> usize {
    let mut dice = Dice::named(case, "decided");
    let (transmitter, mut usual) = match case % 4 {
        0 => (("rate", "constant", vec![("rate", "unlimited")]), 500),
        _ => rate(&mut dice),
    };
    let loss = ("loss", "independent", vec![("probability", one_of(&mut dice, &["0 %", "0 %", "10 %"]))]);
    let mut blocks = vec![transmitter, delay(&mut dice), queue(&mut dice), loss];
    if dice.below(4) == 0 {
        blocks.push(("filter", "rules", vec![("rules", "band 0 if less 300\nband 2 if udp src port 2")]));
    }
    // If transmission takes no time, judges on the wire and random delays are asked on arrival.
    if case.is_multiple_of(2) {
        blocks.extend(on_the_wire(&mut dice));
    }
    let changes = dice.below(3) > 0;
    let mut sides = [Side::new(case, &blocks, false), Side::new(case, &blocks, true)];
    let (mut now, mut flow) = (1_000_000, 0);
    for number in 0..400 {
        let gap = usual;
        if dice.below(3) > 0 {
            now += dice.below(gap * 2);
        }
        if dice.below(40) == 0 {
            now += dice.below(gap * 100);
        }
        // A stamp may be earlier than a previous one.
        let stamp = if dice.below(20) == 0 { now - dice.below(gap.min(now)) } else { now };
        let (bytes, segments) = (20 + dice.below(1500) as usize, [1, 1, 1, 1, 7][dice.below(5) as usize]);
        let segments = if case.is_multiple_of(3) { segments } else { 1 };
        if dice.below(5) == 0 {
            flow = dice.below(3) as u8;
        }
        let (act, until, one) = (dice.below(60), now - dice.below(gap.min(now)), dice.below(2) == 0);
        let (change, next_usual) = match act {
            23 => rate(&mut dice),
            24 => (delay(&mut dice), usual),
            25 => (queue(&mut dice), usual),
            26 => (("queue", "codel", vec![]), usual),
            27 => (varied_delay(&mut dice), usual),
            _ => (("delay", "jitter", vec![("delay", "1 ms"), ("jitter", "1 ms")]), usual),
        };
        let changed = changes && (23..=28).contains(&act);
        for side in &mut sides {
            match act {
                0..20 => side.expire(until, one),
                20..23 => {
                    // Packets that are due may leave at the last arrival, or later.
                    side.expire(now, false);
                    side.count(now);
                }
                _ if changed => side.change(now, &change),
                _ => {}
            }
            side.arrive(number, stamp, (bytes, flow), segments);
        }
        usual = if changed { next_usual } else { usual };
    }
    length_of_one_trace(sides, now, &format!("case {case}, {blocks:?}"))
}

/// Ends both runs at `now`, demands the same trace of both, and returns its length.
fn length_of_one_trace(mut sides: [Side; 2], now: u64, what: &str) -> usize {
    for side in &mut sides {
        side.count(now);
        side.expire(u64::MAX / 4, false);
        side.count(u64::MAX / 4);
    }
    let [decided, served] = sides;
    let differs = decided.trace.iter().zip(&served.trace).position(|(one, other)| one != other);
    if let Some(at) = differs {
        panic!("{what}:\n{}\n{}", decided.trace[at], served.trace[at]);
    }
    assert_eq!(decided.trace.len(), served.trace.len(), "{what}");
    decided.trace.len()
}

/// Bursts of one flow, and then of three, of packets that use up turns exactly: 8 Mbit/s send a byte each
/// microsecond.
#[test]
fn a_flow_alone_keeps_its_turns() {
    for case in 0..300 {
        let mut dice = Dice::named(case, "alone");
        let quantum = one_of(&mut dice, &["200 B", "300 B", "400 B"]);
        let queue = ("queue", "fq-codel", vec![("quantum", quantum), ("target", "1 s")]);
        let blocks = [("rate", "constant", vec![("rate", "8 Mbit/s")]), queue];
        let mut sides = [Side::new(case, &blocks, false), Side::new(case, &blocks, true)];
        let mut now = 1_000_000;
        for number in 0..120 {
            let longest = [1, 1, 1, 400_000, 2_000_000][dice.below(5) as usize];
            now += dice.below(longest);
            let flow = if number % 20 < 8 { 0 } else { dice.below(3) as u8 };
            // With FCS 100, 200 or 300 bytes.
            let bytes = 96 + 100 * dice.below(3) as usize;
            sides.iter_mut().for_each(|side| side.arrive(number, now, (bytes, flow), 1));
        }
        length_of_one_trace(sides, now, &format!("case {case}, {quantum}"));
    }
}

#[test]
fn decided_links_do_what_served_ones_do() {
    let lines: usize = (0..600).map(compare).sum();
    assert!(lines > 100_000, "{lines} lines are too few to say anything");
}
