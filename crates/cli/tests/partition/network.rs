//! The parts of a scenario on three machines, which are namespaces, as one network in real time.

use super::support::places::Places;
use super::support::started::{Ended, Started};
use super::support::{Folder, json, longwire, row, stderr, stdout};
use super::{THREE_BRIDGES, machines};
use longwire_lab::Lab;
use serde_json::Value;
use std::collections::BTreeMap;
use std::process::Command;
use std::time::{Duration, Instant};

/// Time limit for events that must happen.
const PATIENCE: Duration = Duration::from_secs(60);

/// Hosts on three machines, on a chain of links.
const CHAIN: &str = r#"
[[host]]
name = "a"
address = "10.0.0.1/24"
bridge = "left"
[[host]]
name = "c"
address = "10.0.0.2/24"
bridge = "middle"
[[host]]
name = "d"
address = "10.0.0.3/24"
bridge = "right"
[[link]]
name = "west"
between = ["left", "middle"]
delay = "20 ms"
[[link]]
name = "east"
between = ["middle", "right"]
delay = "10 ms"
"#;

/// Three namespaces in a row, whose middle one is at both cables.
fn row_of_three(name: String) -> Places {
    let net = Places::new(name, &["one", "two", "three"]);
    for (number, place) in [(1, "one"), (3, "three")] {
        net.ip("two", &format!("link add to-{place} type veth peer name eth netns {}", net.named(place)));
        net.ip("two", &format!("link set to-{place} addrgenmode none up"));
        net.ip("two", &format!("address add 192.0.2.2/32 dev to-{place}"));
        net.ip("two", &format!("route add 192.0.2.{number} dev to-{place}"));
        net.ip(place, "link set eth addrgenmode none up");
        net.ip(place, &format!("address add 192.0.2.{number}/32 dev eth"));
        net.ip(place, "route add 192.0.2.2 dev eth");
    }
    net
}

/// The machines, with the bridge of each.
const PLACES: [(&str, &[&str]); 3] = [("one", &["left"]), ("two", &["middle"]), ("three", &["right"])];

/// A ping between two machines, and its round trip without lateness in ms.
struct Pair {
    from: (&'static str, &'static str),
    to: (&'static str, &'static str),
    trip: f64,
}

const PAIRS: [Pair; 2] = [
    Pair { from: ("one", "a"), to: ("three", "10.0.0.3"), trip: 60.0 },
    Pair { from: ("three", "d"), to: ("two", "10.0.0.2"), trip: 20.0 },
];

/// A scenario cut for three machines, which are namespaces, runs in real time as one network: as on one
/// machine, within what the runs report of lateness and clocks.
#[test]
fn three_parts_are_one_network() {
    let ability = longwire_lab::abilities().namespaces;
    if !ability.available {
        println!("three_parts_are_one_network: skipped: {}", ability.reason);
        return;
    }
    let net = row_of_three(format!("lwp{}", std::process::id()));
    let folder = Folder::new("cluster");
    let scenario = folder.write("chain.toml", format!("{THREE_BRIDGES}{CHAIN}"));
    let whole = start(&net.named("whole"), &scenario);
    let of_whole = PAIRS.map(|pair| ping(&net.named("whole"), &pair));
    whole.end();
    cut(&folder, &net, &scenario);
    let running =
        PLACES.map(|(name, _)| (name, start(&net.named(name), &folder.text(&format!("{name}.toml")))));
    running.iter().for_each(|(name, _)| wait_for_tunnels(&net.named(name)));
    let of_parts = PAIRS.map(|pair| ping(&net.named(pair.from.0), &pair));
    let reports: BTreeMap<&str, Value> = running
        .map(|(name, started)| {
            let Ended { output, .. } = started.end();
            (name, serde_json::from_str(&output).unwrap_or_else(|e| panic!("{e}: {output}")))
        })
        .into();
    for report in reports.values() {
        assert_eq!(row(report, "packets accounted for")["pass"], true, "{report:#}");
    }
    let ms = |value: &Value| value.as_u64().unwrap_or_else(|| panic!("{reports:#?}")) as f64 / 1e6;
    let rows = reports.values().flat_map(|report| report["rows"].as_array().unwrap());
    let tunnels = rows.filter(|row| row["underlay"].is_object());
    let clocks: f64 = tunnels.map(|tunnel| ms(&tunnel["underlay"]["clock_error_ns"])).sum();
    for ((pair, part), whole) in PAIRS.iter().zip(of_parts).zip(of_whole) {
        assert!(whole >= pair.trip, "{whole} ms from {} on one machine", pair.from.0);
        // What both ends were late by with half of their packets: of a hundred, some are in time at both.
        // Between the ends, tunnels hide it.
        let late: f64 = [pair.from.0, pair.to.0]
            .map(|at| ms(&reports[at]["fidelity"]["lateness_ns"]["p50"]))
            .iter()
            .sum();
        let bounds = (pair.trip - clocks)..=(whole + late + clocks);
        assert!(bounds.contains(&part), "{part} ms from {}, not in {bounds:?}", pair.from.0);
    }
}

/// Writes the parts of a scenario for the machines into the folder, and their key.
fn cut(folder: &Folder, net: &Places, scenario: &str) {
    let mut text = machines(&PLACES).replace("150 us", "5 ms");
    for (name, _) in PLACES {
        text = text.replace(
            &format!("name = \"{name}\"\n"),
            &format!("name = \"{name}\"\nnetns = \"{}\"\n", net.named(name)),
        );
    }
    let cluster = folder.write("machines.toml", text);
    let cut = longwire(&["partition", scenario, "--machines", &cluster, "--write", &folder.text("")]);
    assert_eq!(cut.status.code(), Some(0), "{}{}", stdout(&cut), stderr(&cut));
    assert!(longwire(&["tunnel", "key", &folder.text("tunnel.key")]).status.success());
}

/// Starts a scenario, and waits until it runs.
fn start(instance: &str, scenario: &str) -> Started {
    let mut command = Command::new(env!("CARGO_BIN_EXE_longwire"));
    command.args(["run", scenario, "--name", instance, "--json"]);
    Started::ready(&mut command, "running as").0
}

/// Waits until all tunnels of an instance are connected.
fn wait_for_tunnels(instance: &str) {
    let end = Instant::now() + PATIENCE;
    loop {
        let stats = json(&longwire(&["ctl", "stats", instance, "--json"]), 0);
        let rows = stats["rows"].as_array().unwrap();
        let tunnels: Vec<&Value> = rows.iter().filter(|row| row["underlay"].is_object()).collect();
        assert!(!tunnels.is_empty(), "{stats:#}");
        if tunnels.iter().all(|tunnel| tunnel["underlay"]["connected"] == true) {
            return;
        }
        assert!(Instant::now() < end, "not connected: {stats:#}");
    }
}

/// The least round trip of a hundred pings in ms, all of which are answered.
fn ping(instance: &str, pair: &Pair) -> f64 {
    let lab = Lab::open(instance).unwrap();
    let mut command = lab.host(pair.from.1).unwrap().command("ping").unwrap();
    command.args(["-n", "-q", "-i", "0.01", "-W", "5", "-c", "100", pair.to.1]);
    let text = stdout(&command.output().unwrap());
    assert!(text.contains(" 100 received"), "{text}");
    let least = text.split("min/avg/max/mdev = ").nth(1).and_then(|rest| rest.split('/').next());
    least.and_then(|least| least.parse().ok()).unwrap_or_else(|| panic!("{text}"))
}
