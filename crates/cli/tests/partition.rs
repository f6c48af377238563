//! `longwire partition`: what is cut, what is refused, and that the parts do what the whole does.

mod support;

use longwire_lab::{Lab, Namespace};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};
use support::started::{Ended, Started};
use support::{Folder, Frame, json, longwire, pcap, read_pcap, row, stderr, stdout};

const BEGIN: u64 = 1_700_000_000_000_000_000;
const MILLISECOND: u64 = 1_000_000;
/// Time limit for events that must happen.
const PATIENCE: Duration = Duration::from_secs(60);

const MACHINES: &str = "latency = \"150 us\"\nclock-error = \"30 us\"\nkey = \"tunnel.key\"\n";

/// A file of machines, each with the nodes that must be there.
fn machines(nodes: &[(&str, &[&str])]) -> String {
    let mut text = MACHINES.to_owned();
    for (number, (name, nodes)) in nodes.iter().enumerate() {
        let address = format!("192.0.2.{}", number + 1);
        write!(text, "\n[[machine]]\nname = \"{name}\"\naddress = \"{address}\"\nnodes = {nodes:?}\n")
            .unwrap();
    }
    text
}

/// A scenario and its parts, with captures at ports.
struct Split {
    folder: Folder,
    whole: String,
    /// By machine: its part, and its tunnels with the machines to which they lead.
    parts: BTreeMap<String, (String, Vec<(String, String)>)>,
}

impl Split {
    fn new(what: &str, scenario: &str, nodes: &[(&str, &[&str])]) -> Self {
        let folder = Folder::new(what);
        let whole = folder.write("whole.toml", scenario);
        let cluster = folder.write("machines.toml", machines(nodes));
        let cut = longwire(&[
            "partition",
            &whole,
            "--machines",
            &cluster,
            "--write",
            &folder.text("parts"),
            "--json",
        ]);
        let report = json(&cut, 0);
        let mut parts = BTreeMap::new();
        for (name, _) in nodes {
            let part = folder.text(&format!("parts/{name}.toml"));
            let text = std::fs::read_to_string(&part).unwrap();
            let named = text.lines().filter_map(|line| line.strip_prefix("name = \"cut")?.strip_suffix('"'));
            let tunnels = named.filter(|name| !name.ends_with("wire")).map(|name| {
                let peer = name.split_once('-').unwrap().1;
                (format!("cut{name}"), peer.to_owned())
            });
            parts.insert((*name).to_owned(), (part, tunnels.collect()));
        }
        assert_eq!(report["parts"].as_array().unwrap().len(), nodes.len(), "{report:#}");
        Self { folder, whole, parts }
    }

    fn capture(&self, part: &str, port: &str, direction: &str) -> PathBuf {
        self.folder.path(&format!("{part}-{port}-{direction}.pcap"))
    }

    /// Runs a scenario in virtual time; the frames that leave by each of its ports, and the report.
    fn run(
        &self,
        name: &str,
        file: &str,
        arrivals: &BTreeMap<String, Vec<Frame>>,
    ) -> (BTreeMap<String, Vec<Frame>>, Value) {
        let mut arguments =
            vec!["run".to_owned(), file.to_owned(), "--virtual".to_owned(), "--json".to_owned()];
        for (port, frames) in arrivals {
            let [input, output] = ["in", "out"].map(|direction| self.capture(name, port, direction));
            std::fs::write(&input, pcap(frames)).unwrap();
            arguments.extend(["--input".to_owned(), format!("{port}={}", input.display())]);
            arguments.extend(["--output".to_owned(), format!("{port}={}", output.display())]);
        }
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let report = json(&longwire(&arguments), 0);
        let out = arrivals.keys().map(|port| (port.clone(), read_pcap(&self.capture(name, port, "out"))));
        (out.collect(), report)
    }

    /// Runs the parts until what leaves by their tunnels is what the others' tunnels received: an ideal
    /// network, on which each frame arrives when it left. Since every cut link has a delay, there is one such
    /// state. The frames that leave by ports, and the links' rows.
    fn settle(
        &self,
        arrivals: &BTreeMap<String, Vec<Frame>>,
    ) -> (BTreeMap<String, Vec<Frame>>, BTreeMap<String, Value>) {
        let mut crossing: BTreeMap<(String, String), Vec<Frame>> = BTreeMap::new();
        for _ in 0..40 {
            let (mut out, mut links) = (BTreeMap::new(), BTreeMap::new());
            let mut next: BTreeMap<(String, String), Vec<Frame>> = BTreeMap::new();
            for (name, (file, tunnels)) in &self.parts {
                let text = std::fs::read_to_string(file).unwrap();
                let here = |port: &&String| text.contains(&format!("\nname = \"{port}\"\n"));
                let own = arrivals.keys().filter(here).map(|port| (port.clone(), arrivals[port].clone()));
                let mut inputs: BTreeMap<String, Vec<Frame>> = own.collect();
                for (tunnel, _) in tunnels {
                    let frames = crossing.get(&(name.clone(), tunnel.clone())).cloned().unwrap_or_default();
                    inputs.insert(tunnel.clone(), frames);
                }
                let (mut left, report) = self.run(name, file, &inputs);
                for (tunnel, peer) in tunnels {
                    let number = tunnel.split_once('-').unwrap().0;
                    next.insert((peer.clone(), format!("{number}-{name}")), left.remove(tunnel).unwrap());
                }
                out.extend(left);
                links.extend(link_rows(&report));
            }
            if next == crossing {
                return (out, links);
            }
            crossing = next;
        }
        panic!("the parts do not settle");
    }

    /// Asserts that the parts do what the whole does, frame by frame and link by link.
    fn agrees(&self, arrivals: &BTreeMap<String, Vec<Frame>>) {
        let (whole, report) = self.run("whole", &self.whole, arrivals);
        let (parts, links) = self.settle(arrivals);
        for (port, frames) in &whole {
            assert!(!frames.is_empty(), "nothing leaves by {port}");
            let differs = frames.iter().zip(&parts[port]).position(|(one, other)| one != other);
            assert_eq!(differs, None, "{port}: of {} and {} frames", frames.len(), parts[port].len());
            assert_eq!(frames.len(), parts[port].len(), "{port}");
        }
        for (name, link) in link_rows(&report) {
            assert_eq!(link, links[&name], "{name}");
        }
    }
}

/// The counters of each link.
fn link_rows(report: &Value) -> BTreeMap<String, Value> {
    let rows = report["rows"].as_array().unwrap().iter().filter(|row| row["kind"] == "link");
    let counters = rows.map(|row| {
        let each = row.as_object().unwrap().iter();
        let counted = each.filter(|(key, value)| value.is_u64() && !key.ends_with("_ns") && *key != "id");
        (
            row["name"].as_str().unwrap().to_owned(),
            counted.map(|(key, value)| (key.clone(), value.clone())).collect(),
        )
    });
    counters.collect()
}

/// Numbers that look random.
struct Noise(u64);

impl Noise {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}

/// A frame with an IPv4 header whose checksum is right.
struct Datagram {
    macs: [[u8; 6]; 2],
    addresses: [[u8; 4]; 2],
    ttl: u8,
    length: usize,
    mark: u64,
}

impl Datagram {
    fn frame(&self) -> Vec<u8> {
        let mut bytes = vec![0; self.length];
        bytes[..6].copy_from_slice(&self.macs[1]);
        bytes[6..12].copy_from_slice(&self.macs[0]);
        bytes[12..14].copy_from_slice(&[8, 0]);
        let length = ((self.length - 14) as u16).to_be_bytes();
        bytes[14..24].copy_from_slice(&[0x45, 0, length[0], length[1], 0, 0, 0, 0, self.ttl, 17]);
        bytes[26..30].copy_from_slice(&self.addresses[0]);
        bytes[30..34].copy_from_slice(&self.addresses[1]);
        let words = bytes[14..34].as_chunks::<2>().0.iter();
        let sum: u32 = words.map(|word| u32::from(u16::from_be_bytes(*word))).sum();
        let sum = (sum & 0xffff) + (sum >> 16);
        bytes[24..26].copy_from_slice(&(!((sum & 0xffff) + (sum >> 16)) as u16).to_be_bytes());
        let ports_and_length = [0x13, 0x88, 0x13, 0x89, 0, 0];
        bytes[34..40].copy_from_slice(&ports_and_length);
        bytes[38..40].copy_from_slice(&((self.length - 34) as u16).to_be_bytes());
        bytes[42..50].copy_from_slice(&self.mark.to_be_bytes());
        bytes
    }
}

const fn mac(station: u8) -> [u8; 6] {
    [2, 0, 0, 0, 0, station]
}

fn sent(time: u64, bytes: Vec<u8>) -> Frame {
    Frame { time: BEGIN + time, wire_len: bytes.len() as u32, bytes }
}

/// Three bridges in a row, with losses, full queues, jitter and copies on the links between them, and
/// changes on the way.
const BRIDGES: &str = r#"
seed = 11

[[bridge]]
name = "left"
[[bridge]]
name = "middle"
[[bridge]]
name = "right"

[[port]]
name = "a"
driver = "pcap"
bridge = "left"
[[port]]
name = "b"
driver = "pcap"
bridge = "left"
[[port]]
name = "c"
driver = "pcap"
bridge = "middle"
[[port]]
name = "d"
driver = "pcap"
bridge = "right"
[[port]]
name = "e"
driver = "pcap"
bridge = "right"

[[link]]
name = "a-cable"
between = ["a", "left"]
rate = "20 Mbit/s"
delay = "2 ms"

[[link]]
name = "b-cable"
between = ["b", "left"]
delay = { delay = "5 ms", jitter = "3 ms", distribution = "normal", order = "reorder" }
loss = "1 %"

[[link]]
name = "west"
between = ["left", "middle"]
rate = "3 Mbit/s"
delay = "20 ms"
queue = "8 packets"
loss = "4 %"
backward = { rate = "2 Mbit/s", duplicate = "3 %", delay = "17 ms", queue = "codel" }

[[link]]
between = ["middle", "right"]
rate = "4 Mbit/s"
delay = { delay = "9 ms", jitter = "2 ms", order = "reorder" }
queue = "20 ms"
loss = { kind = "independent", probability = "2 %", where = "wire" }

[[at]]
time = "1.7 s"
link = ["west", "middle-right"]
ramp = "300 ms"
rate = "1 Mbit/s"

[[at]]
time = "2.2 s"
link = "west.backward"
loss = "10 %"
"#;

/// Every station speaks to all, so that all bridges know it, and then to one after the other.
fn stations() -> BTreeMap<String, Vec<Frame>> {
    let names = ["a", "b", "c", "d", "e"];
    let mut arrivals: BTreeMap<String, Vec<Frame>> = BTreeMap::new();
    let mut noise = Noise(7);
    for (station, name) in (1u8..).zip(names) {
        let frame = |to: [u8; 6], ttl: u8, length: usize, mark: u64| {
            let addresses = [[10, 0, 0, station], [10, 0, 0, to[5]]];
            Datagram { macs: [mac(station), to], addresses, ttl, length, mark }.frame()
        };
        // a, c and d begin at the same time: each part's clock begins with its first frame.
        let first = if [2, 5].contains(&station) { 10_000_007 } else { 0 };
        let mut frames: Vec<Frame> = (0..5)
            .map(|round| {
                sent(
                    first + round * 83 * MILLISECOND + round * u64::from(station),
                    frame([255; 6], 64, 100, round),
                )
            })
            .collect();
        let mut time = 900 * MILLISECOND + u64::from(station) * 1_000_003;
        for mark in 0..400 {
            time += 1 + noise.below(9 * MILLISECOND);
            let others = (1..=5).filter(|other| *other != station).collect::<Vec<u8>>();
            let to = others[noise.below(4) as usize];
            frames.push(sent(time, frame(mac(to), 64, 60 + noise.below(1400) as usize, mark)));
        }
        arrivals.insert(name.to_owned(), frames);
    }
    arrivals
}

#[test]
fn parts_of_bridges_decide_as_the_whole() {
    let nodes: [(&str, &[&str]); 3] = [("one", &["a", "b"]), ("two", &["middle"]), ("three", &["right"])];
    let split = Split::new("bridges", BRIDGES, &nodes);
    split.agrees(&stations());
}

/// The cable of a host is cut, and both cables of a bridge.
#[test]
fn parts_at_a_cable_decide_as_the_whole() {
    let nodes: [(&str, &[&str]); 3] = [("one", &["a"]), ("two", &["left", "middle"]), ("three", &["right"])];
    let split = Split::new("cables", BRIDGES, &nodes);
    let one = std::fs::read_to_string(&split.parts["one"].0).unwrap();
    assert!(one.contains("wire = true"), "{one}");
    split.agrees(&stations());
}

/// Three routers in a row, each with a host.
const ROUTERS: &str = r#"
[[host]]
name = "a"
address = "10.0.1.9/24"
[[host]]
name = "c"
address = "10.0.2.9/24"
[[host]]
name = "d"
address = "10.0.3.9/24"

[[router]]
name = "west"
ports = [{ port = "a", addresses = "10.0.1.1/24" }, { port = "west-east", addresses = "10.9.1.1/30" }]
routes = [{ to = "default", via = "10.9.1.2" }]
[[router]]
name = "middle"
ports = [
    { port = "middle-west", addresses = "10.9.1.2/30" },
    { port = "middle-lan", addresses = "10.0.2.1/24" },
    { port = "middle-east", addresses = "10.9.2.1/30" },
]
routes = [{ to = "10.0.1.0/24", via = "10.9.1.1" }, { to = "10.0.3.0/24", via = "10.9.2.2" }]
[[router]]
name = "east"
ports = [{ port = "east-west", addresses = "10.9.2.2/30" }, { port = "d", addresses = "10.0.3.1/24" }]
routes = [{ to = "default", via = "10.9.2.1" }]

[[link]]
name = "lan"
between = ["c", "middle-lan"]
rate = "5 Mbit/s"
delay = "1 ms"
[[link]]
name = "west"
between = ["west-east", "middle-west"]
rate = "2 Mbit/s"
delay = "15 ms"
queue = "10 packets"
loss = "3 %"
[[link]]
name = "east"
between = ["middle-east", "east-west"]
rate = "3 Mbit/s"
delay = "8 ms"
queue = "30 ms"

[[at]]
time = "1 s"
router = "middle"
add-route = "198.51.100.0/24 via 10.9.2.2"
"#;

/// Datagrams between the hosts; the time to live of some ends on the way, so that routers answer.
#[test]
fn parts_of_routers_decide_as_the_whole() {
    let nodes: [(&str, &[&str]); 3] = [("one", &["west"]), ("two", &["middle", "c"]), ("three", &["east"])];
    let split = Split::new("routers", ROUTERS, &nodes);
    let part = std::fs::read_to_string(&split.parts["one"].0).unwrap();
    assert!(part.contains("neighbours = ["), "the router behind the tunnel is known: {part}");
    let addressed = stations_and_routers(&std::fs::read_to_string(&split.whole).unwrap());
    let mut arrivals: BTreeMap<String, Vec<Frame>> = BTreeMap::new();
    let mut noise = Noise(3);
    let hosts = [("a", 1u8), ("c", 2), ("d", 3)];
    for (name, net) in hosts {
        let mut time = 0;
        let frames = (0..300).map(|mark| {
            let to =
                [1u8, 2, 3].into_iter().filter(|other| *other != net).nth(noise.below(2) as usize).unwrap();
            let ttl = if noise.below(5) == 0 { 1 + noise.below(3) as u8 } else { 64 };
            let addresses = [[10, 0, net, 9], [10, 0, to, 9]];
            let length = 60 + noise.below(1000) as usize;
            let bytes = Datagram { macs: addressed[name], addresses, ttl, length, mark }.frame();
            let frame = sent(time, bytes);
            time += 1 + u64::from(net) + noise.below(12 * MILLISECOND);
            frame
        });
        arrivals.insert(name.to_owned(), frames.collect());
    }
    split.agrees(&arrivals);
}

/// By host: its hardware address and that of its router.
fn stations_and_routers(text: &str) -> BTreeMap<&'static str, [[u8; 6]; 2]> {
    let plan = longwire_scenario::parse("whole.toml", text).unwrap();
    let host = |name: &str| plan.hosts.iter().find(|host| &*host.name == name).unwrap().mac.0;
    let port = |name: &str| {
        let ports = plan.routers.iter().flat_map(|router| &router.ports);
        ports.into_iter().find(|port| &*port.name == name).unwrap().mac.0
    };
    [("a", "a"), ("c", "middle-lan"), ("d", "d")]
        .map(|(name, at)| (name, [host(name), port(at)]))
        .into_iter()
        .collect()
}

/// Where nodes name nothing, the heuristic spreads the work, and says why it cuts and where.
#[test]
fn the_cut_is_explained() {
    let folder = Folder::new("explained");
    let side = |name: &str, net: u8| {
        format!(
            "[[bridge]]\nname = \"{name}\"\n[[host]]\nname = \"{name}{{n}}\"\ncount = 3\n\
             address = \"{{10.0.{net}.0 + n}}/16\"\n[[link]]\nname = \"{name}-cable{{n}}\"\ncount = 3\n\
             between = [\"{name}{{n}}\", \"{name}\"]\nrate = \"100 Mbit/s\"\n"
        )
    };
    let wan = "[[link]]\nname = \"wan\"\nbetween = [\"left\", \"right\"]\nrate = \"2 Mbit/s\"\n\
        delay = \"20 ms\"\n";
    let scenario = folder.write("whole.toml", format!("{}{}{wan}", side("left", 1), side("right", 2)));
    let cluster = folder.write("machines.toml", machines(&[("one", &[]), ("two", &[])]));
    let report = json(&longwire(&["partition", &scenario, "--machines", &cluster, "--json"]), 0);
    let rows = report["rows"].as_array().unwrap();
    let of_kind = |kind: &str| rows.iter().filter(move |row| row["kind"] == kind).collect::<Vec<_>>();
    let loads: Vec<u64> = of_kind("machine").iter().map(|row| row["load_ppm"].as_u64().unwrap()).collect();
    assert!(loads.len() == 2 && loads.iter().all(|load| *load > 0), "{report:#}");
    let cuts = of_kind("cut");
    assert_eq!(cuts.len(), 1, "{report:#}");
    for cut in &cuts {
        let note = cut["notes"][0].as_str().unwrap();
        assert!(note.ends_with("≥ latency 150 us + clock error 30 us"), "{note}");
        assert!(cut["delay_ns"].as_u64() >= Some(180_000), "{cut:#}");
    }
    assert_eq!(of_kind("node").len(), 8, "six hosts and two bridges: {report:#}");
    let text = longwire(&["partition", &scenario, "--machines", &cluster]);
    assert!(stdout(&text).contains("≥ latency 150 us + clock error 30 us"), "{}", stdout(&text));
}

#[test]
fn what_can_not_be_cut_is_refused_with_the_arithmetic() {
    let folder = Folder::new("refused");
    let run = |scenario: &str, cluster: &str| {
        let scenario = folder.write("whole.toml", scenario);
        let cluster = folder.write("machines.toml", cluster);
        longwire(&["partition", &scenario, "--machines", &cluster, "--write", &folder.text("parts")])
    };
    let two = machines(&[("one", &[]), ("two", &[])]);
    let host =
        |name: &str, number: u8| format!("[[host]]\nname = \"{name}\"\naddress = \"10.0.0.{number}/24\"\n");
    let hosts = format!("{}{}", host("a", 1), host("b", 2));
    let link = |delay: &str| {
        format!("{hosts}[[link]]\nname = \"wan\"\nbetween = [\"a\", \"b\"]\ndelay = \"{delay}\"\n")
    };
    let short = run(&link("100 us"), &two);
    assert_eq!(short.status.code(), Some(1));
    let said = stdout(&short);
    assert!(said.contains("delay 100 us < latency 150 us + clock error 30 us"), "{said}");
    assert!(said.contains("raise the delay to 180 us or more"), "{said}");
    assert!(!folder.path("parts").exists(), "nothing is written");

    let pinned = run(&link("100 us"), &machines(&[("one", &["a"]), ("two", &["b"])]));
    let said = stdout(&pinned);
    assert!(said.contains("b is to be on two, but") && said.contains("put them together"), "{said}");

    // One link is long enough for the first two machines, not for the third.
    let far = "\n[[between]]\nmachines = [\"one\", \"two\"]\nlatency = \"5 ms\"\n";
    let slow = run(&link("2 ms"), &format!("{}{far}", machines(&[("one", &["a"]), ("two", &["b"])])));
    let said = stdout(&slow);
    assert!(said.contains("delay 2 ms < latency 5 ms + clock error 30 us"), "{said}");

    let three = run(&link("2 ms"), &machines(&[("one", &[]), ("two", &[]), ("three", &[])]));
    let said = stdout(&three);
    assert!(said.contains("only 2 groups can be separated, and there are 3 machines"), "{said}");

    let one_way = run(&format!("{hosts}[[link]]\nfrom = \"a\"\nto = \"b\"\ndelay = \"9 ms\"\n"), &two);
    let said = stdout(&one_way);
    assert!(one_way.status.code() == Some(1) && said.contains("nothing can be cut"), "{said}");

    let unknown = run(&link("2 ms"), &machines(&[("one", &["x"]), ("two", &[])]));
    assert!(
        unknown.status.code() == Some(2)
            && stderr(&unknown).contains("no host, port, bridge or router \"x\"")
    );
    let wrong = run(&link("2 ms"), "latency = 1\n");
    assert!(wrong.status.code() == Some(2) && stderr(&wrong).contains("machines.toml"), "{}", stderr(&wrong));
}

/// Hosts on three machines, on a chain of links.
const CHAIN: &str = r#"
[[bridge]]
name = "left"
[[bridge]]
name = "middle"
[[bridge]]
name = "right"
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
struct Net(String);

impl Net {
    fn new(name: String) -> Self {
        let net = Self(name);
        for place in ["one", "two", "three"] {
            drop(Namespace::create(&net.named(place)).unwrap());
        }
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

    fn named(&self, place: &str) -> String {
        format!("{}-{place}", self.0)
    }

    fn ip(&self, place: &str, arguments: &str) {
        let output =
            Command::new("ip").args(["-n", &self.named(place)]).args(arguments.split(' ')).output().unwrap();
        assert!(output.status.success(), "ip {arguments}: {}", stderr(&output));
    }
}

impl Drop for Net {
    fn drop(&mut self) {
        for place in ["one", "two", "three"] {
            let _ = Namespace::remove(&self.named(place));
        }
    }
}

/// A scenario cut for three machines, which are namespaces, runs in real time as one network.
#[test]
fn three_parts_are_one_network() {
    let ability = longwire_lab::abilities().namespaces;
    if !ability.available {
        println!("three_parts_are_one_network: skipped: {}", ability.reason);
        return;
    }
    let net = Net::new(format!("lwp{}", std::process::id()));
    let folder = Folder::new("cluster");
    let scenario = folder.write("chain.toml", CHAIN);
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
