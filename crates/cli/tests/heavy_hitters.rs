//! Heavy hitters beside a router with real traffic: shown, policed, released.

mod support;

use std::net::UdpSocket;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use support::halves::{RouterLab, SetWhenDropped};
use support::{Folder, json, longwire, stderr};

#[test]
fn the_heaviest_flow_is_shown_and_policed_while_it_lasts() {
    let Some(lab) = RouterLab::new("heavy") else { return };
    let options = ["--interval", "300 ms", "--top", "3", "--above", "400 kbit/s"];
    let policer = ["--install-policer", "200 kbit/s", "--hold", "1 s"];
    let half = lab.half(&[&["heavy-hitters", "r1"], &options[..], &policer].concat());
    lab.until("it is not there", || lab.programs("heavy-hitters").len() == 1);
    // Receivers exist, so that no ICMP errors are sent.
    let _far = ["10.0.2.9:7001", "10.0.2.9:7002"].map(|end| lab.at("b", || UdpSocket::bind(end)).unwrap());
    let over = AtomicBool::new(false);
    // At most every 10 ms: 8 frames of 1042 bytes to one port, one of 142 to the other.
    let traffic = || {
        let socket = UdpSocket::bind("10.0.1.9:7000").unwrap();
        socket.set_read_timeout(Some(Duration::from_millis(10))).unwrap();
        while !over.load(Ordering::Relaxed) {
            for _ in 0..8 {
                socket.send_to(&[7; 1000], "10.0.2.9:7001").unwrap();
            }
            socket.send_to(&[7; 100], "10.0.2.9:7002").unwrap();
            let _ = socket.recv(&mut [0; 9]);
        }
    };
    std::thread::scope(|scope| {
        let _ends = SetWhenDropped(&over);
        scope.spawn(|| lab.at("a", traffic));
        let heavy = |flows: &serde_json::Value| {
            let all = flows["flows"].as_array().unwrap();
            all.len() > 1 && all[0]["destination-port"] == 7001 && all[1]["destination-port"] == 7002
        };
        let shown = half.event_where("interval", heavy);
        let flow = &shown["flows"][0];
        assert_eq!((&flow["source"], &flow["protocol"]), (&"10.0.1.9".into(), &"udp".into()), "{shown}");
        let (bytes, packets) = (flow["bytes"].as_u64().unwrap(), flow["packets"].as_u64().unwrap());
        // Estimates are never too low.
        assert!(packets > 0 && bytes >= packets * 1042, "{shown}");
        assert_eq!(shown["missed"], 0, "{shown}");
        let policed = half.event("policed");
        assert_eq!((&policed["destination-port"], &policed["source-port"]), (&7001.into(), &7000.into()));
        assert!(policed["rate"].as_u64() > Some(400_000), "{policed}");
        let dropped = || lab.programs("policer").first().and_then(|one| one["dropped"].as_u64());
        lab.until("nothing is dropped", || dropped() > Some(0));
        // Somebody removes the policer: the flow is policed anew.
        let fid = policed["fid"].to_string();
        let removed = longwire(&["forwarder", "remove", "r1", &fid, "--instance", &lab.name]);
        assert!(removed.status.success(), "{}", stderr(&removed));
        for event in ["released", "policed"] {
            assert_eq!(half.event(event)["destination-port"], 7001, "{event}");
        }
        lab.until("nothing is dropped again", || dropped() > Some(0));
        half.event_where("interval", |event| {
            event["flows"].as_array().unwrap().iter().any(|flow| flow["policed"] == true)
        });
        // The other flow is not policed.
        assert_eq!(lab.programs("policer").len(), 1);
    });
    let released = half.event("released");
    assert_eq!(released["destination-port"], 7001, "{released}");
    assert!(released["dropped"].as_u64() > Some(0), "{released}");
    assert_eq!(lab.programs("policer").len(), 0);
    half.end();
    assert_eq!(lab.programs("heavy-hitters").len(), 0, "it takes away what it has installed");
}

#[test]
fn fragments_are_counted_and_policed_as_one() {
    let Some(lab) = RouterLab::new("pieces") else { return };
    let half = lab.half(&[
        "heavy-hitters",
        "r1",
        "--interval",
        "300 ms",
        "--install-policer",
        "200 kbit/s",
        "--hold",
        "1 s",
    ]);
    lab.until("it is not there", || lab.programs("heavy-hitters").len() == 1);
    for [near, far] in [["10.0.1.9:7000", "10.0.2.9:7001"], ["[fd00:0:0:1::9]:7000", "[fd00:0:0:2::9]:7001"]]
    {
        let _far = lab.at("b", || UdpSocket::bind(far)).unwrap();
        let over = AtomicBool::new(false);
        // Datagrams of 8000 bytes, in six fragments: at most 100 times a second, 6.4 Mbit/s.
        let traffic = || {
            let socket = UdpSocket::bind(near).unwrap();
            socket.set_read_timeout(Some(Duration::from_millis(10))).unwrap();
            while !over.load(Ordering::Relaxed) {
                socket.send_to(&[7; 8000], far).unwrap();
                let _ = socket.recv(&mut [0; 9]);
            }
        };
        std::thread::scope(|scope| {
            let _ends = SetWhenDropped(&over);
            scope.spawn(|| lab.at("a", traffic));
            let policed = half.event("policed");
            assert_eq!((&policed["protocol"], &policed["destination-port"]), (&"udp".into(), &0.into()));
            let dropped = || lab.programs("policer").first().and_then(|one| one["dropped"].as_u64());
            lab.until("nothing is dropped", || dropped() > Some(0));
            let shown = half.event_where("interval", |event| event["flows"][0]["policed"] == true);
            let flow = &shown["flows"][0];
            let (bytes, packets) = (flow["bytes"].as_u64().unwrap(), flow["packets"].as_u64().unwrap());
            // At least a sixth of a datagram's 8008 bytes with the UDP header.
            assert!(packets > 0 && bytes >= packets * 600, "{shown}");
        });
        let released = half.event("released");
        assert!(released["dropped"].as_u64() > Some(0), "{released}");
    }
    half.end();
}

#[test]
fn maps_are_cleared() {
    let Some(lab) = RouterLab::new("clear") else { return };
    let own = |args: &[&str]| longwire(&[&["forwarder"], args, &["--instance", &lab.name]].concat());
    let installed = own(&["install", "r1", "detector"]);
    let fid = String::from_utf8(installed.stdout).unwrap();
    let fid = fid.trim();
    let key = "00000000000000000000ffff0a000009";
    assert!(own(&["map", "r1", fid, "filters", key, "0000000000000000"]).status.success());
    assert!(own(&["map", "r1", fid, ".bss", "00000000", &"01".repeat(64)]).status.success());
    for map in ["filters", ".bss"] {
        let cleared = own(&["map", "r1", fid, map, "--clear"]);
        assert!(cleared.status.success(), "{}", stderr(&cleared));
    }
    assert_eq!(support::stdout(&own(&["map", "r1", fid, "filters"])), "");
    let zeros = format!("00000000 {}\n", "00".repeat(64));
    assert_eq!(support::stdout(&own(&["map", "r1", fid, ".bss", "--hex"])), zeros);
    let list = json(&longwire(&["forwarder", "list", "r1", "--json", "--instance", &lab.name]), 0);
    assert_eq!(list["rows"].as_array().map(Vec::len), Some(1));
}

#[test]
fn impossible_values_are_reported() {
    let folder = Folder::new("heavy");
    for (options, wanted) in [
        (&["--top", "0"][..], "--top 0 is outside 1 to 100"),
        (&["--above", "1 Mbit/s"], "--install-policer"),
        (&["--install-policer", "2 Mbit/s", "--above", "1 Mbit/s"], "is below the policer's rate"),
        (&["--install-policer", "0 bit/s"], "passes nothing"),
        (&["--install-policer", "1 Mbit/s", "--burst", "1 B"], "--burst 1 B is outside"),
        (&["--interval", "1 ms"], "too short"),
        (&[], "no instance of this user is running"),
    ] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_longwire"));
        command
            .args(["control", "heavy-hitters", "r1"])
            .args(options)
            .env("LONGWIRE_RUN_DIR", folder.path("none"));
        let done = command.output().unwrap();
        assert_eq!(done.status.code(), Some(2), "{options:?}");
        assert!(stderr(&done).contains(wanted), "{options:?}: {}", stderr(&done));
    }
}
