//! Control planes: BIRD and FRR in the namespaces of routers.

use crate::support::{Folder, json, longwire, repository, row, stderr};
use crate::{PATIENCE, RoutedLab};
use serde_json::Value;
use std::process::Command;
use std::time::Instant;

/// BIRD's configuration: OSPF for both families on all ports, and `more`. Its timers allow for a busy
/// machine.
fn bird(lab: &RoutedLab, folder: &Folder, router: &str, names: (&str, &str), more: &str) {
    bird_with_patience(lab, folder, router, names, (more, 30));
}

/// As [`bird`], with neighbours that expire after `dead` seconds.
fn bird_with_patience(
    lab: &RoutedLab,
    folder: &Folder,
    router: &str,
    (id, lan): (&str, &str),
    (more, dead): (&str, u32),
) {
    let area = format!(
        "area 0 {{ interface \"{lan}\" {{ stub; }}; interface \"{router}-*\" {{ type ptp; hello 1; dead \
         {dead}; }}; }};"
    );
    let text = format!(
        "router id {id};\nprotocol device {{ scan time 1; }}\n\
        protocol kernel {{ ipv4 {{ export where source != RTS_STATIC; }}; }}\n\
        protocol kernel {{ ipv6 {{ export all; }}; }}\n\
        protocol ospf v2 o4 {{ ipv4; {area} }}\nprotocol ospf v3 o6 {{ ipv6; {area} }}\n{more}\n"
    );
    let config = folder.write(&format!("{router}.conf"), text);
    let (control, pid) = (folder.text(&format!("{router}.ctl")), folder.text(&format!("{router}.pid")));
    let said = lab.says(router, &format!("/usr/sbin/bird -c {config} -s {control} -P {pid} && echo started"));
    assert!(said.contains("started"), "{said}");
}

#[test]
fn bird_finds_the_paths_between_three_routers() {
    const PROGRAMS: [&str; 2] = ["/usr/sbin/bird", "/usr/sbin/birdc"];
    let folder = Folder::new("bird");
    let Some(lab) = RoutedLab::with_control_planes("bird", &PROGRAMS) else { return };
    for (router, id, lan) in
        [("west", "10.255.0.1", "a"), ("east", "10.255.0.2", "b"), ("south", "10.255.0.3", "-")]
    {
        bird(&lab, &folder, router, (id, lan), "");
    }
    let neighbours = format!("birdc -s {} show ospf neighbors", folder.text("west.ctl"));
    // For each family one over the line, and one over the detour.
    let are_full = |said: &str| said.matches("Full").count() == 4;
    let begin = Instant::now();
    while !are_full(&lab.says("west", &format!("{neighbours}; sleep 0.3"))) {
        assert!(begin.elapsed() < PATIENCE, "{}", lab.says("west", &neighbours));
    }
    // fe80::4c:57ff:fe01:7 is east's, made of its hardware address.
    lab.until_routes(
        "west",
        &["10.0.2.0/24 via 10.9.0.2 dev west-east", "fd00:0:0:2::/64 via fe80::4c:57ff:fe01:7 dev west-east"],
    );
    lab.until_routes("east", &["10.0.1.0/24 via 10.9.0.1 dev east-west", "fd00:0:0:1::/64 via fe80::"]);
    lab.until(
        "a",
        "ping -c 1 -W 2 10.0.2.9; ping -6 -c 1 -W 2 fd00:0:0:2::9",
        &["ttl=62 time", "icmp_seq=1 ttl=62"],
    );
    // Programs in the namespace reach distant addresses, and are reached.
    lab.until("west", "ping -c 1 -W 2 -I 10.0.1.1 10.0.2.9", &["1 received"]);
    lab.until("b", "ping -c 1 -W 2 10.9.1.1", &["1 received"]);
    let by_hand = lab.route(&["add", "west", "10.5.0.0/16 via 10.9.0.2"]);
    assert!(stderr(&by_hand).contains("follows its control plane"), "{}", stderr(&by_hand));

    // Floods of pings, and of packets with options, to the router and through it.
    lab.says(
        "a",
        "ping -f -q -w 3 10.0.1.1 & ping -f -q -w 3 -R 10.0.1.1 & ping -f -q -w 3 -R 10.0.2.9; wait",
    );
    let said = lab.says("west", &neighbours);
    assert!(are_full(&said), "{said}");

    // East's end of the line is set down: the detour becomes the path.
    lab.says("east", "ip link set east-west down");
    lab.until_routes("west", &["10.0.2.0/24 via 10.9.1.2 dev west-south"]);
    lab.until("a", "ping -c 1 -W 2 10.0.2.9", &["ttl=61"]);
    let stats = lab.stats();
    for router in ["west", "east", "south"] {
        let row = row(&stats, &format!("router {router}"));
        assert!(row["pass"] == true && row["punted"]["control-routing"].as_u64() > Some(10), "{row:#}");
    }
    let mirror = row(&stats, "control plane west");
    assert!(
        mirror["refused"] == 0 && mirror["malformed"] == 0 && mirror["routes"].as_u64() > Some(15),
        "{mirror:#}"
    );
}

#[test]
fn several_next_hops_in_the_namespace_share_the_flows_of_the_router() {
    let Some(lab) = RoutedLab::with_control_planes("several", &[]) else { return };
    // From west over the line and over the detour, weights 1 and 2; back over the line.
    for (router, script) in [
        ("west", "ip route add 10.0.2.0/24 nexthop via 10.9.0.2 weight 1 nexthop via 10.9.1.2 weight 2"),
        ("south", "ip route add 10.0.2.0/24 via 10.9.2.1; ip route add 10.0.1.0/24 via 10.9.1.1"),
        ("east", "ip route add 10.0.1.0/24 via 10.9.0.1"),
    ] {
        let done = lab.sh(router, script);
        assert!(done.status.success(), "{router}: {}", stderr(&done));
    }
    let both = "10.0.2.0/24 nexthop via 10.9.0.2 dev west-east weight 1 nexthop via 10.9.1.2 dev west-south \
        weight 2";
    lab.until_routes("west", &[both]);
    lab.until_routes("east", &["10.0.1.0/24 via 10.9.0.1"]);
    lab.until_routes("south", &["10.0.2.0/24 via 10.9.2.1"]);
    lab.until_routes("south", &["10.0.1.0/24 via 10.9.1.1"]);
    // Sixteen addresses behind west. With two hops to go, a packet ends at the second router, which reports
    // it: east or south.
    lab.says("a", "for n in $(seq 20 35); do ip addr add 10.0.1.$n/24 dev eth0; done");
    let ways = || {
        let ping = "for n in $(seq 20 35); do ping -c 1 -W 5 -t 2 -I 10.0.1.$n 10.0.2.9 | grep -o '^From \
            [0-9.]*'; done";
        let begin = Instant::now();
        loop {
            let said = lab.says("a", ping);
            if said.lines().count() == 16 {
                return said;
            }
            assert!(begin.elapsed() < PATIENCE, "{said}\n{:#}", lab.stats());
        }
    };
    let first = ways();
    let (line, detour) = (first.matches("From 10.9.0.2").count(), first.matches("From 10.9.1.2").count());
    assert!(line > 0 && detour > 0 && line + detour == 16, "{first}");
    assert_eq!(ways(), first, "each flow stays where it is");
    lab.until(
        "a",
        "for n in $(seq 20 35); do ping -c 1 -W 5 -I 10.0.1.$n 10.0.2.9; done | grep -c ttl=",
        &["16"],
    );
    lab.says("west", "ip route replace 10.0.2.0/24 via 10.9.0.2");
    lab.until_routes("west", &["10.0.2.0/24 via 10.9.0.2 dev west-east"]);
    assert_eq!(ways().matches("From 10.9.0.2").count(), 16);
    let stats = lab.stats();
    // Interfaces are up before the run starts.
    let ports = stats["rows"].as_array().unwrap().iter().filter(|row| row["kind"] == "port");
    let outages: Vec<_> = ports.map(|port| (&port["name"], &port["outages"])).collect();
    let is_control = |name: &Value| name.as_str().is_some_and(|name| name.contains(':'));
    assert_eq!(outages.iter().filter(|port| is_control(port.0)).count(), 8, "{outages:?}");
    assert!(outages.iter().all(|port| *port.1 == 0), "{outages:?}");
    assert_eq!(row(&stats, "control plane west")["malformed"], 0, "{stats:#}");
}

#[test]
fn a_link_that_is_down_takes_the_carrier_along() {
    const PROGRAMS: [&str; 2] = ["/usr/sbin/bird", "/usr/sbin/birdc"];
    let folder = Folder::new("carrier");
    let Some(lab) = RoutedLab::with_control_planes("carrier", &PROGRAMS) else { return };
    for (router, id, lan) in
        [("west", "10.255.0.1", "a"), ("east", "10.255.0.2", "b"), ("south", "10.255.0.3", "-")]
    {
        // No neighbour expires during this test: one that is lost has lost the carrier.
        bird_with_patience(&lab, &folder, router, (id, lan), ("", 3600));
    }
    let by_the_line = ["10.0.2.0/24 via 10.9.0.2 dev west-east"];
    let by_the_detour = ["10.0.2.0/24 via 10.9.1.2 dev west-south"];
    let set = |state: &str| {
        let to = format!("state={state}");
        let set = longwire(&["ctl", "set", "line.forward", &to, "--instance", &lab.name]);
        assert!(set.status.success(), "{}", stderr(&set));
    };
    let neighbours = format!("birdc -s {} show ospf neighbors o4", folder.text("west.ctl"));
    lab.until_routes("west", &by_the_line);
    set("down");
    // One direction is enough, at both ends; the others keep their carrier.
    for (router, port) in [("west", "west-east"), ("east", "east-west")] {
        lab.until(router, &format!("ip -o link show {port}"), &["NO-CARRIER", "UP"]);
    }
    lab.until_routes("west", &by_the_detour);
    let said = lab.says("west", &neighbours);
    assert!(said.contains("west-south") && !said.contains("west-east"), "{said}");
    let said = lab.says("west", "ip -o link");
    assert_eq!(said.matches("NO-CARRIER").count(), 1, "{said}");
    lab.until("a", "ping -c 1 -W 2 10.0.2.9", &["ttl=61"]);
    // South has received it from both. BIRD announces a change at most every five seconds, and ignores one
    // that was reverted before.
    for (own, other) in [("10.255.0.1", "10.255.0.2"), ("10.255.0.2", "10.255.0.1")] {
        let state = format!("birdc -s {} show ospf state o4", folder.text("south.ctl"));
        let links = format!("{state} | sed -n '/^.router {own}/,/stubnet/p'");
        lab.until("south", &format!("{links} | grep 'router {other} metric' || {links}"), &[own]);
    }
    set("up");
    lab.until("west", "ip -o link show west-east", &["LOWER_UP"]);
    lab.until_routes("west", &by_the_line);
    lab.until("a", "ping -c 1 -W 2 10.0.2.9", &["ttl=62"]);
    let stats = lab.stats();
    for (router, changes) in [("west", 2), ("east", 2), ("south", 0)] {
        let row = row(&stats, &format!("control plane {router}"));
        assert_eq!(
            (&row["carrier-changes"], &row["carrier-refused"]),
            (&changes.into(), &0.into()),
            "{row:#}"
        );
    }
}

#[test]
fn frr_and_bird_speak_ospf_and_bgp() {
    const PROGRAMS: [&str; 4] =
        ["/usr/sbin/bird", "/usr/lib/frr/zebra", "/usr/lib/frr/ospfd", "/usr/lib/frr/bgpd"];
    let folder = Folder::new("frr");
    let Some(lab) = RoutedLab::with_control_planes("frr", &PROGRAMS) else { return };
    let bgp = "protocol static own { ipv4; route 203.0.113.0/24 blackhole; }\n\
        protocol bgp west { local 10.9.0.2 as 65002; neighbor 10.9.0.1 as 65001; connect retry time 2; hold \
        time 60;\n\
        ipv4 { import all; export where source = RTS_STATIC; }; }";
    bird(&lab, &folder, "east", ("10.255.0.2", "b"), bgp);
    let config = folder.write(
        "frr.conf",
        "interface a\n ip ospf passive\n ip ospf area 0\n\
         interface west-east\n ip ospf network point-to-point\n ip ospf hello-interval 1\n \
        ip ospf dead-interval 30\n ip ospf area 0\nrouter ospf\n ospf router-id 10.255.0.1\n\
        router bgp 65001\n bgp router-id 10.255.0.1\n \
        no bgp ebgp-requires-policy\n neighbor 10.9.0.2 remote-as 65002\n neighbor 10.9.0.2 timers connect \
        2\n \
        address-family ipv4 unicast\n  network 198.51.100.0/24\n exit-address-family\n\
        ip route 198.51.100.0/24 blackhole\n",
    );
    let own = folder.text("");
    let mine = Command::new("chown").args(["-R", "frr:frr", &own]).status().unwrap();
    assert!(mine.success());
    for daemon in ["zebra", "ospfd", "bgpd", "staticd"] {
        let start = format!(
            "/usr/lib/frr/{daemon} -d -f {config} -i {own}{daemon}.pid -z {own}zserv.api --vty_socket {own} \
             && echo started"
        );
        let said = lab.says("west", &start);
        assert!(said.contains("started"), "{said}");
    }
    // By OSPF, and by BGP, which is TCP between addresses of the routers; next hops are separate objects in
    // the kernel.
    lab.until_routes(
        "west",
        &["10.0.2.0/24 via 10.9.0.2 dev west-east", "203.0.113.0/24 via 10.9.0.2 dev west-east"],
    );
    lab.until_routes(
        "east",
        &["10.0.1.0/24 via 10.9.0.1 dev east-west", "198.51.100.0/24 via 10.9.0.1 dev east-west"],
    );
    lab.until("a", "ping -c 1 -W 2 10.0.2.9", &["ttl=62"]);
    let said = lab.says("east", &format!("birdc -s {} show protocols west", folder.text("east.ctl")));
    assert!(said.contains("Established"), "{said}");
    // It ends with the lab, as do processes in it.
    let pid = std::fs::read_to_string(folder.path("zebra.pid")).unwrap();
    // A zombie no longer has a program.
    let running = || std::fs::read_link(format!("/proc/{}/exe", pid.trim())).is_ok();
    assert!(running());
    let down = longwire(&["lab", "down", &lab.name]);
    assert!(down.status.success(), "{}", stderr(&down));
    let begin = Instant::now();
    while running() {
        assert!(begin.elapsed() < PATIENCE, "it goes on");
        std::thread::yield_now();
    }
}

#[test]
fn a_killed_run_leaves_nothing_that_the_next_does_not_remove() {
    let Some(lab) = RoutedLab::with_control_planes("killed", &[]) else { return };
    assert!(lab.says("west", "ip -br link").contains("west-east"));
    let listed = json(&longwire(&["lab", "list", "--json"]), 0);
    let pid = row(&listed, &lab.name)["pid"].as_u64().unwrap();
    assert!(Command::new("kill").args(["-9", &pid.to_string()]).status().unwrap().success());
    let begin = Instant::now();
    // Any command that makes hosts cleans up first; `down` prints what there was.
    while longwire(&["lab", "down", &lab.name]).status.success() && begin.elapsed() < PATIENCE {}
    let named = std::fs::read_dir("/run/netns").unwrap().filter_map(Result::ok);
    let left: Vec<_> = named
        .map(|entry| entry.file_name())
        .filter(|name| name.to_string_lossy().contains(&lab.name))
        .collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn control_planes_are_of_real_time_only() {
    let scenario = repository("scenarios/control-plane.toml").display().to_string();
    let refused = longwire(&["run", &scenario, "--virtual"]);
    let said = stderr(&refused);
    assert!(
        refused.status.code() == Some(2) && said.contains("router \"west\" has a control plane"),
        "{said}"
    );
    let checked = longwire(&["check", &scenario]);
    assert!(checked.status.success() && stderr(&checked).contains("real time only"), "{}", stderr(&checked));
}
