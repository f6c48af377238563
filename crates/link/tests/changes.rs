//! Changes of the queue while packets wait: admitted packets stay, unmarked and in order, whatever the new
//! discipline would have admitted; an arrival at a queue above the new limit drops no more than it adds.

use longwire_block::{Spec, Values};
use longwire_link::{Fifo, LinkConfig, LinkStats, Links, registry};
use longwire_packet::{Gso, Pool, Train};
use longwire_units::Nanos;

/// Bytes that a packet counts, check sequence included.
const COUNTED: usize = 1250;
const HEADERS: usize = 54;
const SEGMENT: usize = COUNTED - 4 - HEADERS;
/// Flows; a flow's number modulo four is its ECN field, so that all four occur.
const FLOWS: u16 = 12;
/// Packets that arrive at once; some of them are sent before the change.
const BURST: usize = 720;
const SENT: usize = 89;

/// The link's rate, and the sizes of trains.
#[derive(Debug, Clone, Copy)]
struct Traffic {
    rate: &'static str,
    /// Nanoseconds that a packet takes.
    each: u64,
    train: usize,
}

/// The last keeps its trains whole where the queue lets it: nine segments leave within the spread.
const TRAFFIC: [Traffic; 3] = [
    Traffic { rate: "10 Mbit/s", each: 1_000_000, train: 1 },
    Traffic { rate: "10 Mbit/s", each: 1_000_000, train: 6 },
    Traffic { rate: "10 Gbit/s", each: 1_000, train: 6 },
];

/// Conditions that distinguish the schedulers' classes; each has this `limit`.
fn classes(kind: &str, limit: &str) -> String {
    let share = share(kind);
    format!(
        "a {share} {limit} if tcp src port 0 or 1 or 2\nb {share} {limit} if tcp src port 5\n\
         c {share} {limit}"
    )
}

/// Other classes: the flows of each of the first are split over several of these.
fn other_classes(kind: &str, limit: &str) -> String {
    let share = share(kind);
    format!("c {share} {limit} if tcp src port 1 or 3 or 5\na {share} {limit}")
}

fn share(kind: &str) -> &'static str {
    match kind {
        "hfsc" => "ls 1 Mbit/s",
        "priority" => "",
        _ => "weight 1",
    }
}

type Setting = (&'static Spec, Values, String);

fn setting(kind: &str, given: &[(&str, &str)]) -> Setting {
    let spec = registry().into_iter().find(|spec| (spec.key, spec.kind) == ("queue", kind)).unwrap();
    let values = Values::read(spec, given).unwrap_or_else(|error| panic!("{kind} {given:?}: {error}"));
    (spec, values, format!("{kind} {given:?}"))
}

fn has(spec: &Spec, name: &str) -> bool {
    spec.params.iter().any(|param| param.name == name)
}

fn kinds() -> impl Iterator<Item = &'static Spec> {
    registry().into_iter().filter(|spec| spec.key == "queue")
}

/// Every kind, with room for all.
fn roomy(spec: &Spec) -> Setting {
    let wide =
        [("min", "5000"), ("max", "10000"), ("out-min", "5000"), ("out-max", "9000"), ("burst", "10 s")];
    let text = classes(spec.kind, "");
    let mut given = vec![("limit", "1000 packets")];
    given.extend(wide);
    if !has(spec, "limit") {
        given.push(("classes", text.as_str()));
    }
    given.retain(|(name, _)| has(spec, name));
    setting(spec.kind, &given)
}

/// Every kind with this limit, also as the limit of classes.
fn limited(limit: &str) -> Vec<Setting> {
    let mut all = Vec::new();
    for spec in kinds() {
        if has(spec, "limit") {
            all.push(setting(spec.kind, &[("limit", limit)]));
            let leaf = classes("wf2q+", &format!("queue {} limit {limit}", spec.kind));
            all.push(setting("wf2q+", &[("classes", &leaf)]));
        }
        if has(spec, "classes") {
            all.push(setting(spec.kind, &[("classes", &classes(spec.kind, &format!("limit {limit}")))]));
        }
    }
    all
}

/// All limits of a kind that can be lowered, or changed.
fn lowered(spec: &Spec, traffic: Traffic) -> Vec<Setting> {
    let time = format!("{} ns", 10 * traffic.each);
    let mut all = Vec::new();
    for limit in ["10 packets", "12500 B", &time] {
        if has(spec, "limit") {
            all.push(setting(spec.kind, &[("limit", limit)]));
        }
        if has(spec, "classes") {
            let limit = format!("limit {limit}");
            all.push(setting(spec.kind, &[("classes", &classes(spec.kind, &limit))]));
            all.push(setting(spec.kind, &[("classes", &other_classes(spec.kind, &limit))]));
        }
    }
    let table = [
        ("memory", "12500 B"),
        ("flows", "1"),
        ("flows", "5"),
        ("flows", "4096"),
        ("bands", "1"),
        ("bands", "2"),
        ("bands", "16"),
        ("default", "0"),
        ("default", "2"),
        ("quantum", "64 B"),
        ("in", "0"),
    ];
    let named = table.into_iter().filter(|(name, _)| has(spec, name));
    all.extend(named.map(|(name, value)| setting(spec.kind, &[("limit", "10 packets"), (name, value)])));
    all
}

struct Bench {
    pool: Pool,
    links: Links,
    traffic: Traffic,
    /// Number, flow and segments of departed packets.
    left: Vec<(u64, u16, u16)>,
    next: u64,
}

impl Bench {
    fn new((spec, values, _): &Setting, traffic: Traffic) -> Self {
        let rules = "band 0 if tcp src port 1\nband 2 if tcp src port 2 or 6\nband 7 if tcp src port 3";
        let config = [("rate", traffic.rate), ("filter", rules)]
            .iter()
            .fold(LinkConfig::default(), |config, (key, text)| config.with_text(key, text).unwrap());
        let mut links = Links::with_capacity(1, 1, Nanos::from_micros(10));
        links.add(0, "test", &config.with(spec, values.clone()));
        Self { pool: Pool::new(8 << 20).unwrap(), links, traffic, left: Vec::new(), next: 0 }
    }

    /// Lets segments of a flow arrive in one packet.
    fn arrive(&mut self, at: u64, flow: u16, segments: usize) {
        let mut frame = vec![0u8; HEADERS + segments * SEGMENT];
        frame[12] = 8;
        frame[14] = 0x45;
        frame[15] = flow as u8 & 3;
        frame[16..18].copy_from_slice(&((40 + segments * SEGMENT) as u16).to_be_bytes());
        frame[23] = 6;
        frame[34..36].copy_from_slice(&flow.to_be_bytes());
        frame[46] = 0x50;
        let handle = self.pool.insert(&frame).unwrap();
        let meta = self.pool.meta_mut(handle);
        (meta.arrival, meta.seq) = (at, self.next << 16);
        if segments > 1 {
            let (segments, gso_size) = (segments as u16, SEGMENT as u16);
            let header_len = HEADERS as u16;
            meta.set_train(Train { gso: Gso::TcpV4 as u8, segments, gso_size, header_len });
        }
        self.next += 1;
        let mut out = Fifo::EMPTY;
        self.links.arrive_and_leave(&mut self.pool, 0, handle, &mut out);
        self.collect(out);
    }

    fn advance(&mut self, until: u64) {
        while self.links.deadline(0) <= Nanos(until) {
            let deadline = self.links.deadline(0);
            let mut out = Fifo::EMPTY;
            self.links.expire(&mut self.pool, 0, deadline, &mut out);
            self.collect(out);
        }
    }

    fn collect(&mut self, mut out: Fifo) {
        while let Some(handle) = out.pop(&self.pool) {
            let (meta, frame) = (*self.pool.meta(handle), self.pool.data(handle));
            let flow = u16::from_be_bytes([frame[34], frame[35]]);
            self.left.push((meta.seq, flow, meta.segments));
            self.pool.free(handle);
        }
    }

    fn change(&mut self, at: u64, (spec, values, _): &Setting) {
        self.links.change(&mut self.pool, 0, Nanos(at), &[(*spec, values.clone())]).unwrap();
    }

    fn stats(&mut self, at: u64) -> LinkStats {
        let stats = self.links.stats(&mut self.pool, 0, Nanos(at));
        assert!(stats.is_conserved(), "{stats:?}");
        stats
    }

    /// Lets a burst in and some of it out, and returns the time.
    fn fill(&mut self) -> u64 {
        for number in 0..BURST / self.traffic.train {
            self.arrive(0, number as u16 % FLOWS, self.traffic.train);
        }
        let at = SENT as u64 * self.traffic.each + self.traffic.each / 2;
        self.advance(at);
        at
    }
}

/// Kinds in which packets leave in the order in which they came.
fn is_fifo(spec: &Spec) -> bool {
    ["tail-drop", "head-drop", "red", "ared", "rio", "fred", "sred", "codel", "pie"].contains(&spec.kind)
}

/// Kinds in which the segments of a train wait as one packet.
fn keeps_trains(spec: &Spec) -> bool {
    ["tail-drop", "red", "ared", "sred"].contains(&spec.kind)
}

fn try_change(old: &Setting, new: &Setting, traffic: Traffic) {
    let name = format!("{} → {}, {traffic:?}", old.2, new.2);
    let mut bench = Bench::new(old, traffic);
    let at = bench.fill();
    let before = bench.stats(at);
    assert!(before.queued_packets > BURST as u64 * 4 / 5, "{name}: {before:?}");
    bench.change(at, new);
    let mut changed = bench.stats(at);
    if new.2.contains("queue dualpi2") {
        // Each of the three classes chooses its next packet at once, which is when DualPI2 marks packets that
        // have waited for its step.
        assert!(changed.marked_packets <= before.marked_packets + 3, "{name}: {changed:?}");
        changed.marked_packets = before.marked_packets;
    }
    assert_eq!(changed, before, "{name}: at the change");
    // Flow 4 has packets waiting in any class: each arrival drops one packet. Other flows may find room.
    for number in 1..=11 + u64::from(FLOWS) {
        bench.arrive(at, if number <= 11 { 4 } else { number as u16 - 12 }, 1);
        let stats = bench.stats(at);
        let lost = stats.dropped() - before.dropped();
        assert!(lost == number || lost < number && number > 11, "{name}: {lost} of {number}: {stats:?}");
        assert_eq!(stats.queued_packets + lost, before.queued_packets + number, "{name}");
    }
    let sent = bench.left.len() + 1;
    bench.advance(u64::MAX - 1);
    let whole = bench.left.iter().skip(sent).any(|(.., segments)| *segments > 1);
    assert_eq!(whole, traffic.each == 1_000 && keeps_trains(old.0) && keeps_trains(new.0), "{name}: trains");
    assert_eq!(bench.pool.live(), 0, "{name}: something stays");
    let stats = bench.stats(u64::MAX - 1);
    assert_eq!((stats.queued_packets, stats.travelling_packets), (0, 0), "{name}");
    assert_eq!(stats.in_packets, stats.out_packets + stats.dropped(), "{name}");
    for flow in 0..FLOWS {
        let of_flow = bench.left.iter().filter(|(_, of, _)| *of == flow).map(|(seq, ..)| seq);
        assert!(of_flow.is_sorted(), "{name}: flow {flow} out of order");
    }
    assert!(
        !is_fifo(old.0) || !is_fifo(new.0) || bench.left.is_sorted_by_key(|(seq, ..)| *seq),
        "{name}: out of order"
    );
}

/// Every kind with 631 packets waiting becomes every other with room for ten.
#[test]
fn another_kind_takes_over_what_waits() {
    for traffic in TRAFFIC {
        for old in kinds().map(roomy) {
            for new in limited("10 packets").iter().filter(|new| !new.0.is(old.0)) {
                try_change(&old, new, traffic);
            }
        }
    }
}

/// Changes of limits in bytes and in time, from the plainest kind.
#[test]
fn another_kind_keeps_what_its_limit_would_not_have_let_in() {
    for traffic in TRAFFIC {
        let old = setting("tail-drop", &[]);
        for limit in ["12500 B".to_owned(), format!("{} ns", 10 * traffic.each)] {
            for new in limited(&limit).iter().filter(|new| !new.0.is(old.0)) {
                try_change(&old, new, traffic);
            }
        }
    }
}

/// Every kind with each of its limits lowered.
#[test]
fn the_same_kind_keeps_what_waits() {
    for traffic in TRAFFIC {
        for spec in kinds() {
            for new in lowered(spec, traffic) {
                try_change(&roomy(spec), &new, traffic);
            }
        }
    }
}

/// Every kind, at twice the rate, with the settings that it has already.
#[test]
fn the_same_settings_change_nothing() {
    for spec in kinds() {
        let own = if has(spec, "limit") { setting(spec.kind, &[]) } else { roomy(spec) };
        let left = [false, true].map(|changes| {
            let mut bench = Bench::new(&own, TRAFFIC[0]);
            for number in 0..600 {
                let at = number * TRAFFIC[0].each / 2;
                bench.advance(at);
                if changes && number % 100 == 50 {
                    bench.change(at, &own);
                }
                bench.arrive(at, number as u16 % FLOWS, 1);
            }
            bench.advance(u64::MAX - 1);
            bench.left
        });
        assert!(left[0] == left[1], "{}: {} and {} left", own.2, left[0].len(), left[1].len());
    }
}

/// Afterwards a discipline follows its own law, started at the change. 720 packets came at 0; 631 of them
/// wait at 89.5 ms, and one goes each millisecond.
///
/// CoDel sees the first of them at 90 ms and drops an interval later, at 190; then after 100 ms/√n each, n =
/// 1, 2, …: at 290.0, 360.7, 418.4, 468.4, 513.1, 553.9, 591.7, 627.1, 660.4 and 692.0. PIE drops arrivals
/// only. DualPI2's p' rises every 16 ms by 0.16·(wait − 15 ms) + 3.2·16 ms, the wait being the time since 0:
/// .0657, .1339, .2047, .2781, .3541, .4325. The squares, for 16 packets each and for 4 of the last, make
/// 5.02 drops in 100 ms. If the wait at the change were treated as growth, 22.
#[test]
fn what_follows_is_the_new_law() {
    let table = [
        ("codel", 100, 0),
        ("codel", 101, 1),
        ("codel", 600, 10),
        ("fq-codel", 100, 0),
        ("fq-codel", 600, 10),
        ("pie", 600, 0),
        ("fq-pie", 600, 0),
        ("dualpi2", 100, 5),
    ];
    for (kind, after, wanted) in table {
        let mut bench = Bench::new(&setting("tail-drop", &[]), TRAFFIC[0]);
        (0..BURST).for_each(|_| bench.arrive(0, 0, 1));
        bench.advance(89_500_000);
        bench.change(89_500_000, &setting(kind, &[]));
        let at = 89_500_000 + after * 1_000_000;
        bench.advance(at);
        assert_eq!(bench.stats(at).dropped(), wanted, "{kind} after {after} ms");
    }
}

/// Flow 0 has 30 packets waiting when flow 1 begins. With separate flows, its packet is among the next; with
/// a single flow, all leave in order of arrival, those from before the change included.
#[test]
fn another_number_of_flows_holds_for_what_waits() {
    for kind in ["drr", "fq-codel", "fq-pie"] {
        for (flows, least, most) in [("1", 30, 30), ("4096", 1, 3)] {
            let mut bench = Bench::new(&setting(kind, &[]), TRAFFIC[0]);
            (0..30).for_each(|_| bench.arrive(0, 0, 1));
            bench.change(500_000, &setting(kind, &[("flows", flows)]));
            bench.arrive(500_000, 1, 1);
            bench.advance(u64::MAX - 1);
            let found = bench.left.iter().position(|(_, flow, _)| *flow == 1).unwrap();
            assert!((least..=most).contains(&found), "{kind}, {flows} flows: {found}");
        }
    }
}

/// Counters of a discipline are recomputed when a change makes other packets count: FRED lets a flow have
/// five, and of six that came, the one being sent no longer counts when there are more flows; ten packets
/// that are In now are more than 6, where RIO with a weight of 1 admits no other In packet.
#[test]
fn what_is_counted_is_counted_anew() {
    let rio = [("weight", "1"), ("in-min", "5"), ("in-max", "6"), ("out-min", "50"), ("out-max", "60")];
    let rio_of = |codes| setting("rio", &[&rio[..], &[("in", codes)]].concat());
    let table = [
        (setting("fred", &[("min", "6")]), setting("fred", &[("flows", "4096")]), 6),
        (rio_of("af11"), rio_of("cs0"), 10),
    ];
    for (old, new, packets) in table {
        let mut bench = Bench::new(&old, TRAFFIC[0]);
        (0..packets).for_each(|_| bench.arrive(0, 0, 1));
        assert_eq!(bench.stats(0).dropped(), 0, "{}", old.2);
        bench.change(500_000, &new);
        bench.arrive(500_000, 0, 1);
        assert_eq!(bench.stats(500_000).drops, [("aqm", 1)], "{}", new.2);
    }
}
