//! Delays before the queue: a packet reaches the queue after its delay, and leaves after transmission.

use longwire_block::{Dice, Spec, Values};
use longwire_link::{Fifo, LinkConfig, Links, MEDIA, registry};
use longwire_packet::Pool;
use longwire_units::Nanos;

const MS: u64 = 1_000_000;
const END: u64 = u64::MAX - 1;

fn block(key: &str, kind: &str, given: &[(&str, &str)]) -> (&'static Spec, Values) {
    let spec = registry().into_iter().find(|spec| (spec.key, spec.kind) == (key, kind)).unwrap();
    (spec, Values::read(spec, given).unwrap())
}

fn before(delay: &str) -> (&'static Spec, Values) {
    block("delay", "constant", &[("delay", delay), ("before", "queue")])
}

/// A link, and its departures: time and number.
struct Bench {
    pool: Pool,
    links: Links,
    left: Vec<(u64, u64)>,
}

impl Bench {
    fn new(blocks: &[(&'static Spec, Values)]) -> Self {
        let with =
            |config: LinkConfig, (spec, values): &(&'static Spec, Values)| config.with(spec, values.clone());
        let mut links = Links::with_capacity(1, 1, Nanos::ZERO);
        links.add(0, "test", &blocks.iter().fold(LinkConfig::default(), with));
        Self { pool: Pool::new(16 << 20).unwrap(), links, left: Vec::new() }
    }

    /// The packet `number` of `bytes` bytes without check sequence arrives.
    fn arrive(&mut self, at: u64, number: u64, bytes: usize) {
        self.advance(at);
        let handle = self.pool.alloc(bytes).unwrap();
        (self.pool.meta_mut(handle).arrival, self.pool.meta_mut(handle).seq) = (at, number);
        let mut out = Fifo::EMPTY;
        self.links.arrive_and_leave(&mut self.pool, 0, handle, &mut out);
        self.collect(out);
    }

    fn advance(&mut self, until: u64) {
        while self.links.deadline(0) <= Nanos(until) {
            let (at, mut out) = (self.links.deadline(0), Fifo::EMPTY);
            self.links.expire(&mut self.pool, 0, at, &mut out);
            self.collect(out);
        }
    }

    fn collect(&mut self, mut out: Fifo) {
        while let Some(handle) = out.pop(&self.pool) {
            self.left.push((self.pool.meta(handle).leave(), self.pool.meta(handle).seq));
            self.pool.free(handle);
        }
    }

    fn set(&mut self, at: u64, (spec, values): (&'static Spec, Values)) {
        self.advance(at);
        self.links.change(&mut self.pool, 0, Nanos(at), &[(spec, values)]).unwrap();
    }

    /// Departures in ms.
    fn end(mut self) -> Vec<u64> {
        self.advance(END);
        let stats = self.links.stats(&mut self.pool, 0, Nanos(END));
        assert!(stats.is_conserved() && self.pool.live() == 0, "{stats:?}");
        self.left.iter().map(|(leave, _)| leave / MS).collect()
    }
}

/// 1246-byte frames count 1250 bytes: 1 ms at 10 Mbit/s. Three reach the queue at 5 ms, where two have room.
#[test]
fn packets_come_to_the_queue_when_they_have_travelled() {
    let rate = |rate| block("rate", "constant", &[("rate", rate)]);
    let queue = block("queue", "tail-drop", &[("limit", "2 packets")]);
    let mut link = Bench::new(&[rate("10 Mbit/s"), queue.clone(), before("5 ms")]);
    (0..3).for_each(|number| link.arrive(0, number, 1246));
    let stats = link.links.stats(&mut link.pool, 0, Nanos(5 * MS - 1));
    assert_eq!((stats.queued_packets, stats.travelling_packets, stats.dropped()), (0, 3, 0));
    let stats = link.links.stats(&mut link.pool, 0, Nanos(5 * MS));
    assert_eq!((stats.queued_packets, stats.travelling_packets, stats.dropped()), (2, 0, 1));
    assert_eq!(link.end(), [6, 7]);

    // The rate at their arrival at the queue applies, while filters judge them at their arrival at the link.
    let mut link = Bench::new(&[rate("10 Mbit/s"), queue, before("5 ms")]);
    (0..2).for_each(|number| link.arrive(0, number, 1246));
    link.set(3 * MS, rate("1 Mbit/s"));
    link.set(3 * MS, block("state", "fixed", &[("state", "down")]));
    link.arrive(4 * MS, 2, 1246);
    assert_eq!(link.end(), [15, 25]);
}

#[test]
fn a_change_leaves_those_on_their_way_alone() {
    let mut link = Bench::new(&[before("5 ms")]);
    link.arrive(0, 0, 60);
    link.set(2 * MS, before("1 ms"));
    // Its place is behind the first.
    link.arrive(2 * MS, 1, 60);
    link.arrive(6 * MS, 2, 60);
    assert_eq!(link.end(), [5, 5, 7]);

    let behind = || block("delay", "constant", &[("delay", "3 ms")]);
    let mut link = Bench::new(&[before("5 ms")]);
    link.arrive(0, 0, 60);
    link.set(2 * MS, behind());
    link.arrive(2 * MS, 1, 60);
    link.arrive(10 * MS, 2, 60);
    assert_eq!(link.end(), [8, 8, 13], "sent at 5, 5 and 10 ms");

    let mut link = Bench::new(&[behind()]);
    link.arrive(0, 0, 60);
    link.set(MS, before("1 ms"));
    link.arrive(MS, 1, 60);
    link.arrive(5 * MS, 2, 60);
    assert_eq!(link.end(), [3, 3, 6]);
}

/// Such a link is equivalent to two in series: one with judges and delay, and one with queue and rate.
#[test]
fn it_is_a_link_with_the_delay_before_one_without() {
    let delays: [(&str, &[(&str, &str)]); 5] = [
        ("constant", &[("delay", "7 ms")]),
        ("jitter", &[("delay", "7 ms"), ("jitter", "6 ms")]),
        ("jitter", &[("delay", "7 ms"), ("jitter", "6 ms"), ("order", "reorder"), ("correlation", "30 %")]),
        ("distribution", &[("distribution", "1 ms; 9 ms; 10 ms")]),
        ("trace", &[("file", "0 s 20 ms; 0.1 s 1 ms; 0.2 s 20 ms; 0.3 s 20 ms")]),
    ];
    let queues = [("codel", &[][..]), ("tail-drop", &[("limit", "4 packets")][..]), ("fq-codel", &[])];
    for (kind, given) in delays {
        for (discipline, limits) in queues {
            let judges = [
                block("loss", "independent", &[("probability", "5 %")]),
                block("duplicate", "independent", &[("probability", "5 %"), ("where", "queue")]),
            ];
            let behind = [
                block("rate", "constant", &[("rate", "3 Mbit/s")]),
                block("queue", discipline, limits),
                block("background", "poisson", &[("rate", "1 Mbit/s"), ("size", "700 B")]),
            ];
            let moved = block("delay", kind, &[given, &[("before", "queue")]].concat());
            let mut one = Bench::new(&[&judges[..], &behind, &[moved]].concat());
            let mut first = Bench::new(&[&judges[..], &[block("delay", kind, given)]].concat());
            let mut second = Bench::new(&behind);
            let (mut dice, mut at) = (Dice::named(1, "arrivals"), 0);
            let bytes = |number: u64| 60 + (number * 977 % 1400) as usize;
            for number in 0..1000 {
                at += dice.below(4 * MS);
                one.arrive(at, number, bytes(number));
                first.arrive(at, number, bytes(number));
            }
            first.advance(END);
            for &(time, number) in &first.left {
                second.arrive(time, number, bytes(number));
            }
            let until = at + 10_000 * MS;
            one.advance(until);
            second.advance(until);
            assert!(one.left.len() > 500, "{kind} {discipline}: {}", one.left.len());
            assert_eq!(one.left, second.left, "{kind} {discipline}");
            let of = |bench: &mut Bench| bench.links.stats(&mut bench.pool, 0, Nanos(until));
            let (one, first, second) = (of(&mut one), of(&mut first), of(&mut second));
            assert!(one.is_conserved() && second.dropped() > 0, "{kind} {discipline}");
            assert_eq!(one.dropped(), first.dropped() + second.dropped(), "{kind} {discipline}");
        }
    }
}

#[test]
fn a_station_sends_what_has_travelled_to_its_queue() {
    let mut bench = Bench::new(&[before("5 ms")]);
    let medium = MEDIA.iter().find(|spec| spec.kind == "half-duplex").unwrap();
    let values = Values::read(medium, &[("rate", "10 Mbit/s")]).unwrap();
    bench.links.add_medium("m", (medium, &values), &[(0, "test")]);
    bench.arrive(0, 0, 1246);
    let mut looks = Vec::new();
    loop {
        let (of_link, of_medium) = (bench.links.deadline(0), bench.links.deadline(1));
        let at = of_link.min(of_medium);
        if at == Nanos::NEVER {
            break;
        }
        looks.push(at.0 / MS);
        let mut out = Fifo::EMPTY;
        bench.links.expire(&mut bench.pool, u32::from(of_medium < of_link), at, &mut out);
        bench.collect(out);
    }
    assert_eq!(bench.left, [(6 * MS, 0)], "{looks:?}");
}

/// netem's times (net/sched/sch_netem.c, `netem_enqueue`): transmission of a packet begins after the previous
/// one, or after its delay; every fifth is sent at once. 8 bytes take 6400 ns at 10 Mbit/s.
#[test]
fn what_passes_by_the_link_leaves_when_it_comes() {
    let rate = block("rate", "constant", &[("rate", "10 Mbit/s")]);
    let early = block("reorder", "independent", &[("probability", "100 %"), ("gap", "5"), ("past", "link")]);
    let (mut at, mut last, mut wanted) = (0, 0, Vec::new());
    let mut link = Bench::new(&[rate, early, before("3 ms")]);
    let mut dice = Dice::named(1, "arrivals");
    for number in 0..1000 {
        at += dice.below(2 * MS);
        let bytes = 60 + dice.below(1450);
        if number % 5 == 4 {
            wanted.push((at, number));
        } else {
            last = last.max(at + 3 * MS) + (bytes + 4) * 800;
            wanted.push((last, number));
        }
        link.arrive(at, number, bytes as usize);
    }
    wanted.sort_unstable();
    link.advance(END);
    assert_eq!(link.left, wanted);
    link.end();
}

/// A delay after the queue, and judges: a packet that bypasses them leaves at once, but is judged, and its
/// copy with it, or after a delay of the copy's own.
#[test]
fn what_passes_by_is_judged_all_the_same() {
    let past = || block("reorder", "independent", &[("probability", "100 %"), ("past", "link")]);
    let rate = || block("rate", "constant", &[("rate", "0")]);
    let delay = || block("delay", "constant", &[("delay", "5 ms")]);
    let copies = |place| block("duplicate", "independent", &[("probability", "100 %"), ("where", place)]);
    for (judge, wanted) in [
        (block("loss", "independent", &[("probability", "100 %"), ("where", "wire")]), &[][..]),
        (block("loss", "independent", &[("probability", "100 %")]), &[]),
        (copies("wire"), &[7, 7]),
        (block("duplicate", "independent", &[("probability", "100 %"), ("delay", "3 ms")]), &[7, 10]),
        (copies("queue"), &[7, 7]),
        (block("bit-error", "per-packet", &[("probability", "100 %")]), &[7]),
    ] {
        let mut link = Bench::new(&[rate(), past(), delay(), judge.clone()]);
        link.arrive(7 * MS, 0, 1246);
        let stats = link.links.stats(&mut link.pool, 0, Nanos(7 * MS));
        assert_eq!(
            (stats.queued_packets, stats.corrupted_packets),
            (0, u64::from(judge.0.key == "bit-error"))
        );
        assert_eq!(link.end(), wanted, "{}", judge.0.key);
    }
    // Removed while the link stalls, the block lets the next packet wait like others.
    let mut link = Bench::new(&[rate(), past(), delay()]);
    link.arrive(MS, 0, 1246);
    link.set(2 * MS, block("reorder", "independent", &[("probability", "0 %")]));
    link.arrive(3 * MS, 1, 1246);
    link.set(4 * MS, block("rate", "constant", &[("rate", "10 Mbit/s")]));
    assert_eq!(link.end(), [1, 10]);
}
