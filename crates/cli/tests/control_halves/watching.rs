//! Halves that watch traffic and react: SYN alarm, intrusion detector, wavelet, monitor.

use crate::support::halves::{MOMENT, PATIENCE, RouterLab, SetWhenDropped};
use crate::support::{longwire, stderr};
use serde_json::Value;
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::RecvTimeoutError;
use std::time::{Duration, Instant};

/// Sends SYNs to port 80 of b until it is over: one for each attempt, answered or not.
fn flood(over: &AtomicBool) {
    let to: SocketAddr = "10.0.2.9:80".parse().unwrap();
    while !over.load(Ordering::Relaxed) {
        let _ = TcpStream::connect_timeout(&to, Duration::from_millis(1));
    }
}

#[test]
fn a_flood_of_syns_raises_an_alarm_and_is_filtered() {
    let Some(lab) = RouterLab::new("syn") else { return };
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
    std::thread::scope(|scope| {
        let _ends = SetWhenDropped(&over);
        scope.spawn(|| lab.at("a", || flood(&over)));
        let alarm = half.event("alarm");
        assert_eq!((&alarm["address"], &alarm["port"]), (&"10.0.2.9".into(), &80.into()), "{alarm}");
        assert!(alarm["rate"].as_u64() >= Some(20), "{alarm}");
        let dropped = || lab.programs("syn-filter").first().and_then(|one| one["dropped"].as_u64());
        lab.until("nothing is filtered", || dropped() > Some(0));
        // Somebody removes the filter: the flood goes on, and so does the alarm.
        let fid = alarm["fid"].to_string();
        let removed = longwire(&["forwarder", "remove", "r1", &fid, "--instance", &lab.name]);
        assert!(removed.status.success(), "{}", stderr(&removed));
        assert_eq!(half.event("over")["fid"], alarm["fid"]);
        assert_eq!(half.event("alarm")["port"], 80);
        lab.until("nothing is filtered again", || dropped() > Some(0));
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
fn an_alarm_goes_on_without_the_program_that_counts_by_target() {
    // All SYNs pass the filters.
    let half_of = |lab: &RouterLab| {
        let many = ["--threshold", "20", "--admit", "1000000000", "--interval", "200 ms"];
        let half = lab.half(&[&["syn-alarm", "r1"], &many[..]].concat());
        lab.until("no monitor", || lab.programs("syn-monitor").len() == 1);
        half
    };
    let Some(lab) = RouterLab::new("syncount") else { return };
    let (half, over) = (half_of(&lab), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let _ends = SetWhenDropped(&over);
        scope.spawn(|| lab.at("a", || flood(&over)));
        // Somebody removes it: it is installed again.
        let suspicion = half.event("suspicion");
        let fid = suspicion["fid"].to_string();
        let removed = longwire(&["forwarder", "remove", "r1", &fid, "--instance", &lab.name]);
        assert!(removed.status.success(), "{}", stderr(&removed));
        let again = half.event("suspicion");
        assert!(again["fid"].is_u64() && again["fid"] != suspicion["fid"], "{again}");
    });
    half.end();
    drop(lab);
    // Of the 336 ns of a packet its hash table alone takes more than the router and the monitor leave.
    let Some(lab) = RouterLab::with_line_rate("synroom", "2 Gbit/s") else { return };
    let (half, over) = (half_of(&lab), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let _ends = SetWhenDropped(&over);
        scope.spawn(|| lab.at("a", || flood(&over)));
        let suspicion = half.event("suspicion");
        assert!(suspicion["fid"].is_null() && suspicion["rate"].as_u64() >= Some(20), "{suspicion}");
    });
    half.end();
}

#[test]
fn who_scans_ports_is_filtered_for_a_while() {
    let Some(lab) = RouterLab::new("scan") else { return };
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

#[test]
fn layers_are_dropped_while_the_output_is_congested() {
    let Some(lab) = RouterLab::new("layers") else { return };
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
        let _ends = SetWhenDropped(&over);
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
    let Some(lab) = RouterLab::new("monitor") else { return };
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
