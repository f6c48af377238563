//! Strict priority: a band waits only for those before it.

use super::bench::{Bench, LONGEST, MS, SECOND, offer};

const RULES: &str = "band 0 if udp src port 0\nband 2 if udp src port 2\nband 9 if udp src port 3";

/// Offered loads of the bands in tenths of the rate, and the share of each.
#[test]
fn only_lower_bands_starve() {
    let table = [
        ([4, 4, 4], [4, 4, 2]),
        ([12, 4, 4], [10, 0, 0]),
        ([4, 12, 4], [4, 6, 0]),
        ([0, 12, 4], [0, 10, 0]),
        ([1, 2, 12], [1, 2, 7]),
    ];
    for (loads, wanted) in table {
        let mut bench = Bench::new("priority", &[], RULES);
        offer(&mut bench, &loads, 10 * SECOND);
        for (flow, tenths) in wanted.into_iter().enumerate() {
            let packets = bench.bytes(flow as u16, 0, 10 * SECOND) / 1000;
            // The link sends a packet each millisecond; those of the last slots may still wait.
            assert!(packets.abs_diff(tenths * 1000) <= 3, "{loads:?}: flow {flow} {packets}");
        }
    }
}

/// The first band waits for at most one packet: the one being sent.
#[test]
fn the_first_band_waits_for_one_packet() {
    let mut bench = Bench::new("priority", &[], RULES);
    for n in 0..5000 {
        bench.arrive(n * MS, 1, LONGEST);
        bench.arrive(n * MS + n * 197 % MS, 0, 100);
    }
    let waits = bench.left.iter().filter(|left| left.flow == 0).map(|left| left.leave - left.arrival);
    let most = waits.max().unwrap();
    assert!((1_500_000..=1_618_000).contains(&most), "{most}");
}

/// A band beyond the last means the last; packets without a band go to `default`. Each band has its own
/// limit, the packet being sent included.
#[test]
fn bands_and_limits() {
    let given = [("limit", "3 packets"), ("default", "0")];
    let mut bench = Bench::new("priority", &given, RULES);
    for _ in 0..5 {
        for flow in [3, 2, 1] {
            bench.arrive(0, flow, 1000);
        }
    }
    assert_eq!(bench.stats(0).drops, [("queue-full", 15 - 6)]);
    bench.advance(SECOND);
    let order: Vec<u16> = bench.left.iter().map(|left| left.flow).collect();
    // Of band 2, the packet of flow 3 that found the link idle, one of flow 2 and one of flow 3; band 0 was
    // sent before these.
    assert_eq!(order, [3, 1, 1, 1, 2, 3]);
}

/// With fewer bands, waiting packets move to the bands in which they would now arrive, in the order in which
/// they would have been sent: none is overtaken by its own flow.
#[test]
fn fewer_bands_lose_and_reorder_nothing() {
    let mut bench = Bench::new("priority", &[], RULES);
    for flow in [1, 2, 1, 0, 2] {
        bench.arrive(0, flow, 1000);
    }
    bench.change(MS / 2, "priority", &[("bands", "1")]);
    bench.arrive(MS / 2, 2, 1000);
    bench.advance(SECOND);
    let order: Vec<u16> = bench.left.iter().map(|left| left.flow).collect();
    assert_eq!(order, [1, 0, 1, 2, 2, 2]);
}

/// Bands with their own conditions, limits and disciplines: the first is sent first, its limit is its own,
/// and CoDel shortens the wait of the second only. Flow 0 has a tenth of the rate, flow 1 a tenth more than
/// the rest, flow 2 some that is never sent while others wait.
#[test]
fn bands_with_queues_of_their_own() {
    let run = |queue: &str| {
        let classes = format!(
            "voice limit 2 packets if udp src port 0\nweb {queue} if udp src port 1\nrest limit 3 packets"
        );
        let mut bench = Bench::new("priority", &[("classes", &classes)], "");
        offer(&mut bench, &[1, 10, 1], 10 * SECOND);
        bench
    };
    let wait = |bench: &Bench, flow| {
        let waits = bench.left.iter().filter(|left| left.flow == flow && left.leave > 5 * SECOND);
        waits.map(|left| left.leave - left.arrival).max().unwrap_or(0)
    };
    let mut plain = run("limit unlimited");
    // Every 10 ms one packet too many: from 5 s on, 500 to 1000 of them wait.
    assert!(wait(&plain, 0) <= 2 * MS && wait(&plain, 1) > 500 * MS, "{}", wait(&plain, 1));
    assert_eq!(plain.bytes(2, SECOND, 10 * SECOND), 0);
    assert_eq!(plain.stats(10 * SECOND).drops, [("queue-full", 1000 - 3)]);
    let ruled = run("queue codel limit unlimited");
    assert!(wait(&ruled, 0) <= 2 * MS && wait(&ruled, 1) < 200 * MS, "{}", wait(&ruled, 1));
}

/// From bands to classes and back: waiting packets are sorted by the new settings, in order, and a filter's
/// band is the class of that number.
#[test]
fn bands_become_classes_and_classes_bands() {
    let mut bench = Bench::new("priority", &[], RULES);
    for flow in [1, 2, 1, 3, 0, 2] {
        bench.arrive(0, flow, 1000);
    }
    // Waiting: 0 | 1 | 2 3 2. Flows 0, 2 and 3 have the bands 0, 2 and 9; there is no tenth class.
    bench.change(MS / 2, "priority", &[("classes", "a if udp src port 3\nb if udp src port 1\nc")]);
    assert_eq!(bench.stats(MS / 2).queued_packets, 6);
    bench.advance(MS + MS / 2);
    bench.change(MS + MS / 2, "priority", &[("bands", "2"), ("default", "0")]);
    bench.advance(SECOND);
    let order: Vec<u16> = bench.left.iter().map(|left| left.flow).collect();
    // Classes: 0 3 | 1 | 2 2, as 3 is there by its condition. When 0 is being sent, two bands: 1 | 3 2 2.
    assert_eq!(order, [1, 0, 1, 3, 2, 2]);
}
