//! Routers as users meet them: hosts of a lab behind them, and runs in virtual time.

mod support;

use longwire_lab::abilities;
use serde_json::Value;
use std::process::{Command, Output};
use support::{Folder, json, longwire, repository, row, stderr, stdout};

/// A lab that is taken down when dropped.
struct Up {
    name: String,
}

impl Up {
    /// Skips the test, and says so, where there can be none.
    fn new(test: &str) -> Option<Self> {
        let can = abilities();
        for ability in [&can.root, &can.namespaces] {
            if !ability.available {
                println!("skipped {test}: {}", ability.reason);
                return None;
            }
        }
        let name = format!("t{}-{test}", std::process::id());
        // Without what changes by itself: this test says when.
        let text = std::fs::read_to_string(repository("scenarios/router.toml")).unwrap();
        let folder = Folder::new("routers");
        let scenario = folder.write("router.toml", text.split("[[at]]").next().unwrap());
        let up = longwire(&["lab", "up", &scenario, "--name", &name]);
        assert!(up.status.success(), "{}", stderr(&up));
        Some(Self { name })
    }

    fn sh(&self, host: &str, script: &str) -> Output {
        longwire(&["lab", "exec", &self.name, host, "--", "sh", "-c", script])
    }

    /// What a command in a host says.
    fn says(&self, host: &str, script: &str) -> String {
        let done = self.sh(host, script);
        stdout(&done) + &stderr(&done)
    }

    fn route(&self, args: &[&str]) -> Output {
        longwire(&[&["ctl", "route"], args, &["--instance", &self.name]].concat())
    }

    fn stats(&self) -> Value {
        json(&longwire(&["ctl", "stats", &self.name, "--json"]), 0)
    }
}

impl Drop for Up {
    fn drop(&mut self) {
        longwire(&["lab", "down", &self.name]);
    }
}

fn example() -> String {
    repository("scenarios/router.toml").display().to_string()
}

#[test]
fn hosts_reach_each_other_over_routers() {
    let Some(lab) = Up::new("router") else { return };
    // Hosts have the router as their gateway, of both families.
    let routes = lab.says("a", "ip route; ip -6 route");
    for gateway in ["default via 10.0.1.1", "default via fd00:0:0:1::1"] {
        assert!(routes.contains(gateway), "{routes}");
    }
    for ping in ["ping -c 3 -i 0.2 -W 5 10.0.2.9", "ping -6 -c 3 -i 0.2 -W 5 fd00:0:0:2::9"] {
        let said = lab.says("a", ping);
        assert!(said.contains("3 received") && said.contains("ttl=62"), "{said}");
    }
    // What traceroute sees: each router answers, from the port by which the packet came.
    for (hops, ping, router) in [
        (1, "ping", "From 10.0.1.1 icmp_seq=1 Time to live exceeded"),
        (2, "ping", "From 10.9.0.2 icmp_seq=1 Time to live exceeded"),
        (2, "ping -6", "From fd00:9::2 icmp_seq=1 Time exceeded: Hop limit"),
    ] {
        let to = if ping == "ping" { "10.0.2.9" } else { "fd00:0:0:2::9" };
        let said = lab.says("a", &format!("{ping} -c 1 -W 5 -t {hops} {to}"));
        assert!(said.contains(router), "{hops}: {said}");
    }
    // The routers themselves answer, and say where nothing is.
    assert!(lab.says("b", "ping -c 1 -W 5 10.9.0.1").contains("1 received"));
    let nowhere = lab.says("a", "ping -c 1 -W 5 192.0.2.1");
    assert!(nowhere.contains("From 10.0.1.1 icmp_seq=1 Destination Net Unreachable"), "{nowhere}");
    let stats = lab.stats();
    let west = row(&stats, "router west");
    assert_eq!(west["pass"], true, "{west:#}");
    assert!(west["exceptions"]["hop-limit"].as_u64() >= Some(1), "{west:#}");
    assert!(west["exceptions"]["no-route"].as_u64() >= Some(1), "{west:#}");
    assert!(row(&stats, "router east")["forwarded"].as_u64() >= Some(12), "{stats:#}");
    assert_eq!(row(&stats, "packets accounted for")["pass"], true, "{stats:#}");
}

#[test]
fn a_changed_route_leads_over_a_smaller_mtu() {
    let Some(lab) = Up::new("mtu") else { return };
    let ping = |options: &str| lab.says("a", &format!("ping -c 2 -i 0.2 -W 5 -s 1472 {options} 10.0.2.9"));
    let before = ping("-M do");
    assert!(before.contains("2 received"), "{before}");
    let listed = stdout(&lab.route(&["list", "west"]));
    assert!(listed.contains("10.0.2.0/24 via 10.9.0.2 dev west-east\n"), "{listed}");
    for route in ["10.0.2.0/24 via 10.9.1.2", "fd00:0:0:2::/64 via fd00:9:1::2"] {
        let added = lab.route(&["add", "west", route]);
        assert!(added.status.success(), "{}", stderr(&added));
    }
    let listed = stdout(&lab.route(&["list", "west"]));
    assert!(listed.contains("10.0.2.0/24 via 10.9.1.2 dev west-south\n"), "{listed}");
    // The router before the smaller link says so; the host then knows.
    let refused = ping("-M do");
    assert!(refused.contains("From 10.9.1.2 icmp_seq=1 Frag needed and DF set (mtu = 1400)"), "{refused}");
    let fragmented = lab.says("c", "ping -c 2 -i 0.2 -W 5 -s 1472 -M dont 10.0.2.9");
    assert!(fragmented.contains("2 received"), "{fragmented}");
    let learnt = lab.says("a", "ping -6 -c 3 -i 0.2 -W 5 -s 1452 fd00:0:0:2::9");
    assert!(learnt.contains("Packet too big: mtu=1400") && learnt.contains("2 received"), "{learnt}");
    let stats = lab.stats();
    let south = row(&stats, "router south");
    assert!(south["exceptions"]["too-big"].as_u64() >= Some(4) && south["pass"] == true, "{south:#}");
    // Mistakes say what would do.
    for (args, wanted) in [
        (&["add", "west", "10.5.0.0/16", "via", "10.5.0.1"][..], "in none of the router's networks"),
        (&["remove", "west", "10.5.0.0/16"], "there is no route to 10.5.0.0/16"),
        (&["list", "wets"], "did you mean \"west\"?"),
    ] {
        let refused = lab.route(args);
        assert_eq!(refused.status.code(), Some(2));
        assert!(stderr(&refused).contains(wanted), "{}", stderr(&refused));
    }
    let removed = lab.route(&["remove", "west", "10.0.2.0/24"]);
    assert!(removed.status.success(), "{}", stderr(&removed));
    assert!(ping("-M dont").contains("Destination Net Unreachable"));
}

#[test]
fn tcp_goes_through_routers() {
    if Command::new("iperf3").arg("--version").output().is_err() {
        return println!("skipped tcp_goes_through_routers: iperf3 is not installed");
    }
    let Some(lab) = Up::new("tcp") else { return };
    let server = lab.sh("b", "iperf3 -s -D --logfile /dev/null && for i in 1 2 3 4 5 6 7 8 9; do ss -Hltn | grep -q 5201 && break; sleep 0.1; done");
    assert!(server.status.success(), "{}", stderr(&server));
    // Then over the line that takes 1400 bytes: TCP finds that out.
    for route in ["10.0.2.0/24 via 10.9.0.2", "10.0.2.0/24 via 10.9.1.2"] {
        assert!(lab.route(&["add", "west", route]).status.success());
        let output = lab.sh("a", "iperf3 -c 10.0.2.9 -t 3 -C cubic -J");
        let result: Value =
            serde_json::from_slice(&output.stdout).unwrap_or_else(|e| panic!("{e}: {}", stderr(&output)));
        let goodput = result["end"]["sum_received"]["bits_per_second"].as_f64().unwrap_or(0.0);
        // 20 Mbit/s on the one way, 50 on the other, in 3 s with a slow start; the machine is shared.
        assert!((5e6..52e6).contains(&goodput), "{route}: {goodput}");
    }
    let stats = lab.stats();
    for router in ["west", "south", "east"] {
        let row = row(&stats, &format!("router {router}"));
        assert!(row["pass"] == true && row["forwarded"].as_u64() > Some(100), "{row:#}");
    }
}

#[test]
fn the_example_runs_in_virtual_time() {
    let report = json(&longwire(&["run", &example(), "--virtual", "--json"]), 0);
    let number =
        |name: &str, key: &str| row(&report, name)[key].as_u64().unwrap_or_else(|| panic!("{report:#}"));
    // 1250 frames of 1000 B at 5 Mbit/s in 2 s; the route changes in the middle. 1000 frames the other way.
    assert_eq!(number("source video", "measured"), 1250);
    assert_eq!(number("source back", "measured"), 1000);
    assert_eq!(number("link line.forward", "in_packets"), 625);
    assert_eq!(number("link detour-east.forward", "in_packets"), 625);
    assert_eq!((number("router west", "forwarded"), number("router south", "forwarded")), (2250, 625));
    // Two destinations, each unknown at first, and again after the change.
    assert_eq!(number("router west", "cache_misses"), 4);
    assert_eq!(number("port west-south", "out_frames"), 625);
    assert_eq!(row(&report, "packets accounted for")["pass"], true);
    assert!(report.get("failures").is_none(), "{report:#}");
}
