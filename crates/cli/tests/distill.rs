//! `longwire distill`: the book's example, the report, and captures that can't be used.

mod support;

use serde_json::Value;
use support::lab::RunningLab;
use support::started::Started;
use support::{Folder, Frame, frame, json, longwire, pcap, repository, row, stderr, stdout};

/// The blocks of the book's page that begin with this fence.
fn blocks(fence: &str) -> Vec<String> {
    let page = std::fs::read_to_string(repository("docs/book/distill.md")).unwrap();
    let start = format!("```{fence}\n");
    let blocks = page.split(start.as_str()).skip(1);
    blocks.map(|block| block.split("```").next().unwrap().to_owned()).collect()
}

/// Runs a command of the book in a folder.
fn in_folder(folder: &Folder, line: &str) -> String {
    let words = line.split_whitespace().skip(1);
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_longwire"));
    let output = command.args(words).current_dir(folder.path("")).output().unwrap();
    assert!(output.status.success(), "{line}: {}", stderr(&output));
    stdout(&output)
}

/// The book's example: its folder, and the output of the last command.
fn example() -> (Folder, String) {
    let folder = Folder::new("distill-book");
    let scenarios = blocks("toml");
    folder.write("traffic.toml", &scenarios[0]);
    folder.write("emulated.toml", &scenarios[1]);
    let commands = &blocks("sh")[1];
    let outputs: Vec<String> = commands.lines().map(|line| in_folder(&folder, line)).collect();
    let last = outputs.last().unwrap().clone();
    (folder, last)
}

#[test]
fn the_books_example_is_distilled_as_shown() {
    let (folder, printed) = example();
    assert_eq!(printed, blocks("text")[0], "{printed}");
    for line in blocks("sh")[0].lines() {
        in_folder(&folder, line);
    }
    let written = std::fs::read_to_string(folder.path("path.toml")).unwrap();
    assert_eq!(written.trim_end(), printed.trim_end());
}

#[test]
fn a_report_has_each_estimate_with_its_interval() {
    let (folder, _) = example();
    let (sent, received) = (folder.text("sent.pcap"), folder.text("received.pcap"));
    let report = json(&longwire(&["distill", &sent, &received, "--level", "99.99%", "--json"]), 0);
    assert_eq!(report["command"], "distill");
    for (name, truth) in
        [("rate", 1e7), ("delay", 12.5e6), ("queue", 15.0), ("loss p", 1.0), ("loss r", 25.0)]
    {
        let row = row(&report, name);
        let end = |name: &str| row[name].as_f64().unwrap_or_else(|| panic!("{row:#}"));
        assert!(end("low") <= truth && truth <= end("high"), "{row:#}");
        assert!(row["method"].is_string() && row["samples"].as_u64() > Some(0), "{row:#}");
    }
    assert_eq!(
        (&row(&report, "delay")["unit"], &row(&report, "sent")["measured"]),
        (&"ns".into(), &8000.into())
    );
    assert!(report["scenario"].as_str().unwrap().contains("[[link]]"));
    let table = stdout(&longwire(&["distill", &sent, &received, "--output", &folder.text("x.toml")]));
    assert!(table.contains("sign test") || table.contains("by rounding"), "{table}");
}

fn numbered(marks: std::ops::Range<u8>, later: u64, length: usize) -> Vec<u8> {
    let frame = |mark: u8| {
        let mut bytes = frame(1, 2, 60, 0);
        bytes[42] = mark;
        bytes.truncate(length);
        Frame { time: 1_700_000_000_000_000_000 + u64::from(mark) * 1_000_000 + later, wire_len: 60, bytes }
    };
    pcap(&marks.map(frame).collect::<Vec<_>>())
}

/// A capture with 50 bytes of each frame, and one with all.
#[test]
fn captures_may_have_cut_frames() {
    let folder = Folder::new("distill-cut");
    let sent = folder.write("sent.pcap", numbered(0..100, 0, 60));
    let received = folder.write("received.pcap", numbered(0..100, 3_000_000, 50));
    let report = json(&longwire(&["distill", &sent, &received, "--json"]), 0);
    assert_eq!(row(&report, "paired")["measured"], 100);
    assert_eq!(row(&report, "delay")["measured"], 3_000_000);
}

#[test]
fn captures_that_can_not_be_used_are_refused() {
    let folder = Folder::new("distill-wrong");
    let file = |name: &str, bytes: &[u8]| folder.write(name, bytes);
    let good = numbered(0..100, 0, 60);
    let sent = file("sent.pcap", &good);
    let late = file("late.pcap", &numbered(0..100, 3_000_000, 60));
    let other = file("other.pcap", &numbered(100..200, 0, 60));
    let empty = file("empty.pcap", &good[..24]);
    let text = file("text.pcap", b"this is no capture, but a text of some length");
    for (arguments, says) in [
        (&[&*sent, "nowhere.pcap"][..], "nowhere.pcap can't be read"),
        (&[&*sent, &empty], "empty.pcap: there is no IP packet in it"),
        (&[&*text, &sent], "text.pcap: it is no capture"),
        (&[&*sent, &other], "none of the 100 packets sent is among the 100 received"),
        (&[&*late, &sent], "exchange the files"),
        (&[&*sent, &late, "--filter", "tcp"], "there is no IP packet in it that matches the filter"),
        (&[&*sent, &late, "--filter", "udp prot 9"], "--filter"),
        (&[&*sent, &late, "--level", "100%"], "from 50 % to 99.9999 %"),
        (&[&*sent, &late, "--delay", "5ms"], "--two-clocks"),
    ] {
        let words: Vec<&str> = ["distill"].iter().chain(arguments).copied().collect();
        let output = longwire(&words);
        assert_eq!(output.status.code(), Some(2), "{words:?}");
        assert!(stderr(&output).contains(says), "{words:?}: {}", stderr(&output));
    }
    // The scenario is not written over a capture, by whatever name.
    let link = folder.path("link.pcap");
    std::os::unix::fs::symlink(&late, &link).unwrap();
    for target in [&*sent, &*link.display().to_string()] {
        let output = longwire(&["distill", &sent, &late, "-o", target]);
        assert_eq!(output.status.code(), Some(2), "{target}");
        assert!(stderr(&output).contains("would be overwritten"), "{target}: {}", stderr(&output));
    }
    assert_eq!(std::fs::read(&sent).unwrap(), good);
    // Truncated: what is good is used.
    let cut = numbered(0..100, 3_000_000, 60);
    let cut = file("cut.pcap", &cut[..cut.len() - 100]);
    let output = longwire(&["distill", &sent, &cut, "--json"]);
    assert!(stderr(&output).contains("it is damaged after 98 good packets"), "{}", stderr(&output));
    assert_eq!(row(&json(&output, 0), "paired")["measured"], 98);
}

/// Both ends of `traffic` record their packets; with two clocks nothing depends on this machine's times.
#[test]
fn traffic_records_what_distill_reads() {
    let folder = Folder::new("distill-live");
    let (sent, received) = (folder.text("sent.pcap"), folder.text("received.pcap"));
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_longwire"));
    command.args(["traffic", "receive", "--bind", "127.0.0.1", "--port", "0", "--count", "1", "--record"]);
    let (receiver, line) = Started::ready(command.arg(&received), "listening on 127.0.0.1:");
    let port = line.split("127.0.0.1:").nth(1).and_then(|rest| rest.split(';').next()).unwrap();
    let words = ["traffic", "send", "udp", "127.0.0.1", "--port", port, "--packets-per-second", "2000"];
    let words = [&words[..], &["--count", "500", "--record", &sent, "--json"]].concat();
    json(&longwire(&words), 0);
    assert_eq!(receiver.wait().code, Some(0));
    let report = json(&longwire(&["distill", &sent, &received, "--two-clocks", "--json"]), 0);
    let count = |name: &str| row(&report, name)["measured"].as_u64();
    assert_eq!((count("sent"), count("foreign")), (Some(500), Some(0)));
    assert!(count("paired") == count("received") && count("paired") > Some(0), "{report:#}");
    assert!(report["scenario"].as_str().unwrap().contains("Two clocks"), "{report:#}");
}

/// A link between two hosts, slow enough that pauses of a busy machine are short beside its packets, and
/// with a queue for all that the test sends. The way back only passes packets on.
const LINK: &str = r#"
[[host]]
name = "a"
address = "10.0.0.1/24"
[[host]]
name = "b"
address = "10.0.0.2/24"
[[link]]
name = "wan"
between = ["a", "b"]
forward = { rate = "1 Mbit/s", delay = "20 ms", queue = "500 packets", loss = "5 %" }
"#;

/// Sends a stream from a host to another, with these recordings, and returns the sender's report.
fn stream(lab: &RunningLab, [from, to]: [&str; 2], address: &str, [sent, received]: [&str; 2]) -> Value {
    let program = env!("CARGO_BIN_EXE_longwire");
    let mut command = std::process::Command::new(program);
    command.args(["lab", "exec", &lab.name, to, "--", program, "traffic", "receive", "--count", "1"]);
    let (receiver, _) = Started::ready(command.args(["--record", received]), "listening on");
    let words = [program, "traffic", "send", "udp", address, "--rate", "1500kbit", "--count", "300"];
    let more = ["--wait", "3s", "--record", sent, "--json"];
    let report = json(&lab.exec(from, &[&words[..], &more].concat()), 0);
    assert_eq!(receiver.wait().code, Some(0));
    report
}

/// What `traffic` sends over a link in real time, faster than that carries, is enough to find the link again.
#[test]
fn a_link_between_hosts_is_found_again() {
    let Some(lab) = RunningLab::of("distill-lab", LINK) else { return };
    let folder = Folder::new("distill-lab");
    let files = ["sent.pcap", "received.pcap"].map(|name| folder.text(name));
    let [sent, received] = files.each_ref().map(String::as_str);
    let back = stream(&lab, ["b", "a"], "10.0.0.1", [sent, received]);
    stream(&lab, ["a", "b"], "10.0.0.2", [sent, received]);
    let report = json(&longwire(&["distill", sent, received, "--level", "99.99%", "--json"]), 0);
    let within = |name: &str, least: f64, most: f64| {
        let row = row(&report, name);
        let end = |name: &str| row[name].as_f64().unwrap_or_else(|| panic!("{report:#}"));
        assert!(end("low") <= most && end("high") >= least, "{least} to {most}: {row:#}");
    };
    within("rate", 1e6, 1e6);
    within("loss", 5.0, 5.0);
    // Beside the link's, packets have the delay of hosts and engine, for which the longest of the way back
    // stands (few packets meet no queue, so a pause is in their mean), and the lateness that the run says.
    let hosts = row(&back, "one-way delay")["max_ns"].as_f64().unwrap();
    let late = lab.stats()["fidelity"]["lateness_ns"]["max"].as_f64().unwrap();
    within("delay", 20e6, 20e6 + hosts + late);
    let queue = row(&report, "queue");
    assert!(queue["low"].as_u64() <= Some(500) && queue["high"].is_null(), "it is never full: {queue:#}");
}
