//! Both ends of `exec`, on a machine of the test's own: a host with its own network, firewall and settings.
#![allow(unsafe_code)]

mod support;

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::UdpSocket;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

use longwire_lab::{ExecNet, ExecSpec, FAR, FAR_ADDRESS, FarEnd, HostSpec, Lab, NEAR, Wiring, sweep};
use support::{Wire, may_run, may_translate, output, unique};

/// Makes a copy of this test program run inside the machine: the name of its exec net.
const NET: &str = "LONGWIRE_TEST_NET";
/// How many more nets to make inside this one.
const DEPTH: &str = "LONGWIRE_TEST_DEPTH";

/// A machine behind a router, with a drop-all firewall as container engines set up.
fn machine(name: &str) -> (Lab, Wire) {
    let veth = Wiring::Veth { offload: false };
    let host = |name, addresses: [&str; 2]| HostSpec {
        wiring: veth,
        addresses: addresses.map(|address| address.parse().unwrap()).to_vec(),
        ..HostSpec::new(name, addresses[0].parse().unwrap())
    };
    let outside = host("outside", ["10.9.0.1/24", "fd09::1/64"]);
    let gateways = ["10.9.0.1", "fd09::1"].map(|gateway| gateway.parse().unwrap()).to_vec();
    let machine = HostSpec { gateways, ..host("machine", ["10.9.0.2/24", "fd09::2/64"]) };
    let lab = Lab::create(&unique(name), &[outside, machine]).unwrap();
    let port = |name| lab.host(name).unwrap().port().unwrap();
    let wire = Wire::between(lab.core(), port("outside"), port("machine"));
    let rules = "table ip filter {
        chain FORWARD { type filter hook forward priority 0; policy drop; }
        chain INPUT { type filter hook input priority 0; policy drop;
            iifname lo accept; ct state established,related accept; }
        }
        table ip6 filter { chain FORWARD { type filter hook forward priority 0; policy drop; }
        }";
    output(lab.host("machine").unwrap().command("nft").unwrap().arg(rules));
    // Namespaces may start with the machine's current settings; and hosts learn routers.
    let settings = [
        "net.ipv4.ip_forward=0",
        "net.ipv4.conf.all.accept_redirects=0",
        "net.ipv6.conf.all.forwarding=0",
        "net.ipv6.conf.eth0.accept_ra=1",
    ];
    output(lab.host("machine").unwrap().command("sysctl").unwrap().arg("-w").args(settings));
    (lab, wire)
}

/// Everything that `exec` may change.
fn settings(lab: &Lab) -> String {
    let script = "nft list ruleset; ip -brief link; ip route; ip -6 route; sysctl net.ipv4.ip_forward;
        cd /proc/sys/net; for f in ipv?/conf/*/forwarding ipv6/conf/*/accept_ra ipv4/conf/*/accept_redirects
        do echo $f $(cat $f); done";
    output(lab.host("machine").unwrap().command("sh").unwrap().args(["-c", script]))
}

fn start(lab: &Lab, net: &str, depth: u32) -> (Child, BufReader<ChildStdout>) {
    let mut child = lab
        .host("machine")
        .unwrap()
        .command(std::env::current_exe().unwrap())
        .unwrap()
        .args(["--exact", "make_a_net", "--nocapture"])
        .envs([(NET, net.to_owned()), (DEPTH, depth.to_string())])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let stdout = BufReader::new(child.stdout.take().unwrap());
    (child, stdout)
}

fn wait_for(lines: &mut BufReader<ChildStdout>, what: &str) {
    let mut seen = String::new();
    while lines.read_line(&mut seen).unwrap() > 0 {
        if seen.contains(what) {
            return;
        }
    }
    panic!("no \"{what}\" in: {seen}");
}

/// Packets to an address that the machine's table `seen` has counted, after a host has sent three more.
fn seen(lab: &Lab, from: &str, to: &str) -> u64 {
    let mut ping = lab.host(from).unwrap().command("ping").unwrap();
    ping.args(["-c", "3", "-i", "0.2", "-W", "1", to]).output().unwrap();
    let mut list = lab.host("machine").unwrap().command("nft").unwrap();
    let table = output(list.args(["list", "table", "inet", "seen"]));
    let count = table.split(&format!("{to} counter packets ")).nth(1).unwrap().split(' ').next();
    count.unwrap().parse().unwrap()
}

/// Not a test: runs inside the machine.
#[test]
fn make_a_net() {
    let Ok(name) = std::env::var(NET) else { return };
    let depth: u32 = std::env::var(DEPTH).unwrap().parse().unwrap();
    let spec = ExecSpec { far: FarEnd::Machine, wiring: Wiring::Veth { offload: false }, mtu: 1500 };
    let net = ExecNet::create(&name, &spec).unwrap();
    let port = |host: &longwire_lab::Host| host.port().unwrap().to_owned();
    let wire = Wire::between(net.lab().core(), &port(net.near()), &port(net.far()));
    let far = net.far_ipv6_address().unwrap().to_string();
    for target in [["-4", "outside"], ["-6", &far], ["-6", "outside"]] {
        let text = output(net.command("ping").unwrap().args(["-c", "1", "-W", "5"]).args(target));
        assert!(text.contains(" 0% packet loss"), "{text}");
    }
    // Neither end resolves the other over the link.
    let near = output(net.command("ip").unwrap().arg("neigh"));
    assert!(near.contains(&format!("{} ", net.far_address())) && near.contains("PERMANENT"), "{near}");
    let far = output(net.far_command("ip").unwrap().arg("neigh"));
    for own in &net.near().spec().addresses {
        assert!(far.contains(&own.address.to_string()), "{far}");
    }
    let shown = output(net.command("ls").unwrap().arg("/sys/class/net"));
    assert_eq!(
        shown.split_whitespace().collect::<Vec<_>>(),
        ["eth0", "lo"],
        "/sys is of the command's network"
    );
    let variable = output(net.command("printenv").unwrap().arg(FAR_ADDRESS));
    assert_eq!(variable.trim(), net.far_address().to_string());
    println!("up {name}");
    if depth > 0 {
        let mut inner = net.command(std::env::current_exe().unwrap()).unwrap();
        inner.args(["--exact", "make_a_net", "--nocapture"]);
        inner.envs([(NET, format!("{name}-{depth}")), (DEPTH, (depth - 1).to_string())]);
        assert!(inner.stdin(Stdio::null()).status().unwrap().success());
    }
    if std::env::var_os("LONGWIRE_TEST_NAME").is_some() {
        println!("resolved {}", output(net.command("getent").unwrap().args(["ahostsv4", "a.test"])));
    }
    let _ = std::io::stdin().read(&mut [0]);
    drop(wire);
    net.down().unwrap();
    println!("down {name}");
}

#[test]
fn a_command_reaches_outside_and_the_machine_is_as_before() {
    if !may_translate("a_command_reaches_outside_and_the_machine_is_as_before") {
        return;
    }
    let (lab, _wire) = machine("exec");
    let before = settings(&lab);
    assert!(before.contains("net.ipv4.ip_forward = 0"), "{before}");
    let (first, second) = (unique("net1"), unique("net2"));
    let (mut child, mut lines) = start(&lab, &first, 0);
    wait_for(&mut lines, &format!("up {first}"));
    let (mut other, mut other_lines) = start(&lab, &second, 0);
    wait_for(&mut other_lines, &format!("up {second}"));
    // The first run ends first; the second still needs forwarding.
    drop(child.stdin.take());
    wait_for(&mut lines, &format!("down {first}"));
    assert!(child.wait().unwrap().success());
    let during = settings(&lab);
    // The machine continues to learn its routers.
    for value in ["net.ipv4.ip_forward = 1", "ipv6/conf/all/forwarding 1", "ipv6/conf/eth0/accept_ra 2"] {
        assert!(during.contains(value), "no {value} in {during}");
    }
    drop(other.stdin.take());
    wait_for(&mut other_lines, &format!("down {second}"));
    assert!(other.wait().unwrap().success());
    assert_eq!(settings(&lab), before);
}

/// A machine that forwarded nothing must not become a router for its neighbours while a command runs.
#[test]
fn others_are_not_forwarded() {
    if !may_translate("others_are_not_forwarded") {
        return;
    }
    let (lab, _wire) = machine("router");
    let host = |name| lab.host(name).unwrap();
    // The machine's own firewall accepts everything, and it has a second network to which only it has a
    // route.
    output(host("machine").command("nft").unwrap().args(["flush", "ruleset"]));
    let script =
        "ip link add inner type veth peer name far; ip link set far up; ip addr add 10.8.0.1/24 dev \
        inner; ip link set inner up;
        ip neigh add 10.8.0.2 lladdr 02:00:00:00:00:08 dev inner;
        ip addr add fd08::1/64 dev inner nodad; ip neigh add fd08::2 lladdr 02:00:00:00:00:08 dev inner;
        nft add table inet seen; nft add chain inet seen out '{ type filter hook postrouting priority 300; }';
        nft add rule inet seen out ip daddr 10.8.0.2 counter;
        nft add rule inet seen out ip6 daddr fd08::2 counter";
    output(host("machine").command("sh").unwrap().args(["-c", script]));
    for (network, via) in [("10.8.0.0/24", "10.9.0.2"), ("fd08::/64", "fd09::2")] {
        output(host("outside").command("ip").unwrap().args(["route", "add", network, "via", via]));
    }
    // Packets that have left the machine for a host behind it.
    let sent = |to: &str| seen(&lab, "outside", to);
    assert_eq!(["10.8.0.2", "fd08::2"].map(sent), [0, 0], "the machine forwards nothing");
    let net = unique("alone");
    let (mut child, mut lines) = start(&lab, &net, 0);
    wait_for(&mut lines, &format!("up {net}"));
    for (family, to) in [("ip", "10.8.0.2"), ("ip6", "fd08::2")] {
        assert_eq!(sent(to), 0, "only the command's packets are forwarded");
        // Proves that the packets would have been seen.
        let table = ["delete", "table", family, "longwire-forwarding"];
        output(host("machine").command("nft").unwrap().args(table));
        assert_eq!(sent(to), 3, "without the restriction");
    }
    drop(child.stdin.take());
    assert!(child.wait().unwrap().success());
}

/// With the kernel's module `br_netfilter`, what containers on one bridge send each other passes the filter
/// of forwarded packets, also on a machine that forwards nothing.
#[test]
fn neighbours_on_a_bridge_still_reach_each_other() {
    let test = "neighbours_on_a_bridge_still_reach_each_other";
    if !may_translate(test) {
        return;
    }
    if !Path::new("/proc/sys/net/bridge").exists() {
        return println!("skipped {test}: the kernel's module br_netfilter is not there");
    }
    let (lab, _wire) = machine("bridge");
    // One of the two is the machine itself, by an interface that is not the bridge's.
    let script = "set -e; nft flush ruleset
        sysctl -w net.bridge.bridge-nf-call-iptables=1 net.bridge.bridge-nf-call-ip6tables=1
        ip link add br0 type bridge; ip link set br0 up
        for i in 1 2; do
            ip link add port$i type veth peer name end$i
            ip link set port$i master br0 up; ip link set end$i up
        done
        ip addr add 10.8.0.1/24 dev end1; ip addr add fd08::1/64 dev end1 nodad
        ip neigh add 10.8.0.2 lladdr 02:00:00:00:00:08 dev end1
        ip neigh add fd08::2 lladdr 02:00:00:00:00:08 dev end1
        nft add table inet seen; nft add chain inet seen out '{ type filter hook postrouting priority 300; }'
        nft add rule inet seen out oifname br0 ip daddr 10.8.0.2 counter
        nft add rule inet seen out oifname br0 ip6 daddr fd08::2 counter";
    output(lab.host("machine").unwrap().command("sh").unwrap().args(["-c", script]));
    let bridged = || ["10.8.0.2", "fd08::2"].map(|to| seen(&lab, "machine", to));
    assert_eq!(bridged(), [3, 3], "before");
    let net = unique("bridged");
    let (mut child, mut lines) = start(&lab, &net, 0);
    wait_for(&mut lines, &format!("up {net}"));
    assert_eq!(bridged(), [6, 6], "while a command runs");
    drop(child.stdin.take());
    assert!(child.wait().unwrap().success());
}

#[test]
fn nets_can_be_nested() {
    if !may_translate("nets_can_be_nested") {
        return;
    }
    let (lab, _wire) = machine("nest");
    let before = settings(&lab);
    let name = unique("nested");
    let (mut child, mut lines) = start(&lab, &name, 2);
    drop(child.stdin.take());
    wait_for(&mut lines, &format!("up {name}-2-1"));
    wait_for(&mut lines, &format!("\ndown {name}\n"));
    assert!(child.wait().unwrap().success());
    assert_eq!(settings(&lab), before);
}

#[test]
fn a_killed_command_leaves_the_machine_as_before_once_swept() {
    if !may_translate("a_killed_command_leaves_the_machine_as_before_once_swept") {
        return;
    }
    let (lab, _wire) = machine("kill");
    let before = settings(&lab);
    let name = unique("killednet");
    let (mut child, mut lines) = start(&lab, &name, 0);
    wait_for(&mut lines, &format!("up {name}"));
    let during = settings(&lab);
    let mark = format!("comment \"longwire-{name}\"");
    for rule in ["masquerade", "iifname \"lw", "ct state established,related accept"] {
        assert!(during.lines().any(|l| l.contains(rule) && l.ends_with(&mark)), "no {rule} in {during}");
    }
    child.kill().unwrap();
    child.wait().unwrap();
    // Another program's sweep may have been first; the machine is restored either way.
    sweep().unwrap();
    assert!(Lab::list().unwrap().iter().all(|l| l.instance != name));
    assert_eq!(settings(&lab), before);
}

#[test]
fn names_resolve_by_a_server_on_the_machines_loopback() {
    if !may_translate("names_resolve_by_a_server_on_the_machines_loopback") {
        return;
    }
    let (lab, _wire) = machine("names");
    // Hosts have no name server in their resolv.conf: programs then ask 127.0.0.1.
    let server = lab.host("machine").unwrap().run(|| UdpSocket::bind("127.0.0.1:53").unwrap()).unwrap();
    let stop = server.try_clone().unwrap();
    let answers = std::thread::spawn(move || {
        let mut buffer = [0; 512];
        while let Ok((n, from)) = server.recv_from(&mut buffer) {
            if n == 4 && &buffer[..4] == b"stop" {
                return;
            }
            let _ = server.send_to(&answer(&buffer[..n]), from);
        }
    });
    let name = unique("names1");
    let mut command = lab.host("machine").unwrap().command(std::env::current_exe().unwrap()).unwrap();
    command.args(["--exact", "make_a_net", "--nocapture"]).stdin(Stdio::null());
    command.envs([(NET, name.as_str()), (DEPTH, "0"), ("LONGWIRE_TEST_NAME", "1")]);
    let text = output(&mut command);
    assert!(text.contains("resolved 192.0.2.7 "), "{text}");
    lab.host("machine")
        .unwrap()
        .run(|| UdpSocket::bind("127.0.0.1:0").unwrap().send_to(b"stop", "127.0.0.1:53").unwrap())
        .unwrap();
    answers.join().unwrap();
    drop(stop);
}

/// 192.0.2.7 for every query of an IPv4 address, nothing for others (RFC 1035 section 4).
fn answer(query: &[u8]) -> Vec<u8> {
    let mut reply = query[..12].to_vec();
    reply[2..4].copy_from_slice(&[0x81, 0x80]);
    // One question, whose name ends with a zero byte; type and class follow. Further records are ignored.
    let name_end = 12 + query[12..].iter().position(|b| *b == 0).unwrap() + 1;
    let is_v4 = query[name_end..name_end + 2] == [0, 1];
    reply[4..12].copy_from_slice(&[0, 1, 0, u8::from(is_v4), 0, 0, 0, 0]);
    reply.extend_from_slice(&query[12..name_end + 4]);
    if is_v4 {
        reply.write_all(&[0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 192, 0, 2, 7]).unwrap();
    }
    reply
}

#[test]
fn a_private_far_end_is_reached_and_nothing_else_changes() {
    if !may_run("a_private_far_end_is_reached_and_nothing_else_changes") {
        return;
    }
    let spec = ExecSpec { far: FarEnd::Private, wiring: Wiring::Veth { offload: false }, mtu: 1400 };
    let net = ExecNet::create(&unique("private"), &spec).unwrap();
    let _wire = Wire::between(net.lab().core(), net.near().port().unwrap(), net.far().port().unwrap());
    output(net.command("ping").unwrap().args(["-c", "1", "-W", "5", "far"]));
    for far in [net.far_address(), net.far_ipv6_address().unwrap()] {
        let server = net.far().run(|| std::net::TcpListener::bind((far, 0)).unwrap()).unwrap();
        let at = server.local_addr().unwrap();
        let connect = || std::net::TcpStream::connect(at).unwrap().local_addr().unwrap();
        assert_eq!(net.near().run(connect).unwrap(), server.accept().unwrap().1);
    }
    // IPv6 needs a larger MTU.
    net.down().unwrap();
    let net = ExecNet::create(&unique("short"), &ExecSpec { mtu: 1279, ..spec }).unwrap();
    assert_eq!(net.far_ipv6_address(), None);
}

#[test]
fn ends_wired_by_tap_wait_for_their_devices() {
    if !may_translate("ends_wired_by_tap_wait_for_their_devices") {
        return;
    }
    let (lab, _wire) = machine("tap");
    let before = settings(&lab);
    let spec = ExecSpec { far: FarEnd::Machine, wiring: Wiring::Tap, mtu: 1400 };
    let machine = lab.host("machine").unwrap();
    let mut net = machine.run(|| ExecNet::create(&unique("tapnet"), &spec)).unwrap().unwrap();
    for end in [NEAR, FAR] {
        let host = net.lab().host(end).unwrap();
        let made = ["tuntap", "add", host.interface(), "mode", "tap"];
        host.run(|| output(Command::new("ip").args(made))).unwrap();
        net.configure(end).unwrap();
    }
    let show = ["-brief", "address", "show", "eth0"];
    let near = output(net.command("ip").unwrap().args(show));
    assert!(near.contains(&net.near().spec().addresses[0].to_string()), "{near}");
    let far =
        output(machine.command("ip").unwrap().args(["-brief", "address", "show", net.far().interface()]));
    assert!(far.contains(&format!("{}/30", net.far_address())), "{far}");
    drop(net);
    assert_eq!(settings(&lab), before);
}
