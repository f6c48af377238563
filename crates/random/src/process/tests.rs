//! Compares processes with their definitions: exact times by hand, and statistics with closed forms.

use super::spec::ReplaySettings;
use super::*;
use crate::math;
use longwire_settings::Settings;
use longwire_units::Rate;
use proptest::prelude::*;
use std::sync::Arc;

const SECOND: f64 = 1e9;

fn process(kind: &str, given: &[(&str, &str)]) -> Process {
    let spec = spec(kind).unwrap();
    Process::begun(spec, &Values::read(spec, given).unwrap(), Dice::named(1, kind), Nanos::ZERO)
}

fn change(process: &mut Process, kind: &str, given: &[(&str, &str)], now: Nanos) {
    let spec = spec(kind).unwrap();
    process.change(spec, &Values::read(spec, given).unwrap(), now);
}

fn times(process: &mut Process, count: usize) -> Vec<u64> {
    (0..count).map(|_| process.next().0.0).collect()
}

/// Number of packets before `until`.
fn count(process: &mut Process, until: Nanos) -> u64 {
    let mut packets = 0;
    while process.peek() < until {
        process.next();
        packets += 1;
    }
    packets
}

/// Packets in each of `windows` windows of this length.
fn counts(process: &mut Process, window: Nanos, windows: u64) -> Vec<f64> {
    (1..=windows).map(|n| count(process, Nanos(n * window.0)) as f64).collect()
}

fn mean(of: &[f64]) -> f64 {
    of.iter().sum::<f64>() / of.len() as f64
}

fn variance(of: &[f64]) -> f64 {
    let mean = mean(of);
    of.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / of.len() as f64
}

#[test]
fn constant_rate_keeps_every_time_exactly() {
    // 100 bytes at 3 Gbit/s take 266 and 2/3 ns.
    let mut cbr = process("cbr", &[("rate", "3 Gbit/s"), ("size", "100 B")]);
    assert_eq!(times(&mut cbr, 6), [0, 266, 533, 800, 1066, 1333]);
    // The 30 000th arrives after 8 ms to the nanosecond, the 3·10⁶th after 800 ms.
    assert_eq!(times(&mut cbr, 29_995).last(), Some(&8_000_000));
    assert_eq!(times(&mut cbr, 2_970_000).last(), Some(&800_000_000));
    let mut every =
        Process::new(Model::Cbr { every: Interval::per_second(3).unwrap(), size: 60 }, Dice::named(1, ""));
    assert_eq!(times(&mut every, 4), [0, 333_333_333, 666_666_666, 1_000_000_000]);
    assert_eq!(every.next().1, 60);
}

#[test]
fn poisson_is_one() {
    // 1000 bytes at 8 Mbit/s: a packet a millisecond.
    let mut poisson = process("poisson", &[("rate", "8 Mbit/s")]);
    const GAPS: usize = 200_000;
    let seen = times(&mut poisson, GAPS + 1);
    let mut gaps: Vec<f64> = seen.windows(2).map(|pair| (pair[1] - pair[0]) as f64 / 1e6).collect();
    // The mean of n exponential variates has standard deviation 1/√n: five of them are allowed.
    assert!((mean(&gaps) - 1.0).abs() < 5.0 / (GAPS as f64).sqrt(), "{}", mean(&gaps));
    // Kolmogorov and Smirnov: the greatest distance from 1 − e^−x times √n is below 1.95 in 999 of 1000
    // cases.
    gaps.sort_by(f64::total_cmp);
    let n = GAPS as f64;
    let distance = |(i, gap): (usize, &f64)| {
        let wanted = 1.0 - math::exp(-gap);
        (wanted - i as f64 / n).abs().max((wanted - (i + 1) as f64 / n).abs())
    };
    let ks = gaps.iter().enumerate().map(distance).fold(0.0, f64::max) * n.sqrt();
    assert!(ks < 1.95, "{ks}");
    // Variance over mean of the packets in a window is 1, its standard deviation √(2/n) for n windows.
    let counts = counts(&mut process("poisson", &[("rate", "8 Mbit/s")]), Nanos::from_millis(10), 20_000);
    let dispersion = variance(&counts) / mean(&counts);
    assert!((dispersion - 1.0).abs() < 5.0 * (2.0f64 / 20_000.0).sqrt(), "{dispersion}");
}

/// The index of dispersion of a Markov-modulated Poisson process with these rates (packets a second), whose
/// covariance falls off at `theta` a second, over windows of `t` seconds: 1 + 2·(σ²/λ)·(1/θ − (1 −
/// e^−θt)/(θ²t)).
fn mmpp_dispersion(rates: &[f64], theta: f64, t: f64) -> f64 {
    1.0 + 2.0 * variance(rates) / mean(rates)
        * (1.0 / theta - (1.0 - math::exp(-theta * t)) / (theta * theta * t))
}

#[test]
fn mmpp_has_its_mean_and_dispersion() {
    // Each state is left at 10 a second; for n states drawn alike the covariance falls off n/(n − 1) times as
    // fast.
    for (text, rates, theta) in [
        ("1 Mbit/s, 9 Mbit/s", &[125.0, 1125.0][..], 20.0),
        ("0, 4 Mbit/s, 8 Mbit/s", &[0.0, 500.0, 1000.0], 15.0),
    ] {
        let mut mmpp = process("mmpp", &[("rates", text)]);
        const WINDOWS: u64 = 50_000;
        let t = 0.1;
        let counts = counts(&mut mmpp, Nanos::from_millis(100), WINDOWS);
        // Neighbouring windows are correlated: n of them are worth about n·tanh(θt/2) independent ones.
        let worth = WINDOWS as f64 * 0.6;
        let wanted = mmpp_dispersion(rates, theta, t);
        let deviation = (wanted * mean(rates) * t / worth).sqrt();
        let got = mean(&counts);
        assert!((got - mean(rates) * t).abs() < 5.0 * deviation, "{text}: {got}");
        let dispersion = variance(&counts) / mean(&counts);
        assert!(
            (dispersion / wanted - 1.0).abs() < 5.0 * (2.0 / worth).sqrt(),
            "{text}: {dispersion} {wanted}"
        );
    }
}

#[test]
fn on_off_has_its_mean_rate_and_its_peak() {
    let given = [("rate", "8 Mbit/s"), ("on", "10 ms"), ("off", "30 ms")];
    let mut on_off = process("on-off", &given);
    let seconds = 2000.0;
    let packets = count(&mut on_off, Nanos::from_secs(2000)) as f64;
    // The total time on in a long time t has variance 2·a²b²/(a + b)³·t for mean times a and b.
    let (on, off) = (0.010, 0.030);
    let deviation = (2.0 * on * on * off * off / f64::powi(on + off, 3) * seconds).sqrt() * 1000.0;
    assert!((packets - 250.0 * seconds).abs() < 5.0 * deviation, "{packets} {deviation}");
    // While it is on, packets come every millisecond; the interrupted part continues in the next on state.
    let seen = times(&mut process("on-off", &given), 10_000);
    let gaps: Vec<u64> = seen.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert!(gaps.iter().all(|&gap| gap >= 1_000_000), "{:?}", gaps.iter().min());
    // A gap of a millisecond contains no change of state: e^−0.1 of them, 90.48 %, ±0.29 %.
    let whole = gaps.iter().filter(|&&gap| gap == 1_000_000).count();
    assert!((8_900..9_200).contains(&whole), "{whole}");
}

/// H from the slope of the variance of means over m bins, m = 2^`from` to 2^`to`: m^(2H − 2).
fn hurst(bins: &[f64], from: u32, to: u32) -> f64 {
    let points: Vec<(f64, f64)> = (from..=to)
        .map(|level| {
            let means: Vec<f64> = bins.chunks_exact(1 << level).map(mean).collect();
            (f64::from(level), math::ln(variance(&means)) / math::ln(2.0))
        })
        .collect();
    let n = points.len() as f64;
    let (x, y) = points.iter().fold((0.0, 0.0), |(x, y), point| (x + point.0 / n, y + point.1 / n));
    let over: f64 = points.iter().map(|point| (point.0 - x) * (point.1 - y)).sum();
    let under: f64 = points.iter().map(|point| (point.0 - x) * (point.0 - x)).sum();
    1.0 + over / under / 2.0
}

/// Packets of several sources in 2²⁰ windows of 10 ms, each on and off for 10 ms on average.
fn summed(sources: u32, kind: &str, given: &[(&str, &str)]) -> Vec<f64> {
    let spec = spec(kind).unwrap();
    let given = [&[("rate", "8 Mbit/s"), ("on", "10 ms"), ("off", "10 ms")], given].concat();
    let values = Values::read(spec, &given).unwrap();
    let mut sum = vec![0.0; 1 << 20];
    for n in 0..sources {
        let mut source = Process::begun(spec, &values, Dice::named(1, &format!("source {n}")), Nanos::ZERO);
        let counts = counts(&mut source, Nanos::from_millis(10), 1 << 20);
        sum.iter_mut().zip(counts).for_each(|(sum, packets)| *sum += packets);
    }
    sum
}

#[test]
fn pareto_on_off_is_self_similar_and_exponential_is_not() {
    // H = (3 − 1.4)/2 over 2⁴ to 2¹¹ bins: longer than individual on and off times, with at least 512 means
    // for each variance.
    let pareto = hurst(&summed(8, "pareto-on-off", &[("shape", "1.4")]), 4, 11);
    assert!((pareto - 0.8).abs() < 0.05, "{pareto}");
    let exponential = hurst(&summed(2, "on-off", &[]), 4, 11);
    assert!((exponential - 0.5).abs() < 0.05, "{exponential}");
}

/// All packets are later by as much.
#[test]
fn a_process_may_begin_later() {
    for (kind, given) in [
        ("cbr", [("rate", "3 Gbit/s")].as_slice()),
        ("poisson", &[("rate", "8 Mbit/s")]),
        ("mmpp", &[("rates", "4 Mbit/s, 12 Mbit/s"), ("dwell", "1 ms")]),
        ("on-off", &[("rate", "16 Mbit/s"), ("on", "1 ms"), ("off", "1 ms")]),
        ("pareto-on-off", &[("rate", "16 Mbit/s"), ("on", "1 ms"), ("off", "1 ms")]),
        ("replay", &[("file", "0 ms 1000 B, 3 ms 60 B, 10 ms 1500 B")]),
    ] {
        let (row, begin) = (spec(kind).unwrap(), Nanos::from_secs(5));
        let values = Values::read(row, given).unwrap();
        let mut later = Process::begun(row, &values, Dice::named(1, kind), begin);
        let wanted: Vec<u64> =
            times(&mut process(kind, given), 3).iter().map(|time| time + begin.0).collect();
        assert_eq!(times(&mut later, 3), wanted, "{kind}");
    }
}

#[test]
fn a_change_loses_nothing_of_a_gap() {
    // A packet a millisecond. After 2.5 ms half a packet is missing: at twice the rate it takes a quarter of
    // a millisecond.
    let mut cbr = process("cbr", &[("rate", "8 Mbit/s")]);
    assert_eq!(times(&mut cbr, 3), [0, 1_000_000, 2_000_000]);
    change(&mut cbr, "cbr", &[("rate", "16 Mbit/s")], Nanos(2_500_000));
    assert_eq!(times(&mut cbr, 2), [2_750_000, 3_250_000]);
    // Half of a packet of half the size.
    change(&mut cbr, "cbr", &[("rate", "16 Mbit/s"), ("size", "500 B")], Nanos(3_500_000));
    assert_eq!(times(&mut cbr, 2), [3_625_000, 3_875_000]);
    // A pause in the middle: the missing part stays missing.
    change(&mut cbr, "cbr", &[("rate", "0"), ("size", "500 B")], Nanos(4_000_000));
    assert_eq!((cbr.peek(), cbr.next()), (Nanos::NEVER, (Nanos::NEVER, 0)));
    change(&mut cbr, "cbr", &[("rate", "16 Mbit/s"), ("size", "500 B")], Nanos(9_000_000));
    assert_eq!(times(&mut cbr, 2), [9_125_000, 9_375_000]);
}

/// Of a gap of 3 s the milliseconds pass in turn at intervals of 3 and of 7 s: 1/3000 and 1/7000 of it.
#[test]
fn many_changes_lose_nothing_of_a_gap_either() {
    let [slow, slower] = [3, 7].map(|secs| {
        let every = Interval::of(Nanos::from_secs(secs)).unwrap();
        Model::Cbr { every, size: 60 }
    });
    let mut cbr = Process::new(slow.clone(), Dice::named(1, ""));
    assert_eq!(cbr.next().0, Nanos::ZERO);
    for millis in 1..=1001 {
        let model = if millis % 2 == 0 { &slow } else { &slower };
        cbr.set(model.clone(), Nanos::from_millis(millis));
    }
    // 501 ms at 3 s, and 500 ms at 7 s: 0.833 − 1/14 of the gap are left, at 7 s.
    assert_eq!(cbr.next().0, Nanos::from_millis(1001 + 5831 - 500));
}

#[test]
fn a_ramp_sends_the_integral_of_its_rate() {
    // From 8 to 16 Mbit/s in 1000 steps of 1 ms: 12 Mbit/s on average, 1500 packets a second.
    let mut cbr = process("cbr", &[("rate", "8 Mbit/s")]);
    let mut packets = 0;
    for step in 0..1000u64 {
        let now = Nanos::from_millis(step);
        packets += count(&mut cbr, now);
        change(&mut cbr, "cbr", &[("rate", &format!("{} bit/s", 8_000_000 + 8004 * step))], now);
    }
    packets += count(&mut cbr, Nanos::from_secs(1));
    // 8 Mbit/s + 8004·999/2 is 11 997 998 bit/s: 1499.7 packets, the first of which comes at 0.
    assert_eq!(packets, 1500);
}

#[test]
fn another_rate_of_random_kinds_holds_from_the_change_on() {
    for (kind, slow, fast) in [
        ("poisson", [("rate", "8 Mbit/s")].as_slice(), [("rate", "80 Mbit/s")].as_slice()),
        (
            "mmpp",
            &[("rates", "4 Mbit/s, 12 Mbit/s"), ("dwell", "1 ms")],
            &[("rates", "40 Mbit/s, 80 Mbit/s, 120 Mbit/s"), ("dwell", "2 ms")],
        ),
        (
            "on-off",
            &[("rate", "16 Mbit/s"), ("on", "1 ms"), ("off", "1 ms")],
            &[("rate", "160 Mbit/s"), ("on", "1 ms"), ("off", "1 ms")],
        ),
    ] {
        let mut process = process(kind, slow);
        let change_at = Nanos::from_secs(20);
        let before = count(&mut process, change_at) as f64;
        change(&mut process, kind, fast, change_at);
        assert!(process.peek() >= change_at);
        let after = count(&mut process, Nanos::from_secs(40)) as f64;
        // 20 000 and 200 000. Variation comes from the modulated rate: at most a factor of 2 over Poisson's
        // √n for the first, 1 % for the second.
        assert!((before - 20_000.0).abs() < 5.0 * 2.0 * 20_000f64.sqrt(), "{kind}: {before}");
        assert!((after - 200_000.0).abs() < 5.0 * 2_000.0, "{kind}: {after}");
    }
}

#[test]
fn many_states_for_a_packet_are_their_mean() {
    // A packet takes 26.7 s of on-time, and states last a microsecond.
    let mut slow = process("on-off", &[("rate", "300 bit/s"), ("on", "1 us"), ("off", "3 us")]);
    let seen = times(&mut slow, 5);
    for (n, time) in seen.into_iter().enumerate().skip(1) {
        let wanted = n as f64 * 8000.0 / 300.0 * 4.0;
        assert!((time as f64 / SECOND / wanted - 1.0).abs() < 1e-3, "{n}: {time}");
    }
    // Nothing is ever given.
    assert_eq!(process("mmpp", &[("rates", "0, 0")]).peek(), Nanos::NEVER);
    assert_eq!(process("on-off", &[("rate", "0"), ("on", "1 us"), ("off", "1 us")]).next().0, Nanos::NEVER);
    let hour = Nanos::from_secs(3600);
    let other = [("rate", "300 bit/s"), ("on", "2 us"), ("off", "2 us")];
    slow = process("on-off", &[("rate", "300 bit/s"), ("on", "1 us"), ("off", "1 us")]);
    count(&mut slow, Nanos::from_secs(1));
    change(&mut slow, "on-off", &other, hour);
    assert!(slow.peek() >= hour);
}

#[test]
fn replays_divide_times_by_the_speed() {
    let list = "0 ms 1000 B, 3 ms 60 B, 10ms 1500B";
    for (speed, wanted) in [
        ("1", [0, 3_000_000, 10_000_000]),
        ("2.5", [0, 1_200_000, 4_000_000]),
        ("3", [0, 1_000_000, 3_333_333]),
        ("1/3", [0, 9_000_000, 30_000_000]),
        ("max", [0, 0, 0]),
    ] {
        let mut replay = process("replay", &[("file", list), ("speed", speed)]);
        let seen: Vec<(Nanos, u32)> = (0..3).map(|_| replay.next()).collect();
        assert_eq!(seen, [(Nanos(wanted[0]), 1000), (Nanos(wanted[1]), 60), (Nanos(wanted[2]), 1500)]);
        assert_eq!((replay.next(), replay.largest()), ((Nanos::NEVER, 0), 1500));
    }
}

#[test]
fn a_replay_goes_on_at_another_speed() {
    let packets =
        Arc::new(Packets::new(vec![(Nanos(50), 60), (Nanos(150), 61), (Nanos(140), 62), (Nanos(250), 63)]));
    let model = |speed| Model::Replay { packets: Arc::clone(&packets), speed };
    let half = Speed::ratio(1, 2).unwrap();
    let mut replay = Process::new(model(half), Dice::named(1, ""));
    assert_eq!(replay.next(), (Nanos(0), 60));
    // After 100 ns, 50 of the list have passed: 50 more are left for the second, which the third may not
    // precede.
    replay.set(model(Speed::default()), Nanos(100));
    assert_eq!((replay.next(), replay.next()), ((Nanos(150), 61), (Nanos(150), 62)));
    replay.set(model(Speed::MAXIMUM), Nanos(160));
    assert_eq!(replay.peek(), Nanos(160));
    replay.set(model(half), Nanos(170));
    assert_eq!(replay.next(), (Nanos(170), 63));
    change(&mut replay, "cbr", &[("rate", "8 Mbit/s")], Nanos(200));
    assert_eq!(times(&mut replay, 2), [200, 1_000_200]);
}

#[test]
fn captures_are_read() {
    let word = |number: u32| number.to_le_bytes();
    let mut pcap = Vec::new();
    for number in [0xa1b2_c3d4, 0x0004_0002, 0, 0, 65_535, 1] {
        pcap.extend(word(number));
    }
    for (micros, original) in [(10, 60), (1010, 1514), (1010, 4)] {
        for number in [1000, micros, 4, original, 0] {
            pcap.extend(word(number));
        }
    }
    // A section, an interface with times in microseconds (the default), and two packets.
    let mut ng = Vec::new();
    for number in [0x0a0d_0d0a, 28, 0x1a2b_3c4d, 1, u32::MAX, u32::MAX, 28, 1, 20, 1, 0, 20] {
        ng.extend(word(number));
    }
    for (micros, original) in [(7, 100), (9, 2000)] {
        for number in [6, 36, 0, 0, micros, 4, original, 0, 36] {
            ng.extend(word(number));
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let read = |file: &str| {
        let values = Values::read_in(spec("replay").unwrap(), &[("file", file)], folder.path());
        values.map(|values| ReplaySettings::of(&values).file).map_err(|error| error.to_string())
    };
    let check = |name: &str, bytes: &[u8], wanted: &[(Nanos, u32)]| {
        let file = folder.path().join(name);
        std::fs::write(&file, bytes).unwrap();
        let packets = read(name).unwrap();
        assert_eq!(packets.as_slice(), wanted);
        // Truncated anywhere, it is refused or shorter.
        for cut in 0..bytes.len() {
            std::fs::write(&file, &bytes[..cut]).unwrap();
            let left = read(file.to_str().unwrap());
            assert!(left.is_err() || left.is_ok_and(|left| left.as_slice().len() < wanted.len()), "{cut}");
        }
    };
    check("a.pcap", &pcap, &[(Nanos(0), 60), (Nanos(1_000_000), 1514), (Nanos(1_000_000), 4)]);
    check("a.pcapng", &ng, &[(Nanos(0), 100), (Nanos(2000), 2000)]);
    assert!(read("5 ms 0 B").unwrap_err().contains("no time and size"));
    assert!(read("nowhere.pcap").unwrap_err().contains("nowhere.pcap"));
}

#[test]
fn every_spec_builds_and_follows_its_dice() {
    for spec in SPECS {
        let given = |name: &str| match name {
            "rate" => "8 Mbit/s",
            "on" | "off" => "10 ms",
            _ => "0 ms 1000 B, 5 ms 200 B",
        };
        let given: Vec<_> = spec
            .params
            .iter()
            .filter(|param| param.default.is_required())
            .map(|param| (param.name, given(param.name)))
            .collect();
        let values = Values::read(spec, &given).unwrap();
        let run = |seed| times(&mut Process::begun(spec, &values, Dice::named(seed, "x"), Nanos::ZERO), 100);
        assert_eq!(run(1), run(1));
        assert_eq!(run(1) != run(2), !["cbr", "replay"].contains(&spec.kind), "{}", spec.kind);
    }
    let error =
        |kind, given: &[(&str, &str)]| Values::read(spec(kind).unwrap(), given).unwrap_err().to_string();
    assert!(error("mmpp", &[("rates", "1 Mbit/s, fast")]).contains("fast"));
    assert!(error("replay", &[("file", "0 ms 60 B"), ("speed", "0")]).contains("1/3"));
    assert!(error("replay", &[("file", "0 ms 60 B"), ("speed", "-1")]).contains("1/3"));
    assert!(
        error("pareto-on-off", &[("rate", "1 Mbit/s"), ("on", "1 s"), ("off", "1 s"), ("shape", "1")])
            .contains("1.01")
    );
    let least = error("on-off", &[("rate", "1 Mbit/s"), ("on", "0 s"), ("off", "1 s")]);
    assert!(least.contains("a time from 1 us"), "{least}");
}

fn any_model() -> impl Strategy<Value = Model> {
    let rate = prop_oneof![Just(0u64), 300..400_000_000_000u64].prop_map(Rate);
    let time = (0..1_000_000_000u64).prop_map(Nanos);
    let size = 60..65_549u32;
    let interval = (1..1u64 << 40).prop_map(|nanos| Interval::of(Nanos(nanos)).unwrap());
    prop_oneof![
        (interval.clone(), size.clone()).prop_map(|(every, size)| Model::Cbr { every, size }),
        (interval, size.clone()).prop_map(|(every, size)| Model::Poisson { every, size }),
        (proptest::collection::vec(rate.clone(), 0..5), time.clone(), size.clone())
            .prop_map(|(rates, dwell, size)| Model::Mmpp { rates: rates.into(), dwell, size }),
        (rate.clone(), time.clone(), time.clone(), size.clone())
            .prop_map(|(peak, on, off, size)| Model::OnOff { peak, means: [on, off], shape: None, size }),
        (rate, time.clone(), time, 0..10_000_000u64, size).prop_map(|(peak, on, off, shape, size)| {
            Model::OnOff { peak, means: [on, off], shape: Some(shape), size }
        }),
        (proptest::collection::vec((any::<u64>().prop_map(Nanos), 1..2000u32), 0..20), 1..9u32, 0..9u32)
            .prop_map(|(list, times, per)| Model::Replay {
                packets: Arc::new(Packets::new(list)),
                speed: Speed::ratio(times, per).unwrap_or(Speed::MAXIMUM),
            }),
    ]
}

proptest! {
    #[test]
    fn time_never_goes_back(
        first in any_model(),
        changes in proptest::collection::vec((any_model(), any::<bool>(), 0..1u64 << 33), 0..6),
    ) {
        let mut process = Process::new(first.clone(), Dice::named(1, "any"));
        let (mut now, mut model) = (Nanos::ZERO, first);
        for (other, same, pause) in changes {
            for _ in 0..20 {
                let (time, _) = process.next();
                prop_assert!(time >= now);
                prop_assert!(process.peek() >= time);
                now = if time == Nanos::NEVER { now } else { time };
            }
            now += Nanos(pause);
            if !same {
                model = other;
            }
            process.set(model.clone(), now);
            prop_assert!(process.peek() >= now);
        }
    }
}

/// Opened, a FIFO would wait for a writer, and a device is an empty or an endless file.
#[test]
fn only_plain_files_are_opened() {
    let root = std::path::Path::new("/");
    let times = crate::quantile::Times::parse("dev/null", root).map(drop);
    let packets = Values::read_in(spec("replay").unwrap(), &[("file", "dev/null")], root);
    for refused in [times, packets.map(drop).map_err(|error| error.to_string())] {
        let error = refused.unwrap_err();
        assert!(error.contains("dev/null") && error.contains("not a plain file"), "{error}");
    }
}
