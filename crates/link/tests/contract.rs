//! The contract of every block, for every row of the registry and values of every parameter: departures do
//! not depend on how often or in which portions a link is served, no loss is uncounted, no packet leaves
//! early, and a change in between neither loses nor reorders packets.
//!
//! A new block is covered by its row; a new kind of parameter needs its values in [`values_of`], and a block
//! that lets packets overtake each other, its line in [`keeps_order`].

use longwire_block::{Dice, Param, ParamKind, Spec, Value, Values};
use longwire_link::{Fifo, LinkConfig, LinkStats, Links, registry};
use longwire_packet::{Gso, Handle, Pool, Train};
use longwire_units::Nanos;
use std::num::NonZero;
use std::sync::atomic::{AtomicUsize, Ordering};

const SPREAD: Nanos = Nanos::from_micros(10);
/// Bytes of Ethernet, IPv4 and TCP headers of the frames here.
const HEADERS: usize = 54;
const END: u64 = u64::MAX - 1;
/// Room for all waiting packets of this traffic.
const POOL: u64 = 32 << 20;

/// Values of a parameter, extremes included, in scenario syntax.
fn values_of(spec: &Spec, param: &Param) -> Vec<String> {
    let owned = |texts: &[&str]| texts.iter().map(|&text| text.to_owned()).collect();
    match param.kind {
        ParamKind::Rate if spec.key == "background" => owned(&["300 bit/s", "1 Mbit/s", "20 Mbit/s", "0"]),
        ParamKind::Rate => {
            owned(&["300 bit/s", "1 Mbit/s", "10 Mbit/s", "2999999999 bit/s", "400 Gbit/s", "unlimited", "0"])
        }
        ParamKind::Time { min, max } => {
            let mut times = [0, 1, 4_999, 20_000_000, u64::MAX];
            if spec.key == "background" {
                // With states of a nanosecond, a source draws thousands for each packet.
                times.swap(1, 3);
            }
            times.map(|time| format!("{} ns", time.clamp(min.0, max.0))).into()
        }
        ParamKind::Probability => owned(&["0 %", "0.5 %", "40 %", "100 %"]),
        ParamKind::Integer { min, max } => {
            [min, min + 1, min + (max - min) / 20, max].map(|n| n.min(max).to_string()).into_iter().collect()
        }
        ParamKind::Limit => {
            owned(&["0 packets", "1 packets", "7 packets", "100 B", "20 kB", "1 ns", "30 ms", "unlimited"])
        }
        ParamKind::Size { min, max } => [min.0, min.0 + 1, min.0 + (max.0 - min.0) / 20, max.0]
            .map(|n| format!("{} B", n.min(max.0)))
            .into(),
        ParamKind::Decimal { min, max } => [min, min + 1, min + (max - min) / 20, max]
            .map(|n| Value::Decimal(n.min(max)).print(param.kind))
            .into(),
        ParamKind::Choice(words) => owned(words),
        ParamKind::Parsed(grammar) => owned(grammar.examples),
    }
}

/// Whether packets leave in the order in which they came.
fn keeps_order(config: &LinkConfig) -> bool {
    let named = |key: &str, text: &str| {
        config.block(key).is_some_and(|(spec, values)| {
            let at = spec.params.iter().position(|param| param.name == text);
            at.is_some_and(|at| values.at(at) != Value::Choice(0))
        })
    };
    let fifo = ["tail-drop", "head-drop", "red", "ared", "rio", "fred", "sred", "codel", "pie"];
    let queue = config.block("queue").is_none_or(|(spec, _)| fifo.contains(&spec.kind));
    queue
        && !named("delay", "order")
        && config.block("reorder").is_none()
        && config.block("duplicate").is_none()
}

/// Every value of every parameter of `spec` at least once, some in combination.
fn settings(spec: &'static Spec) -> Vec<Values> {
    let lists: Vec<_> = spec.params.iter().map(|param| values_of(spec, param)).collect();
    let read = |pick: &dyn Fn(usize) -> usize| {
        let named = spec.params.iter().zip(&lists).enumerate();
        let given: Vec<_> = named
            .map(|(index, (param, list))| (param.name, list[pick(index) % list.len()].as_str()))
            .collect();
        Values::read(spec, &given).unwrap_or_else(|error| panic!("{} {}: {error}", spec.key, spec.kind))
    };
    let mut all = Vec::new();
    for (param, list) in lists.iter().enumerate() {
        // The others at their second value: the first is often the one without effect.
        all.extend((0..list.len()).map(|value| read(&|index| if index == param { value } else { 1 })));
    }
    let mut dice = Dice::named(1, spec.kind);
    all.extend((0..4).map(|_| {
        let picks: Vec<_> = lists.iter().map(|list| dice.below(list.len() as u64) as usize).collect();
        read(&|index| picks[index])
    }));
    all
}

/// The other blocks of a link around the tested one: none, and some of each stage.
fn surroundings() -> [LinkConfig; 3] {
    let busy =
        [("mtu", "1500"), ("loss", "10 %"), ("queue", "9 packets"), ("rate", "8 Mbit/s"), ("delay", "3 ms")];
    // Several segments of a train are sent within the spread, so that it is split while others ask for
    // admission.
    let fast = [("queue", "9 packets"), ("rate", "2 Gbit/s"), ("delay", "50 us")];
    let with = |config: LinkConfig, (key, text): &(&str, &str)| config.with_text(key, text).unwrap();
    let of = |words: &[(&str, &str)]| words.iter().fold(LinkConfig::default(), with);
    [LinkConfig::default(), of(&busy), of(&fast)]
}

/// Every row with every setting in every surrounding.
fn cases() -> Vec<(String, LinkConfig)> {
    let mut cases = Vec::new();
    for spec in registry() {
        for values in settings(spec) {
            for (index, around) in surroundings().into_iter().enumerate() {
                let name =
                    format!("{} ({}) {:?} in surrounding {index}", spec.key, spec.kind, values.as_slice());
                cases.push((name, around.with(spec, values.clone())));
            }
        }
    }
    cases
}

/// Runs a check on every case, on all processors, each with its own pool. The number of a case is its seed.
fn each_case(check: impl Fn(&mut Pool, u64, &str, &LinkConfig) + Sync) {
    let (cases, next) = (cases(), AtomicUsize::new(0));
    let work = || {
        let mut pool = Pool::new(POOL).unwrap();
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let Some((name, config)) = cases.get(number) else { return };
            check(&mut pool, number as u64, name, config);
        }
    };
    let threads = std::thread::available_parallelism().map_or(1, NonZero::get);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(work);
        }
    });
}

/// An arrival: time, payload bytes, and segment size if it is a train.
#[derive(Debug, Clone, Copy)]
struct Arrival {
    at: u64,
    payload: usize,
    mss: Option<usize>,
}

/// Packets in bursts and with pauses from nanoseconds to tens of milliseconds; `trains` makes some of them
/// trains.
fn traffic(seed: u64, count: usize, trains: bool) -> Vec<Arrival> {
    let mut dice = Dice::named(seed, "traffic");
    let mut at = 1_000_000;
    let arrival = |_| {
        at += match dice.below(10) {
            0..4 => 0,
            4 => dice.below(10),
            5..7 => dice.below(100_000),
            7 => dice.below(8_000),
            8 => dice.below(2_000_000),
            _ => dice.below(40_000_000),
        };
        // Shorter segments at 400 Gbit/s take less than a nanosecond: individually, each would find the link
        // idle.
        let mss = 64 + dice.below(1383) as usize;
        match trains && dice.below(4) == 0 {
            true => Arrival { at, payload: mss + 1 + dice.below(12 * mss as u64) as usize, mss: Some(mss) },
            false => Arrival { at, payload: dice.below(1500) as usize, mss: None },
        }
    };
    (0..count).map(arrival).collect()
}

/// How often a link is served between arrivals, which must not affect departures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Looks {
    /// At every deadline, and before every arrival.
    Exact,
    /// After this many arrivals, up to the last of them, like a worker with a clock.
    Every(usize),
    /// At every deadline, and at other times.
    Often,
    /// After seven arrivals, with its statistics read at random times.
    Asked,
}

/// A link under test, with its departures.
struct Bench<'a> {
    pool: &'a mut Pool,
    links: Links,
    /// Each departure: time, number, segments and length.
    left: Vec<(u64, u64, u16, u32)>,
    /// Arrival of each packet.
    came: Vec<u64>,
    least_delay: u64,
    in_order: bool,
}

impl<'a> Bench<'a> {
    fn new(config: &LinkConfig, seed: u64, pool: &'a mut Pool) -> Self {
        let mut links = Links::with_capacity(1, seed, SPREAD);
        links.add(0, "test", config);
        let least_delay = match config.block("delay") {
            Some((spec, values)) if spec.kind == "constant" && config.block("reorder").is_none() => {
                match values.at(0) {
                    Value::Time(delay) => delay.0,
                    other => panic!("a constant delay of {other:?}"),
                }
            }
            _ => 0,
        };
        Self { pool, links, left: Vec::new(), came: Vec::new(), least_delay, in_order: keeps_order(config) }
    }

    fn packet(&mut self, seq: u64, arrival: Arrival) -> Handle {
        let mut frame = vec![0u8; HEADERS + arrival.payload];
        frame[12] = 8;
        frame[14] = 0x45;
        frame[16..18].copy_from_slice(&((40 + arrival.payload) as u16).to_be_bytes());
        frame[23] = 6;
        frame[46] = 0x50;
        let handle = self.pool.insert(&frame).unwrap();
        let meta = self.pool.meta_mut(handle);
        // As for ports: the numbers between are for the pieces of a train.
        (meta.arrival, meta.seq) = (arrival.at, seq << 16);
        if let Some(mss) = arrival.mss {
            let (segments, gso_size) = (arrival.payload.div_ceil(mss) as u16, mss as u16);
            let header_len = HEADERS as u16;
            meta.set_train(Train { gso: Gso::TcpV4 as u8, segments, gso_size, header_len });
        }
        handle
    }

    fn arrive(&mut self, seq: u64, arrival: Arrival) {
        let handle = self.packet(seq, arrival);
        self.came.push(arrival.at);
        let mut out = Fifo::EMPTY;
        self.links.arrive_and_leave(self.pool, 0, handle, &mut out);
        self.collect(out, arrival.at);
    }

    fn expire(&mut self, until: u64) {
        let mut out = Fifo::EMPTY;
        self.links.expire(self.pool, 0, Nanos(until), &mut out);
        self.collect(out, until);
    }

    /// Serves every deadline up to `until` at its own time.
    fn advance(&mut self, until: u64) {
        while self.links.deadline(0) <= Nanos(until) {
            let deadline = self.links.deadline(0).0;
            self.expire(deadline);
        }
    }

    fn collect(&mut self, mut out: Fifo, now: u64) {
        while let Some(handle) = out.pop(self.pool) {
            let meta = *self.pool.meta(handle);
            let came = self.came[(meta.seq >> 16) as usize];
            assert!(meta.leave() >= came + self.least_delay, "left before its time: {meta:?}");
            assert!(meta.leave() <= now, "let go at {now}, before it leaves: {meta:?}");
            self.left.push((meta.leave(), meta.seq >> 16, meta.segments, meta.len));
            self.pool.free(handle);
        }
    }

    /// The statistics, in which every packet must be accounted for.
    fn stats(&mut self, now: u64) -> LinkStats {
        let stats = self.links.stats(self.pool, 0, Nanos(now));
        assert!(stats.is_conserved(), "{stats:?}");
        let held = stats.queued_packets + stats.travelling_packets;
        assert!(self.pool.live() <= held && (held == 0 || self.pool.live() > 0), "{stats:?}");
        stats
    }

    /// Ends the run after `until`: held packets are dropped, and then there must be none.
    fn finish(mut self, until: u64) -> Trace {
        self.links.flush(self.pool, Nanos(until));
        let stats = self.stats(until);
        assert_eq!((self.pool.live(), stats.queued_packets, stats.travelling_packets), (0, 0, 0));
        assert!(self.left.is_sorted_by_key(|(leave, ..)| *leave), "went back in time");
        assert!(
            !self.in_order || self.left.is_sorted_by_key(|(leave, seq, ..)| (*leave, *seq)),
            "left in another order"
        );
        Trace { left: self.left, stats }
    }
}

#[derive(Debug, PartialEq, Eq)]
struct Trace {
    left: Vec<(u64, u64, u16, u32)>,
    stats: LinkStats,
}

/// Sends `arrivals` through a link; with `until` the run is stopped there, otherwise all possible departures
/// happen.
fn run(
    (config, seed): (&LinkConfig, u64),
    arrivals: &[Arrival],
    looks: Looks,
    until: u64,
    pool: &mut Pool,
) -> Trace {
    let mut bench = Bench::new(config, seed, pool);
    let mut dice = Dice::named(seed, "looks");
    let mut before = 0;
    for (index, &arrival) in arrivals.iter().enumerate() {
        match looks {
            Looks::Exact => bench.advance(arrival.at),
            Looks::Every(_) => {}
            Looks::Often => {
                for _ in 0..dice.below(3) {
                    before += dice.below(arrival.at - before + 1);
                    bench.expire(before);
                }
                bench.advance(arrival.at);
            }
            Looks::Asked => {
                before += dice.below(arrival.at - before + 1);
                bench.stats(before);
            }
        }
        bench.arrive(index as u64, arrival);
        before = arrival.at;
        let portion = match looks {
            Looks::Every(portion) => portion,
            Looks::Asked => 7,
            Looks::Exact | Looks::Often => continue,
        };
        if (index + 1) % portion == 0 && bench.links.deadline(0) <= Nanos(arrival.at) {
            bench.expire(arrival.at);
        }
    }
    bench.advance(until);
    bench.finish(until)
}

#[test]
fn looks_and_portions_change_nothing() {
    each_case(|pool, seed, name, config| {
        for trains in [false, true] {
            let arrivals = traffic(seed, count(config), trains);
            let last = arrivals.last().unwrap().at;
            for until in [last, END] {
                let wanted = run((config, seed), &arrivals, Looks::Exact, until, pool);
                let again = [
                    Looks::Exact,
                    Looks::Every(1),
                    Looks::Every(7),
                    Looks::Every(64),
                    Looks::Often,
                    Looks::Asked,
                ];
                for looks in again {
                    let got = run((config, seed), &arrivals, looks, until, pool);
                    let differs = got.left.iter().zip(&wanted.left).position(|(a, b)| a != b);
                    assert!(
                        got == wanted,
                        "{name}, trains {trains}, {looks:?}: first difference {differs:?}\n{:?}\n{:?}",
                        got.stats,
                        wanted.stats
                    );
                }
            }
        }
    });
}

/// Number of packets for a link: background packets come by the million over longer times, at the rates
/// tested here.
fn count(config: &LinkConfig) -> usize {
    if config.block("background").is_some() { 12 } else { 80 }
}

/// Blocks only know the time since the run began: a recorded run can be replayed.
#[test]
fn when_a_run_begins_changes_nothing() {
    each_case(|pool, seed, name, config| {
        let arrivals = traffic(seed, count(config), true);
        let last = arrivals.last().unwrap().at;
        let [wanted, got] = [0, 1_234_567_890_123_457].map(|begin| {
            let mut bench = Bench::new(config, seed, pool);
            bench.links.start(Nanos(begin));
            for (index, &arrival) in arrivals.iter().enumerate() {
                let at = begin + arrival.at;
                bench.advance(at);
                bench.arrive(index as u64, Arrival { at, ..arrival });
            }
            bench.advance(begin + last);
            let mut trace = bench.finish(begin + last);
            trace.left.iter_mut().for_each(|(leave, ..)| *leave -= begin);
            trace
        });
        let differs = got.left.iter().zip(&wanted.left).position(|(a, b)| a != b);
        assert!(got == wanted, "{name}: first difference {differs:?}\n{:?}\n{:?}", got.stats, wanted.stats);
    });
}

/// A train is equivalent to its segments arriving together.
#[test]
fn a_train_meets_the_fate_of_its_segments() {
    each_case(|pool, seed, name, config| {
        let trains = traffic(seed, count(config), true);
        let mut singles = Vec::new();
        for arrival in &trains {
            let mss = arrival.mss.unwrap_or(arrival.payload.max(1));
            let whole = (1..arrival.payload.div_ceil(mss)).map(|_| mss);
            let payloads = whole.chain([arrival.payload - (arrival.payload.div_ceil(mss).max(1) - 1) * mss]);
            singles.extend(payloads.map(|payload| Arrival { at: arrival.at, payload, mss: None }));
        }
        let one = run((config, seed), &trains, Looks::Exact, END, pool).stats;
        let other = run((config, seed), &singles, Looks::Exact, END, pool).stats;
        assert_eq!(one, other, "{name}");
    });
}

/// Every setting of every row, at random times while packets wait and travel.
#[test]
fn changes_lose_nothing_and_reorder_nothing() {
    let mut pool = Pool::new(POOL).unwrap();
    let rows = registry().into_iter().filter(|spec| spec.key != "background");
    let rows: Vec<_> = rows.map(|spec| (spec, settings(spec))).collect();
    let mut busy = 0;
    for seed in 0..60u64 {
        let trains = seed % 2 == 0;
        let arrivals = traffic(seed, 400, trains);
        let runs = [Looks::Exact, Looks::Often, Looks::Asked].map(|looks| {
            let [_, around, _] = surroundings();
            let mut bench = Bench::new(&around, seed, &mut pool);
            bench.least_delay = 0;
            let (mut which, mut dice) = (Dice::named(seed, "changes"), Dice::named(seed, "looks"));
            for (index, &arrival) in arrivals.iter().enumerate() {
                bench.advance(arrival.at);
                if looks == Looks::Often {
                    bench.expire(arrival.at);
                } else if looks == Looks::Asked && dice.below(2) == 0 {
                    bench.stats(arrival.at);
                }
                if which.below(6) == 0 {
                    let some = 1 + which.below(3);
                    let changes: Vec<_> = (0..some)
                        .map(|_| {
                            let (spec, settings) = &rows[which.below(rows.len() as u64) as usize];
                            (*spec, settings[which.below(settings.len() as u64) as usize].clone())
                        })
                        .collect();
                    let ordered = |(spec, values): &(&'static Spec, Values)| {
                        keeps_order(&LinkConfig::default().with(spec, values.clone()))
                    };
                    bench.in_order &= changes.iter().all(ordered);
                    bench.links.change(bench.pool, 0, Nanos(arrival.at), &changes).unwrap();
                    bench.stats(arrival.at);
                }
                bench.arrive(index as u64, arrival);
            }
            let last = arrivals.last().unwrap().at;
            let end: Vec<_> = [("rate", "unlimited"), ("delay", "0 ms")]
                .map(|(key, text)| LinkConfig::default().with_text(key, text).unwrap().blocks()[0].clone())
                .into();
            bench.links.change(bench.pool, 0, Nanos(last), &end).unwrap();
            bench.advance(END);
            assert_eq!(bench.pool.live(), 0, "seed {seed}: something never leaves");
            bench.finish(END)
        });
        assert!(runs[0] == runs[1] && runs[0] == runs[2], "seed {seed}: {:#?}", runs.map(|run| run.stats));
        busy += u32::from(runs_were_busy(&runs[0]));
    }
    // Some changes shut the link, and a seed may draw one early.
    assert!(busy >= 55, "only {busy} of 60 runs were busy");
}

fn runs_were_busy(trace: &Trace) -> bool {
    trace.stats.in_packets >= 400 && trace.stats.out_packets > 0 && trace.stats.dropped() > 0
}
