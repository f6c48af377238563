//! Links that share a medium: real packets, their queues, and the medium's effects.

use longwire_block::{Dice, DropReason, Values};
use longwire_link::{Fifo, LinkConfig, Links, MEDIA, registry};
use longwire_packet::Pool;
use longwire_units::Nanos;

const MS: u64 = 1_000_000;

/// Stations without an engine, driven by hand.
struct Net {
    pool: Pool,
    links: Links,
    /// Departures: time, link and number.
    left: Vec<(u64, u32, u64)>,
}

impl Net {
    fn new(kind: &str, given: &[(&str, &str)], stations: &[&[(&str, &str)]]) -> Self {
        let set = |config: LinkConfig, (key, text): &(&str, &str)| config.with_text(key, text).unwrap();
        let stations = stations.iter().map(|keys| keys.iter().fold(LinkConfig::default(), set));
        Self::of((kind, given), &stations.collect::<Vec<_>>())
    }

    fn of((kind, given): (&str, &[(&str, &str)]), stations: &[LinkConfig]) -> Self {
        let spec = MEDIA.iter().find(|spec| spec.kind == kind).unwrap();
        let values = Values::read(spec, given).unwrap();
        let mut links = Links::with_capacity(stations.len(), 1, Nanos::from_micros(10));
        let names: Vec<String> = (0..stations.len()).map(|station| format!("s{station}")).collect();
        for (place, station) in (0u32..).zip(stations) {
            links.add(place, &names[place as usize], station);
        }
        let members: Vec<(u32, &str)> = (0u32..).zip(names.iter().map(String::as_str)).collect();
        links.add_medium("m", (spec, &values), &members);
        Self { pool: Pool::new(64 << 20).unwrap(), links, left: Vec::new() }
    }

    /// A frame of this length arrives at a station.
    fn arrive(&mut self, at: u64, station: u32, bytes: usize, seq: u64) {
        self.advance(at);
        let handle = self.pool.alloc(bytes).unwrap();
        let meta = self.pool.meta_mut(handle);
        (meta.arrival, meta.seq) = (at, seq);
        // IPv4 over Ethernet, for rates that count IP packets.
        self.pool.data_mut(handle)[12..15].copy_from_slice(&[8, 0, 0x45]);
        let mut out = Fifo::EMPTY;
        self.links.arrive_and_leave(&mut self.pool, station, handle, &mut out);
        assert!(out.is_empty());
    }

    /// Executes everything by `until`, as the engine's wheel does: in time order, links before media.
    fn advance(&mut self, until: u64) {
        loop {
            let first = (0..self.links.slots() as u32).map(|link| (self.links.deadline(link), link)).min();
            let Some((now, link)) = first.filter(|(now, _)| now.0 <= until && *now != Nanos::NEVER) else {
                return;
            };
            let mut out = Fifo::EMPTY;
            self.links.expire(&mut self.pool, link, now, &mut out);
            while self.links.take_dirty().is_some() {}
            while let Some(handle) = out.pop(&self.pool) {
                let meta = self.pool.meta(handle);
                self.left.push((meta.leave(), link, meta.seq));
                self.pool.free(handle);
            }
        }
    }

    fn conserved(&mut self, at: u64) {
        for link in 0..self.links.len() as u32 {
            let stats = self.links.stats(&mut self.pool, link, Nanos(at));
            assert!(stats.is_conserved(), "{stats:?}");
        }
    }
}

/// 8 Mbit/s: a microsecond a byte; 96 bytes and 4 of the check sequence take 100 µs.
#[test]
fn two_directions_share_one_transmitter() {
    let mut net =
        Net::new("half-duplex", &[("rate", "8 Mbit/s")], &[&[("delay", "1 ms")], &[("delay", "2 ms")]]);
    // Forward, backward, and both at the same time: the first link's packet precedes.
    net.arrive(0, 0, 96, 1);
    net.arrive(10_000, 0, 96, 2);
    net.arrive(20_000, 1, 96, 3);
    net.arrive(30_000, 1, 96, 4);
    net.arrive(30_000, 0, 96, 5);
    net.advance(10 * MS);
    let us = |(time, link, seq): &(u64, u32, u64)| (time / 1000, *link, *seq);
    let left: Vec<_> = net.left.iter().map(us).collect();
    assert_eq!(left, [(1100, 0, 1), (1200, 0, 2), (1400, 0, 5), (2300, 1, 3), (2500, 1, 4)]);
    net.conserved(10 * MS);
}

/// Frames that end at a time are gone before an arrival at that time, and a packet stamped before the
/// medium's last step is treated as arriving after it.
#[test]
fn arrivals_do_not_come_before_what_has_been_done() {
    let mut net = Net::new("half-duplex", &[("rate", "8 Mbit/s")], &[&[("queue", "1 packets")], &[]]);
    net.arrive(0, 0, 96, 1);
    net.arrive(100_000, 0, 96, 2);
    net.advance(150_000);
    assert_eq!(net.left, [(100_000, 0, 1)]);
    net.advance(MS);
    assert_eq!(net.links.effective_arrival(1, Nanos(40_000)), Nanos(200_000));
    net.arrive(40_000, 1, 96, 3);
    net.advance(MS);
    assert_eq!(net.left[2], (300_000, 1, 3));
    net.conserved(MS);
}

/// Stations on a wire and in a cell, with all other blocks of a link: every packet is accounted for, and
/// leaves no earlier than its transmission allows.
#[test]
fn every_packet_is_accounted_for() {
    for (kind, given) in [
        ("half-duplex", &[("rate", "10 Mbit/s")][..]),
        ("csma-cd", &[("propagation", "25 us")]),
        ("dcf", &[("attempts", "2"), ("window", "2"), ("window-max", "4")]),
    ] {
        let keys: &[&[(&str, &str)]] = &[
            &[("loss", "10 %"), ("delay", "1 ms")],
            &[("queue", "10 packets")],
            &[("background", "200 kbit/s")],
            &[],
            &[],
            &[],
            &[],
            &[],
        ];
        let mut net = Net::new(kind, given, keys);
        let mut dice = Dice::named(1, kind);
        let (mut now, mut came) = (0, Vec::new());
        for seq in 0..4000u64 {
            now += dice.below(300_000);
            let bytes = 60 + dice.below(1400) as usize;
            came.push((now, bytes as u64));
            net.arrive(now, dice.below(8) as u32, bytes, seq);
        }
        net.conserved(now);
        net.advance(60_000 * MS);
        net.conserved(60_000 * MS);
        assert!(net.left.windows(2).all(|w| w[0].0 <= w[1].0), "{kind}: in order of time");
        for (leave, _, seq) in &net.left {
            let (arrival, bytes) = came[*seq as usize];
            assert!(*leave >= arrival + (bytes - 14) * 800, "{kind}: {seq} left before it was sent");
        }
        let given_up: u64 = (0..8)
            .map(|link| net.links.stats(&mut net.pool, link, Nanos(60_000 * MS)))
            .flat_map(|stats| stats.drops)
            .filter(|(reason, _)| *reason == DropReason::Collisions.name())
            .map(|(_, packets)| packets)
            .sum();
        // Also on an overloaded wire: stations with many collisions draw from large windows, and others go
        // first.
        assert_eq!(given_up > 0, kind != "half-duplex", "{kind}: {given_up}");
        net.links.flush(&mut net.pool, Nanos(60_000 * MS));
        assert_eq!(net.pool.live(), 0);
        net.conserved(60_000 * MS);
    }
}

/// Media only know the time since the run began. The shift is not a multiple of a slot.
#[test]
fn when_a_run_begins_changes_nothing() {
    for (kind, given) in [
        ("half-duplex", &[("rate", "7 Mbit/s")][..]),
        ("csma-cd", &[]),
        ("dcf", &[]),
        ("dcf", &[("slot", "9 us"), ("rts", "288 us"), ("cts", "240 us"), ("attempts", "2")]),
    ] {
        let run = |begin: u64| {
            let keys: [&[(&str, &str)]; 4] = [&[], &[("background", "50 kbit/s")], &[("delay", "5 ms")], &[]];
            let mut net = Net::new(kind, given, &keys);
            net.links.start(Nanos(begin));
            let (mut dice, mut now) = (Dice::named(5, kind), begin);
            for seq in 0..500u64 {
                now += dice.below(15 * MS);
                net.arrive(now, dice.below(4) as u32, 60 + dice.below(1400) as usize, seq);
            }
            net.advance(begin + 60_000 * MS);
            net.left.iter().map(|&(leave, link, seq)| (leave - begin, link, seq)).collect::<Vec<_>>()
        };
        let wanted = run(0);
        assert!(wanted.len() > 400, "{kind}: {}", wanted.len());
        assert_eq!(run(1_234_567_890_123_457), wanted, "{kind}");
    }
}

/// Reading statistics changes nothing.
#[test]
fn looking_changes_nothing() {
    let run = |looks: bool| {
        let mut net =
            Net::new("dcf", &[], &[&[("background", "100 kbit/s")], &[], &[("delay", "5 ms")], &[]]);
        let mut dice = Dice::named(3, "looks");
        let mut now = 0;
        for seq in 0..500u64 {
            now += dice.below(20 * MS);
            net.arrive(now, dice.below(4) as u32, 500, seq);
            if looks {
                let link = seq as u32 % 4;
                net.links.stats(&mut net.pool, link, Nanos(now));
                let (deadline, _) = (net.links.deadline(4), net.links.deadline(link));
                assert!(deadline >= Nanos(now));
            }
        }
        net.advance(60_000 * MS);
        net.left
    };
    assert_eq!(run(false), run(true));
}

/// Bianchi's cell with real packets in real queues: 10 stations, 8184 bits of payload. Compared as for the
/// state machine alone, within one per cent and three standard errors.
#[test]
fn a_saturated_cell_carries_what_the_model_says() {
    let keys: [&[(&str, &str)]; 10] = [&[]; 10];
    let mut net = Net::new("dcf", &[], &keys);
    let each = 600u64;
    for seq in 0..each * 10 {
        net.arrive(0, (seq % 10) as u32, 1023 + 14, seq);
    }
    net.advance(60_000 * MS);
    let sent = net.left.iter().filter(|(time, ..)| *time < 55_000 * MS).count() as f64;
    let found = sent * 8184.0 / 55e6;
    assert!((found - 0.7532).abs() < 0.01 * 0.7532 + 3.0 * found / sent.sqrt(), "{found} of {sent}");
    let collisions: u64 =
        (0..10).map(|link| net.links.stats(&mut net.pool, link, Nanos(60_000 * MS)).collisions).sum();
    assert!(collisions > 0);
    net.conserved(60_000 * MS);
}

/// Background packets of one station take their turns among the packets of another.
#[test]
fn background_traffic_takes_its_turns() {
    // 1000 bytes every millisecond from the beginning, of 803.2 µs each with their check sequence; and as
    // often 1250 bytes of 1 ms. They are sent in order of arrival, at equal times the first link's first: the
    // last one follows 99 others and, as the first of them found the medium idle, 99 of the background's.
    let mut net = Net::new("half-duplex", &[("rate", "10 Mbit/s")], &[&[], &[("background", "8 Mbit/s")]]);
    for seq in 0..100 {
        net.arrive(seq * MS, 0, 1246, seq);
    }
    net.advance(10_000 * MS);
    let last = net.left[99].0;
    assert_eq!(last, 100 * MS + 99 * 803_200);
    net.conserved(last);
}

#[test]
fn a_medium_stays_what_it_is_and_the_rest_can_change() {
    let mut net = Net::new("half-duplex", &[("rate", "8 Mbit/s")], &[&[], &[]]);
    let change = |key: &str, text: &str| {
        let spec = registry().into_iter().find(|spec| spec.key == key).unwrap();
        (spec, Values::read(spec, &[(spec.params[0].name, text)]).unwrap())
    };
    net.arrive(0, 0, 96, 1);
    net.arrive(0, 0, 96, 2);
    let refused = net.links.change(&mut net.pool, 0, Nanos(50_000), &[change("rate", "1 Mbit/s")]);
    assert!(refused.unwrap_err().to_string().contains("medium"));
    net.links.change(&mut net.pool, 0, Nanos(150_000), &[change("delay", "1 ms")]).unwrap();
    net.advance(5 * MS);
    assert_eq!(net.left, [(100_000, 0, 1), (1_200_000, 0, 2)]);
    assert!(registry().iter().all(|spec| spec.kind != "shared"), "no link has it by itself");
}

/// Eight stations, each with two packets of 1000 bytes every millisecond, share 8 Mbit/s: a millisecond per
/// packet. Without a time limit they would wait for seconds. Returns the longest and the mean wait, after the
/// first second, of packets sent by `end` ms.
fn waits(kind: &str, given: &[(&str, &str)], queue: (&str, &[(&str, &str)]), end: u64) -> (f64, f64) {
    let spec = registry().into_iter().find(|spec| (spec.key, spec.kind) == ("queue", queue.0)).unwrap();
    let values = Values::read(spec, queue.1).unwrap();
    let stations = vec![LinkConfig::default().with(spec, values); 8];
    let mut net = Net::of((kind, given), &stations);
    let mut came = Vec::new();
    for at in (0..end).map(|ms| ms * MS) {
        for station in 0..8 {
            for _ in 0..2 {
                came.push(at);
                net.arrive(at, station, 996, came.len() as u64 - 1);
            }
        }
    }
    let waits: Vec<u64> = net
        .left
        .iter()
        .map(|(leave, _, seq)| (leave - came[*seq as usize], came[*seq as usize]))
        .filter(|(_, came)| *came > 1000 * MS)
        .map(|(wait, _)| wait)
        .collect();
    let most = *waits.iter().max().unwrap() as f64 / MS as f64;
    (most, waits.iter().sum::<u64>() as f64 / waits.len() as f64 / MS as f64)
}

/// On a half-duplex medium packets are sent in the order of their arrival: each waits for the backlogs of all
/// stations, and a limit of 50 ms bounds the wait, except for a packet that finds its own station's queue
/// empty.
#[test]
fn a_limit_in_time_counts_what_waits_at_other_stations() {
    let (most, _) = waits("half-duplex", &[("rate", "8 Mbit/s")], ("tail-drop", &[("limit", "50 ms")]), 3000);
    assert_eq!(most, 51.0);
    let mut net =
        Net::new("half-duplex", &[("rate", "8 Mbit/s")], &[&[("queue", "50 ms")], &[("queue", "50 ms")]]);
    (0..40).for_each(|seq| net.arrive(0, 0, 996, seq));
    (40..80).for_each(|seq| net.arrive(0, 1, 996, seq));
    net.advance(1000 * MS);
    // 40 wait at the first station; of those at the second, ten may.
    assert_eq!(net.left.len(), 50);
    assert_eq!(net.left.iter().map(|(leave, ..)| *leave).max(), Some(50 * MS));
    net.conserved(1000 * MS);
}

/// PIE on eight stations that take turns: its target is 15 ms; with each station assuming the whole rate the
/// delay would be 138 ms.
#[test]
fn pie_steers_stations_to_its_target() {
    let (_, mean) = waits("half-duplex", &[("rate", "8 Mbit/s")], ("pie", &[("limit", "unlimited")]), 20_000);
    assert!((7.5..30.0).contains(&mean), "{mean}");
}

/// If the medium is random, the rate is estimated: delays are near the target.
#[test]
fn stations_estimate_their_departure_rate() {
    for (kind, given) in [("dcf", &[("rate", "11 Mbit/s")][..]), ("csma-cd", &[])] {
        let (_, mean) = waits(kind, given, ("tail-drop", &[("limit", "200 ms")]), 20_000);
        assert!((100.0..250.0).contains(&mean), "{kind}: {mean}");
    }
}
