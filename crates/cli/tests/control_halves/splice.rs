//! The TCP splicer.

use crate::support::halves::{Half, MOMENT, PATIENCE, RouterLab};
use longwire_rundir::{Lock, Patience};
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::Path;
use std::time::Instant;

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
    lab: &'u RouterLab,
    half: Half,
    servers: [TcpListener; 2],
}

impl<'u> Proxied<'u> {
    fn start(lab: &'u RouterLab) -> Self {
        Self::with(lab, &["--linger", "500 ms"])
    }

    fn with(lab: &'u RouterLab, options: &[&str]) -> Self {
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
    let Some(lab) = RouterLab::new("splice") else { return };
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
    let Some(lab) = RouterLab::new("plain") else { return };
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
    // They are put back when others have finished with their labs.
    let mut last = proxy(8080);
    let patience = Patience { limit: PATIENCE, interruptible: false };
    let others = Lock::acquire(Path::new("/run/longwire/.lock"), patience).unwrap();
    last.signal("-TERM");
    let begin = Instant::now();
    while begin.elapsed() < MOMENT && last.child.try_wait().unwrap().is_none() {}
    drop(others);
    assert!(last.child.wait().unwrap().success());
    assert_eq!(settings(), before);
}

#[test]
fn connections_whose_windows_are_scaled_differently_are_spliced() {
    let Some(lab) = RouterLab::new("scaled") else { return };
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
    let Some(lab) = RouterLab::new("six") else { return };
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
    let Some(lab) = RouterLab::new("idle") else { return };
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
fn nothing_is_lost_when_data_is_on_its_way() {
    let Some(lab) = RouterLab::new("moving") else { return };
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
