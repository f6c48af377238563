//! The parts of a scenario on three machines, which are namespaces, as one network in real time.

use super::support::places::Places;
use super::support::started::{Ended, Started};
use super::support::{Folder, json, longwire, row, stderr, stdout};
use super::{THREE_BRIDGES, machines};
use longwire_lab::Lab;
use serde_json::Value;
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

/// A scenario cut for three machines, which are namespaces, runs in real time as one network.
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
    let places: [(&str, &[&str]); 3] = [("one", &["left"]), ("two", &["middle"]), ("three", &["right"])];
    let mut text = machines(&places).replace("150 us", "5 ms");
    for (name, _) in places {
        text = text.replace(
            &format!("name = \"{name}\"\n"),
            &format!("name = \"{name}\"\nnetns = \"{}\"\n", net.named(name)),
        );
    }
    let cluster = folder.write("machines.toml", text);
    let cut = longwire(&["partition", &scenario, "--machines", &cluster, "--write", &folder.text("")]);
    assert_eq!(cut.status.code(), Some(0), "{}{}", stdout(&cut), stderr(&cut));
    assert!(longwire(&["tunnel", "key", &folder.text("tunnel.key")]).status.success());
    let running = places.map(|(name, _)| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_longwire"));
        let instance = net.named(name);
        command.args(["run", &folder.text(&format!("{name}.toml")), "--name", &instance, "--json"]);
        (instance, Started::ready(&mut command, "running as").0)
    });
    for (instance, _) in &running {
        wait_for_tunnels(instance);
    }
    for (from, to, least) in [("one", "10.0.0.3", 60.0), ("three", "10.0.0.2", 20.0)] {
        let (received, shortest) = ping(&net.named(from), if from == "one" { "a" } else { "d" }, to);
        assert_eq!(received, 10, "from {from}");
        // The clocks of these machines are one, and known to half a round trip of the network between them.
        assert!(shortest > least - 1.0, "{shortest} ms from {from}");
    }
    for (_, started) in running {
        let Ended { output, .. } = started.end();
        let report: Value = serde_json::from_str(&output).unwrap_or_else(|e| panic!("{e}: {output}"));
        assert_eq!(row(&report, "packets accounted for")["pass"], true, "{report:#}");
    }
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

/// Replies to ten pings from a host, and the least round trip in ms.
fn ping(instance: &str, host: &str, to: &str) -> (u32, f64) {
    let lab = Lab::open(instance).unwrap();
    let mut command = lab.host(host).unwrap().command("ping").unwrap();
    command.args(["-n", "-q", "-i", "0.02", "-W", "5", "-c", "10", to]);
    let text = stdout(&command.output().unwrap());
    let received = text.split(" received").next().and_then(|before| before.rsplit(' ').next());
    let least = text.split("min/avg/max/mdev = ").nth(1).and_then(|rest| rest.split('/').next());
    let number = |text: Option<&str>| text.and_then(|text| text.parse::<f64>().ok()).unwrap_or_default();
    (number(received) as u32, number(least))
}
