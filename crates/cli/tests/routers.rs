//! Routers from the user's view: hosts of a lab behind them, and runs in virtual time.

mod support;

use longwire_lab::abilities;
use serde_json::Value;
use std::path::Path;
use std::process::{Command, Output};
use std::time::{Duration, Instant};
use support::{Folder, json, longwire, repository, row, stderr, stdout};

/// A lab that is taken down when dropped.
struct Up {
    name: String,
}

impl Up {
    /// Skips the test with a message if labs are impossible.
    fn new(test: &str) -> Option<Self> {
        // Without the scenario's own events: this test decides when.
        let text = std::fs::read_to_string(repository("scenarios/router.toml")).unwrap();
        Self::of(test, text.split("[[at]]").next().unwrap())
    }

    /// A lab whose routers have control planes, if `programs` are installed.
    fn with_control_planes(test: &str, programs: &[&str]) -> Option<Self> {
        if let Some(missing) = programs.iter().find(|program| !Path::new(program).exists()) {
            println!("skipped {test}: {missing} is not installed");
            return None;
        }
        if !abilities().tap.available {
            println!("skipped {test}: {}", abilities().tap.reason);
            return None;
        }
        Self::of(test, &std::fs::read_to_string(repository("scenarios/control-plane.toml")).unwrap())
    }

    fn of(test: &str, text: &str) -> Option<Self> {
        let can = abilities();
        for ability in [&can.root, &can.namespaces] {
            if !ability.available {
                println!("skipped {test}: {}", ability.reason);
                return None;
            }
        }
        let name = format!("t{}-{test}", std::process::id());
        let folder = Folder::new("routers");
        let scenario = folder.write("router.toml", text);
        let up = longwire(&["lab", "up", &scenario, "--name", &name]);
        assert!(up.status.success(), "{}", stderr(&up));
        Some(Self { name })
    }

    fn sh(&self, host: &str, script: &str) -> Output {
        longwire(&["lab", "exec", &self.name, host, "--", "sh", "-c", script])
    }

    /// Output of a command in a host.
    fn says(&self, host: &str, script: &str) -> String {
        let done = self.sh(host, script);
        stdout(&done) + &stderr(&done)
    }

    /// Runs a command in a host until its output contains all of `wanted`: other tests may use the
    /// processors.
    fn until(&self, host: &str, script: &str, wanted: &[&str]) -> String {
        let begin = Instant::now();
        loop {
            let said = self.says(host, &format!("{script}; sleep 0.3"));
            if wanted.iter().all(|wanted| said.contains(wanted)) {
                return said;
            }
            assert!(begin.elapsed() < PATIENCE, "{host}: {script}: {said}\n{:#}", self.stats());
        }
    }

    /// Queries a router's routes until they contain all of `wanted`.
    fn until_routes(&self, router: &str, wanted: &[&str]) {
        let begin = Instant::now();
        loop {
            let listed = stdout(&self.route(&["list", router]));
            if wanted.iter().all(|wanted| listed.contains(wanted)) {
                return;
            }
            assert!(begin.elapsed() < PATIENCE, "{wanted:?}: {listed}\n{:#}", self.stats());
            // Queries take the run's time, so they are spaced.
            self.says(router, "sleep 0.3");
        }
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

/// Longest wait for routing protocols: they have timers of many seconds.
const PATIENCE: Duration = Duration::from_secs(180);

/// BIRD's configuration: OSPF for both families on all ports, and `more`. Its timers allow for a busy
/// machine.
fn bird(lab: &Up, folder: &Folder, router: &str, names: (&str, &str), more: &str) {
    bird_with_patience(lab, folder, router, names, (more, 30));
}

/// As [`bird`], with neighbours that expire after `dead` seconds.
fn bird_with_patience(
    lab: &Up,
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
    let Some(lab) = Up::with_control_planes("bird", &PROGRAMS) else { return };
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
    let Some(lab) = Up::with_control_planes("several", &[]) else { return };
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
    assert_eq!(row(&stats, "control plane west")["malformed"], 0, "{stats:#}");
}

#[test]
fn a_link_that_is_down_takes_the_carrier_along() {
    const PROGRAMS: [&str; 2] = ["/usr/sbin/bird", "/usr/sbin/birdc"];
    let folder = Folder::new("carrier");
    let Some(lab) = Up::with_control_planes("carrier", &PROGRAMS) else { return };
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
    let Some(lab) = Up::with_control_planes("frr", &PROGRAMS) else { return };
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
    let Some(lab) = Up::with_control_planes("killed", &[]) else { return };
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
    let Some(lab) = Up::new("default") else { return };
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
    let Some(lab) = Up::new("tcp") else { return };
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
