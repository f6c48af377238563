//! The simulator container of quic-interop-runner: its entry point between a client and a server in
//! namespaces, and waiting for a server. The former needs root; skipped with a message otherwise.

mod support;

use longwire_lab::Namespace;
use std::io::ErrorKind;
use std::net::{TcpStream, UdpSocket};
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use support::lab::can_make_labs;
use support::started::Started;
use support::{Folder, longwire, repository, stderr, stdout};

/// Time limit for events that must happen.
const PATIENCE: Duration = Duration::from_secs(60);

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
        let containers = Self { name: format!("lw{}-quic", std::process::id()) };
        for place in ["sim", "client", "server"] {
            drop(Namespace::create(&containers.named(place)).unwrap());
        }
        for (place, interface, network) in [("client", "eth0", 0), ("server", "eth1", 100)] {
            let far = containers.named(place);
            containers.ip("sim", &format!("link add {interface} type veth peer name eth0 netns {far}"));
            containers.ip("sim", &format!("addr add 193.167.{network}.2/24 dev {interface}"));
            containers.ip("sim", &format!("link set {interface} up"));
            containers.ip(place, &format!("addr add 193.167.{network}.100/24 dev eth0"));
            containers.ip(place, "link set eth0 up");
            // As the endpoints' own set-up script.
            containers.ip(place, &format!("route add 193.167.0.0/16 via 193.167.{network}.2"));
            containers.ip(place, &format!("route del 193.167.{network}.0/24"));
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

    /// Starts the entry point with this scenario, and waits until it carries packets.
    fn start(&self, scenario: &str, logs: &Folder) -> Started {
        let binary = Path::new(env!("CARGO_BIN_EXE_longwire")).parent().unwrap().display().to_string();
        let path = format!("{binary}:/usr/sbin:/usr/bin:/sbin:/bin");
        let mut command = support::ended_by_all();
        command.args(["ip", "netns", "exec", &self.named("sim")]);
        command.arg(repository("packaging/quic-interop/run.sh"));
        command.env("PATH", path).env("SCENARIO", scenario).env("LOGS", logs.text(""));
        Started::ready(&mut command, "carrying packets").0
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
    let namespace = Namespace::open(&containers.named("client")).unwrap();
    let connected = namespace
        .run(|| TcpStream::connect_timeout(&"193.167.0.2:57832".parse().unwrap(), PATIENCE).map(drop));
    connected.unwrap().unwrap();

    let ended = running.end();
    assert_eq!(ended.code, Some(143), "{}{}", ended.output, ended.said);
    for capture in ["trace_node_left.pcap", "trace_node_right.pcap"] {
        assert!(std::fs::metadata(logs.path(capture)).unwrap().len() > 24, "{capture} has packets");
    }
}

#[test]
fn a_scenario_can_be_looked_at() {
    let link = ["--delay=15ms", "--bandwidth=10Mbps", "--queue=25"];
    let printed = longwire(&[&["quic-interop", "run", "--print", "simple-p2p"], &link[..]].concat());
    assert!(printed.status.success(), "{}", stderr(&printed));
    assert!(stdout(&printed).contains("queue = \"27 packets\""), "{}", stdout(&printed));
    for (scenario, wanted) in [
        ("rebind --delay=15ms --bandwidth=10Mbps --queue=25 --first-rebind=1s", "rebind can't be translated"),
        ("simple --delay=15ms", "there are simple-p2p, blackhole, drop-rate"),
    ] {
        let refused = longwire(&["quic-interop", "run", scenario]);
        assert_eq!(refused.status.code(), Some(2));
        assert!(stderr(&refused).contains(wanted), "{}", stderr(&refused));
    }
}

/// A server that answers as one without the client's version does (RFC 8999, section 6), and one that does
/// not answer.
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
            let _ = server.send_to(&[0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1], client);
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
