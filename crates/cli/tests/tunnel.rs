//! Tunnels between two instances in two network namespaces that a veth pair joins. Needs root; skipped with a
//! message otherwise.

mod support;

use longwire_lab::Lab;
use longwire_port::raw::RawSocket;
use serde_json::Value;
use std::net::UdpSocket;
use std::ops::Deref;
use std::process::Command;
use std::time::{Duration, Instant};
use support::places::Places;
use support::started::{Ended, Started};
use support::{Folder, json, longwire, row, stderr, stdout};

/// Time limit for events that must happen.
const PATIENCE: Duration = Duration::from_secs(60);
const IPV4: u16 = 0x0800;
/// Bytes before the payload of a datagram: Ethernet, IPv4, UDP.
const HEADERS: usize = 42;

/// Two namespaces, with an address each, and a folder for scenarios and the key.
struct Net {
    places: Places,
    folder: Folder,
}

const ADDRESSES: [(&str, &str); 2] = [("east", "192.0.2.1"), ("west", "192.0.2.2")];

impl Net {
    /// None, with a message, if namespaces are impossible.
    fn new(test: &str, what: &str) -> Option<Self> {
        let ability = longwire_lab::abilities().namespaces;
        if !ability.available {
            println!("{test}: skipped: {}", ability.reason);
            return None;
        }
        let name = format!("lwt{}-{what}", std::process::id());
        let net = Self { places: Places::new(name, &["east", "west"]), folder: Folder::new(what) };
        net.ip("east", &format!("link add eth type veth peer name eth netns {}", net.named("west")));
        for (place, address) in ADDRESSES {
            net.ip(place, "link set eth addrgenmode none up");
            net.ip(place, &format!("address add {address}/24 dev eth"));
        }
        let made = longwire(&["tunnel", "key", &net.folder.text("tunnel.key")]);
        assert!(made.status.success(), "{made:?}");
        Some(net)
    }

    /// The scenario of a place: a host, and a tunnel to the other place.
    fn scenario(&self, place: &str, rest: &str) -> String {
        let own = ADDRESSES.iter().position(|(name, _)| *name == place).unwrap();
        let ((_, listen), (_, peer)) = (ADDRESSES[own], ADDRESSES[1 - own]);
        let number = own + 1;
        let text = format!(
            "[[host]]\nname = \"{place}\"\naddress = \"10.0.0.{number}/24\"\n\
             mac = \"02:00:00:00:01:0{number}\"\n[[port]]\nname = \"far\"\ndriver = \"tunnel\"\n\
             listen = \"{listen}:7000\"\n\
             peer = \"{peer}:7000\"\nkey = \"tunnel.key\"\nnetns = \"{}\"\n{rest}",
            self.named(place)
        );
        self.folder.write(&format!("{place}.toml"), text)
    }

    /// Starts the instance of a place, in whose bridge `rest` may put links.
    fn start(&self, place: &str, rest: &str) -> Instance {
        let scenario = self.scenario(place, rest);
        let name = format!("{}-run-{place}", self.name);
        let mut command = Command::new(env!("CARGO_BIN_EXE_longwire"));
        command.args(["run", &scenario, "--name", &name, "--json"]);
        Instance { running: Started::ready(&mut command, "running as").0, name }
    }

    /// Both instances, connected. Each may have links.
    fn connected(&self, east: &str, west: &str) -> [Instance; 2] {
        let both = [self.start("east", east), self.start("west", west)];
        for instance in &both {
            instance.port(|port| port["underlay"]["connected"] == true);
        }
        both
    }
}

impl Deref for Net {
    type Target = Places;

    fn deref(&self) -> &Places {
        &self.places
    }
}

struct Instance {
    running: Started,
    name: String,
}

impl Instance {
    /// The row of its tunnel, once it is as wanted.
    fn port(&self, wanted: impl Fn(&Value) -> bool) -> Value {
        let end = Instant::now() + PATIENCE;
        loop {
            let stats = json(&longwire(&["ctl", "stats", &self.name, "--json"]), 0);
            let port = row(&stats, "port far");
            if wanted(port) {
                return port.clone();
            }
            assert!(Instant::now() < end, "it does not come about: {stats:#}");
        }
    }

    fn ping(&self, host: &str, to: &str, count: u32) -> Pings {
        let lab = Lab::open(&self.name).unwrap();
        pinged(lab.host(host).unwrap().command("ping").unwrap(), to, count)
    }

    /// Ends it; its report.
    fn end(self) -> Value {
        let Ended { output, .. } = self.running.end();
        serde_json::from_str(&output).unwrap_or_else(|e| panic!("{e}: {output}"))
    }
}

/// Round trips of pings in ms.
struct Pings {
    received: usize,
    least: f64,
    median: f64,
}

/// So many pings of `ping`.
fn pinged(mut ping: Command, to: &str, count: u32) -> Pings {
    ping.args(["-n", "-i", "0.02", "-W", "5", "-c", &count.to_string(), to]);
    let text = stdout(&ping.output().unwrap());
    let time = |line: &str| line.split("time=").nth(1)?.split(' ').next()?.parse().ok();
    let mut times: Vec<f64> = text.lines().filter_map(time).collect();
    times.sort_by(f64::total_cmp);
    let at = |index: usize| times.get(index).copied().unwrap_or_default();
    Pings { received: times.len(), least: at(0), median: at(times.len() / 2) }
}

/// A delay of 20 ms, half of it at each end: a ping takes it, and every frame is accounted for.
#[test]
fn two_instances_carry_a_network_together() {
    let Some(net) = Net::new("two_instances_carry_a_network_together", "pair") else { return };
    let link =
        |to: &str| format!("[[link]]\nname = \"in\"\nfrom = \"far\"\nto = \"{to}\"\ndelay = \"10 ms\"\n");
    let [east, west] = net.connected(&link("east"), &link("west"));
    let Pings { received, least, .. } = east.ping("east", "10.0.0.2", 20);
    assert_eq!(received, 20);
    // Each frame leaves 10 ms after it left the other instance, as far as the clocks are known.
    let error = |instance: &Instance| {
        instance.port(|port| port["underlay"]["clock_error_ns"].is_u64())["underlay"]["clock_error_ns"]
            .clone()
    };
    let error = error(&east).as_f64().unwrap() + error(&west).as_f64().unwrap();
    assert!(least > 20.0 - error / 1e6, "{least} ms, with clocks known to {error} ns");
    let reports = [east.end(), west.end()];
    for (report, peer) in reports.iter().zip([&reports[1], &reports[0]]) {
        let (port, far) = (row(report, "port far"), row(peer, "port far"));
        assert_eq!(row(report, "packets accounted for")["pass"], true, "{report:#}");
        let (came, sent) = (port["in_frames"].as_u64().unwrap(), far["out_frames"].as_u64().unwrap());
        assert!((20..=sent).contains(&came), "{came} of {sent} frames");
        assert_eq!(port["in_bad"], 0, "{report:#}");
        let tunnel = &report["fidelity"]["tunnels"][0];
        assert_eq!((&tunnel["name"], &tunnel["lost_messages"]), (&"far".into(), &0.into()), "{report:#}");
        assert!(report["fidelity"]["tunnels"][1].is_null());
    }
}

/// A network that takes 2 to 8 ms each way is under the tunnel: nothing of that is in the round trip, which
/// has the links' 40 ms. The clocks are known to half of its round trip at each end.
#[test]
fn the_network_under_it_disappears() {
    let Some(net) = Net::new("the_network_under_it_disappears", "under") else { return };
    let mut attach = Command::new(env!("CARGO_BIN_EXE_longwire"));
    attach.args(["attach", "--netns", &net.named("east"), "--interface", "eth"]);
    attach.args(["--delay", "5ms", "--jitter", "3ms"]);
    let (under, _) = Started::ready(&mut attach, "a link is on eth");
    let mut ping = Command::new("ip");
    ping.args(["netns", "exec", &net.named("east"), "ping"]);
    let under_it = pinged(ping, "192.0.2.2", 100);
    let least_under = under_it.least;
    assert!(least_under > 4.0, "{least_under} ms");
    assert!(under_it.median - least_under > 3.0, "{} ms over {least_under} ms", under_it.median);
    let link =
        |to: &str| format!("[[link]]\nname = \"in\"\nfrom = \"far\"\nto = \"{to}\"\ndelay = \"20 ms\"\n");
    let [east, west] = net.connected(&link("east"), &link("west"));
    let Pings { received, least, median } = east.ping("east", "10.0.0.2", 100);
    assert_eq!(received, 100);
    // The network under it never takes less than 4 ms both ways, so with any of that it would be 44 ms.
    assert!(least > 40.0 - least_under && least < 44.0, "{least} ms over {least_under} ms");
    // Nor is its jitter.
    assert!(median - least < 3.0, "{median} ms over {least} ms");
    drop((east, west));
    under.end();
}

/// Without a delay behind the tunnel, every packet comes later than it is due: the verdict says why.
#[test]
fn a_network_that_is_too_slow_is_named() {
    let Some(net) = Net::new("a_network_that_is_too_slow_is_named", "slow") else { return };
    let strict = "[fidelity]\nwithin = \"1 us\"\n";
    let [east, west] = net.connected("", strict);
    assert_eq!(east.ping("east", "10.0.0.2", 20).received, 20);
    let report = west.end();
    let causes = report["fidelity"]["causes"].as_array().unwrap();
    let named = |cause: &Value| {
        let text = cause.as_str().unwrap();
        text.starts_with("the tunnel far: ") && text.contains("came later than they were due")
    };
    assert!(causes.iter().any(named), "{report:#}");
    assert!(row(&report, "port far")["underlay"]["overdue_packets"].as_u64().unwrap() > 0, "{report:#}");
    drop(east);
}

/// A peer that ends is noticed, and one that starts again is found; what is sent meanwhile is counted.
#[test]
fn a_peer_that_ends_is_noticed_and_found_again() {
    let Some(net) = Net::new("a_peer_that_ends_is_noticed_and_found_again", "gone") else { return };
    let [east, west] = net.connected("", "");
    assert_eq!(east.ping("east", "10.0.0.2", 3).received, 3);
    drop(west.end());
    let gone = east.port(|port| port["underlay"]["connected"] == false);
    assert!(gone["fault"].as_str().unwrap().contains("192.0.2.2:7000 does not answer"), "{gone:#}");
    assert_eq!(east.ping("east", "10.0.0.2", 1).received, 0);
    let west = net.start("west", "");
    east.port(|port| port["underlay"]["connected"] == true && port["underlay"]["sessions"] == 2);
    assert_eq!(east.ping("east", "10.0.0.2", 3).received, 3);
    let report = east.end();
    assert_eq!(row(&report, "port far")["outages"], 2, "before the peer, and without it: {report:#}");
    assert!(row(&report, "port far")["out_down"].as_u64().unwrap() > 0, "{report:#}");
    assert_eq!(report["fidelity"]["faithful"], false);
    drop(west);
}

/// A datagram with the headers of a recorded one and this payload, without a UDP checksum.
fn datagram(recorded: &[u8], payload: &[u8]) -> Vec<u8> {
    let mut frame = [&recorded[..HEADERS], payload].concat();
    frame[16..18].copy_from_slice(&(28 + payload.len() as u16).to_be_bytes());
    frame[24..26].fill(0);
    let sum: u32 =
        frame[14..34].as_chunks::<2>().0.iter().map(|word| u32::from(u16::from_be_bytes(*word))).sum();
    let sum = (sum & 0xffff) + (sum >> 16);
    let sum = !((sum & 0xffff) + (sum >> 16)) as u16;
    frame[24..26].copy_from_slice(&sum.to_be_bytes());
    frame[38..40].copy_from_slice(&(8 + payload.len() as u16).to_be_bytes());
    frame[40..42].fill(0);
    frame
}

/// Somebody on the way replays messages, changes and truncates them, and makes others up: each is counted,
/// and no frame comes of it.
#[test]
fn somebody_on_the_way_changes_nothing() {
    let Some(net) = Net::new("somebody_on_the_way_changes_nothing", "hostile") else { return };
    let [east, west] = net.connected("", "");
    let recorder = net.run("east", || RawSocket::open("eth", IPV4)).unwrap();
    let sender = net.run("west", || RawSocket::open("eth", IPV4)).unwrap();
    assert_eq!(west.ping("west", "10.0.0.1", 5).received, 5);
    let mut recorded = Vec::new();
    let mut buffer = [0; 2048];
    while recorded.len() < 20 {
        let length = recorder.receive(&mut buffer, PATIENCE).unwrap().expect("messages come all the time");
        let frame = &buffer[..length];
        // UDP from the peer's port.
        if frame[23] == 17 && frame[34..36] == 7000u16.to_be_bytes() && frame.len() > HEADERS + 16 {
            recorded.push(frame.to_vec());
        }
    }
    let before = east.port(|_| true);
    for frame in &recorded {
        let message = &frame[HEADERS..];
        let mut changed = message.to_vec();
        // A number far ahead, so that it is not a replay, and a bit of the body.
        changed[8] ^= 1;
        changed[20] ^= 1;
        for payload in [message, &changed, &message[..12], b"LT\x01\x02", b"nonsense", b""] {
            sender.send(&datagram(frame, payload)).unwrap();
        }
    }
    let count = recorded.len() as u64;
    let more = |port: &Value, name: &str| {
        let of = |port: &Value| port["underlay"][name].as_u64().unwrap();
        of(port) - of(&before)
    };
    let port = east.port(|port| {
        more(port, "replayed") >= count
            && more(port, "forged") >= count
            && more(port, "malformed") >= 4 * count
    });
    assert_eq!(port["underlay"]["sessions"], before["underlay"]["sessions"]);
    assert_eq!(west.ping("west", "10.0.0.1", 5).received, 5, "the tunnel goes on");
    // The numbers of a running instance may be older at one end than at the other; those of its end are not.
    let [came, sent] = [(east, "in_frames"), (west, "out_frames")]
        .map(|(instance, name)| row(&instance.end(), "port far")[name].as_u64().unwrap());
    assert!(came <= sent, "{came} of {sent} frames");
}

#[test]
fn another_version_is_refused_with_both() {
    let Some(net) = Net::new("another_version_is_refused_with_both", "version") else { return };
    let east = net.start("east", "");
    let other = net.run("west", || UdpSocket::bind("192.0.2.2:7000")).unwrap();
    let key = std::fs::read_to_string(net.folder.path("tunnel.key")).unwrap();
    let version = longwire_tunnel::VERSION + 1;
    let signed = [b'L', b'T', version, 1, 0, 0, 0, 0];
    let tag = longwire_nesp::Key::read(&key).unwrap().derive(&[b"LWT hello"]).tag(&signed);
    other.send_to(&[&signed[..], &tag].concat(), "192.0.2.1:7000").unwrap();
    let port = east.port(|port| port["underlay"]["other_version"] == 1);
    let fault = port["fault"].as_str().unwrap();
    let both = format!("version {version} of the tunnel protocol, this end version {}", version - 1);
    assert!(fault.contains(&both), "{fault}");
    drop(east);
}

/// Mistakes in the settings are found before anything runs.
#[test]
fn mistakes_are_named() {
    let folder = Folder::new("tunnel-mistakes");
    let key = folder.text("tunnel.key");
    assert!(longwire(&["tunnel", "key", &key]).status.success());
    let again = longwire(&["tunnel", "key", &key]);
    assert_eq!(again.status.code(), Some(2), "an existing key is kept");
    assert!(stderr(&again).contains("name another file, or remove it"), "{}", stderr(&again));
    for (settings, wanted) in [
        ("peer = \"192.0.2.2:7000\"\nkey = \"tunnel.key\"", "listen"),
        ("listen = \"192.0.2.1\"\npeer = \"192.0.2.2:7000\"\nkey = \"tunnel.key\"", "10.0.0.1:7000"),
        ("listen = \"192.0.2.1:7000\"\npeer = \"192.0.2.2:0\"\nkey = \"tunnel.key\"", "port 0"),
    ] {
        let text = format!("[[port]]\nname = \"far\"\ndriver = \"tunnel\"\n{settings}\n");
        let checked = longwire(&["check", &folder.write("wrong.toml", text)]);
        let said = stderr(&checked);
        assert!(checked.status.code() == Some(2) && said.contains(wanted), "{settings}: {said}");
    }
    let settings = "listen = \"127.0.0.1:7000\"\npeer = \"127.0.0.1:7001\"\nkey = \"tunnel.key\"";
    let text = format!("[[port]]\nname = \"far\"\ndriver = \"tunnel\"\n{settings}\n");
    let scenario = folder.write("right.toml", text);
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o644);
    std::fs::set_permissions(&key, mode).unwrap();
    let run = longwire(&["run", &scenario, "--for", "1s"]);
    let said = stderr(&run);
    assert!(run.status.code() == Some(2) && said.contains("chmod 600"), "{said}");
}
