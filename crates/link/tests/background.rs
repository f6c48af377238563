//! Background traffic: phantom packets that occupy the queue and transmission time.

use longwire_block::Values;
use longwire_link::{Fifo, LinkConfig, Links, registry};
use longwire_packet::Pool;
use longwire_units::Nanos;

fn config(keys: &[(&str, &str)], kind: &str, given: &[(&str, &str)]) -> LinkConfig {
    let with = |config: LinkConfig, (key, text): &(&str, &str)| config.with_text(key, text).unwrap();
    let spec = registry().into_iter().find(|spec| (spec.key, spec.kind) == ("background", kind)).unwrap();
    keys.iter().fold(LinkConfig::default(), with).with(spec, Values::read(spec, given).unwrap())
}

/// Sends a packet of 996 bytes, 1000 with FCS, at each of `times`, far enough apart not to queue; returns
/// each departure.
fn leaving(config: &LinkConfig, times: &[u64], pool: &mut Pool) -> (Vec<u64>, Links) {
    let mut links = Links::with_capacity(1, 1, Nanos::ZERO);
    links.add(0, "test", config);
    let mut left = Vec::new();
    for &time in times {
        let handle = pool.insert(&[0; 996]).unwrap();
        pool.meta_mut(handle).arrival = time;
        let mut out = Fifo::EMPTY;
        links.arrive_and_leave(pool, 0, handle, &mut out);
        while links.deadline(0) != Nanos::NEVER {
            let deadline = links.deadline(0);
            links.expire(pool, 0, deadline, &mut out);
        }
        while let Some(handle) = out.pop(pool) {
            left.push(pool.meta(handle).leave());
            pool.free(handle);
        }
    }
    (left, links)
}

/// 1000-byte packets at 8 Mbit/s take 1 ms each. Background comes every 4 ms (2 Mbit/s of 1000 bytes, counted
/// with 4 more: here 996 + 4) and is sent first when it came first.
#[test]
fn real_packets_wait_for_phantoms() {
    let keys = [("rate", "8 Mbit/s")];
    let config = config(&keys, "cbr", &[("rate", "1992 kbit/s"), ("size", "996 B")]);
    let mut pool = Pool::new(1 << 20).unwrap();
    let ms = 1_000_000;
    // Phantoms at 0, 4, 8, 12 ms, each 1 ms on the wire.
    let times = [ms / 2, 2 * ms, 4 * ms + 1, 8 * ms, 12 * ms - 1];
    let (left, mut links) = leaving(&config, &times, &mut pool);
    assert_eq!(left, [2 * ms, 3 * ms, 6 * ms, 10 * ms, 13 * ms - 1]);
    let stats = links.stats(&mut pool, 0, Nanos(12 * ms));
    assert_eq!((stats.made_packets, stats.in_packets, stats.out_packets), (4, 5, 5));
    assert!(stats.is_conserved());
    assert_eq!(pool.live(), 1, "the phantom of 12 ms waits");
    links.flush(&mut pool, Nanos(u64::MAX / 4));
    assert_eq!(pool.live(), 0);
}

/// Phantoms fill the queue like any other packet: at twice the rate, real packets find it full half of the
/// time or more.
#[test]
fn phantoms_take_room() {
    let keys = [("rate", "8 Mbit/s"), ("queue", "5 packets")];
    let config = config(&keys, "cbr", &[("rate", "16 Mbit/s"), ("size", "996 B")]);
    let mut pool = Pool::new(1 << 20).unwrap();
    let mut links = Links::with_capacity(1, 1, Nanos::ZERO);
    links.add(0, "test", &config);
    let mut out = Fifo::EMPTY;
    for n in 0..1000u64 {
        let handle = pool.insert(&[0; 996]).unwrap();
        pool.meta_mut(handle).arrival = n * 1_000_000 + 250_000;
        links.arrive_and_leave(&mut pool, 0, handle, &mut out);
    }
    let stats = links.stats(&mut pool, 0, Nanos(1_000_000_000));
    assert!(stats.is_conserved(), "{stats:?}");
    // A packet comes every 0.5 ms from the background and every 1 ms from outside; one is sent every 1 ms.
    assert!(stats.dropped() > 1900 && stats.made_packets >= 2000, "{stats:?}");
    links.flush(&mut pool, Nanos(u64::MAX / 4));
    while let Some(handle) = out.pop(&pool) {
        pool.free(handle);
    }
    assert_eq!(pool.live(), 0);
}

/// M/D/1: Poisson background at load ρ makes a packet wait ρ/(2(1 − ρ)) service times on average (Pollaczek
/// and Khinchine), as seen by negligibly rare real packets at random times.
#[test]
fn rare_packets_see_the_mean_wait_of_m_d_1() {
    let keys = [("rate", "8 Mbit/s"), ("queue", "unlimited")];
    let config = config(&keys, "poisson", &[("rate", "4.8 Mbit/s"), ("size", "996 B")]);
    let mut pool = Pool::new(4 << 20).unwrap();
    // 60 % of the packets' 996 bytes at 8 Mbit/s; counted with FCS the load is 0.6 · 1000 / 996.
    let load = 0.6 * 1000.0 / 996.0;
    let mut dice = longwire_block::Dice::named(1, "probes");
    let mut at = 0;
    let times: Vec<u64> = (0..20_000)
        .map(|_| {
            at += 20_000_000 + dice.below(20_000_000);
            at
        })
        .collect();
    let (left, _) = leaving(&config, &times, &mut pool);
    let waits = left.iter().zip(&times).map(|(left, time)| (left - time) as f64 / 1e6 - 1.0);
    let mean = waits.sum::<f64>() / times.len() as f64;
    let wanted = load / (2.0 * (1.0 - load));
    // The wait's variance is ρ/(3(1 − ρ)) + wanted², in service times squared; the probes are far apart. Four
    // deviations.
    let deviation = ((load / (3.0 * (1.0 - load)) + wanted * wanted) / times.len() as f64).sqrt();
    assert!((mean - wanted).abs() < 4.0 * deviation, "{mean} {wanted} ± {deviation}");
}

/// Traffic added to a link that runs begins with a gap if it is random: a packet that comes a nanosecond
/// later finds the link idle.
#[test]
fn random_traffic_that_is_added_begins_with_a_gap() {
    let mmpp: &[(&str, &str)] = &[("rates", "4 Mbit/s, 6 Mbit/s"), ("size", "996 B")];
    let poisson: &[(&str, &str)] = &[("rate", "4.8 Mbit/s"), ("size", "996 B")];
    let mut pool = Pool::new(1 << 20).unwrap();
    for (kind, given) in [("poisson", poisson), ("mmpp", mmpp)] {
        let row = registry().into_iter().find(|spec| (spec.key, spec.kind) == ("background", kind)).unwrap();
        for seed in 0..20 {
            let mut links = Links::with_capacity(1, seed, Nanos::ZERO);
            links.add(0, "test", &LinkConfig::default().with_text("rate", "8 Mbit/s").unwrap());
            let now = Nanos::from_millis(10);
            links.change(&mut pool, 0, now, &[(row, Values::read(row, given).unwrap())]).unwrap();
            let handle = pool.insert(&[0; 996]).unwrap();
            pool.meta_mut(handle).arrival = now.0 + 1;
            let mut out = Fifo::EMPTY;
            links.arrive_and_leave(&mut pool, 0, handle, &mut out);
            links.expire(&mut pool, 0, Nanos::from_millis(20), &mut out);
            let leave = out.pop(&pool).map(|handle| pool.meta(handle).leave());
            assert_eq!(leave, Some(now.0 + 1 + 1_000_000), "{kind}, seed {seed}");
        }
    }
}

/// Opportunities every 10 ms of 1504 bytes, and phantoms of 2004 bytes every 8 ms that take most of them: a
/// part of one is nearly always on the wire. Every packet is accounted for at any time, and the queue limit
/// holds.
#[test]
fn phantoms_use_opportunities() {
    let spec = registry().into_iter().find(|spec| (spec.key, spec.kind) == ("rate", "trace")).unwrap();
    let trace = Values::read(spec, &[("file", "10;"), ("framing", "ethernet")]).unwrap();
    let config = config(&[("queue", "3 packets")], "cbr", &[("rate", "2 Mbit/s"), ("size", "2000 B")]);
    let config = config.with(spec, trace);
    let mut pool = Pool::new(1 << 20).unwrap();
    let mut links = Links::with_capacity(1, 1, Nanos::ZERO);
    links.add(0, "test", &config);
    let (mut out, mut most) = (Fifo::EMPTY, 0);
    for n in 0..2000u64 {
        let now = n * 1_700_000;
        if n % 20 == 0 {
            let handle = pool.insert(&[0; 996]).unwrap();
            pool.meta_mut(handle).arrival = now;
            links.arrive_and_leave(&mut pool, 0, handle, &mut out);
        }
        while links.deadline(0) <= Nanos(now) {
            let deadline = links.deadline(0);
            links.expire(&mut pool, 0, deadline, &mut out);
        }
        let stats = links.stats(&mut pool, 0, Nanos(now));
        assert!(stats.is_conserved(), "{stats:?}");
        most = most.max(stats.queued_packets);
    }
    let stats = links.stats(&mut pool, 0, Nanos(3_400_000_000));
    // Three wait, and one is being sent.
    assert_eq!(most, 4);
    assert!(stats.out_packets > 0 && stats.dropped() > 100, "{stats:?}");
    // 340 opportunities, of which packets behind others use every byte; one may still be in transmission.
    let sent = stats.consumed_packets * 2004 + stats.out_packets * 1000;
    assert!((338 * 1504 - 2004..=340 * 1504).contains(&sent), "{sent} {stats:?}");
    links.flush(&mut pool, Nanos(u64::MAX / 4));
    while let Some(handle) = out.pop(&pool) {
        pool.free(handle);
    }
    assert_eq!(pool.live(), 0);
}
