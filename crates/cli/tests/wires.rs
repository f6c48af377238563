//! Ports in other network namespaces, wires between them, and interfaces that vanish and come back. Needs
//! root; skipped with a message otherwise.

mod support;

use longwire_port::Interface;
use longwire_port::raw::RawSocket;
use longwire_rundir::lock_directory;
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::ops::Deref;
use std::os::unix::fs::MetadataExt;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use support::guarded::Guarded;
use support::lab::can_make_labs;
use support::places::Places;
use support::{Folder, json, longwire, row};

/// Time limit for events that must happen.
const PATIENCE: Duration = Duration::from_secs(30);

/// Three namespaces: frames go from `east` through `core`, where Longwire's ports are, to `west`.
struct Net {
    places: Places,
    /// The places of the far ends.
    far: FarEnds,
}

/// The namespaces of the veth pairs' far ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FarEnds {
    /// `east` and `west`.
    Apart,
    /// `core`: AF_XDP has to turn their offloads off.
    Beside,
}

impl Net {
    /// None, with a message, if namespaces are impossible.
    fn new(test: &str, what: &str, far: FarEnds) -> Option<Self> {
        if !can_make_labs(test) {
            return None;
        }
        let name = format!("lw{}-{what}", std::process::id());
        let net = Self { places: Places::new(name, &["core", "east", "west"]), far };
        net.join("east");
        net.join("west");
        Some(net)
    }

    /// The namespace and the name of a place's far end.
    fn far_end(&self, place: &str) -> (&str, String) {
        match (self.far, place) {
            (FarEnds::Apart, "east") => ("east", "eth".into()),
            (FarEnds::Apart, _) => ("west", "eth".into()),
            (FarEnds::Beside, _) => ("core", format!("far-{place}")),
        }
    }

    /// Makes the veth pair of a place: in `core` it is called as the place.
    fn join(&self, place: &str) {
        let (namespace, far) = self.far_end(place);
        let there = self.named(namespace);
        self.ip("core", &format!("link add {place} type veth peer name {far} netns {there}"));
        // Without addresses of its own an interface sends nothing by itself.
        self.ip("core", &format!("link set {place} addrgenmode none up"));
        self.ip(namespace, &format!("link set {far} addrgenmode none up"));
    }

    fn socket(&self, place: &str, ethertype: u16) -> RawSocket {
        let (namespace, far) = self.far_end(place);
        self.run(namespace, || RawSocket::open(&far, ethertype)).unwrap()
    }

    /// Whether a frame sent in one place comes to the other unchanged within a moment.
    fn crosses(&self, (from, to): (&str, &str), ethertype: u16, frame: &[u8], moment: Duration) -> bool {
        let (sender, receiver) = (self.socket(from, ethertype), self.socket(to, ethertype));
        sender.send(frame).unwrap();
        let end = Instant::now() + moment;
        let mut buffer = [0; 2048];
        while let Some(length) = receiver.receive(&mut buffer, end - Instant::now().min(end)).unwrap() {
            if buffer[..length] == *frame {
                return true;
            }
        }
        false
    }
}

impl Deref for Net {
    type Target = Places;

    fn deref(&self) -> &Places {
        &self.places
    }
}

/// A run that is ended by the test, or with it.
struct Running {
    child: Guarded,
    name: String,
}

impl Running {
    fn start(scenario: &str, name: String) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_longwire"));
        command.args(["run", scenario, "--name", &name, "--json", "--quiet"]);
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut run = Self { child: Guarded::terminated(child), name };
        let end = Instant::now() + PATIENCE;
        while longwire(&["ctl", "stats", &run.name, "--json"]).status.code() != Some(0) {
            if run.child.try_wait().unwrap().is_some() || Instant::now() > end {
                let lines = BufReader::new(run.child.stderr.take().unwrap()).lines();
                panic!("it did not start: {:?}", lines.map_while(Result::ok).collect::<Vec<_>>());
            }
        }
        run
    }

    /// The counters, once they are as wanted.
    fn stats(&self, wanted: impl Fn(&Value) -> bool) -> Value {
        let end = Instant::now() + PATIENCE;
        loop {
            let stats = json(&longwire(&["ctl", "stats", &self.name, "--json"]), 0);
            if wanted(&stats) {
                return stats;
            }
            assert!(Instant::now() < end, "it does not come about: {stats:#}");
        }
    }

    /// The row of a port, once it is as wanted.
    fn port(&self, name: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        let name = format!("port {name}");
        row(&self.stats(|stats| wanted(row(stats, &name))), &name).clone()
    }
}

const EAST: [u8; 6] = [2, 0, 0, 0, 0, 0xe];

/// A frame of 60 bytes to a group address that is reserved for bridges.
fn reserved(last: u8, kind: u16) -> Vec<u8> {
    let mut frame = vec![0; 60];
    frame[..6].copy_from_slice(&[1, 0x80, 0xc2, 0, 0, last]);
    frame[6..12].copy_from_slice(&EAST);
    frame[12..14].copy_from_slice(&kind.to_be_bytes());
    frame[14..].fill(last);
    frame
}

/// Frames that devices send to their neighbours, by EtherType: pause, slow protocols, 802.1X, LLDP.
const LOCAL: [(u8, u16); 5] = [(1, 0x8808), (2, 0x8809), (3, 0x888e), (0, 0x88cc), (0xe, 0x88cc)];

fn scenario(core: &str, driver: &str, bridge: &str) -> String {
    let port = |name: &str| {
        format!(
            "[[port]]\nname = \"{name}\"\ndriver = \"{driver}\"\nnetns = \"{core}\"\nbridge = \"cable\"\n"
        )
    };
    format!(
        "{}{}[[bridge]]\nname = \"cable\"\n{bridge}\n[[link]]\nname = \"up\"\n\
         between = [\"east\", \"west\"]\ndelay = \"1 ms\"\n",
        port("east"),
        port("west")
    )
}

/// Frames of all kinds in both directions.
fn wire_carries(net: &Net, driver: &str) {
    let folder = Folder::new("wire");
    let file = folder.write("s.toml", scenario(&net.named("core"), driver, "wire = true"));
    let _run = Running::start(&file, net.name.clone());
    for (last, kind) in LOCAL {
        let frame = reserved(last, kind);
        assert!(net.crosses(("east", "west"), kind, &frame, PATIENCE), "{driver}: {kind:#x} to {last:#x}");
        assert!(net.crosses(("west", "east"), kind, &frame, PATIENCE), "{driver}: {kind:#x} to {last:#x}");
    }
    // A spanning tree's frames have a length instead of a type, and a header of LLC.
    let mut hello = reserved(0, 39);
    hello[14..17].copy_from_slice(&[0x42, 0x42, 3]);
    assert!(net.crosses(("east", "west"), 0x0004, &hello, PATIENCE), "{driver}: STP");
}

#[test]
fn a_wire_on_packet_sockets_carries_what_bridges_keep() {
    let test = "a_wire_on_packet_sockets_carries_what_bridges_keep";
    let Some(net) = Net::new(test, "wire", FarEnds::Apart) else { return };
    wire_carries(&net, "af_packet");
}

#[test]
fn a_wire_on_af_xdp_carries_what_bridges_keep() {
    let test = "a_wire_on_af_xdp_carries_what_bridges_keep";
    let Some(net) = Net::new(test, "xdp", FarEnds::Beside) else { return };
    wire_carries(&net, "af_xdp");
}

/// The next start, or whoever looks after labs, restores what a killed run has changed.
#[test]
fn interfaces_of_a_killed_run_are_as_they_were() {
    let test = "interfaces_of_a_killed_run_are_as_they_were";
    let Some(net) = Net::new(test, "kill", FarEnds::Beside) else { return };
    let features = |name: &str| Interface::open(name).unwrap().features().unwrap();
    let offloads = || net.run("core", || ["east", "far-east"].map(features));
    let core = net.run("core", || std::fs::metadata("/proc/thread-self/ns/net").unwrap().ino());
    let is_claimed = || {
        let mut files = std::fs::read_dir(lock_directory().unwrap()).unwrap().map_while(Result::ok);
        let claim = format!("interface-{core}-");
        files.any(|file| file.file_name().to_string_lossy().starts_with(&claim))
    };
    let before = offloads();
    let folder = Folder::new("wire");
    let file = folder.write("s.toml", scenario(&net.named("core"), "af_xdp", "wire = true"));
    let mut run = Running::start(&file, net.name.clone());
    assert!(offloads() != before && is_claimed());
    run.child.kill().unwrap();
    drop(run);
    // Its own directory of sockets, so that no lab of another test is taken down.
    let mut down = Command::new(env!("CARGO_BIN_EXE_longwire"));
    down.args(["lab", "down", "--all"]).env("LONGWIRE_RUN_DIR", folder.path("run"));
    assert!(down.status().unwrap().success());
    // The start of another test may have been first, and not be ready.
    let end = Instant::now() + PATIENCE;
    while offloads() != before || is_claimed() {
        assert!(Instant::now() < end, "{:?}, {before:?}, claimed: {}", offloads(), is_claimed());
    }
}

#[test]
fn a_bridge_keeps_what_a_wire_carries() {
    let Some(net) = Net::new("a_bridge_keeps_what_a_wire_carries", "bridge", FarEnds::Apart) else { return };
    let folder = Folder::new("wire");
    let file = folder.write("s.toml", scenario(&net.named("core"), "af_packet", ""));
    let run = Running::start(&file, net.name.clone());
    for (last, kind) in LOCAL {
        net.socket("east", kind).send(&reserved(last, kind)).unwrap();
    }
    // Frames behind them cross, and they are counted.
    assert!(net.crosses(("east", "west"), 0x88cc, &reserved(0x10, 0x88cc), PATIENCE));
    run.stats(|stats| stats["dropped"]["reserved"] == LOCAL.len());
}

#[test]
fn an_interface_that_comes_back_is_reopened_and_the_outage_counted() {
    let test = "an_interface_that_comes_back_is_reopened_and_the_outage_counted";
    let Some(net) = Net::new(test, "back", FarEnds::Apart) else { return };
    let folder = Folder::new("wire");
    let file = folder.write("s.toml", scenario(&net.named("core"), "af_packet", "wire = true"));
    let run = Running::start(&file, net.name.clone());
    let frame = reserved(3, 0x888e);
    assert!(net.crosses(("east", "west"), 0x888e, &frame, PATIENCE));
    run.port("east", |port| port["outages"] == 0 && port["down_ns"] == 0);

    net.ip("core", "link set east down");
    run.port("east", |port| port["fault"].as_str().is_some_and(|fault| fault.contains("down")));
    net.ip("core", "link set east up");
    let port = run.port("east", |port| port["fault"].is_null());
    assert_eq!(port["outages"], 1);
    let down = port["down_ns"].as_u64().unwrap();
    assert!(down > 0);
    assert!(net.crosses(("east", "west"), 0x888e, &frame, PATIENCE));

    net.ip("core", "link del east");
    run.port("east", |port| port["fault"].as_str().is_some_and(|fault| fault.contains("gone")));
    // The outage continues.
    let begun = run.port("east", |port| port["outages"] == 2)["down_ns"].as_u64();
    run.port("east", |port| port["down_ns"].as_u64() > begun);
    net.join("east");
    let port = run.port("east", |port| port["fault"].is_null());
    assert_eq!(port["outages"], 2);
    assert!(port["down_ns"].as_u64().unwrap() > down);
    assert!(port["notes"][0].as_str().unwrap().contains("down or gone 2 times"), "{port:#}");
    assert!(net.crosses(("east", "west"), 0x888e, &frame, PATIENCE));
    assert!(net.crosses(("west", "east"), 0x888e, &frame, PATIENCE));
    run.port("west", |port| port["outages"] == 0);
}

/// A TAP device is made in the given namespace, which is that of a process.
#[test]
fn a_tap_is_made_in_the_namespace_of_a_process() {
    let Some(net) = Net::new("a_tap_is_made_in_the_namespace_of_a_process", "tap", FarEnds::Apart) else {
        return;
    };
    let mut inhabitant = Command::new("ip")
        .args(["netns", "exec", &net.named("east"), "cat"])
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let folder = Folder::new("wire");
    let text = format!("[[port]]\nname = \"lw-tap\"\ndriver = \"tap\"\nnetns = {}\n", inhabitant.id());
    let namespace = format!("/proc/{}/ns/net", inhabitant.id());
    let own = std::fs::read_link("/proc/self/ns/net").unwrap();
    let end = Instant::now() + PATIENCE;
    // It exists once `ip` has become the command.
    while std::fs::read_link(&namespace).is_ok_and(|theirs| theirs == own) && Instant::now() < end {
        std::thread::yield_now();
    }
    let run = Running::start(&folder.write("s.toml", text), net.name.clone());
    net.ip("east", "link show lw-tap");
    drop(run);
    drop(inhabitant.stdin.take());
    assert!(inhabitant.wait().unwrap().success());
}

/// A port on a packet socket and one on a TAP device are added while it runs, and let go again.
#[test]
fn ports_are_added_and_removed_while_it_runs() {
    let Some(net) = Net::new("ports_are_added_and_removed_while_it_runs", "add", FarEnds::Apart) else {
        return;
    };
    let (folder, core) = (Folder::new("wire"), net.named("core"));
    let text = format!("[[port]]\nname = \"east\"\ndriver = \"af_packet\"\nnetns = \"{core}\"\n");
    let run = Running::start(&folder.write("s.toml", text), net.name.clone());
    let ctl = |words: &[&str]| {
        let output = longwire(&[&["ctl"], words, &["--instance", &net.name, "--json"]].concat());
        assert!(!support::stderr(&output).contains("panicked"), "{output:?}");
        output
    };
    let refused = |words: &[&str], why: &str| {
        let output = ctl(words);
        assert_eq!(output.status.code(), Some(2), "{words:?}");
        assert!(support::stderr(&output).contains(why), "{why}: {}", support::stderr(&output));
    };
    let frame = [&[0xff; 6][..], &EAST, &[0x88, 0xb5], &[7; 46]].concat();
    let netns = format!("netns={core}");
    for round in 0..2 {
        let there = format!("ip -n {core} link");
        refused(&["add", "port", "west", "driver=af_packet", "interface=nowhere", &netns], &there);
        let words = ["add", "port", "west", "driver=af_packet", &netns, "--link", "east", "link.delay=1ms"];
        let added = json(&ctl(&words), 0);
        assert_eq!(row(&added, "port west")["done"], "added", "round {round}");
        assert_eq!(row(&added, "link west-east.forward")["done"], "added");
        assert!(net.crosses(("east", "west"), 0x88b5, &frame, PATIENCE));
        assert!(net.crosses(("west", "east"), 0x88b5, &frame, PATIENCE));
        refused(&words, "there are two nodes named \"west\"");
        let tap = [
            "add",
            "port",
            "tap",
            "driver=tap",
            "interface=lw-added",
            &format!("netns={}", net.named("west")),
        ];
        json(&ctl(&tap), 0);
        net.ip("west", "link show lw-added");
        // The interface belongs to this run, until it is let go.
        let again = ["add", "port", "other", "driver=af_packet", "interface=west", &netns];
        refused(&again, "\"west\" belongs to the port \"west\" already");
        let removed = json(&ctl(&["remove", "tap", "west"]), 0);
        assert_eq!(row(&removed, "port tap")["done"], "removed");
        assert_eq!(row(&removed, "link west-east.backward")["done"], "removed");
        let there = Command::new("ip").args(["-n", &net.named("west"), "link", "show", "lw-added"]).output();
        assert!(!there.unwrap().status.success(), "the device is still there");
        json(&ctl(&again), 0);
        json(&ctl(&["remove", "other"]), 0);
    }
    let stats = run.stats(|_| true);
    assert_eq!(row(&stats, "packets accounted for")["pass"], true);
    refused(&["remove", "nobody"], "there is no link or other object \"nobody\"");
}

#[test]
fn what_is_wrong_with_a_namespace_or_a_wire_is_reported() {
    let folder = Folder::new("wire");
    let check = |text: String, wanted: &[&str]| {
        let output = longwire(&["check", &folder.write("s.toml", text)]);
        let said = support::stdout(&output) + &support::stderr(&output);
        assert_ne!(output.status.code(), Some(0), "{said}");
        wanted.iter().for_each(|wanted| assert!(said.contains(wanted), "{wanted}: {said}"));
    };
    check(scenario("../lab", "af_packet", ""), &["netns", "no whole path"]);
    check(scenario("x", "memory", ""), &["driver memory has no netns"]);
    let third = "[[port]]\nname = \"third\"\ndriver = \"memory\"\nbridge = \"cable\"\n";
    let text = scenario("x", "af_packet", "wire = true");
    check(format!("{text}{third}"), &["a wire has two ends", "3 hosts and ports"]);
    let name = format!("lw{}-none", std::process::id());
    let file = folder.write("s.toml", scenario(&name, "af_packet", ""));
    let output = longwire(&["run", &file, "--for", "1s"]);
    if longwire_lab::abilities().namespaces.available {
        assert!(support::stderr(&output).contains(&format!("network namespace \"{name}\"")), "{output:?}");
    }
}
