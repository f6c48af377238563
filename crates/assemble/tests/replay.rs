//! A simulated run repeats the decisions of a run on the machine's clock: the recorded arrivals, replayed,
//! get the same verdicts and departure times, and no packet was sent before its time.

use crate::support::{PacketView, Trace, memory_ports, port, simulate, two_ports};
use longwire_assemble::{TO_THE_END, build};
use longwire_block::{Dice, Port, Stamp};
use longwire_engine::{Remote, Report, Tolerance};
use longwire_packet::{Batch, Pool};
use longwire_port::driver::af_packet::{AfPacket, AfPacketOptions};
use longwire_port::driver::memory::FarEnd;
use longwire_scenario::{Plan, plan_of};
use longwire_units::Nanos;
use std::collections::HashSet;
use std::process::Command;
use std::time::{Duration, Instant};

/// The link of [`two_ends`].
const LINK: &str = r#"
[[link]]
name = "l"
between = ["p0", "p1"]
rate = "20 Mbit/s"
delay = "3 ms"
loss = "5 %"
queue = "12 packets"
"#;

/// Three stations of a Wi-Fi cell, which collide and give up.
const A_CELL: &str = r#"
seed = 9
[[medium]]
name = "channel"
kind = "dcf"
profile = "802.11g"
attempts = 2
[[bridge]]
name = "b"
[[port]]
name = "p{n - 1}"
count = 3
driver = "memory"
bridge = "b"
addresses = ["{10.0.0.0 + n}/32"]
[[link]]
name = "l{n - 1}"
count = 3
from = "p{n - 1}"
to = "b"
medium = "channel"
delay = "100 us"
queue = "12 packets"
"#;

/// The bridges and links of [`three_bridges`].
const THREE_BRIDGES: &str = r#"
seed = 8
[[bridge]]
name = "b0"
[[bridge]]
name = "b1"
[[bridge]]
name = "b2"
[[link]]
name = "first"
between = ["b0", "b1"]
rate = "30 Mbit/s"
delay = "500 us"
loss = "2 %"
queue = "20 packets"
[[link]]
name = "second"
between = ["b1", "b2"]
rate = "20 Mbit/s"
queue = "15 kB"
loss = "3 %"
"#;

/// Two ports behind one link in each direction.
fn two_ends() -> String {
    format!("seed = 7\n{}{LINK}", two_ports())
}

/// Three bridges in a row: packets from both ends, and from the middle, meet on the same links.
fn three_bridges() -> String {
    let ports = [("p0", 1, "b0"), ("p1", 2, "b2"), ("p2", 3, "b1")];
    let ports = ports.map(|(name, number, at)| port(name, "memory", number, &format!("bridge = \"{at}\"")));
    format!("{THREE_BRIDGES}{}", ports.concat())
}

/// Changes of the link while frames arrive: at once, as ramps, repeated, and to other kinds.
const CHANGING: &str = r#"
[[at]]
time = "120 ms"
link = "l"
rate = "9 Mbit/s"
queue = { kind = "red", limit = "12 packets", min = "2", max = "8" }
[[at]]
time = "200 ms"
link = "l"
ramp = "150 ms"
step = "10 ms"
delay = "6 ms"
loss = "9 %"
[[at]]
time = "260 ms"
link = "l.forward"
every = "70 ms"
times = 3
rate = "4 Mbit/s"
[[at]]
time = "290 ms"
link = "l.forward"
every = "70 ms"
times = 3
rate = "15 Mbit/s"
[[at]]
time = "450 ms"
link = "l.backward"
rate = "0"
[[at]]
time = "470 ms"
link = "l.backward"
rate = "20 Mbit/s"
delay = { kind = "jitter", delay = "3 ms", jitter = "2 ms", order = "reorder" }
"#;

/// Position of a frame's number: behind Ethernet, IPv4 and UDP headers.
const NUMBER: std::ops::Range<usize> = 42..46;

/// A packet that entered a link, or left: its number, when, by which port, and of one that entered its bytes.
struct Seen {
    left: bool,
    number: u32,
    time: u64,
    port: u16,
    frame: Vec<u8>,
}

fn number(frame: &[u8]) -> u32 {
    u32::from_be_bytes(frame[NUMBER].try_into().unwrap())
}

fn look(view: &PacketView<'_>) -> Option<Seen> {
    let PacketView { left, time, meta, frame } = *view;
    let port = if left { meta.out_port } else { meta.in_port };
    Some(Seen {
        left,
        number: number(frame),
        time,
        port,
        frame: if left { Vec::new() } else { frame.to_vec() },
    })
}

/// Looks in real time, where nothing is sent early.
fn look_in_time(view: &PacketView<'_>) -> Option<Seen> {
    let early = view.left && longwire_clock::monotonic() < Nanos(view.time);
    assert!(!early, "sent before it leaves: {:?}", view.meta);
    look(view)
}

/// Number, port and leaving time of each that left, sorted; the run began at `started`.
fn departed(seen: &[Seen], started: u64) -> Vec<(u32, u16, u64)> {
    let left = seen.iter().filter(|seen| seen.left);
    let mut left: Vec<_> = left.map(|seen| (seen.number, seen.port, seen.time - started)).collect();
    left.sort_unstable();
    left
}

/// A frame of `len` bytes from a port to another, or to all if there is none.
fn frame(plan: &Plan, from: usize, to: Option<usize>, number: u32, len: usize) -> Vec<u8> {
    let mut frame = crate::support::frame(plan, from, to.unwrap_or(from), len.max(NUMBER.end));
    if to.is_none() {
        frame[..6].fill(0xff);
        frame[30..34].fill(255);
    }
    frame[NUMBER].copy_from_slice(&number.to_be_bytes());
    frame
}

/// A function that puts a frame on the wire behind a port.
type Push = Box<dyn FnMut(&[u8])>;
/// The plan's ports, and the wires behind them.
type Wired = (Vec<Box<dyn Port>>, Vec<Push>);

fn report(remote: &Remote) -> Report {
    remote.report(Tolerance::default()).unwrap()
}

/// Waits until `sent` frames have come in, or were missed by the kernel, and no link holds any.
fn settle(remote: &Remote, sent: u32) {
    let begun = Instant::now();
    loop {
        let report = report(remote);
        let missed: u64 = report.ports.iter().map(|port| port.stats.in_missed).sum();
        let held: u64 =
            report.links.iter().map(|link| link.stats.queued_packets + link.stats.travelling_packets).sum();
        if report.flow.taken + missed >= u64::from(sent) && held == 0 {
            return;
        }
        assert!(begun.elapsed() < Duration::from_secs(10), "the run does not come to rest: {report:?}");
        std::thread::yield_now();
    }
}

/// Sends greetings from every port, so that bridges learn them, and then bursts for a while.
fn drive(plan: &Plan, wires: &mut [Push], remote: &Remote) {
    let mut number = 0;
    for (from, wire) in wires.iter_mut().enumerate() {
        wire(&frame(plan, from, None, number, 60));
        number += 1;
        settle(remote, number);
    }
    let mut dice = Dice::named(plan.seed, "bursts");
    let ports = wires.len();
    let begun = Instant::now();
    let mut next = Duration::ZERO;
    while next < Duration::from_millis(700) {
        while begun.elapsed() < next {
            std::hint::spin_loop();
        }
        for _ in 0..1 + dice.below(12) {
            let from = dice.below(ports as u64) as usize;
            let to = (from + 1 + dice.below(ports as u64 - 1) as usize) % ports;
            wires[from](&frame(plan, from, Some(to), number, 60 + dice.below(1455) as usize));
            number += 1;
        }
        if dice.below(8) == 0 {
            report(remote);
        }
        next += Duration::from_nanos(dice.below(2_500_000));
    }
    settle(remote, number);
}

/// Compares a real run with its replay.
fn compare(text: &str, wait: &str, real: Option<Wired>) {
    let text = format!("{text}\n[engine]\nwait = \"{wait}\"\npool = \"32 MiB\"\n");
    let plan = plan_of(&text);
    let (ports, mut wires) = real.unwrap_or_else(|| {
        let (ports, ends) = memory_ports(&plan, Stamp::Poll);
        let push = |mut end: FarEnd| Box::new(move |frame: &[u8]| assert!(end.push(frame))) as Push;
        (ports, ends.into_iter().map(push).collect())
    });
    let trace = Trace::of(look_in_time);
    let run = build(&plan, ports, |_| trace.observer()).unwrap().setup.start();
    // The replay begins at zero: events, slots and background traffic are relative to the start of the run.
    let started = run.started().0;
    drive(&plan, &mut wires, &run.remote());
    let recorded = run.stop();
    assert!(recorded.is_conserved() && recorded.errors.is_empty(), "{recorded:?}");
    let seen = trace.take();

    let (ports, mut ends) = memory_ports(&plan, Stamp::Source);
    // The first link is where a packet's recorded arrival counts; the next ones follow from it.
    let mut known = HashSet::new();
    let first = seen.iter().filter(|seen| !seen.left && known.insert(seen.number));
    let mut arrivals: Vec<_> = first.collect();
    // Arrivals at different links by one port may be recorded in another order than they came; those at one
    // link are in order.
    arrivals.sort_by_key(|seen| seen.time);
    for Seen { time, port, frame, .. } in arrivals {
        assert!(ends[usize::from(*port)].push_at(Nanos(*time - started), frame));
    }
    let (replayed, report) = simulate(&plan, ports, TO_THE_END, look);
    let (wanted, got) = (departed(&seen, started), departed(&replayed, 0));
    let differs = wanted.iter().zip(&got).find(|(a, b)| a != b);
    assert!(wanted == got, "{} and {} left, first difference {differs:?}", wanted.len(), got.len());
    let counts = |report: &Report| -> Vec<_> {
        let stats = report.links.iter().map(|link| &link.stats);
        stats.map(|stats| (stats.in_packets, stats.out_packets, stats.drops.clone())).collect()
    };
    assert_eq!(counts(&recorded), counts(&report));
    let dropped: u64 = report.links.iter().map(|link| link.stats.dropped()).sum();
    assert!(wanted.len() > 200 && dropped > 50, "{} left, {dropped} dropped", wanted.len());
}

#[test]
fn one_link() {
    compare(&two_ends(), "spin", None);
}

#[test]
fn changes_while_it_runs() {
    compare(&format!("{}{CHANGING}", two_ends()), "sleep-then-spin", None);
}

#[test]
fn several_hops() {
    compare(&three_bridges(), "sleep-then-spin", None);
}

#[test]
fn a_cell() {
    compare(A_CELL, "sleep-then-spin", None);
}

/// Runs the test `name` again in its own network namespace, or prints the reason why not. Returns true inside
/// it, where the test must run.
fn in_own_network(name: &str) -> bool {
    const MARK: &str = "LONGWIRE_REPLAY_INSIDE";
    if std::env::var_os(MARK).is_some() {
        return true;
    }
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let uids = status.lines().find_map(|line| line.strip_prefix("Uid:")).unwrap();
    if uids.split_whitespace().nth(1) != Some("0") {
        println!("skipped: network namespaces need root");
        return false;
    }
    let test = std::env::current_exe().unwrap();
    let output = Command::new("unshare")
        .arg("--net")
        .arg(test)
        .args(["--exact", &format!("replay::{name}")])
        .env(MARK, "1")
        .output();
    let output = output.expect("util-linux is installed");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && said.contains("1 passed"),
        "{said}{}",
        String::from_utf8_lossy(&output.stderr)
    );
    false
}

/// Ports on one end of each of `count` veth pairs, and wires into the other.
fn veth_ports(count: usize) -> Wired {
    std::fs::write("/proc/sys/net/ipv6/conf/default/disable_ipv6", "1").unwrap();
    let ip = |arguments: String| {
        let status = Command::new("ip").args(arguments.split(' ')).status().expect("iproute2 is installed");
        assert!(status.success(), "ip {arguments}");
    };
    let options = AfPacketOptions { slots: Some(1024), ..Default::default() };
    let port = |index| {
        ip(format!("link add in{index} type veth peer name out{index}"));
        ip(format!("link set in{index} up"));
        ip(format!("link set out{index} up"));
        let name = format!("in{index}");
        let inside = AfPacket::open(&name, &name, &options).unwrap();
        let mut outside = AfPacket::open("out", &format!("out{index}"), &options).unwrap();
        let mut pool = Pool::new(4 << 20).unwrap();
        let push = move |frame: &[u8]| {
            let mut batch = Batch::new();
            batch.push(pool.insert(frame).unwrap());
            outside.transmit(&mut pool, &batch).unwrap();
        };
        (Box::new(inside) as Box<dyn Port>, Box::new(push) as Push)
    };
    (0..count).map(port).unzip()
}

#[test]
fn one_link_between_interfaces() {
    if in_own_network("one_link_between_interfaces") {
        compare(&two_ends(), "sleep-then-spin", Some(veth_ports(2)));
    }
}

#[test]
fn several_hops_between_interfaces() {
    if in_own_network("several_hops_between_interfaces") {
        compare(&three_bridges(), "spin", Some(veth_ports(3)));
    }
}
