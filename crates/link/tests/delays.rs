//! Effects of delays with a distribution on packets of a link: the stated distribution, the stated mean, and
//! order if requested.

use longwire_block::{Dice, Spec, Values};
use longwire_link::{Fifo, LinkConfig, LinkStats, Links, registry};
use longwire_packet::{Gso, Pool, Train};
use longwire_units::Nanos;

const MS: f64 = 1e6;

/// A link with `keys` and a delay of this kind.
fn link(keys: &[(&str, &str)], kind: &str, given: &[(&str, &str)], seed: u64) -> Links {
    let spec = registry().into_iter().find(|spec| spec.key == "delay" && spec.kind == kind).unwrap();
    let config = keys.iter().fold(LinkConfig::default(), |c, (key, text)| c.with_text(key, text).unwrap());
    let mut links = Links::with_capacity(1, seed, Nanos::from_micros(10));
    links.add(0, "test", &config.with(spec, Values::read(spec, given).unwrap()));
    links
}

/// Output: transmission and departure time by number, in order of departure.
struct Outcome {
    left: Vec<(u64, u64, u64)>,
    stats: LinkStats,
}

impl Outcome {
    /// The delays, in ms.
    fn delays(&self) -> Vec<f64> {
        self.left.iter().map(|(_, sent, leave)| leave.checked_sub(*sent).unwrap() as f64 / MS).collect()
    }

    fn mean(&self) -> f64 {
        self.delays().iter().sum::<f64>() / self.left.len() as f64
    }

    fn in_order(&self) -> bool {
        self.left.is_sorted_by_key(|(number, ..)| *number)
    }
}

/// `count` packets, one every `gap` ns.
fn run(mut links: Links, count: u64, gap: u64) -> Outcome {
    let mut pool = Pool::new(64 << 20).unwrap();
    let mut left = Vec::new();
    let mut collect = |pool: &mut Pool, mut out: Fifo| {
        while let Some(handle) = out.pop(pool) {
            let meta = pool.meta(handle);
            left.push((meta.seq, meta.arrival, meta.leave()));
            pool.free(handle);
        }
    };
    for number in 0..count {
        let at = number * gap;
        let mut out = Fifo::EMPTY;
        links.expire(&mut pool, 0, Nanos(at), &mut out);
        let handle = pool.alloc(60).unwrap();
        (pool.meta_mut(handle).arrival, pool.meta_mut(handle).seq) = (at, number);
        links.arrive_and_leave(&mut pool, 0, handle, &mut out);
        collect(&mut pool, out);
    }
    let mut out = Fifo::EMPTY;
    links.expire(&mut pool, 0, Nanos(u64::MAX - 1), &mut out);
    collect(&mut pool, out);
    let stats = links.stats(&mut pool, 0, Nanos(u64::MAX - 1));
    assert!(stats.is_conserved() && pool.live() == 0);
    Outcome { left, stats }
}

const N: u64 = 100_000;

/// Kolmogorov–Smirnov, at 1 %: the samples come from the distribution C.
fn assert_follows(mut samples: Vec<f64>, c: impl Fn(f64) -> f64, what: &str) {
    samples.sort_by(f64::total_cmp);
    let n = samples.len() as f64;
    let gap = |(i, x): (usize, &f64)| (c(*x) - i as f64 / n).abs().max((c(*x) - (i + 1) as f64 / n).abs());
    let worst = samples.iter().enumerate().map(gap).fold(0.0, f64::max);
    let bound = 1.628 / n.sqrt();
    assert!(worst < bound, "{what}: {worst}, at most {bound}");
}

/// C(x).
type Closed = fn(f64) -> f64;

/// The shapes with closed forms: name and C(x), scaled to a deviation of 20 ms around a mean of 100 ms.
fn closed_forms() -> [(&'static str, Closed); 4] {
    [
        ("uniform", |x| ((x - 80.0) / 40.0).clamp(0.0, 1.0)),
        ("exponential", |x| 1.0 - (-(x - 80.0) / 20.0).exp().min(1.0)),
        ("gamma", |x| {
            let t = ((x - 100.0) / 20.0 * 2f64.sqrt() + 2.0).max(0.0);
            1.0 - (1.0 + t) * (-t).exp()
        }),
        // Four samples are five points: 70, 80, 100, 120, 130, whose deviation is scaled to 20.
        ("70; 90; 110; 130", |x| {
            let deviation = (2.0 * (1900.0 + 400.0) / 3.0 / 4.0f64).sqrt();
            let x = (x - 100.0) / 20.0 * deviation + 100.0;
            let at = |from: f64, to: f64| ((x - from) / (to - from)).clamp(0.0, 1.0) / 4.0;
            at(70.0, 80.0) + at(80.0, 100.0) + at(100.0, 120.0) + at(120.0, 130.0)
        }),
    ]
}

fn jitter(shape: &'static str, order: &'static str) -> Vec<(&'static str, &'static str)> {
    vec![("delay", "100 ms"), ("jitter", "20 ms"), ("distribution", shape), ("order", order)]
}

#[test]
fn delays_follow_the_stated_distribution() {
    for (shape, c) in closed_forms() {
        // A packet every 10 us: thousands overtake each other.
        let outcome = run(link(&[], "jitter", &jitter(shape, "reorder"), 1), N, 10_000);
        assert!(!outcome.in_order());
        assert_follows(outcome.delays(), c, &format!("{shape}, reordered"));
        // So sparse that none could overtake: then keeping the order changes nothing.
        let outcome = run(link(&[], "jitter", &jitter(shape, "keep"), 1), N, 1_000_000_000);
        assert!(outcome.in_order());
        assert_follows(outcome.delays(), c, &format!("{shape}, sparse"));
    }
}

#[test]
fn keeping_the_order_keeps_the_mean_and_the_least_delay() {
    for (shape, _) in closed_forms() {
        let kept = run(link(&[], "jitter", &jitter(shape, "keep"), 2), N, 10_000);
        let free = run(link(&[], "jitter", &jitter(shape, "reorder"), 2), N, 10_000);
        assert!(kept.in_order() && !free.in_order());
        // The same draws, so the same set of departures: exactly the same mean.
        let times = |outcome: &Outcome| outcome.left.iter().map(|(.., leave)| *leave).collect::<Vec<_>>();
        assert_eq!(times(&kept), times(&free), "{shape}");
        assert!((kept.mean() - free.mean()).abs() < 1e-6, "{shape}: {} {}", kept.mean(), free.mean());
        // Four standard errors of the mean: each delay has a deviation of at most 20 ms.
        let bound = 4.0 * 20.0 / (N as f64).sqrt();
        assert!((kept.mean() - 100.0).abs() < bound, "{shape}: {}", kept.mean());
        let least = |outcome: &Outcome| outcome.delays().into_iter().fold(f64::MAX, f64::min);
        assert!(least(&kept) >= least(&free), "{shape}");
    }
}

#[test]
fn a_negative_delay_is_none() {
    let given = [("delay", "10 ms"), ("jitter", "40 ms"), ("order", "reorder")];
    let outcome = run(link(&[], "jitter", &given, 3), N, 1_000_000);
    let delays = outcome.delays();
    // From −30 to 50 ms: three in eight are cut off, and the mean is ∫ over the rest, 50²/(2·80).
    let none = delays.iter().filter(|delay| **delay == 0.0).count() as f64 / N as f64;
    assert!((none - 0.375).abs() < 4.0 * (0.375f64 * 0.625 / N as f64).sqrt(), "{none}");
    assert!((outcome.mean() - 15.625).abs() < 4.0 * 16.0 / (N as f64).sqrt(), "{}", outcome.mean());
}

#[test]
fn correlated_delays_keep_their_distribution() {
    let mut given = jitter("exponential", "reorder");
    given.push(("correlation", "75 %"));
    let outcome = run(link(&[], "jitter", &given, 4), N, 1_000_000_000);
    let delays = outcome.delays();
    let mean = outcome.mean();
    let product = |lag: usize| delays.windows(lag + 1).map(|w| (w[0] - mean) * (w[lag] - mean)).sum::<f64>();
    // The number of independent draws is that of draws that were not repeated: a quarter.
    let (rho, bound) = (product(1) / product(0), 4.0 * (7.0 / N as f64).sqrt());
    assert!((rho - 0.75).abs() < bound, "{rho}");
    assert!((mean - 100.0).abs() < 4.0 * 20.0 * (7.0 / N as f64).sqrt(), "{mean}");
    let (_, c) = closed_forms()[1];
    let fresh: Vec<f64> = delays.windows(2).filter(|w| w[0] != w[1]).map(|w| w[1]).collect();
    assert!((fresh.len() as f64 / N as f64 - 0.25).abs() < 4.0 * (0.25f64 * 0.75 / N as f64).sqrt());
    assert_follows(fresh, c, "those that are not the same as the one before");
}

#[test]
fn measured_times_come_back() {
    let table = [("distribution", "(10, 0)\n(20, 0.5)\n(100, 1)"), ("order", "reorder")];
    let outcome = run(link(&[], "distribution", &table, 5), N, 10_000);
    let c = |x: f64| if x < 20.0 { (x - 10.0) / 20.0 } else { 0.5 + (x - 20.0) / 160.0 };
    assert_follows(outcome.delays(), c, "the paper's table");
    let sparse = run(link(&[], "distribution", &table[..1], 5), N, 1_000_000_000);
    assert_follows(sparse.delays(), c, "in order, sparse");
    assert!(sparse.in_order());
}

#[test]
fn a_dummynet_profile_loses_its_share() {
    let profile = [("distribution", "loss-level 0.8; prob delay; 0 10; 1 60"), ("order", "reorder")];
    let outcome = run(link(&[], "distribution", &profile, 6), N, 10_000);
    let lost = outcome.stats.drops.iter().find(|(reason, _)| *reason == "loss").unwrap().1 as f64 / N as f64;
    assert!((lost - 0.2).abs() < 4.0 * (0.16 / N as f64).sqrt(), "{lost}");
    // Packets that are not lost have delays below the loss level: 10 to 50 ms.
    assert_follows(outcome.delays(), |x| (x - 10.0) / 40.0, "the rest");
}

#[test]
fn each_segment_of_a_train_has_a_delay_of_its_own() {
    let mut links = link(&[], "jitter", &jitter("uniform", "reorder"), 7);
    let mut pool = Pool::new(16 << 20).unwrap();
    let mut frame = vec![0u8; 54 + 10 * 1000];
    (frame[12], frame[14], frame[23], frame[46]) = (8, 0x45, 6, 0x50);
    frame[16..18].copy_from_slice(&(40u16 + 10_000).to_be_bytes());
    let train = pool.insert(&frame).unwrap();
    let meta = pool.meta_mut(train);
    meta.set_train(Train { gso: Gso::TcpV4 as u8, segments: 10, gso_size: 1000, header_len: 54 });
    let mut out = Fifo::EMPTY;
    links.arrive_and_leave(&mut pool, 0, train, &mut out);
    links.expire(&mut pool, 0, Nanos(u64::MAX - 1), &mut out);
    let mut times = Vec::new();
    while let Some(handle) = out.pop(&pool) {
        assert_eq!(pool.meta(handle).segments, 1);
        times.push(pool.meta(handle).leave());
    }
    assert_eq!(times.len(), 10);
    assert!(times.is_sorted() && times[9] - times[0] > 10_000_000, "{times:?}");
}

#[test]
fn a_trace_is_followed_and_keeps_the_order() {
    let given = [("file", "0 s 30 ms; 0.1 s 5 ms; 0.2 s 20 ms; 0.3 s 20 ms"), ("end", "hold")];
    let mut links = link(&[], "trace", &given, 8);
    links.start(Nanos::ZERO);
    // Every 10 ms, from 0 to 0.39 s.
    let outcome = run(links, 40, 10_000_000);
    let wanted: Vec<f64> = (0..40u32)
        .map(|n| match n {
            0..10 => 30.0,
            // Sent at 100 ms, 5 ms would be before the packet that was sent at 90 ms.
            10 => 20.0,
            11 => 10.0,
            12..20 => 5.0,
            _ => 20.0,
        })
        .collect();
    assert_eq!(outcome.delays(), wanted);
    assert!(outcome.in_order());
}

/// A kind of delay and its parameters.
type Model<'a> = (&'a str, &'a [(&'a str, &'a str)]);

fn model((kind, given): Model<'_>) -> (&'static Spec, Values) {
    let spec = registry().into_iter().find(|spec| spec.key == "delay" && spec.kind == kind).unwrap();
    (spec, Values::read(spec, given).unwrap())
}

/// Departure of each packet, by number: they arrive at these times, in ns, and the delays change at others.
fn departures(
    keys: &[(&str, &str)],
    first: Model<'_>,
    changes: &[(u64, Model<'_>)],
    arrivals: &[u64],
) -> Vec<u64> {
    let mut links = link(keys, first.0, first.1, 9);
    let mut pool = Pool::new(16 << 20).unwrap();
    let mut left = vec![None; arrivals.len()];
    let mut out = Fifo::EMPTY;
    let mut changes = changes.iter().peekable();
    for number in 0..=arrivals.len() {
        let at = arrivals.get(number).copied().unwrap_or(u64::MAX - 1);
        while let Some((when, to)) = changes.next_if(|change| change.0 <= at) {
            links.expire(&mut pool, 0, Nanos(*when), &mut out);
            links.change(&mut pool, 0, Nanos(*when), &[model(*to)]).unwrap();
        }
        links.expire(&mut pool, 0, Nanos(at), &mut out);
        if number < arrivals.len() {
            let handle = pool.alloc(996).unwrap();
            (pool.meta_mut(handle).arrival, pool.meta_mut(handle).seq) = (at, number as u64);
            links.arrive_and_leave(&mut pool, 0, handle, &mut out);
        }
    }
    let mut latest = 0;
    while let Some(handle) = out.pop(&pool) {
        let meta = pool.meta(handle);
        assert!(meta.leave() >= latest, "packets come out in the order of their times");
        latest = meta.leave();
        assert!(left[meta.seq as usize].replace(meta.leave()).is_none());
        pool.free(handle);
    }
    left.into_iter().map(Option::unwrap).collect()
}

/// Six packets come at 0 and are sent at 1, 2, … 6 ms (1000 counted bytes at 8 Mbit/s); after 3.5 ms another
/// delay applies.
#[test]
fn packets_on_their_way_keep_their_times_when_the_delay_changes() {
    const KEEP: (&str, &str) = ("jitter", "0 ms");
    const REORDER: [(&str, &str); 2] = [("jitter", "0 ms"), ("order", "reorder")];
    let constant = |delay| vec![("delay", delay)];
    let keep = |delay| vec![("delay", delay), KEEP];
    let reorder = |delay| [&[("delay", delay)], &REORDER[..]].concat();
    let all = |(delay, samples, trace)| {
        [
            ("constant", constant(delay), true),
            ("jitter", keep(delay), true),
            ("jitter", reorder(delay), false),
            ("distribution", vec![("distribution", samples)], true),
            ("distribution", vec![("distribution", samples), REORDER[1]], false),
            ("trace", vec![("file", trace)], true),
        ]
    };
    for (kind, before, _) in all(("20 ms", "20 ms; 20 ms", "0 s 20 ms")) {
        for (other, after, keeps) in all(("5 ms", "5 ms; 5 ms", "0 s 5 ms")) {
            let left = departures(
                &[("rate", "8 Mbit/s")],
                (kind, &before),
                &[(3_500_000, (other, &after))],
                &[0; 6],
            );
            // The later ones would leave at 9, 10 and 11 ms.
            let later = if keeps { [23, 23, 23] } else { [9, 10, 11] };
            let wanted = [&[21, 22, 23][..], &later].concat();
            let left: Vec<_> = left.into_iter().map(|leave| leave / 1_000_000).collect();
            assert_eq!(left, wanted, "{kind} {before:?}, then {other} {after:?}");
        }
    }
    // A longer delay does not hold back others: 4 + 20, 5 + 20, 6 + 20.
    for (kind, before, _) in all(("5 ms", "5 ms; 5 ms", "0 s 5 ms")) {
        for (other, after, _) in all(("20 ms", "20 ms; 20 ms", "0 s 20 ms")) {
            let change = [(3_500_000, (other, &after[..]))];
            let left = departures(&[("rate", "8 Mbit/s")], (kind, &before), &change, &[0; 6]);
            let left: Vec<_> = left.into_iter().map(|leave| leave / 1_000_000).collect();
            assert_eq!(left, [6, 7, 8, 24, 25, 26], "{kind} {before:?}, then {other} {after:?}");
        }
    }
    // 20 ms in order until 2.5 ms, 5 ms in any until 4.5, then 2 ms in order, behind all.
    let (first, second, third) = (keep("20 ms"), reorder("5 ms"), keep("2 ms"));
    let changes = [(2_500_000, ("jitter", &second[..])), (4_500_000, ("jitter", &third[..]))];
    let left = departures(&[("rate", "8 Mbit/s")], ("jitter", &first), &changes, &[0; 6]);
    let left: Vec<_> = left.into_iter().map(|leave| leave / 1_000_000).collect();
    assert_eq!(left, [21, 22, 8, 9, 22, 22]);
}

/// At 5 ms the first four packets are sent, and leave 20 ms later; packets sent then take 1 to 3 ms, and
/// leave behind them.
#[test]
fn jitter_that_comes_later_does_not_hasten_what_is_on_its_way() {
    let jitter = [("delay", "2 ms"), ("jitter", "1 ms")];
    let change = [(5_000_000, ("jitter", &jitter[..]))];
    let left = departures(&[("rate", "8 Mbit/s")], ("constant", &[("delay", "20 ms")]), &change, &[0; 8]);
    assert_eq!(left[..5], [21_000_000, 22_000_000, 23_000_000, 24_000_000, 25_000_000]);
    assert_eq!(left[5..], [25_000_000; 3]);
}

/// The first packet leaves after about 1 s. Meanwhile the delay falls, moves before the queue with what it
/// knows of the first packet, and falls again there: the second packet leaves with the first.
#[test]
fn jitter_that_has_moved_before_the_queue_still_changes() {
    let behind = |delay| [("delay", delay), ("jitter", "1 ms")];
    let before = |delay| [("delay", delay), ("jitter", "1 ms"), ("before", "queue")];
    let (first, second) = (behind("1 s"), behind("500 ms"));
    let (moved, last) = (before("500 ms"), before("5 ms"));
    let changes = [
        (100_000_000, ("jitter", &second[..])),
        (200_000_000, ("jitter", &moved[..])),
        (300_000_000, ("jitter", &last[..])),
    ];
    let left = departures(&[], ("jitter", &first), &changes, &[0, 900_000_000]);
    assert!((999_000_000..=1_001_000_000).contains(&left[0]), "{left:?}");
    assert_eq!(left[1], left[0]);
}

/// For all delays before and after a change: packets sent before it leave as if nothing came after them.
/// Packets sent afterwards, if they keep their order, leave at the sorted times at which they would have left
/// with overtaking, and none before a packet sent before it. Only jitter that stays jitter lends its shorter
/// times as before: packets sent before then leave no earlier than without the change, and no later than if
/// nothing came after them.
#[test]
fn a_change_of_delay_parts_what_was_sent_from_what_comes() {
    let mut dice = Dice::named(1, "changes of delay");
    let text = |dice: &mut Dice, most: u64| format!("{} us", dice.below(most));
    for round in 0..400 {
        let kinds: Vec<_> = (0..2)
            .map(|_| {
                let (delay, jitter) = (text(&mut dice, 30_000), text(&mut dice, 20_000));
                let order = ["keep", "reorder"][dice.below(2) as usize];
                (dice.below(3), delay, jitter, order)
            })
            .collect();
        let traces: Vec<_> =
            kinds.iter().map(|(_, delay, jitter, _)| format!("0 s {delay}; 0.01 s {jitter}")).collect();
        let models: Vec<_> = std::iter::zip(&kinds, &traces)
            .map(|((kind, delay, jitter, order), trace)| match kind {
                0 => ("constant", vec![("delay", delay.as_str())]),
                1 => ("trace", vec![("file", trace.as_str())]),
                _ => ("jitter", vec![("delay", delay.as_str()), ("jitter", jitter), ("order", *order)]),
            })
            .collect();
        let (gap, mut at) = (1 + dice.below(1_000_000), 0);
        let mut gaps = || {
            at += dice.below(gap);
            at
        };
        let arrivals: Vec<u64> = (0..200).map(|_| gaps()).collect();
        let when = arrivals[99];
        let (first, second) = ((models[0].0, &models[0].1[..]), (models[1].0, &models[1].1[..]));
        let changed = departures(&[], first, &[(when, second)], &arrivals);
        let sent = arrivals.partition_point(|arrival| *arrival < when);
        let alone = departures(&[], first, &[], &arrivals[..sent]);
        let lends = |model: &Model<'_>| model.0 == "jitter" && model.1.contains(&("order", "keep"));
        if lends(&first) && lends(&second) {
            let unchanged = departures(&[], first, &[], &arrivals);
            let between = (0..sent).all(|at| (unchanged[at]..=alone[at]).contains(&changed[at]));
            assert!(between && changed.is_sorted(), "round {round}: {models:?}");
            continue;
        }
        assert_eq!(changed[..sent], alone, "round {round}: {models:?}");
        let latest = changed[..sent].iter().copied().max().unwrap_or(0);
        if second.1.contains(&("order", "reorder")) {
            continue;
        }
        assert!(
            changed[sent..].is_sorted() && changed[sent..].iter().all(|leave| *leave >= latest),
            "round {round}"
        );
        if second.0 == "jitter" {
            let free: Vec<_> = [&second.1[..2], &[("order", "reorder")]].concat();
            let free = departures(&[], first, &[(when, ("jitter", &free))], &arrivals);
            let mut wanted: Vec<_> = free[sent..].iter().map(|leave| (*leave).max(latest)).collect();
            wanted.sort_unstable();
            assert_eq!(changed[sent..], wanted, "round {round}: {models:?}");
        }
    }
}

/// A change to the current values has no effect, and one in small steps keeps the mean correct: a second at
/// 200 ± 100 ms, then down to 100 ± 100 ms within four, in steps of 40 ms. While it falls the mean is that of
/// packets still in flight, at most 0.3 s old (7.5 ms).
#[test]
fn jitter_keeps_its_mean_while_it_changes() {
    let arrivals: Vec<u64> = (0..6000).map(|number| number * 1_000_000).collect();
    let jitter = |delay| [("delay", delay), ("jitter", "100 ms")];
    let before = jitter("200 ms");
    let unchanged = departures(&[], ("jitter", &before), &[], &arrivals);
    let same: Vec<_> = (1..100).map(|at| (at * 50_000_000, ("jitter", &before[..]))).collect();
    assert_eq!(departures(&[], ("jitter", &before), &same, &arrivals), unchanged);

    let texts: Vec<_> = (0..=100).map(|step| format!("{} ms", 200 - step)).collect();
    let steps: Vec<_> = texts.iter().map(|text| jitter(text)).collect();
    let ramp = |places: &mut dyn Iterator<Item = usize>| -> Vec<u64> {
        let changes: Vec<_> = std::iter::zip(0u64.., places)
            .map(|(at, place)| (1_000_000_000 + at * 40_000_000, ("jitter", &steps[place][..])))
            .collect();
        let first = changes[0].1;
        let left = departures(&[], first, &changes, &arrivals);
        assert!(left.is_sorted());
        let delays: Vec<_> = std::iter::zip(left, &arrivals).map(|(left, at)| left - at).collect();
        delays.chunks(1000).map(|second| second.iter().sum::<u64>() / 1_000_000_000).collect()
    };
    // Means of 1000 uniform draws: 57.7 ms / sqrt(1000) = 1.8 ms of deviation, and order moves sums between
    // neighbours.
    for (means, late) in [(ramp(&mut (0..=100)), 7.5), (ramp(&mut (0..=100).rev()), 0.0)] {
        for (second, mean) in means.iter().enumerate() {
            let step = (second as f64 - 0.5).clamp(0.0, 4.0) * 25.0;
            let wanted = if late > 0.0 { 200.0 - step } else { 100.0 + step };
            assert!((wanted - 8.0..wanted + late + 8.0).contains(&(*mean as f64)), "{second}: {means:?}");
        }
    }
}
