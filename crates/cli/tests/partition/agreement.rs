//! The parts of a scenario decide as the whole, frame by frame.

use super::THREE_BRIDGES;
use super::split::Split;
use super::support::Frame;
use std::collections::BTreeMap;

const BEGIN: u64 = 1_700_000_000_000_000_000;
const MILLISECOND: u64 = 1_000_000;

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

/// The scenario of the three bridges.
fn bridges() -> String {
    format!("seed = 11\n{THREE_BRIDGES}{BRIDGES}")
}

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
    let split = Split::new("bridges", &bridges(), &nodes);
    split.agrees(&stations());
}

/// The cable of a host is cut, and both cables of a bridge.
#[test]
fn parts_at_a_cable_decide_as_the_whole() {
    let nodes: [(&str, &[&str]); 3] = [("one", &["a"]), ("two", &["left", "middle"]), ("three", &["right"])];
    let split = Split::new("cables", &bridges(), &nodes);
    let one = std::fs::read_to_string(&split.parts["one"].0).unwrap();
    assert!(one.contains("wire = true"), "{one}");
    split.agrees(&stations());
}

/// What differs between the directions of a profile stays with them, whether the link has a name or not.
#[test]
fn cut_links_keep_the_directions_of_their_profile() {
    let hosts = "[[host]]\nname = \"a\"\naddress = \"10.0.0.1/24\"\n\
        [[host]]\nname = \"b\"\naddress = \"10.0.0.2/24\"\n";
    let nodes: [(&str, &[&str]); 2] = [("one", &["a"]), ("two", &["b"])];
    for name in ["name = \"line\"\n", ""] {
        let link = format!("[[link]]\n{name}between = [\"a\", \"b\"]\nprofile = \"vdsl\"\n");
        let split = Split::new("profile", &format!("{hosts}{link}"), &nodes);
        // A link is where it ends.
        for (machine, profile) in [("one", "vdsl.backward"), ("two", "vdsl.forward")] {
            let part = std::fs::read_to_string(&split.parts[machine].0).unwrap();
            assert!(part.contains(&format!("profile = \"{profile}\"\n")), "{part}");
        }
    }
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
