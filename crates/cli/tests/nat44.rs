//! Address translation by a control half, with real traffic through a router: a is inside, b is outside.

mod support;

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::process::Command;
use support::halves::{Half, MOMENT, PATIENCE, RouterLab};
use support::{Folder, longwire, stderr};

/// The router's own address on b's side, which is the external one.
const EXTERNAL: &str = "10.0.2.1";

/// The half beside the lab's router, ready for packets.
fn nat(lab: &RouterLab, options: &[&str]) -> Half {
    let inside = ["nat44", "r1", "--inside", "10.0.1.0/24", "--external", EXTERNAL, "--log"];
    let half = lab.half(&[&inside[..], options].concat());
    // It has attached when its attachment is in use.
    lab.until("it has not come", || attached(lab));
    half
}

/// Whether a process is attached above the lab's router.
fn attached(lab: &RouterLab) -> bool {
    let levels = longwire(&["forwarder", "levels", "r1", "--json", "--instance", &lab.name]);
    let levels = support::json(&levels, 0);
    levels["rows"]
        .as_array()
        .is_some_and(|attachments| attachments.iter().any(|attachment| attachment["there"] == true))
}

fn udp(lab: &RouterLab, host: &str, address: &str) -> UdpSocket {
    let socket = lab.at(host, || UdpSocket::bind(address)).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    socket
}

/// The data received by a socket, and its sender.
fn heard(socket: &UdpSocket) -> (Vec<u8>, String) {
    let mut bytes = [0; 4000];
    let (length, from) = socket.recv_from(&mut bytes).unwrap();
    (bytes[..length].to_vec(), from.to_string())
}

#[test]
fn what_comes_from_inside_goes_out_with_the_external_address() {
    let Some(lab) = RouterLab::new("nat") else { return };
    let mut half = nat(&lab, &[]);
    let (own, far, other) =
        (udp(&lab, "a", "10.0.1.9:5000"), udp(&lab, "b", "10.0.2.9:7"), udp(&lab, "b", "10.0.2.9:8"));
    own.send_to(b"one", "10.0.2.9:7").unwrap();
    assert_eq!(heard(&far), (b"one".to_vec(), format!("{EXTERNAL}:5000")));
    let bound = half.event("bound");
    assert_eq!(
        (&bound["inside"], &bound["external"]),
        (&"10.0.1.9:5000".into(), &format!("{EXTERNAL}:5000").into())
    );
    // In the reverse direction; with any destination, and from any sender.
    far.send_to(b"two", (EXTERNAL, 5000)).unwrap();
    assert_eq!(heard(&own), (b"two".to_vec(), "10.0.2.9:7".to_owned()));
    own.send_to(b"three", "10.0.2.9:8").unwrap();
    assert_eq!(heard(&other).1, format!("{EXTERNAL}:5000"));
    // In parts, both ways.
    let long: Vec<u8> = (0..3000u32).map(|place| place as u8).collect();
    own.send_to(&long, "10.0.2.9:7").unwrap();
    assert_eq!(heard(&far), (long.clone(), format!("{EXTERNAL}:5000")));
    far.send_to(&long, (EXTERNAL, 5000)).unwrap();
    assert!(heard(&own).0 == long);
    // The last fragment has one byte, and 7.
    for length in [1473, 1479] {
        own.send_to(&long[..length], "10.0.2.9:7").unwrap();
        assert_eq!(heard(&far), (long[..length].to_vec(), format!("{EXTERNAL}:5000")));
    }
    // An endpoint inside, by the external address of another.
    let second = udp(&lab, "a", "10.0.1.9:5002");
    second.send_to(b"four", (EXTERNAL, 5000)).unwrap();
    assert_eq!(heard(&own), (b"four".to_vec(), format!("{EXTERNAL}:5002")));
    // The port is closed: b reports it, and the sender receives the error.
    own.connect("10.0.2.9:9").unwrap();
    own.send(b"five").unwrap();
    assert_eq!(own.recv(&mut [0; 9]).unwrap_err().kind(), ErrorKind::ConnectionRefused);

    let pinged =
        lab.at("a", || Command::new("ping").args(["-c", "3", "-W", "20", "10.0.2.9"]).output()).unwrap();
    assert!(pinged.status.success(), "{}", support::stdout(&pinged));
    half.event_where("bound", |event| event["protocol"] == "icmp");
    // With options and in fragments: bytes of the first must be fetched, and the others wait for it.
    let recorded = lab.at("a", || {
        Command::new("ping").args(["-R", "-c", "2", "-s", "4000", "-W", "20", "10.0.2.9"]).output()
    });
    let recorded = recorded.unwrap();
    assert!(recorded.status.success(), "{}", support::stdout(&recorded));
    let counts = half.event_where("counts", |event| event["bindings"]["icmp"] == 2);
    assert_eq!(counts["bindings"], serde_json::json!({ "udp": 2, "tcp": 0, "icmp": 2 }), "{counts}");
    assert_eq!((&counts["hosts"], &counts["untranslatable"]), (&1.into(), &0.into()), "{counts}");
    assert!(counts["translated"]["errors"].as_u64() >= Some(1), "{counts}");
    // Its bindings end with it.
    half.signal("-TERM");
    let ended: Vec<_> = (0..4).map(|_| half.event("ended")).collect();
    let own = ended.iter().find(|event| event["inside"] == "10.0.1.9:5000").unwrap();
    assert!((0..2).all(|way| own["packets"][way].as_u64() > Some(0)), "{own}");
    assert!(half.child.wait().unwrap().success());
    assert_eq!(lab.programs("nat44").len(), 0, "it takes away what it has installed");
}

#[test]
fn connections_are_carried_by_the_data_path() {
    let Some(lab) = RouterLab::new("natted") else { return };
    let half = nat(&lab, &[]);
    let listener = lab.at("b", || TcpListener::bind("10.0.2.9:80")).unwrap();
    let mut client = lab.at("a", || TcpStream::connect("10.0.2.9:80")).unwrap();
    let (mut server, from) = listener.accept().unwrap();
    assert_eq!(from, SocketAddr::new(EXTERNAL.parse().unwrap(), client.local_addr().unwrap().port()));
    // Without the half, which is stopped.
    half.signal("-STOP");
    let sent = vec![7; 500_000];
    std::thread::scope(|scope| {
        scope.spawn(|| client.write_all(&sent).unwrap());
        let mut got = vec![0; sent.len()];
        server.read_exact(&mut got).unwrap();
        assert!(got == sent);
    });
    half.signal("-CONT");
    half.end();
}

#[test]
fn ports_run_out() {
    let Some(lab) = RouterLab::new("natfull") else { return };
    let half = nat(&lab, &["--ports", "6000-6001", "--interval", "100 ms"]);
    let far = udp(&lab, "b", "10.0.2.9:7");
    let own: Vec<_> = [5000, 5001, 5002].map(|port| udp(&lab, "a", &format!("10.0.1.9:{port}"))).into();
    let mut ports = Vec::new();
    for socket in &own[..2] {
        socket.send_to(b"in", "10.0.2.9:7").unwrap();
        ports.push(heard(&far).1);
    }
    assert_eq!(ports, [format!("{EXTERNAL}:6000"), format!("{EXTERNAL}:6001")]);
    // There is no third as long as both are used.
    own[2].send_to(b"no", "10.0.2.9:7").unwrap();
    let full = half.event("full");
    assert_eq!((&full["what"], &full["packets"]), (&"ports".into(), &1.into()));
    half.end();
}

#[test]
fn a_port_whose_binding_has_ended_is_nobodys_and_then_anothers() {
    let Some(lab) = RouterLab::new("natend") else { return };
    let half = nat(&lab, &["--ports", "6000-6000", "--udp", "1 s", "--interval", "100 ms"]);
    let far = udp(&lab, "b", "10.0.2.9:7");
    let [first, second] = [5000, 5001].map(|port| udp(&lab, "a", &format!("10.0.1.9:{port}")));
    first.send_to(b"in", "10.0.2.9:7").unwrap();
    assert_eq!(heard(&far).1, format!("{EXTERNAL}:6000"));
    half.event("ended");
    // A packet for an unused port is not delivered.
    far.send_to(b"late", (EXTERNAL, 6000)).unwrap();
    first.set_read_timeout(Some(MOMENT)).unwrap();
    assert!(first.recv(&mut [0; 9]).is_err());
    second.send_to(b"now", "10.0.2.9:7").unwrap();
    assert_eq!(heard(&far).1, format!("{EXTERNAL}:6000"));
    half.end();
}

#[test]
fn hosts_are_limited() {
    let Some(lab) = RouterLab::new("natlimit") else { return };
    let half = nat(&lab, &["--each", "2", "--interval", "100 ms"]);
    let own: Vec<_> = (0..3).map(|port| udp(&lab, "a", &format!("10.0.1.9:{}", 5000 + port))).collect();
    for socket in &own {
        socket.send_to(b"in", "10.0.2.9:7").unwrap();
    }
    let full = half.event("full");
    assert_eq!((&full["what"], &full["packets"]), (&"host".into(), &1.into()));
    let counts = half.event_where("counts", |event| event["refused"]["host"] == 1);
    assert_eq!((&counts["bindings"]["udp"], &counts["made"]), (&2.into(), &2.into()), "{counts}");
    half.end();
}

#[test]
fn what_one_that_was_killed_has_left_is_taken_over() {
    let Some(lab) = RouterLab::new("natagain") else { return };
    let mut half = nat(&lab, &[]);
    let (own, far) = (udp(&lab, "a", "10.0.1.9:5000"), udp(&lab, "b", "10.0.2.9:7"));
    own.send_to(b"one", "10.0.2.9:7").unwrap();
    assert_eq!(heard(&far).1, format!("{EXTERNAL}:5000"));
    let fids = || lab.programs("nat44").iter().map(|one| one["fid"].clone()).collect::<Vec<_>>();
    let before = fids();
    assert_eq!(before.len(), 2);
    let again = |inside: &str| {
        let args = ["control", "nat44", "r1", "--inside", inside, "--external", EXTERNAL];
        let done = longwire(&[&args[..], &["--instance", &lab.name]].concat());
        assert_eq!(done.status.code(), Some(2));
        stderr(&done)
    };
    // While it is attached its place is taken, and its configuration can't be changed by another.
    let said = again("10.0.1.0/24");
    assert!(said.contains(&format!("taking over the programs {} and {}", before[0], before[1])), "{said}");
    half.child.kill().unwrap();
    half.child.wait().unwrap();
    let said = again("10.0.0.0/23");
    assert!(said.contains("with other options than these"), "{said}");
    assert!(said.contains(&format!("longwire forwarder remove r1 {}", before[1])), "{said}");
    assert_eq!(fids(), before, "who is refused removes nothing");
    lab.until("the attachment is not free", || !attached(&lab));
    let half = nat(&lab, &[]);
    // Existing bindings remain, and new ones are made.
    let other = udp(&lab, "a", "10.0.1.9:5002");
    for (socket, port) in [(&own, 5000), (&other, 5002)] {
        socket.send_to(b"two", "10.0.2.9:7").unwrap();
        assert_eq!(heard(&far), (b"two".to_vec(), format!("{EXTERNAL}:{port}")));
        far.send_to(b"back", (EXTERNAL, port)).unwrap();
        assert_eq!(heard(socket).0, b"back");
    }
    assert_eq!(half.event("bound")["inside"], "10.0.1.9:5002", "the first that it has bound");
    assert_eq!(fids(), before);
    half.end();
    assert_eq!(fids().len(), 0, "it takes away what it has taken over");
}

#[test]
fn one_that_hung_leaves_the_other_what_it_has() {
    let Some(lab) = RouterLab::new("nathung") else { return };
    let mut hung = nat(&lab, &[]);
    let (own, far) = (udp(&lab, "a", "10.0.1.9:5000"), udp(&lab, "b", "10.0.2.9:7"));
    hung.signal("-STOP");
    // It is cut off because it does not answer.
    own.send_to(b"lost", "10.0.2.9:7").unwrap();
    lab.until("the attachment is not free", || !attached(&lab));
    let half = nat(&lab, &[]);
    // It has adopted the programs once it serves.
    own.send_to(b"one", "10.0.2.9:7").unwrap();
    half.event("bound");
    hung.signal("-CONT");
    assert_eq!(hung.child.wait().unwrap().code(), Some(2));
    assert_eq!(lab.programs("nat44").len(), 2);
    assert_eq!(heard(&far), (b"one".to_vec(), format!("{EXTERNAL}:5000")));
    half.end();
    assert_eq!(lab.programs("nat44").len(), 0);
}

#[test]
fn external_addresses_that_do_not_lead_to_the_router_are_mentioned() {
    let Some(lab) = RouterLab::new("natastray") else { return };
    // An unused address in b's network, then the router's own.
    for (external, is_astray) in [("10.0.2.7", true), (EXTERNAL, false)] {
        let half = lab.half(&["nat44", "r1", "--inside", "10.0.1.0/24", "--external", external, "--log"]);
        lab.until("it has not come", || attached(&lab));
        // The first event of the other is about a flow.
        let own = udp(&lab, "a", "10.0.1.9:5000");
        own.send_to(b"one", "10.0.2.9:7").unwrap();
        let first = half.events.recv_timeout(PATIENCE).unwrap();
        assert_eq!(first["event"], if is_astray { "astray" } else { "bound" }, "{first}");
        if is_astray {
            assert_eq!((&first["external"], &first["addresses"]), (&external.into(), &1.into()));
            let why = first["why"].as_str().unwrap();
            assert!(why.contains("expects a host with it behind b"), "{why}");
        }
        half.end();
    }
}

#[test]
fn impossible_values_are_reported() {
    let folder = Folder::new("nat44");
    for (options, wanted) in [
        (
            &["--inside", "10.0.0.0/8", "--external", "10.0.2.1"][..],
            "--external overlaps the inside network 10.0.0.0",
        ),
        (
            &["--inside", "10.0.0.0/8", "--external", "192.0.0.0/16"],
            "--external has 65536 addresses, more than 256",
        ),
        (&["--inside", "10.0.0.0/8", "--external", "192.0.2.1/24"], "write 192.0.2.1 for that one"),
        (&["--inside", "10.0.0.0/8", "--external", "127.0.0.1"], "is one of the loopback addresses"),
        (&["--inside", "fd00::/8", "--external", "192.0.2.1"], "is not IPv4"),
        (
            &["--inside", "10.0.0.0/8", "--external", "192.0.2.1", "--ports", "9"],
            "\"9\" is not a range of ports",
        ),
        (&["--inside", "10.0.0.0/8", "--external", "192.0.2.1", "--bindings", "40000"], "outside 1 to 32768"),
        (&["--inside", "10.0.0.0/8", "--external", "192.0.2.1", "--each", "0"], "--each must be at least 1"),
        (&["--inside", "10.0.0.0/8", "--external", "192.0.2.1", "--interval", "1 us"], "too short"),
        (
            &["--inside", "10.0.0.0/8", "--external", "192.0.2.1", "--udp", "1 min"],
            "--udp 60 s is less than 120 s",
        ),
        (&["--inside", "10.0.0.0/8", "--external", "192.0.2.1"], "no instance of this user is running"),
    ] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_longwire"));
        command.args(["control", "nat44", "r1"]).args(options).env("LONGWIRE_RUN_DIR", folder.path("none"));
        let done = command.output().unwrap();
        assert_eq!(done.status.code(), Some(2), "{options:?}");
        assert!(stderr(&done).contains(wanted), "{options:?}: {}", stderr(&done));
    }
}
