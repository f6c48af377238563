//! Hosts behind routers, and changed routes.

use crate::RoutedLab;
use crate::support::{json, longwire, repository, row, stderr, stdout};
use serde_json::Value;
use std::process::Command;

fn example() -> String {
    repository("scenarios/router.toml").display().to_string()
}

/// Sends a datagram to the second router's far address, and prints the source of the error that comes back
/// (IP_RECVERR, MSG_ERRQUEUE).
const OFFENDER: &str = r#"
import select, socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.setsockopt(socket.IPPROTO_IP, 11, 1)
s.sendto(b"x", ("10.0.2.1", 9))
p = select.poll()
p.register(s, select.POLLERR)
p.poll(10000)
control = s.recvmsg(512, 512, 0x2000)[1][0][2]
print(socket.inet_ntoa(control[20:24]))
"#;

#[test]
fn hosts_reach_each_other_over_routers() {
    let Some(lab) = RoutedLab::new("router") else { return };
    // Hosts have the router as their gateway, of both families.
    let routes = lab.says("a", "ip route; ip -6 route");
    for gateway in ["default via 10.0.1.1", "default via fd00:0:0:1::1"] {
        assert!(routes.contains(gateway), "{routes}");
    }
    for ping in ["ping -c 3 -i 0.2 -W 5 10.0.2.9", "ping -6 -c 3 -i 0.2 -W 5 fd00:0:0:2::9"] {
        let said = lab.says("a", ping);
        assert!(said.contains("3 received") && said.contains("ttl=62"), "{said}");
    }
    // traceroute: each router answers, from the port by which the packet came.
    for (hops, ping, router) in [
        (1, "ping", "From 10.0.1.1 icmp_seq=1 Time to live exceeded"),
        (2, "ping", "From 10.9.0.2 icmp_seq=1 Time to live exceeded"),
        (2, "ping -6", "From fd00:9::2 icmp_seq=1 Time exceeded: Hop limit"),
    ] {
        let to = if ping == "ping" { "10.0.2.9" } else { "fd00:0:0:2::9" };
        let said = lab.says("a", &format!("{ping} -c 1 -W 5 -t {hops} {to}"));
        assert!(said.contains(router), "{hops}: {said}");
    }
    // The routers themselves answer, and report unreachable destinations.
    assert!(lab.says("b", "ping -c 1 -W 5 10.9.0.1").contains("1 received"));
    let recorded = lab.says("a", "ping -R -c 1 -W 5 10.9.0.1");
    assert!(recorded.contains("RR: \t10.0.1.9\n\t10.9.0.1\n\t10.0.1.9\n"), "{recorded}");
    // An anycast address of routers is answered from the router's own address.
    for (any, own) in [("fd00:0:0:1::", "fd00:0:0:1::1"), ("fd00:9::", "fd00:9::1")] {
        let said = lab.says("a", &format!("ping -6 -c 1 -W 5 {any}"));
        assert!(said.contains(&format!("64 bytes from {own}: ")), "{said}");
    }
    // Only the router is in the all-routers group: hosts do not forward.
    let device = "$(ip -6 -o route show fe80::/64 | sed 's/.*dev \\([^ ]*\\).*/\\1/' | head -n 1)";
    let said = lab.says("a", &format!("ping -6 -c 1 -W 5 ff02::2%{device}"));
    assert!(said.contains("1 received") && said.contains("from fe80::"), "{said}");
    // The kernel reports the source of the port-unreachable error: the requested address, on the router's
    // other side.
    let offender = lab.says("a", &format!("python3 -c '{OFFENDER}'"));
    assert_eq!(offender.trim(), "10.0.2.1");
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
    let Some(lab) = RoutedLab::new("mtu") else { return };
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
    // The router before the smaller link reports it; the host then knows.
    let refused = ping("-M do");
    assert!(refused.contains("From 10.9.1.2 icmp_seq=1 Frag needed and DF set (mtu = 1400)"), "{refused}");
    let fragmented = lab.says("c", "ping -c 2 -i 0.2 -W 5 -s 1472 -M dont 10.0.2.9");
    assert!(fragmented.contains("2 received"), "{fragmented}");
    let learnt = lab.says("a", "ping -6 -c 3 -i 0.2 -W 5 -s 1452 fd00:0:0:2::9");
    assert!(learnt.contains("Packet too big: mtu=1400") && learnt.contains("2 received"), "{learnt}");
    let stats = lab.stats();
    let south = row(&stats, "router south");
    assert!(south["exceptions"]["too-big"].as_u64() >= Some(4) && south["pass"] == true, "{south:#}");
    // Error messages contain a valid example.
    for (args, wanted) in [
        (&["add", "west", "10.5.0.0/16", "via", "10.5.0.1"][..], "in none of the router's networks"),
        (
            &["add", "west", "10.5.0.0/16", "via", "10.9.1.1"],
            "10.9.1.1 is the router's own address at \"west-south\"",
        ),
        (
            &["add", "west", "10.5.0.0/16", "via", "10.9.1.2", "dev", "west-east"],
            "10.9.1.2 is in the network of \"west-south\", not behind \"west-east\"",
        ),
        (
            &["add", "west", "10.0.1.1/32", "dev", "west-east"],
            "10.0.1.1/32 is the router's own at \"west-lan\"",
        ),
        (&["remove", "west", "10.9.0.1/32"], "10.9.0.1/32 is the router's own at \"west-east\""),
        (&["remove", "west", "10.0.1.255/32"], "10.0.1.255/32 is the router's own at \"west-lan\""),
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
fn default_routes_and_networks_of_ports_are_changed_while_it_runs() {
    let Some(lab) = RoutedLab::new("default") else { return };
    let done = |args: &[&str]| {
        let done = lab.route(args);
        assert!(done.status.success(), "{args:?}: {}", stderr(&done));
    };
    let listed = || stdout(&lab.route(&["list", "west"]));
    let (v4, v6) = ("0.0.0.0/0 via 10.9.0.2 dev west-east", "::/0 via fd00:9::2 dev west-east");
    for both in [true, false] {
        done(&["add", "west", "default via fd00:9::2"]);
        if both {
            done(&["add", "west", "default", "via", "10.9.0.2"]);
        }
        let before = listed();
        assert!(before.contains(v6) && before.contains(v4) == both, "{before}");
        done(&["remove", "west", "default"]);
        let after = listed();
        assert!(!after.contains("0.0.0.0/0") && !after.contains("::/0 "), "{after}");
    }
    // A route that is never used is noted, as in check.
    let noted = lab.route(&["add", "west", "224.0.0.0/4", "dev", "west-lan"]);
    let note = "note: the route to 224.0.0.0/4 is never used: nothing is forwarded to groups; leave it out\n";
    assert_eq!((noted.status.code(), &*stderr(&noted)), (Some(0), note));
    done(&["remove", "west", "224.0.0.0/4"]);
    let refused = lab.route(&["remove", "west", "default"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(stderr(&refused).contains("there is no default route"), "{}", stderr(&refused));
    // The network of a port is unreachable for a while, and then behind the port again.
    let ping = || lab.says("b", "ping -c 1 -W 5 10.0.1.9");
    assert!(ping().contains("1 received"));
    done(&["add", "west", "unreachable", "10.0.1.0/24"]);
    assert!(listed().contains("blackhole 10.0.1.0/24"));
    assert!(lab.says("b", "ping -c 1 -W 1 10.0.1.9").contains("0 received"));
    done(&["remove", "west", "10.0.1.0/24"]);
    assert!(listed().contains("10.0.1.0/24 dev west-lan") && ping().contains("1 received"));
}

#[test]
fn tcp_goes_through_routers() {
    if Command::new("iperf3").arg("--version").output().is_err() {
        return println!("skipped tcp_goes_through_routers: iperf3 is not installed");
    }
    let Some(lab) = RoutedLab::new("tcp") else { return };
    let server = lab.sh(
        "b",
        "iperf3 -s -D --logfile /dev/null && timeout 60 sh -c 'until ss -Hltn | grep -q \
        5201; do sleep 0.1; done'",
    );
    assert!(server.status.success(), "{}", stderr(&server));
    // Then over the line with an MTU of 1400: TCP discovers it.
    for route in ["10.0.2.0/24 via 10.9.0.2", "10.0.2.0/24 via 10.9.1.2"] {
        assert!(lab.route(&["add", "west", route]).status.success());
        let output = lab.sh("a", "iperf3 -c 10.0.2.9 -t 3 -C cubic -J");
        let result: Value =
            serde_json::from_slice(&output.stdout).unwrap_or_else(|e| panic!("{e}: {}", stderr(&output)));
        let goodput = result["end"]["sum_received"]["bits_per_second"].as_f64().unwrap_or(0.0);
        // 20 Mbit/s on one path, 50 on the other, in 3 s with slow start; the machine is shared.
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
    // 1250 frames of 1000 B at 5 Mbit/s in 2 s; the route changes half-way. 1000 frames in the other
    // direction.
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
