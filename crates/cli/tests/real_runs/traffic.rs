//! Sources, captures and background traffic in real time.

use crate::support::lab::can_make_labs;
use crate::support::{Folder, Frame, frame, json, longwire, pcap, row, stderr, stdout};
use crate::{Running, TWO_HOSTS, assert_nothing_left};
use serde_json::Value;
use std::process::Command;
use std::time::{Duration, Instant};

/// A host's programs send its packets: a source there is not run, and every command says so.
#[test]
fn sources_at_hosts_are_named_not_to_run() {
    if !can_make_labs("sources_at_hosts_are_named_not_to_run") {
        return;
    }
    let folder = Folder::new("silent");
    let source = "[[source]]\nname = \"video\"\nfrom = \"a\"\nto = \"b\"\nrate = \"1 Mbit/s\"\n";
    let scenario = folder.write("s.toml", format!("{TWO_HOSTS}{source}"));
    let why = "source \"video\" is not run in real time";
    assert!(stderr(&longwire(&["check", &scenario])).contains(why));
    let run = Running::start(&scenario, "silent", &[]);
    let refused = run.ctl(&["set", "video", "rate=2mbit", "--instance", &run.name]);
    assert!(stderr(&refused).contains(why) && !stderr(&refused).contains("over"), "{}", stderr(&refused));
    run.signal("INT");
    let (_, report) = run.end();
    assert!(
        row(&report, "source video")["notes"]
            .to_string()
            .contains("not run in real time: what comes in by host")
    );
}

#[test]
fn background_traffic_takes_its_share_of_a_real_link() {
    if !can_make_labs("background_traffic_takes_its_share_of_a_real_link") {
        return;
    }
    let folder = Folder::new("background");
    // Packets of 1500 bytes use 9 of 10 Mbit/s: the transmission of each takes 1.2 ms.
    let busy = "background = { kind = \"cbr\", rate = \"9 Mbit/s\", size = \"1500 B\" }";
    let run = Running::start(&folder.write("s.toml", format!("{TWO_HOSTS}{busy}\n")), "background", &[]);
    let name = run.name.clone();
    let (text, _) = run.ping("a", "10.0.0.2", &["-c", "100", "-i", "0.01"]);
    assert!(text.contains("100 packets transmitted, 100 received"), "{text}");
    let mean: f64 =
        text.split("min/avg/max/mdev = ").nth(1).unwrap().split('/').nth(1).unwrap().parse().unwrap();
    // In both directions: the mean residual transmission time is 0.54 ms each way (0.9 of 1.2 ms / 2).
    assert!(mean > 20.6, "{text}");
    let stats = json(&run.ctl(&["stats", &name, "--json"]), 0);
    let link = row(&stats, "link up.forward");
    let number = |field: &str| link[field].as_u64().unwrap_or_else(|| panic!("{field} in {link:#}"));
    // 750 a second for at least a second.
    assert!(number("made_packets") > 700, "{link:#}");
    // Each was fully sent, waits, or was dropped; packets of the pings come and go.
    let dropped: u64 = link["dropped"].as_object().unwrap().values().filter_map(Value::as_u64).sum();
    let held = number("queued_packets") + number("travelling_packets");
    let gone = number("consumed_packets") + number("out_packets") + dropped + held;
    assert_eq!(number("in_packets") + number("made_packets"), gone, "{link:#}");
    assert_eq!(row(&stats, "packets accounted for")["pass"], true);
    run.signal("INT");
    let (status, report) = run.end();
    assert_eq!(status, Some(0), "{report:#}");
    assert_eq!(row(&report, "packets accounted for")["pass"], true);
    assert_nothing_left(&name);
}

#[test]
fn what_was_recorded_meets_the_same_verdicts_in_virtual_time() {
    if !can_make_labs("what_was_recorded_meets_the_same_verdicts_in_virtual_time") {
        return;
    }
    let folder = Folder::new("record");
    let lossy = TWO_HOSTS.replace("delay = \"10 ms\"", "delay = \"10 ms\"\nloss = \"20 %\"");
    let scenario = folder.write("s.toml", lossy);
    let recorded = folder.text("arrivals.pcapng");
    let run = Running::start(&scenario, "record", &["--record", &recorded]);
    // Unanswered pings are expected.
    run.ping("a", "10.0.0.2", &["-c", "200", "-i", "0.005", "-W", "1"]);
    run.signal("INT");
    let (status, real) = run.end();
    assert_eq!(status, Some(0), "{real:#}");
    let (a, b) = (format!("a={recorded}"), format!("b={recorded}"));
    let ran = longwire(&["run", &scenario, "--virtual", "--input", &a, "--input", &b, "--json"]);
    let replayed = json(&ran, 0);
    for link in ["link up.forward", "link up.backward"] {
        for field in ["in_packets", "in_bytes", "dropped", "out_packets"] {
            assert_eq!(row(&real, link)[field], row(&replayed, link)[field], "{link} {field}");
        }
        assert!(row(&real, link)["dropped"]["loss"].as_u64().unwrap() > 10);
    }
}

#[test]
fn sources_and_captures_on_ports_of_their_own_run_in_real_time() {
    let folder = Folder::new("source");
    let frames: Vec<_> = (0..5u8)
        .map(|n| Frame { time: 1000 + u64::from(n) * 10_000_000, wire_len: 100, bytes: frame(1, 2, 100, n) })
        .collect();
    let capture = folder.write("in.pcap", pcap(&frames));
    let scenario = format!(
        "[[port]]\nname = \"a\"\ndriver = \"source\"\naddresses = \"10.0.1.1\"\n[[port]]\nname = \"b\"\n\
         driver = \"source\"\naddresses = \"10.0.1.2\"\n[[port]]\nname = \"c\"\ndriver = \"pcap\"\n\
         input = \"{capture}\"\n[[link]]\nname = \"l\"\nbetween = [\"a\", \"b\"]\ndelay = \"30 ms\"\n\
         [[source]]\nname = \"s\"\nfrom = \"a\"\nto = \"b\"\ninterval = \"1 ms\"\npackets = 200\n"
    );
    let out = format!("c={}", folder.text("out.pcap"));
    let scenario = folder.write("s.toml", scenario);
    let name = format!("t{}-source", std::process::id());
    let mut command = Command::new(env!("CARGO_BIN_EXE_longwire"));
    // Needs no privileges, and therefore does not use /run.
    command.env("LONGWIRE_RUN_DIR", folder.path("run"));
    command.args(["run", &scenario, "--name", &name, "--for", "1s", "--output", &out, "--quiet", "--json"]);
    let report = json(&command.output().unwrap(), 0);
    let source = row(&report, "source s");
    assert_eq!((&source["expected"], &source["measured"]), (&200.into(), &200.into()));
    let least = source["delay_ns_min"].as_u64().unwrap();
    assert!((30_000_000..40_000_000).contains(&least), "{least}");
    assert_eq!(row(&report, "port c")["in_frames"], 5);
}

#[test]
fn a_source_reaches_a_real_host() {
    if !can_make_labs("a_source_reaches_a_real_host") {
        return;
    }
    let folder = Folder::new("to-host");
    let scenario = folder.write(
        "s.toml",
        "[[host]]\nname = \"h\"\naddress = \"10.0.0.1/24\"\n\
         [[port]]\nname = \"a\"\ndriver = \"source\"\naddresses = \"10.0.0.2\"\n\
         [[link]]\nname = \"l\"\nbetween = [\"a\", \"h\"]\ndelay = \"5 ms\"\n\
         [[source]]\nname = \"s\"\nfrom = \"a\"\nto = \"h\"\nmodel = \"on-off\"\nrate = \"16 Mbit/s\"\n\
         on = \"10 ms\"\noff = \"10 ms\"\npackets = 500\n",
    );
    let running = Running::start(&scenario, "to-host", &["--for", "60s"]);
    let lab = running.lab();
    let host = lab.host("h").unwrap();
    // The kernel counts a datagram for a closed port only after its checksums were verified.
    let mut counted = Vec::new();
    let begin = Instant::now();
    while counted.first() != Some(&500) && begin.elapsed() < Duration::from_secs(30) {
        let read = host.command("cat").unwrap().arg("/proc/net/snmp").output().unwrap();
        let text = stdout(&read);
        let mut lines = text.lines().filter_map(|line| line.strip_prefix("Udp: "));
        let columns = lines.next().unwrap().split(' ').zip(lines.next().unwrap().split(' '));
        let wanted = columns.filter(|(name, _)| ["NoPorts", "InErrors", "InCsumErrors"].contains(name));
        counted = wanted.map(|(_, number)| number.parse::<u64>().unwrap()).collect();
    }
    assert_eq!(counted, [500, 0, 0]);
    running.signal("INT");
    let (status, report) = running.end();
    assert_eq!((status, &row(&report, "source s")["expected"]), (Some(0), &500.into()));
    // 2000 a second half of the time: the last one comes after half a second on average.
    assert_eq!(row(&report, "link l.forward")["out_packets"], 500);
}
