//! Predicted load of each worker and port, computed by hand for a given file of prices.

use longwire_assemble::{Capacity, predict};
use longwire_prices::{EnginePrices, MachinePrices, Price, read_prices, write_prices};
use longwire_scenario::plan_of;
use longwire_units::{Bytes, Nanos};

/// A file with these prices in picoseconds, and zero for all others.
fn prices(given: &[(&str, u64)]) -> EnginePrices {
    let mut all = MachinePrices::default();
    EnginePrices::required().for_each(|name| all.engine.set(name, Price::exact(0)));
    given.iter().for_each(|(name, price)| all.engine.set(name, Price::exact(*price)));
    read_prices(&write_prices(&all, "a machine")).unwrap_or_else(|error| panic!("{error}")).engine
}

fn predicted(text: &str, given: &[(&str, u64)]) -> Capacity {
    predict(&plan_of(text), &prices(given), Bytes(1514))
}

fn ports(names: &[&str]) -> String {
    names.iter().map(|name| format!("[[port]]\nname = \"{name}\"\ndriver = \"memory\"\n")).collect()
}

/// A frame of 1514 bytes with FCS has 12 144 bits: a thousand a second.
const THOUSAND: &str = "rate = \"12144 kbit/s\"\n";

fn link(from: &str, to: &str, keys: &str) -> String {
    format!("[[link]]\nfrom = \"{from}\"\nto = \"{to}\"\n{keys}\n")
}

/// 10 ns and 1514 bytes at 10 ps to receive, 5 ns to transmit, 30 ns of forwarding, 40 ns of link: 100.14 ns.
#[test]
fn a_packet_pays_its_ports_its_way_and_its_link() {
    let given = [
        ("memory-receive", 10_000),
        ("memory-receive-byte", 10),
        ("memory-transmit", 5_000),
        ("packet", 30_000),
        ("link-rate", 40_000),
        ("block-queue-red-8", 9_860),
        ("block-queue-red-512", 59_860),
        ("late-sleep-then-spin-p50", 1_500_000),
        ("late-sleep-then-spin-p99", 9_000_000),
    ];
    let capacity = predicted(&(ports(&["a", "b"]) + &link("a", "b", THOUSAND)), &given);
    let worker = &capacity.workers[0];
    assert_eq!((capacity.packets_per_second, capacity.unbounded, capacity.measured), (1000, false, true));
    assert_eq!((worker.packets_per_second, worker.packet_picoseconds, worker.load_ppm), (1000, 100_140, 100));
    assert_eq!(worker.saturated_at, 1_000_000_000_000 / 100_140);
    let [a, b] = [&capacity.ports[0], &capacity.ports[1]];
    assert_eq!((a.received_per_second, a.sent_per_second, a.load_ppm), (1000, 0, 25));
    assert_eq!((b.received_per_second, b.sent_per_second, b.load_ppm), (0, 1000, 5));
    assert_eq!(capacity.lateness, [Nanos(1500), Nanos(9000)]);
    assert!(capacity.shortfalls.is_empty() && capacity.assumed.is_empty(), "{capacity:?}");
    // A measured queue adds its price; for a kind that was not measured, the most expensive of the stage is
    // used.
    for (queue, assumed) in [("red", 0), ("pie", 1)] {
        let text =
            ports(&["a", "b"]) + &link("a", "b", &format!("{THOUSAND}queue = {{ kind = \"{queue}\" }}"));
        let capacity = predicted(&text, &given);
        assert_eq!((capacity.workers[0].packet_picoseconds, capacity.assumed.len()), (110_000, assumed));
    }
    // Of 64 links, halfway from 8 to 512, it takes 25 ns more.
    let many = format!(
        "[[link]]\nname = \"l{{n}}\"\ncount = 64\nfrom = \"a\"\nto = \"b\"\n{THOUSAND}\
         queue = {{ kind = \"red\" }}\n\
         match = [{{ source = \"{{10.0.0.0 + n}}\", destination = \"11.0.0.1\" }}]\n"
    );
    assert_eq!(predicted(&(ports(&["a", "b"]) + &many), &given).workers[0].packet_picoseconds, 135_000);
}

/// 1000 packets a second for 2 s are 2000 in flight. A thousand links of a thousand packets a second take a
/// tenth of a core at 100 ns.
#[test]
fn packets_on_their_way_and_many_links_cost_misses() {
    let flights = [
        ("in-flight-1000", 8_000),
        ("in-flight-10000", 8_000),
        ("in-flight-100000", 8_000),
        ("in-flight-1000000", 20_000),
        ("link-rate-delay", 92_000),
    ];
    let delayed =
        predicted(&(ports(&["a", "b"]) + &link("a", "b", &format!("{THOUSAND}delay = \"2 s\""))), &flights);
    let worker = &delayed.workers[0];
    assert_eq!((worker.in_flight, worker.packet_picoseconds), (2000, 100_000));
    // At its limit more than a million are in flight.
    assert_eq!(worker.saturated_at, 1_000_000_000_000 / 112_000);
    let jitter = "delay = { kind = \"jitter\", delay = \"2 s\", jitter = \"1 ms\" }";
    let given = [
        ("in-flight-varied-1000", 9_000),
        ("in-flight-varied-10000", 9_000),
        ("link-delay", 90_000),
        ("block-delay-jitter-8", 1_000),
        ("block-delay-jitter-512", 1_000),
    ];
    let text = ports(&["a", "b"]) + &link("a", "b", &format!("{THOUSAND}{jitter}"));
    let given = [&given[..], &[("link-rate-delay", 90_000)]].concat();
    assert_eq!(predicted(&text, &given).workers[0].packet_picoseconds, 100_000);
    let many = ports(&["a", "b"])
        + "[[link]]\nname = \"l{n}\"\ncount = 1000\nfrom = \"a\"\nto = \"b\"\nrate = \"12144 kbit/s\"\n\
           match = [{ source = \"{10.0.0.0 + n}\", destination = \"11.0.0.1\" }]\n";
    let given = [("link-rate", 60_000), ("timed-links-1000", 40_000), ("links-1000", 7)];
    let worker = &predicted(&many, &given).workers[0];
    assert_eq!(
        (worker.links, worker.packets_per_second, worker.packet_picoseconds),
        (1000, 1_000_000, 100_000)
    );
    assert_eq!(worker.load_ppm, 100_000);
}

/// A thousand links of a thousand packets a second with 20 ms of delay have 20 000 packets in flight, on all
/// links: 70 + 10 ns for arrival and 20 ns for departure. With 1 ms they have a thousand; with 10 µs ten,
/// whose links are revisited at once. One link alone is always revisited.
#[test]
fn packets_on_links_of_their_own_cost_misses_when_they_leave() {
    let given = [("link-rate-delay", 70_000), ("timed-links-1000", 10_000), ("apart-1000", 20_000)];
    let given = [&given[..], &[("apart-10000", 99_000), ("apart-100000", 99_000)]].concat();
    let many = |delay: &str| {
        ports(&["a", "b"])
            + "[[link]]\nname = \"l{n}\"\ncount = 1000\nfrom = \"a\"\nto = \"b\"\nrate = \"12144 kbit/s\"\n\
               match = [{ source = \"{10.0.0.0 + n}\", destination = \"11.0.0.1\" }]\n"
            + &format!("delay = \"{delay}\"\n")
    };
    let costs = |delay| predicted(&many(delay), &given).workers[0].packet_picoseconds;
    assert_eq!(["20 ms", "1 ms", "10 us"].map(costs), [100_000, 100_000, 80_000]);
    let alone = ports(&["a", "b"]) + &link("a", "b", &format!("{THOUSAND}delay = \"20 s\""));
    assert_eq!(predicted(&alone, &given).workers[0].packet_picoseconds, 70_000);
}

/// The second link costs 20 ns more than itself, exact order 10 ns, two bridges of which one is declared 3
/// ns: 30 + 2 · 40 + 33 ns.
#[test]
fn a_further_hop_costs_more_than_its_link() {
    let text = ports(&["a", "b"])
        + "[[bridge]]\nname = \"x\"\n"
        + &link("a", "x", THOUSAND)
        + &link("x", "b", THOUSAND);
    let given = [
        ("packet", 30_000),
        ("bridge", 3_000),
        ("in-order", 10_000),
        ("link-rate", 40_000),
        ("further-link", 20_000),
    ];
    let worker = &predicted(&text, &given).workers[0];
    assert_eq!((worker.packet_picoseconds, worker.packets_per_second), (143_000, 1000));
}

/// Ports on one worker and the link on the other: a packet crosses twice, and each worker pays half of each
/// crossing.
#[test]
fn workers_pay_half_of_a_hand_over_each() {
    let engine = "[engine]\nworkers = 2\nmapping = \"pipeline\"\n";
    let text = format!("{engine}{}{}", ports(&["a", "b"]), link("a", "b", THOUSAND));
    let given = [("packet", 30_000), ("link-rate", 40_000), ("hand-over", 20_000), ("hand-over-byte", 10)];
    let capacity = predicted(&text, &given);
    let each: Vec<_> =
        capacity.workers.iter().map(|worker| (worker.links, worker.packet_picoseconds)).collect();
    assert_eq!(each, [(0, 30_000 + 35_140), (1, 40_000 + 35_140)]);
}

/// Two routers with a link between them: 30 + 2 · 50 + 15 for the second decision, 10 for exact order, 45 ns
/// of link.
#[test]
fn routers_are_paid_on_the_way_through_them() {
    let port = |name: &str, address: &str| format!("{{ port = \"{name}\", addresses = \"{address}\" }}");
    let text = format!(
        "{}[[router]]\nname = \"r1\"\nports = [{}, {}]\n[[router]]\nname = \"r2\"\nports = [{}, {}]\n\
         [[link]]\nbetween = [\"r1-east\", \"r2-west\"]\n{THOUSAND}",
        ports(&["a", "b"]),
        port("a", "10.1.0.1/24"),
        port("r1-east", "10.9.0.1/30"),
        port("r2-west", "10.9.0.2/30"),
        port("b", "10.2.0.1/24"),
    );
    let given = [
        ("packet", 30_000),
        ("router", 50_000),
        ("turn", 15_000),
        ("in-order", 10_000),
        ("link-rate", 45_000),
    ];
    let capacity = predicted(&text, &given);
    assert_eq!(capacity.workers[0].packet_picoseconds, 200_000);
    // A thousand in each direction.
    assert_eq!((capacity.packets_per_second, capacity.ports.len()), (2000, 2));
}

#[test]
fn sources_and_shared_links_bound_what_comes() {
    // 80 kbit/s of 100 bytes are 100 packets a second, whatever the link could carry.
    let source = |name: &str, address: &str| {
        format!("[[port]]\nname = \"{name}\"\ndriver = \"source\"\naddresses = \"{address}\"\n")
    };
    let text = source("a", "10.0.0.1")
        + &source("b", "10.0.0.2")
        + &link("a", "b", THOUSAND)
        + "[[source]]\nname = \"s\"\nfrom = \"a\"\nto = \"b\"\nsize = \"100 B\"\nrate = \"80 kbit/s\"\n";
    let capacity = predicted(&text, &[("memory-receive-byte", 1_000)]);
    assert_eq!((capacity.packets_per_second, capacity.unbounded), (100, false));
    assert_eq!(capacity.workers[0].packet_picoseconds, 100_000);
    // From two ports over a link of 1000 packets a second to a third: 500 each.
    let trunk = "[[bridge]]\nname = \"x\"\n[[bridge]]\nname = \"y\"\n".to_owned()
        + &ports(&["a", "b"]).replace("driver = \"memory\"\n", "driver = \"memory\"\nbridge = \"x\"\n")
        + &ports(&["c"]).replace("driver = \"memory\"\n", "driver = \"memory\"\nbridge = \"y\"\n")
        + &link("x", "y", THOUSAND);
    let capacity = predicted(&trunk, &[]);
    let received: Vec<_> =
        capacity.ports.iter().map(|port| (port.received_per_second, port.sent_per_second)).collect();
    assert_eq!(received[2].1, 1000, "{received:?}");
    assert_eq!((received[0].0, received[1].0), (500, 500));
}

/// Where spinning would be in time, it is the fix; otherwise another program has the processor.
#[test]
fn lateness_above_what_is_allowed_is_noted() {
    for (spinning, fix) in [(5_000_000, "set wait = \"spin\""), (200_000_000, "spinning does not help")] {
        let given = [("late-sleep-then-spin-p99", 150_000_000), ("late-spin-p99", spinning)];
        let notes = predicted(&(ports(&["a", "b"]) + &link("a", "b", THOUSAND)), &given).notes;
        assert!(
            notes.iter().any(|note| note.contains("leaves 150 us late") && note.contains(fix)),
            "{notes:?}"
        );
    }
}

#[test]
fn unbounded_load_has_a_limit_instead() {
    let given = [("packet", 30_000), ("link", 20_000)];
    let capacity = predicted(&(ports(&["a", "b"]) + &link("a", "b", "loss = \"0 %\"")), &given);
    let worker = &capacity.workers[0];
    assert!(capacity.unbounded && worker.unbounded && worker.load_ppm == 0);
    // No loss block was measured: 5 ns are assumed.
    assert_eq!((worker.packet_picoseconds, worker.saturated_at), (55_000, 1_000_000_000_000 / 55_000));
    assert!(capacity.notes.iter().any(|note| note.contains("bounds")), "{:?}", capacity.notes);
}

/// 800 Mbit/s of 1514 bytes are 65 876 packets a second each way; at 10 µs to receive and 10 to transmit they
/// take 2.6 cores.
#[test]
fn what_does_not_fit_names_the_fix() {
    let host = |name: &str, n: u8| {
        format!("[[host]]\nname = \"{name}\"\naddress = \"10.0.0.{n}/24\"\ndriver = \"af_packet\"\n")
    };
    let text = host("a", 1) + &host("b", 2) + "[[link]]\nbetween = [\"a\", \"b\"]\nrate = \"800 Mbit/s\"\n";
    let mut given = vec![
        ("af_packet-receive", 10_000_000),
        ("af_packet-transmit", 10_000_000),
        ("af_xdp-receive", 2_000_000),
        ("af_xdp-transmit", 2_000_000),
    ];
    given.extend(
        ["af_packet-receive-byte", "af_packet-transmit-byte", "af_xdp-receive-byte", "af_xdp-transmit-byte"]
            .map(|name| (name, 0)),
    );
    let capacity = predicted(&text, &given);
    assert_eq!((capacity.packets_per_second, capacity.workers[0].load_ppm), (131_752, 2_635_040));
    let [short] = &capacity.shortfalls[..] else { panic!("{:?}", capacity.shortfalls) };
    assert!(short.what.contains("worker 0 would be busy 263.5 %"), "{}", short.what);
    assert!(
        short.fix.contains("driver = \"af_xdp\"") && short.fix.contains("(then 52.7 %)"),
        "{}",
        short.fix
    );
    assert!(short.fix.contains("workers = 4"), "{}", short.fix);
}

/// A thousand packets a second come by two queues. The first worker has the link: it receives half of them
/// (10 ns), and forwards (30 ns), emulates (40 ns) and transmits (4 ns) them; it takes the other half from
/// the second worker (4 ns), which has received and forwarded it.
#[test]
fn each_worker_gets_its_share_of_a_port_with_queues() {
    let given = [
        ("tap-receive", 10_000),
        ("tap-transmit", 4_000),
        ("tap-receive-byte", 0),
        ("tap-transmit-byte", 0),
        ("packet", 30_000),
        ("link-rate", 40_000),
        ("hand-over", 8_000),
        ("bridge", 99_000),
    ];
    let port = |name: &str| format!("[[port]]\nname = \"{name}\"\ndriver = \"tap\"\nqueues = 2\n");
    let text = format!("[engine]\nworkers = 2\n[[bridge]]\nname = \"x\"\n{}{}", port("a"), port("b"));
    let capacity = predicted(&(text + &link("a", "b", THOUSAND)), &given);
    let of = |worker: usize| {
        let worker = &capacity.workers[worker];
        (worker.packets_per_second, worker.packet_picoseconds, worker.load_ppm)
    };
    assert_eq!((of(0), of(1)), ((1000, 66_000, 66), (500, 44_000, 22)));
    let ports: Vec<_> =
        capacity.ports.iter().map(|port| (port.queues, port.received_per_second, port.load_ppm)).collect();
    assert_eq!((ports, capacity.packets_per_second), (vec![(2, 1000, 10), (2, 0, 4)], 1000));
}
