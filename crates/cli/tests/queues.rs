//! Ports with a queue for each of two workers, on interfaces in their own namespaces. Needs root; skipped
//! with a message otherwise.

mod support;

use serde_json::Value;
use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Stdio};
use support::guarded::Guarded;
use support::lab::can_make_labs;
use support::started::Started;
use support::{Folder, longwire, row, stderr};

/// Three namespaces, removed at the end: the one in which Longwire runs, and one on each side of it.
struct Nets(String);

const SIDES: [&str; 2] = ["l", "r"];

impl Nets {
    /// Returns none, with a message, if namespaces are impossible.
    fn new(test: &str) -> Option<Self> {
        if !can_make_labs(test) {
            return None;
        }
        let nets = Self(format!("t{}-{test}-", std::process::id()));
        for net in ["m", "l", "r"] {
            nets.ip(&format!("netns add {}{net}", nets.0));
            // No spontaneous traffic before both sides are up.
            let quiet = "net.ipv6.conf.all.disable_ipv6=1 net.ipv6.conf.default.disable_ipv6=1";
            let quiet = nets.command(net, "sysctl").arg("-q").args(quiet.split(' ')).status().unwrap();
            assert!(quiet.success());
        }
        Some(nets)
    }

    fn ip(&self, arguments: &str) {
        let output = Command::new("ip").args(arguments.split(' ')).output().unwrap();
        assert!(output.status.success(), "ip {arguments}: {}", stderr(&output));
    }

    fn ip_in(&self, net: &str, arguments: &str) {
        self.ip(&format!("-n {}{net} {arguments}", self.0));
    }

    fn command(&self, net: &str, program: &str) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &format!("{}{net}", self.0), program]);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    fn longwire(&self, net: &str, args: &[&str]) -> Command {
        let mut command = self.command(net, env!("CARGO_BIN_EXE_longwire"));
        command.args(args);
        command
    }

    /// Makes Longwire's interface on each side, unless Longwire makes it.
    fn wire(&self, far: &str) {
        for side in SIDES {
            let queues = "numrxqueues 2 numtxqueues 2";
            self.ip_in("m", &format!("link add p{side} {queues} type veth peer name {far}{side} {queues}"));
            self.ip_in("m", &format!("link set p{side} up"));
            self.ip_in("m", &format!("link set {far}{side} up"));
        }
    }

    /// Moves the far ends to their namespaces. AF_XDP must find them beside its own when it starts.
    fn part(&self, far: &str) {
        for (side, address) in SIDES.into_iter().zip(1..) {
            self.ip_in("m", &format!("link set {far}{side} netns {}{side} name eth0", self.0));
            self.ip_in(side, &format!("addr add 10.9.0.{address}/24 dev eth0"));
            self.ip_in(side, "link set eth0 up");
        }
    }
}

impl Drop for Nets {
    fn drop(&mut self) {
        for net in ["m", "l", "r"] {
            let _ = Command::new("ip").args(["netns", "del", &format!("{}{net}", self.0)]).status();
        }
    }
}

/// UDP flows in both directions at once, each with its own ports: none loses a packet, or has one out of
/// order.
fn flows(nets: &Nets) {
    let places: Vec<(usize, u16)> = (0..8).map(|flow| (usize::from(flow % 2), 7100 + flow)).collect();
    let _receivers: Vec<_> = places
        .iter()
        .map(|&(to, port)| {
            let port = port.to_string();
            let mut receiver = nets.longwire(SIDES[to], &["traffic", "receive", "--port", &port]);
            Started::ready(&mut receiver, "listening").0
        })
        .collect();
    let senders: Vec<_> = places
        .iter()
        .map(|&(to, port)| {
            let (address, port) = (format!("10.9.0.{}", to + 1), port.to_string());
            let args =
                ["traffic", "send", "udp", &address, "--port", &port, "--rate", "4mbit", "--for", "2s"];
            Started::begin(nets.longwire(SIDES[1 - to], &args).arg("--json"))
        })
        .collect();
    for sender in senders {
        let ended = sender.wait();
        let report: Value = serde_json::from_str(&ended.output)
            .unwrap_or_else(|error| panic!("{error}: {}{}", ended.output, ended.said));
        assert_eq!(row(&report, "reordered")["measured"], 0, "{report:#}");
        assert_eq!(row(&report, "loss")["lost"], 0, "{report:#}");
    }
}

/// TCP at the highest rate of the links, over four connections.
fn iperf(nets: &Nets) {
    if Command::new("iperf3").arg("--version").output().is_err() {
        return println!("without iperf3, which is not installed");
    }
    let server = nets.command("r", "iperf3").args(["-s", "-1", "--forceflush"]).spawn().unwrap();
    let mut server = Guarded::terminated(server);
    let mut lines = BufReader::new(server.stdout.take().unwrap()).lines().map_while(Result::ok);
    assert!(lines.any(|line| line.contains("listening")));
    std::thread::spawn(move || lines.for_each(drop));
    let output =
        nets.command("l", "iperf3").args(["-c", "10.9.0.2", "-P", "4", "-t", "2", "-J"]).output().unwrap();
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let rate = report["end"]["sum_received"]["bits_per_second"].as_f64().unwrap();
    // Far less than the link's rate, for busy machines.
    assert!(rate > 20e6, "{}", report["end"]);
}

/// Two ports with two queues each, between the two namespaces.
fn cross(driver: &str) {
    let Some(nets) = Nets::new(driver) else { return };
    let far = if driver == "tap" { "p" } else { "f" };
    if driver != "tap" {
        nets.wire(far);
    }
    let folder = Folder::new("queues");
    let port = |side| format!("[[port]]\nname = \"p{side}\"\ndriver = \"{driver}\"\nqueues = 2\n");
    let scenario = folder.write(
        "queues.toml",
        format!("[engine]\nworkers = 2\n{}{}", port("l"), port("r"))
            + "[[link]]\nname = \"wire\"\nbetween = [\"pl\", \"pr\"]\nrate = \"200 Mbit/s\"\n\
                delay = \"1 ms\"\n",
    );
    let name = format!("t{}-{driver}", std::process::id());
    let run = nets.longwire("m", &["run", &scenario, "--name", &name, "--json"]).spawn().unwrap();
    let mut run = Guarded::terminated(run);
    let mut lines = BufReader::new(run.stderr.take().unwrap()).lines();
    let mut said = String::new();
    let is_up = lines
        .by_ref()
        .map_while(Result::ok)
        .inspect(|line| said += line)
        .any(|line| line.starts_with("running as"));
    if !is_up && driver == "tap" && said.contains("/dev/net/tun") {
        return println!("skipped {driver}: {said}");
    }
    assert!(is_up, "{said}");
    std::thread::spawn(move || lines.for_each(drop));
    nets.part(far);
    flows(&nets);
    // A change of a link under load applies to both queues.
    let set = longwire(&["ctl", "set", "wire.forward", "delay=2ms", "--instance", &name]);
    assert!(set.status.success(), "{}", stderr(&set));
    iperf(&nets);
    let stop = longwire(&["ctl", "stop", &name]);
    assert!(stop.status.success(), "{}", stderr(&stop));
    let mut text = String::new();
    run.stdout.take().unwrap().read_to_string(&mut text).unwrap();
    run.wait().unwrap();
    check(&serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}")));
}

/// Both workers received and sent packets; each port is one row; Longwire lost nothing, and all packets are
/// accounted for.
fn check(report: &Value) {
    assert_eq!(row(report, "packets accounted for")["pass"], true, "{report:#}");
    let count = |value: &Value| value.as_u64().unwrap_or_else(|| panic!("{value}"));
    let workers = report["workers"].as_array().unwrap();
    assert!(workers.iter().all(|worker| count(&worker["taken"]) > 100), "{workers:#?}");
    assert!(workers.iter().all(|worker| count(&worker["packets"]) > 100), "{workers:#?}");
    let rows = report["rows"].as_array().unwrap();
    let ports: Vec<_> = rows.iter().filter(|row| row["kind"] == "port").collect();
    assert_eq!(ports.len(), 2, "{ports:#?}");
    let taken: u64 = ports.iter().map(|port| count(&port["in_frames"])).sum();
    let of_workers: u64 = workers.iter().map(|worker| count(&worker["taken"])).sum();
    assert_eq!(taken, of_workers, "a port is the sum of its queues");
    for port in &ports {
        assert!(port["driver"].as_str().unwrap().contains("2 queues"), "{port:#}");
        for lost in ["in_missed", "in_bad", "in_pool_full", "out_full", "out_oversize"] {
            assert_eq!(port[lost], 0, "{lost} of {port:#}");
        }
    }
    // Links may drop TCP's excess packets, and nothing else is dropped.
    let dropped = report["dropped"].as_object().unwrap();
    assert!(dropped.keys().all(|reason| reason == "queue-full"), "{dropped:?}");
}

#[test]
fn packet_sockets_share_flows() {
    cross("af_packet");
}

#[test]
fn xdp_sockets_have_a_receive_queue_each() {
    cross("af_xdp");
}

#[test]
fn queues_of_a_tap_share_flows() {
    cross("tap");
}
