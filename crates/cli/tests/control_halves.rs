//! Control halves of forwarders beside a router with real traffic: alarms, filters, splices, layers,
//! summaries.

mod support;

use serde_json::Value;
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::RecvTimeoutError;
use std::time::{Duration, Instant};
use support::halves::{Ends, Half, MOMENT, PATIENCE, Up};
use support::{Folder, json, longwire, stderr};

#[test]
fn a_flood_of_syns_raises_an_alarm_and_is_filtered() {
    let Some(lab) = Up::new("syn") else { return };
    let half = lab.half(&[
        "syn-alarm",
        "r1",
        "--threshold",
        "20",
        "--clear",
        "2",
        "--hold",
        "2 s",
        "--interval",
        "200 ms",
    ]);
    lab.until("no monitor", || lab.programs("syn-monitor").len() == 1);
    let over = AtomicBool::new(false);
    // A SYN for each attempt, answered or not.
    let flood = || {
        let to: SocketAddr = "10.0.2.9:80".parse().unwrap();
        while !over.load(Ordering::Relaxed) {
            let _ = TcpStream::connect_timeout(&to, Duration::from_millis(1));
        }
    };
    std::thread::scope(|scope| {
        let _ends = Ends(&over);
        scope.spawn(|| lab.at("a", flood));
        let alarm = half.event("alarm");
        assert_eq!((&alarm["address"], &alarm["port"]), (&"10.0.2.9".into(), &80.into()), "{alarm}");
        assert!(alarm["rate"].as_u64() >= Some(20), "{alarm}");
        let dropped = || lab.programs("syn-filter").first().and_then(|one| one["dropped"].as_u64());
        lab.until("nothing is filtered", || dropped() > Some(0));
        // Nothing else is.
        lab.until("another port is filtered, too", || lab.reaches("10.0.2.9:81"));
    });
    let over = half.event_where("over", |event| event["dropped"].as_u64() > Some(0));
    assert_eq!(over["port"], 80, "{over}");
    lab.until("port 80 is still filtered", || lab.reaches("10.0.2.9:80"));
    let left = || lab.programs("syn-filter").len() + lab.programs("syn-targets").len();
    lab.until("what was installed against it is still there", || left() == 0);
    half.end();
    assert_eq!(lab.programs("syn-monitor").len(), 0, "it takes away what it has installed");
}

#[test]
fn who_scans_ports_is_filtered_for_a_while() {
    let Some(lab) = Up::new("scan") else { return };
    let half = lab.half(&[
        "intrusion",
        "r1",
        "--ports",
        "10",
        "--within",
        "100 s",
        "--expiry",
        "3 s",
        "--interval",
        "200 ms",
    ]);
    half.event("watching");
    assert_eq!(lab.programs("detector").len(), 1);
    // Nine ports, some of them repeatedly, are not a scan.
    for port in (1..=9).chain([1, 1, 1]) {
        lab.until("not scanned, and filtered", || lab.reaches(&format!("10.0.2.9:{port}")));
    }
    assert_eq!(half.events.recv_timeout(Duration::from_secs(1)), Err(RecvTimeoutError::Timeout));
    lab.reaches("10.0.2.9:10");
    let found = half.event("intrusion");
    assert_eq!((&found["source"], &found["why"]), (&"10.0.1.9".into(), &"tried 10 ports of 10.0.2.9".into()));
    // Until its block expires.
    lab.reaches("10.0.2.9:11");
    let expired = half.event("expired");
    assert_eq!(expired["source"], "10.0.1.9");
    lab.until("it is still filtered", || lab.reaches("10.0.2.9:1"));
    // Previous activity is not counted against it again.
    assert_eq!(half.events.recv_timeout(Duration::from_secs(1)), Err(RecvTimeoutError::Timeout));
    half.end();
    assert_eq!(lab.programs("detector").len(), 0);
}

/// The byte at a position of a long transfer.
fn content(seed: u8, length: usize) -> Vec<u8> {
    (0..length).map(|place| (place as u8).wrapping_mul(31).wrapping_add(seed) ^ (place >> 8) as u8).collect()
}

/// Sends this many bytes from one end, and reads them at the other.
fn transfer(mut from: &TcpStream, mut to: &TcpStream, seed: u8, length: usize) {
    let sent = content(seed, length);
    std::thread::scope(|scope| {
        scope.spawn(|| from.write_all(&sent).unwrap());
        let mut got = vec![0; length];
        to.read_exact(&mut got).unwrap();
        assert!(got == sent, "the bytes are those that were sent");
    });
}

/// A proxy beside the router, and two servers behind it on b: one for clients whose line begins with "GET
/// /b", and one for all others.
struct Proxied<'u> {
    lab: &'u Up,
    half: Half,
    servers: [TcpListener; 2],
}

impl<'u> Proxied<'u> {
    fn start(lab: &'u Up) -> Self {
        Self::with(lab, &["--linger", "500 ms"])
    }

    fn with(lab: &'u Up, options: &[&str]) -> Self {
        let backends =
            ["--backend", "GET /b=10.0.2.9:80", "--backend", "10.0.2.9:81", "--interval", "100 ms"];
        let half =
            lab.half(&[&["splice", "r1", "--listen", "10.0.1.1:8080"], &backends[..], options].concat());
        half.event("listening");
        let bind = |address: &str| lab.at("b", || TcpListener::bind(address).unwrap());
        Self { lab, half, servers: ["10.0.2.9:80", "10.0.2.9:81"].map(bind) }
    }

    /// A client that has sent this line.
    fn client(&self, line: &str) -> TcpStream {
        let mut client = self.lab.at("a", || TcpStream::connect("10.0.1.1:8080")).unwrap();
        client.set_read_timeout(Some(PATIENCE)).unwrap();
        client.write_all(line.as_bytes()).unwrap();
        client
    }
}

/// The connection accepted by a server, which begins with this line.
fn served(listener: &TcpListener, line: &str) -> TcpStream {
    listener.set_nonblocking(true).unwrap();
    let begin = Instant::now();
    let (mut server, from) = loop {
        if let Ok(accepted) = listener.accept() {
            break accepted;
        }
        assert!(begin.elapsed() < PATIENCE, "nobody connects for {line}");
        std::thread::yield_now();
    };
    server.set_nonblocking(false).unwrap();
    server.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut got = vec![0; line.len()];
    server.read_exact(&mut got).unwrap();
    assert_eq!((got, from.ip().to_string()), (line.as_bytes().to_vec(), "10.0.2.1".to_owned()));
    server
}

#[test]
fn a_proxy_splices_its_connections_into_the_data_path() {
    let Some(lab) = Up::new("splice") else { return };
    let proxied = Proxied::start(&lab);
    let half = &proxied.half;
    let client = proxied.client("GET /big\n");
    let spliced = half.event("spliced");
    let server = served(&proxied.servers[0], "GET /big\n");
    let name = client.local_addr().unwrap().to_string();
    assert_eq!(spliced["client"], name, "{spliced}");
    assert_eq!(spliced["server"], "10.0.2.9:80", "{spliced}");
    // Without the proxy, which is stopped.
    half.signal("-STOP");
    transfer(&client, &server, 1, 1_000_000);
    transfer(&server, &client, 2, 1_000_000);
    half.signal("-CONT");
    let carried = lab.programs("tcp-splicer");
    assert!(carried.iter().all(|one| one["packets"].as_u64() > Some(500)), "{carried:#?}");

    // Another client's line leads to the other server; both connections exist at once. It ends by a reset:
    // closed with unread bytes.
    let second = proxied.client("HELLO\n");
    half.event("spliced");
    let far = served(&proxied.servers[1], "HELLO\n");
    transfer(&far, &second, 3, 10_000);
    assert_eq!(lab.programs("tcp-splicer").len(), 4);
    (&far).write_all(b"unread").unwrap();
    let mut one = [0];
    second.peek(&mut one).unwrap();
    drop(second);
    let ended = half.event("ended");
    assert_eq!(ended["why"], "reset", "{ended}");
    transfer(&client, &server, 4, 100_000);

    // Each end shuts down, and sees the other's shutdown.
    client.shutdown(Shutdown::Write).unwrap();
    assert_eq!((&server).read(&mut one).unwrap(), 0);
    drop(server);
    assert_eq!((&client).read(&mut one).unwrap(), 0);
    let ended = half.event("ended");
    assert_eq!((&ended["why"], &ended["client"]), (&"finished".into(), &name.as_str().into()), "{ended}");
    assert_eq!(lab.programs("tcp-splicer").len(), 0);
    proxied.half.end();
}

#[test]
fn proxies_leave_the_settings_of_tcp_as_they_were() {
    let Some(lab) = Up::new("plain") else { return };
    let settings = || {
        let read = |name: &str| std::fs::read_to_string(format!("/proc/sys/net/ipv4/{name}")).unwrap();
        lab.at("r1", || ["tcp_sack", "tcp_timestamps", "tcp_ecn"].map(|name| read(name).trim().to_owned()))
    };
    let proxy = |port: u16| {
        let listen = format!("10.0.1.1:{port}");
        let half = lab.half(&["splice", "r1", "--listen", &listen, "--backend", "10.0.2.9:80"]);
        half.event("listening");
        half
    };
    let (before, off) = (settings(), ["0"; 3].map(str::to_owned));
    assert_ne!(before, off);
    // Both end, in either order; then with one or both killed, which can't undo anything.
    for signals in [["-TERM", "-TERM"], ["-KILL", "-TERM"], ["-TERM", "-KILL"], ["-KILL", "-KILL"]] {
        let mut halves = [proxy(8080), proxy(8081)];
        assert_eq!(settings(), off);
        for (half, signal) in halves.iter_mut().zip(signals) {
            assert_eq!(settings(), off, "one is still there");
            half.signal(signal);
            half.child.wait().unwrap();
        }
        if signals[1] == "-TERM" {
            assert_eq!(settings(), before, "{signals:?}");
        }
    }
    assert_eq!(settings(), off, "nobody was there to put them back");
    proxy(8080).end();
    assert_eq!(settings(), before);
}

#[test]
fn connections_whose_windows_are_scaled_differently_are_spliced() {
    let Some(lab) = Up::new("scaled") else { return };
    // b announces windows in units of 8 bytes; other hosts by their memory.
    lab.at("b", || std::fs::write("/proc/sys/net/ipv4/tcp_rmem", "4096 131072 262144")).unwrap();
    let proxied = Proxied::start(&lab);
    let client = proxied.client("GET /b\n");
    proxied.half.event("spliced");
    let server = served(&proxied.servers[0], "GET /b\n");
    proxied.half.signal("-STOP");
    both_ways(&client, &server, 3_000_000);
    // While the proxy is stopped, because it removes the programs of an ended connection.
    assert_eq!(lab.programs("tcp-splicer-scaled").len() + lab.programs("tcp-splicer").len(), 2);
    assert!(!lab.programs("tcp-splicer-scaled").is_empty());
    proxied.half.signal("-CONT");
    proxied.half.event("ended");
    proxied.half.end();
}

#[test]
fn connections_of_ipv6_are_spliced() {
    let Some(lab) = Up::new("six") else { return };
    let (near, server) = ("[fd00:0:0:1::1]:8080", "[fd00:0:0:2::9]:80");
    let half = lab.half(&["splice", "r1", "--listen", near, "--backend", server, "--linger", "500 ms"]);
    half.event("listening");
    let listener = lab.at("b", || TcpListener::bind(server).unwrap());
    let client = lab.at("a", || TcpStream::connect(near)).unwrap();
    client.set_read_timeout(Some(PATIENCE)).unwrap();
    let spliced = half.event("spliced");
    assert_eq!(spliced["server"], server, "{spliced}");
    let (far, from) = listener.accept().unwrap();
    far.set_read_timeout(Some(PATIENCE)).unwrap();
    assert_eq!(from.ip().to_string(), "fd00:0:0:2::1");
    half.signal("-STOP");
    both_ways(&client, &far, 1_000_000);
    // While the proxy is stopped, because it removes the programs of an ended connection.
    let carried = lab.programs("tcp-splicer6");
    assert!(
        carried.len() == 2 && carried.iter().all(|one| one["packets"].as_u64() > Some(100)),
        "{carried:#?}"
    );
    half.signal("-CONT");
    let ended = half.event("ended");
    assert_eq!(ended["why"], "finished", "{ended}");
    assert_eq!(lab.programs("tcp-splicer6").len(), 0);
    half.end();
}

#[test]
fn connections_are_bounded_and_idle_ones_are_given_up() {
    let Some(lab) = Up::new("idle") else { return };
    let proxied = Proxied::with(&lab, &["--idle", "6 s", "--connections", "1"]);
    let half = &proxied.half;
    let first = proxied.client("GET /big\n");
    half.event("spliced");
    let server = served(&proxied.servers[0], "GET /big\n");
    transfer(&first, &server, 1, 10_000);
    // The limit is one: another one is closed, without data from a server.
    let mut second = lab.at("a", || TcpStream::connect("10.0.1.1:8080")).unwrap();
    second.set_read_timeout(Some(PATIENCE)).unwrap();
    assert!(matches!(second.read(&mut [0]), Ok(0) | Err(_)));
    // The idle connection's programs are removed, which makes room for another.
    let ended = half.event("ended");
    assert_eq!(ended["why"], "idle", "{ended}");
    assert_eq!(lab.programs("tcp-splicer").len(), 0);
    let third = proxied.client("HELLO\n");
    half.event("spliced");
    let far = served(&proxied.servers[1], "HELLO\n");
    transfer(&far, &third, 2, 1000);
    proxied.half.end();
}

#[test]
fn programs_of_a_half_that_is_killed_are_removed() {
    let Some(lab) = Up::new("killed") else { return };
    let mut half = lab.half(&["monitor", "r1", "--interval", "100 ms", "--lease", "5 s"]);
    lab.until("it has installed its program", || lab.programs("performance-monitor").len() == 1);
    half.signal("-KILL");
    half.child.wait().unwrap();
    lab.until("its program is removed", || lab.programs("performance-monitor").is_empty());

    // The same commands by hand, beside a running one.
    let own = |args: &[&str]| longwire(&[&["forwarder"], args, &["--instance", &lab.name]].concat());
    let stays = own(&["install", "r1", "syn-monitor"]);
    let leased = own(&["install", "r1", "syn-filter", "--lease", "1 h"]);
    let fid = String::from_utf8(leased.stdout).unwrap();
    assert!(stays.status.success() && own(&["renew", "r1", fid.trim()]).status.success());
    let without = own(&["renew", "r1", String::from_utf8(stays.stdout).unwrap().trim()]);
    assert!(stderr(&without).contains("with a lease"), "{}", stderr(&without));
    let refused = own(&["install", "r1", "syn-monitor", "--lease", "2 h"]);
    assert!(stderr(&refused).contains("lease"), "{}", stderr(&refused));
    own(&["install", "r1", "wavelet", "--lease", "1 s"]);
    lab.until("its lease is over", || lab.programs("wavelet").is_empty());
    assert_eq!((lab.programs("syn-monitor").len(), lab.programs("syn-filter").len()), (1, 1));
}

#[test]
fn nothing_is_lost_when_data_is_on_its_way() {
    let Some(lab) = Up::new("moving") else { return };
    let proxied = Proxied::start(&lab);
    std::thread::scope(|scope| {
        // Both send continuously, before and after splicing.
        let (client, listener) = (proxied.client("GET /b\n"), &proxied.servers[0]);
        scope.spawn(move || {
            let server = served(listener, "GET /b\n");
            both_ways(&server, &client, 2_000_000);
        });
        proxied.half.event("spliced");
    });
    let ended = proxied.half.event("ended");
    assert!(ended["packets"][0].as_u64() > Some(0) && ended["packets"][1].as_u64() > Some(0), "{ended}");
    proxied.half.end();
}

/// Sends this many bytes in both directions at the same time, then closes both.
fn both_ways(one: &TcpStream, other: &TcpStream, length: usize) {
    std::thread::scope(|scope| {
        scope.spawn(|| transfer(one, other, 1, length));
        transfer(other, one, 2, length);
    });
    for end in [one, other] {
        end.shutdown(Shutdown::Write).unwrap();
    }
}

#[test]
fn layers_are_dropped_while_the_output_is_congested() {
    let Some(lab) = Up::new("layers") else { return };
    let set = |rate: &str| {
        let done = longwire(&["ctl", "set", "video", &format!("rate={rate}"), "--instance", &lab.name]);
        assert!(done.status.success(), "{}", stderr(&done));
    };
    set("200 kbit/s");
    let half = lab.half(&[
        "wavelet",
        "r1",
        "--link",
        "video",
        "--destination",
        "10.0.2.9",
        "--destination-port",
        "5004",
        "--interval",
        "300 ms",
        "--calm",
        "3",
    ]);
    lab.until("no dropper", || lab.programs("wavelet").len() == 1);
    let over = AtomicBool::new(false);
    // Eight layers in turn, faster than the link.
    let video = || {
        let socket = UdpSocket::bind("10.0.1.9:0").unwrap();
        socket.set_read_timeout(Some(Duration::from_millis(10))).unwrap();
        while !over.load(Ordering::Relaxed) {
            for layer in 0..8 {
                // The port is closed, so ICMP errors may arrive.
                let _ = socket.send_to(&[layer; 800], "10.0.2.9:5004");
            }
            let _ = socket.recv(&mut [0; 8]);
        }
    };
    std::thread::scope(|scope| {
        let _ends = Ends(&over);
        scope.spawn(|| lab.at("a", video));
        let fewer = half.event("layers");
        assert!(fewer["passing"].as_u64() < Some(8) && fewer["dropped"].as_u64() > Some(0), "{fewer}");
        lab.until("the dropper drops nothing", || lab.programs("wavelet")[0]["dropped"].as_u64() > Some(0));
        // When there is room, all layers return.
        set("1 Gbit/s");
        half.event_where("layers", |event| event["passing"] == 8);
    });
    half.end();
    assert_eq!(lab.programs("wavelet").len(), 0);
}

#[test]
fn summaries_are_sent_and_counters_added_on_demand() {
    let Some(lab) = Up::new("monitor") else { return };
    let collector = UdpSocket::bind("127.0.0.1:0").unwrap();
    collector.set_read_timeout(Some(MOMENT)).unwrap();
    let to = collector.local_addr().unwrap().to_string();
    let half = lab.half(&["monitor", "r1", "--by", "protocol", "--collector", &to, "--interval", "200 ms"]);
    lab.until("no monitor", || lab.programs("performance-monitor").len() == 1);
    let sender = lab.at("a", || UdpSocket::bind("10.0.1.9:0").unwrap());
    // Sends until the collector has received this many counted packets.
    let mut sent = 0;
    let mut heard = |by: &str, key: &str| {
        let begin = Instant::now();
        let mut packets = 0;
        while packets < 5 {
            assert!(begin.elapsed() < PATIENCE, "no summary of {by} {key}");
            for _ in 0..5 {
                let _ = sender.send_to(&[0; 58], "10.0.2.9:9");
                sent += 1;
            }
            let mut datagram = [0; 2000];
            // Earlier packets are not reported: more are sent then.
            let Ok(length) = collector.recv(&mut datagram) else { continue };
            for line in datagram[..length].split_inclusive(|&byte| byte == b'\n') {
                let line: Value = serde_json::from_slice(line).unwrap();
                if line["by"] == by && line["key"] == key {
                    let more = line["packets"].as_u64().unwrap();
                    // Ethernet, IPv4, UDP and 58 bytes.
                    assert_eq!(line["bytes"].as_u64(), Some(100 * more), "{line}");
                    packets += more;
                }
            }
        }
        assert!(packets <= sent, "{packets} of {sent}");
    };
    heard("protocol", "udp");
    let add = |what: &str| longwire(&["control", "monitor", "r1", "--add", what, "--instance", &lab.name]);
    let added = add("source=10.0.1.9");
    assert!(added.status.success(), "{}", stderr(&added));
    heard("source", "10.0.1.9");
    half.end();
    let none = add("flags");
    assert!(stderr(&none).contains("no monitor is running"), "{}", stderr(&none));
}

#[test]
fn an_echo_that_is_cut_off_has_failed() {
    let Some(lab) = Up::new("cut") else { return };
    let install = [
        "--where",
        "control",
        "--name",
        "echo",
        "--packets",
        "1000",
        "--cycles",
        "50000",
        "--destination-port",
        "9",
        "--protocol",
        "udp",
        "--instance",
        &lab.name,
    ];
    let installed = longwire(&[&["forwarder", "install", "r1"], &install[..]].concat());
    assert!(installed.status.success(), "{}", stderr(&installed));
    let attachment = || {
        let levels = longwire(&["forwarder", "levels", "r1", "--json", "--instance", &lab.name]);
        json(&levels, 0)["rows"][0].clone()
    };
    let echo = || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_longwire"));
        let child =
            command.args(["control", "echo", "r1", "--instance", &lab.name]).stderr(Stdio::piped()).spawn();
        lab.until("it has not come", || attachment()["there"] == true);
        child.unwrap()
    };
    let signal = |child: &Child, signal: &str| {
        assert!(Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap().success());
    };
    let socket = lab.at("a", || UdpSocket::bind("10.0.1.9:0").unwrap());
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    // A silent process is cut off, learns of it when it continues, and reports failure.
    let silent = echo();
    signal(&silent, "-STOP");
    socket.send_to(b"hello", "10.0.2.9:9").unwrap();
    lab.until("it is not cut off", || attachment()["last_cut"] == "stalled");
    signal(&silent, "-CONT");
    let ended = silent.wait_with_output().unwrap();
    assert_eq!(ended.status.code(), Some(2), "{}", stderr(&ended));
    assert!(stderr(&ended).contains("cut off: stalled"), "{}", stderr(&ended));
    // A process whose forwarder is removed does not report failure.
    let stopped = echo();
    socket.send_to(b"again", "10.0.2.9:9").unwrap();
    let mut bytes = [0; 9];
    assert_eq!(socket.recv(&mut bytes).unwrap(), 5);
    let fid = lab.programs("echo")[0]["fid"].to_string();
    let removed = longwire(&["forwarder", "remove", "r1", &fid, "--instance", &lab.name]);
    assert!(removed.status.success(), "{}", stderr(&removed));
    let ended = stopped.wait_with_output().unwrap();
    assert_eq!(ended.status.code(), Some(0), "{}", stderr(&ended));
}

#[test]
fn an_instance_that_is_killed_leaves_no_sockets_and_its_halves_end() {
    let Some(lab) = Up::new("slain") else { return };
    let mut halves = ["8080", "8081"].map(|port| {
        let listen = format!("10.0.1.1:{port}");
        let half = lab.half(&["splice", "r1", "--listen", &listen, "--backend", "10.0.2.9:80"]);
        half.event("listening");
        half
    });
    let attachment = ["--where", "control", "--name", "nobody", "--packets", "10", "--cycles", "10"];
    let attachment =
        longwire(&[&["forwarder", "install", "r1", "--instance", &lab.name], &attachment[..]].concat());
    assert!(attachment.status.success(), "{}", stderr(&attachment));
    let levels = longwire(&["forwarder", "levels", "r1", "--json", "--instance", &lab.name]);
    let socket = json(&levels, 0)["socket"].as_str().unwrap().to_owned();
    let (instance, _) = socket.split_once(".r1.control").unwrap();
    let (_, pid) = instance.rsplit_once('-').unwrap();
    assert!(std::path::Path::new(&socket).exists());
    assert!(Command::new("kill").args(["-KILL", pid]).status().unwrap().success());
    for half in &mut halves {
        assert!(half.child.wait().unwrap().success());
    }
    assert!(longwire(&["ctl", "list"]).status.success());
    assert!(
        !std::path::Path::new(&socket).exists()
            && !std::path::Path::new(&format!("{instance}.sock")).exists()
    );
}

#[test]
fn impossible_values_are_reported() {
    let folder = Folder::new("control-halves");
    let said = |args: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_longwire"));
        let done = command.args(args).env("LONGWIRE_RUN_DIR", folder.path("none")).output().unwrap();
        assert_eq!(done.status.code(), Some(2), "{args:?}");
        stderr(&done)
    };
    for (args, wanted) in [
        (&["control", "syn-alarm", "r1"][..], "no instance of this user is running"),
        (
            &["control", "syn-alarm", "r1", "--threshold", "5", "--clear", "9"],
            "--clear 9 is above the threshold, 5",
        ),
        (&["control", "intrusion", "r1", "--ports", "1"], "--ports and --hosts must be at least 2"),
        (&["control", "wavelet", "r1", "--link", "x", "--layers", "1"], "--layers 1 is outside 2 to 256"),
        (
            &["control", "splice", "r1", "--listen", "10.0.0.1:1", "--backend", "b"],
            "\"b\" is not an address and port",
        ),
        (&["control", "monitor", "r1", "--by", "colour"], "write port, protocol, flags"),
        (&["control", "monitor", "r1", "--interval", "1 us"], "1 us is too short: the minimum is 10 ms"),
        (&["control", "syn-alarm", "r1", "--interval", "9 ms"], "9 ms is too short"),
        (&["control", "intrusion", "r1", "--interval", "9 ms"], "9 ms is too short"),
        (&["control", "wavelet", "r1", "--link", "x", "--interval", "9 ms"], "9 ms is too short"),
        (
            &[
                "control",
                "splice",
                "r1",
                "--listen",
                "10.0.0.1:1",
                "--backend",
                "1.2.3.4:5",
                "--interval",
                "0 s",
            ],
            "0 ms is too short",
        ),
    ] {
        assert!(said(args).contains(wanted), "{args:?}: {}", said(args));
    }
}
