//! The simulator container of quic-interop-runner: its entry point between a client and a server in
//! namespaces, and waiting for a server. The former needs root; skipped with a message otherwise.

mod support;

use longwire_lab::Namespace;
use std::io::ErrorKind;
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use support::lab::can_make_labs;
use support::started::Started;
use support::{Folder, json, longwire, repository, row, stderr, stdout};

/// Time limit for events that must happen.
const PATIENCE: Duration = Duration::from_secs(60);
/// The answer of a server without the client's version, which has version 1 (RFC 8999, section 6).
const NEGOTIATION: [u8; 11] = [0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];

/// Three namespaces, as the runner's containers: client, simulator, server.
struct Containers {
    name: String,
}

impl Containers {
    /// None, with a message, if namespaces are impossible or a program is missing.
    fn new(test: &str) -> Option<Self> {
        for program in ["/usr/sbin/nft", "/usr/bin/tcpdump"] {
            if !Path::new(program).exists() {
                println!("skipped {test}: {program} is not installed");
                return None;
            }
        }
        if !can_make_labs(test) {
            return None;
        }
        let containers = Self { name: format!("lw{}-{test}", std::process::id()) };
        for place in ["sim", "client", "server"] {
            drop(Namespace::create(&containers.named(place)).unwrap());
        }
        for (place, interface, network) in [("client", "eth0", 0), ("server", "eth1", 100)] {
            let far = containers.named(place);
            containers.ip("sim", &format!("link add {interface} type veth peer name eth0 netns {far}"));
            for (at, interface, host) in [("sim", interface, "2"), (place, "eth0", "100")] {
                containers.ip(at, &format!("addr add 193.167.{network}.{host}/24 dev {interface}"));
                let address = format!("fd00:cafe:cafe:{network}::{host}/64");
                containers.ip(at, &format!("addr add {address} dev {interface} nodad"));
                containers.ip(at, &format!("link set {interface} up"));
            }
            // As the endpoints' own set-up script.
            containers.ip(place, &format!("route add 193.167.0.0/16 via 193.167.{network}.2"));
            containers.ip(place, &format!("route del 193.167.{network}.0/24"));
            containers.ip(place, &format!("route add fd00:cafe:cafe::/48 via fd00:cafe:cafe:{network}::2"));
            containers.ip(place, &format!("route del fd00:cafe:cafe:{network}::/64"));
        }
        Some(containers)
    }

    fn named(&self, place: &str) -> String {
        format!("{}-{place}", self.name)
    }

    fn ip(&self, place: &str, arguments: &str) {
        let done = Command::new("ip").args(["-n", &self.named(place)]).args(arguments.split(' ')).output();
        let done = done.unwrap();
        assert!(done.status.success(), "ip {arguments}: {}", stderr(&done));
    }

    /// The entry point with this scenario.
    fn entry_point(&self, scenario: &str, logs: &Folder) -> Command {
        let binary = Path::new(env!("CARGO_BIN_EXE_longwire")).parent().unwrap().display().to_string();
        let path = format!("{binary}:/usr/sbin:/usr/bin:/sbin:/bin");
        let mut command = support::ended_by_all();
        command.args(["ip", "netns", "exec", &self.named("sim")]);
        command.arg(repository("packaging/quic-interop/run.sh"));
        command.env("PATH", path).env("SCENARIO", scenario).env("LOGS", logs.text(""));
        command.env("LONGWIRE_RUN_DIR", logs.path("run"));
        command
    }

    /// Starts the entry point with this scenario, and waits until it carries packets.
    fn start(&self, scenario: &str, logs: &Folder) -> Started {
        Started::ready(&mut self.entry_point(scenario, logs), "carrying packets").0
    }

    /// A connection of the client to this address.
    fn connect(&self, address: &str) -> std::io::Result<()> {
        let namespace = Namespace::open(&self.named("client")).unwrap();
        let connect = || TcpStream::connect_timeout(&address.parse().unwrap(), PATIENCE).map(drop);
        namespace.run(connect).unwrap()
    }

    /// A UDP socket at a container's address.
    fn socket(&self, place: &str, address: &str) -> UdpSocket {
        let namespace = Namespace::open(&self.named(place)).unwrap();
        let socket = namespace.run(|| UdpSocket::bind(address)).unwrap().unwrap();
        socket.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
        socket
    }
}

impl Drop for Containers {
    fn drop(&mut self) {
        for place in ["sim", "client", "server"] {
            let _ = Namespace::remove(&self.named(place));
        }
    }
}

/// Numbers that arrive until `last` does.
fn arrivals(socket: &UdpSocket, last: u8) -> Vec<u8> {
    let (mut found, mut byte, begin) = (Vec::new(), [0], Instant::now());
    while found.last() != Some(&last) {
        match socket.recv(&mut byte) {
            Ok(_) => found.push(byte[0]),
            Err(error) => assert!(
                begin.elapsed() < PATIENCE && error.kind() == ErrorKind::WouldBlock,
                "{found:?}: {error}"
            ),
        }
    }
    found
}

#[test]
fn the_entry_point_carries_packets_as_the_scenario_says() {
    let Some(containers) = Containers::new("quic-interop") else { return };
    let logs = Folder::new("quic-logs");
    let scenario = "droplist --delay=15ms --bandwidth=10Mbps --queue=25 --drops_to_server=2,4";
    let running = containers.start(scenario, &logs);

    let (client, server) = ("193.167.0.100:4433", "193.167.100.100:443");
    let (left, right) = (containers.socket("client", client), containers.socket("server", server));
    let begin = Instant::now();
    for number in 1..=6 {
        left.send_to(&[number], server).unwrap();
    }
    assert_eq!(arrivals(&right, 6), [1, 3, 5, 6], "the second and the fourth are dropped");
    assert!(begin.elapsed() >= Duration::from_millis(15));
    let begin = Instant::now();
    right.send_to(&[7], client).unwrap();
    assert_eq!(arrivals(&left, 7), [7], "nothing is dropped towards the client");
    assert!(begin.elapsed() >= Duration::from_millis(15));

    // Clients wait for this port of the simulator.
    containers.connect("193.167.0.2:57832").unwrap();

    let ended = running.end();
    assert_eq!(ended.code, Some(143), "{}{}", ended.output, ended.said);
    for capture in ["trace_node_left.pcap", "trace_node_right.pcap"] {
        assert!(std::fs::metadata(logs.path(capture)).unwrap().len() > 24, "{capture} has packets");
    }
}

/// The simulator is there for clients once its server is: a server that answers as one without the client's
/// version does. Both then speak IPv6.
#[test]
fn the_entry_point_waits_for_its_server_and_carries_ipv6() {
    let Some(containers) = Containers::new("quic-ipv6") else { return };
    let logs = Folder::new("quic-ipv6");
    let waiting = containers.socket("server", "193.167.100.100:443");
    let scenario = "droplist --delay=15ms --bandwidth=10Mbps --queue=25 --drops_to_server=2";
    let mut command = containers.entry_point(scenario, &logs);
    let running = Started::begin(command.env("WAITFORSERVER", "193.167.100.100:443"));
    let (mut packet, begin) = ([0; 2048], Instant::now());
    let asking = loop {
        match waiting.recv_from(&mut packet) {
            Ok((_, from)) => break from,
            Err(error) => assert!(begin.elapsed() < PATIENCE, "{error}"),
        }
    };
    let refused =
        |address: &str| containers.connect(address).unwrap_err().kind() == ErrorKind::ConnectionRefused;
    assert!(refused("193.167.0.2:57832"), "clients wait until the server is there");
    waiting.send_to(&NEGOTIATION, asking).unwrap();
    running.line("carrying packets", |line| line.contains("carrying packets").then_some(()));
    containers.connect("193.167.0.2:57832").unwrap();

    let (client, server) = ("[fd00:cafe:cafe:0::100]:4433", "[fd00:cafe:cafe:100::100]:443");
    let (left, right) = (containers.socket("client", client), containers.socket("server", server));
    let begin = Instant::now();
    for number in 1..=3 {
        left.send_to(&[number], server).unwrap();
    }
    assert_eq!(arrivals(&right, 3), [1, 3], "the second is dropped");
    right.send_to(&[4], client).unwrap();
    assert_eq!(arrivals(&left, 4), [4]);
    assert!(begin.elapsed() >= Duration::from_millis(30));
    // Its name may lead clients to this address first. They take the other one at once.
    assert!(refused("[fd00:cafe:cafe:0::2]:57832"));
    assert_eq!(running.end().code, Some(143));
}

/// Until the client has had other ports and addresses twice, the server answers each packet, and sends one to
/// where the client was before, which gets nowhere.
#[test]
fn a_client_gets_other_ports_and_addresses() {
    let Some(containers) = Containers::new("quic-rebind") else { return };
    let logs = Folder::new("quic-rebind");
    let first = Duration::from_secs(3);
    let scenario = "rebind --delay=15ms --bandwidth=10Mbps --queue=25 --first-rebind=3s --rebind-freq=1s \
        --rebind-addr";
    let begin = Instant::now();
    let running = containers.start(scenario, &logs);

    let (client, server) = ("193.167.0.100:4433", "193.167.100.100:443");
    let (left, right) = (containers.socket("client", client), containers.socket("server", server));
    let client: SocketAddr = client.parse().unwrap();
    let mut seen: Vec<SocketAddr> = Vec::new();
    let (mut answers, mut byte) = (0, [0]);
    while seen.len() < 4 || answers < 3 {
        assert!(begin.elapsed() < PATIENCE, "{answers} answers, {seen:?}");
        left.send_to(&[1], server).unwrap();
        // After a rebinding while a packet is on its way, its answer is lost.
        if let Ok((_, from)) = right.recv_from(&mut byte) {
            let is_new = seen.last() != Some(&from);
            if is_new && from != client {
                assert!(begin.elapsed() >= first, "{from} too early");
                assert!(!seen.contains(&from) && from.ip() != client.ip() && from.port() != client.port());
                answers = 0;
            }
            if let Some(before) = seen.last().filter(|_| is_new) {
                right.send_to(&[2], before).unwrap();
            }
            if is_new {
                seen.push(from);
            }
            right.send_to(&[1], from).unwrap();
        }
        if let Ok((_, from)) = left.recv_from(&mut byte) {
            assert_eq!((byte, from), ([1], server.parse().unwrap()), "where the client was leads nowhere");
            answers += 1;
        }
    }
    assert!(begin.elapsed() >= first + Duration::from_secs(2), "the third rebinding");
    assert_eq!(running.end().code, Some(143));
}

/// The TCP inside of the simulator takes what the link to the client has, fills its queue, and recovers from
/// the losses; packets of others still pass.
#[test]
fn tcp_shares_the_link_to_the_client() {
    let Some(containers) = Containers::new("quic-tcp") else { return };
    let logs = Folder::new("quic-tcp");
    let begin = Instant::now();
    let running = containers.start("tcp-cross-traffic --delay=15ms --bandwidth=10Mbps --queue=25", &logs);
    let (client, server) = ("193.167.0.100:4433", "193.167.100.100:443");
    let (left, right) = (containers.socket("client", client), containers.socket("server", server));
    let stats = || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_longwire"));
        command.env("LONGWIRE_RUN_DIR", logs.path("run")).args(["ctl", "stats", "--json"]);
        json(&command.output().unwrap(), 0)
    };
    let bytes = |stats: &serde_json::Value, link| row(stats, link)["out_bytes"].as_u64().unwrap();
    let (mut arrived, mut byte) = (0, [0]);
    let stats = loop {
        right.send_to(&[1], client).unwrap();
        // It may be lost in the full queue.
        arrived += left.recv_from(&mut byte).map_or(0, |(length, _)| length);
        let stats = stats();
        // Two seconds' worth at 10 Mbit/s, most of it after the first losses.
        if bytes(&stats, "to-client") > 2_500_000 {
            break stats;
        }
        assert!(begin.elapsed() < PATIENCE, "{stats:#}");
    };
    assert!(begin.elapsed() >= Duration::from_secs(2), "{:?}", begin.elapsed());
    assert!(stats["dropped"]["queue-full"].as_u64() > Some(0), "its queue has never been full: {stats:#}");
    let (back, forth) = (bytes(&stats, "to-server"), bytes(&stats, "to-client"));
    assert!(back > 0 && back < forth / 5, "acknowledgements: {back} bytes for {forth}");
    assert!(arrived > 0, "nothing of another sender has passed");
    assert_eq!(running.end().code, Some(143));
}

#[test]
fn a_scenario_can_be_looked_at() {
    let link = ["--delay=15ms", "--bandwidth=10Mbps", "--queue=25"];
    let printed = longwire(&[&["quic-interop", "run", "--print", "simple-p2p"], &link[..]].concat());
    assert!(printed.status.success(), "{}", stderr(&printed));
    assert!(stdout(&printed).contains("queue = \"27 packets\""), "{}", stdout(&printed));
    let folder = Folder::new("quic-printed");
    for scenario in ["tcp-cross-traffic", "rebind --first-rebind=1s --rebind-addr"] {
        let words = scenario.split(' ').chain(link);
        let words: Vec<&str> = ["quic-interop", "run", "--print"].into_iter().chain(words).collect();
        let checked = longwire(&["check", &folder.write("printed.toml", stdout(&longwire(&words)))]);
        assert!(checked.status.success(), "{}", stderr(&checked));
    }
    for (scenario, wanted) in [
        ("rebind --delay=15ms --bandwidth=10Mbps --queue=25", "--first-rebind is missing"),
        (
            "drop-rate --delay=15ms --bandwidth=10Mbps --queue=25 --rate_to_client=1",
            "--rate_to_server is missing; this scenario needs it",
        ),
        ("simple --delay=15ms", "there are simple-p2p, blackhole, drop-rate"),
    ] {
        let refused = longwire(&["quic-interop", "run", scenario]);
        assert_eq!(refused.status.code(), Some(2));
        assert!(stderr(&refused).contains(wanted), "{}", stderr(&refused));
    }
}

/// A server that answers, and one that does not.
#[test]
fn a_server_is_waited_for() {
    let server = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = server.local_addr().unwrap().to_string();
    let silent = longwire(&["quic-interop", "wait", &address, "--for", "200ms"]);
    assert_eq!(silent.status.code(), Some(1), "{}", stderr(&silent));
    assert!(stderr(&silent).contains("does not answer within 200 ms"), "{}", stderr(&silent));
    let is_over = AtomicBool::new(false);
    server.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
    let answer = || {
        let mut packet = [0; 2048];
        while !is_over.load(Ordering::Relaxed) {
            let Ok((length, client)) = server.recv_from(&mut packet) else { continue };
            assert_eq!((length, &packet[1..5]), (1200, &[0x1a, 0x2a, 0x3a, 0x4a][..]));
            // The first ones are those of the command before, which has ended.
            let _ = server.send_to(&NEGOTIATION, client);
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(answer);
        let answered = longwire(&["quic-interop", "wait", &address, "--for", "30s"]);
        is_over.store(true, Ordering::Relaxed);
        assert!(answered.status.success(), "{}", stderr(&answered));
    });
    let nobody = longwire(&["quic-interop", "wait", "no-port"]);
    assert_eq!(nobody.status.code(), Some(2));
}
