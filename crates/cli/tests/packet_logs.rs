//! `--log`, `longwire log`, `--series` and `--record`: a run's records agree with its counters, and are
//! rotated.

mod support;

use serde_json::Value;
use std::collections::{BTreeMap, HashMap};
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use support::lab::can_make_labs;
use support::service::Service;
use support::started::Started;
use support::{Folder, json, longwire, repository, row, stderr, stdout};

/// A link with a queue that overflows, and random loss.
const NET: &str = r#"
seed = 7

[[port]]
name = "a"
driver = "source"
addresses = "10.0.0.1/32"

[[port]]
name = "b"
driver = "source"
addresses = "10.0.0.2/32"

[[link]]
name = "access"
from = "a"
to = "b"
rate = "2 Mbit/s"
delay = "5 ms"
loss = "3 %"
queue = "10 packets"

[[link]]
name = "back"
from = "b"
to = "a"
delay = "5 ms"

[[source]]
from = "a"
to = "b"
size = "1000 B"
rate = "3 Mbit/s"
model = "poisson"
for = "4 s"
"#;

/// The entries of a log.
fn entries(file: &str, args: &[&str]) -> Vec<Value> {
    let output = longwire(&[&["log", file, "--json"], args].concat());
    assert!(output.status.success(), "{}", stderr(&output));
    stdout(&output).lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn number(entry: &Value, key: &str) -> u64 {
    entry[key].as_u64().unwrap_or_else(|| panic!("{key} of {entry}"))
}

/// Segments of a link's events, by event and reason.
fn counts(entries: &[Value], link: &str) -> BTreeMap<String, u64> {
    let mut counts = BTreeMap::new();
    for entry in entries.iter().filter(|entry| entry["link"] == link) {
        let reason = entry["reason"].as_str().map(|reason| format!(" {reason}")).unwrap_or_default();
        let what = format!("{}{reason}", entry["event"].as_str().unwrap());
        *counts.entry(what).or_default() += number(entry, "segments");
    }
    counts
}

#[test]
fn a_log_agrees_with_the_counters_and_changes_nothing() {
    let folder = Folder::new("log");
    let scenario = folder.write("net.toml", NET);
    let (binary, capture) = (folder.text("run.lwlog"), folder.text("run.pcapng"));
    let run =
        |args: &[&str]| json(&longwire(&[&["run", &scenario, "--virtual", "--json"], args].concat()), 0);
    let plain = run(&[]);
    let logged = run(&["--log", &binary]);
    assert_eq!(row(&plain, "link access"), row(&logged, "link access"));
    let entries = entries(&binary, &[]);
    assert_eq!(number(&logged["log"], "events"), entries.len() as u64);
    assert_eq!(logged["log"]["lost"], 0);
    let link = row(&logged, "link access");
    let counts = counts(&entries, "access");
    assert_eq!(counts["arrive"], number(link, "in_packets"));
    assert_eq!(counts["leave"], number(link, "out_packets"));
    for reason in ["loss", "queue-full"] {
        let counted = number(&link["dropped"], reason);
        assert!(counted > 10, "{link:#}");
        assert_eq!(counts[&format!("drop {reason}")], counted);
    }
    assert_eq!(counts.len(), 4, "{counts:?}");
    // The same in a capture.
    run(&["--log", &capture]);
    assert_eq!(self::entries(&capture, &[]), entries);
    check_times(&entries);
}

#[test]
fn what_a_log_does_not_have_is_said() {
    let folder = Folder::new("log-wrong");
    let (scenario, log) = (folder.write("net.toml", NET), folder.text("run.lwlog"));
    json(&longwire(&["run", &scenario, "--virtual", "--json", "--log", &log]), 0);
    let of = |option: &str, value: &str| longwire(&["log", &log, option, value]);
    let output = of("--reason", "queue-ful");
    assert!(output.status.code() == Some(2), "{output:?}");
    assert!(stderr(&output).contains("did you mean \"queue-full\"?"), "{output:?}");
    // A link may be there and have no events.
    let output = of("--link", "nosuch*");
    assert!(output.status.success() && output.stdout.is_empty(), "{output:?}");
    assert_eq!(stderr(&output), format!("note: no link matches nosuch*; the log {log} has access\n"));
    // Another filter may leave nothing of a link that is there.
    assert_eq!(entries(&log, &["--link", "acc*", "--reason", "mtu"]), [] as [Value; 0]);
}

/// Every packet arrives once, and leaves or is dropped once; transmission and delay take the configured time.
fn check_times(entries: &[Value]) {
    let mut held: HashMap<u64, u64> = HashMap::new();
    let mut last = 0;
    for entry in entries {
        let (time, id) = (number(entry, "time_ns"), number(entry, "id"));
        assert!(time >= last, "{entry}");
        last = time;
        if entry["event"] == "arrive" {
            assert_eq!(held.insert(id, time), None, "{entry}");
            assert_eq!(number(entry, "arrival_ns"), time);
            assert_eq!(entry["leave_ns"], Value::Null);
            // Ten packets of 1000 bytes, as Ethernet counts them.
            assert!(number(entry, "queue_bytes") <= 10 * 1024, "{entry}");
            continue;
        }
        let arrival = held.remove(&id).unwrap_or_else(|| panic!("{entry} did not arrive"));
        assert_eq!(number(entry, "arrival_ns"), arrival);
        if entry["event"] == "leave" {
            assert_eq!(number(entry, "leave_ns"), time);
            assert!(time >= arrival + 5_000_000 + 4_000_000, "{entry}");
        }
    }
    assert!(held.is_empty(), "{held:?}");
}

#[test]
fn events_can_be_chosen() {
    let folder = Folder::new("log-filter");
    let (scenario, log) = (folder.write("net.toml", NET), folder.text("run.lwlog"));
    json(&longwire(&["run", &scenario, "--virtual", "--json", "--log", &log]), 0);
    let all = entries(&log, &[]);
    let chosen = entries(&log, &["--reason", "queue-full", "--from", "1s", "--to", "2s"]);
    let (from, to) = (1_000_000_000, 2_000_000_000);
    let is_wanted =
        |entry: &&Value| entry["reason"] == "queue-full" && (from..to).contains(&number(entry, "time_ns"));
    let wanted: Vec<Value> = all.iter().filter(is_wanted).cloned().collect();
    assert!(!chosen.is_empty());
    assert_eq!(chosen, wanted);
    assert_eq!(entries(&log, &["--event", "leave", "--event", "drop", "--id", "9"]).len(), 1);
    assert_eq!(entries(&log, &["--link", "b*"]), [] as [Value; 0]);
    // CSV has the same, in columns.
    let output = longwire(&["log", &log, "--csv", "--reason", "queue-full", "--from", "1s", "--to", "2s"]);
    let text = stdout(&output);
    let mut lines = text.lines();
    let columns: Vec<_> = lines.next().unwrap().split(',').collect();
    for (line, entry) in lines.zip(&chosen) {
        for (column, value) in columns.iter().zip(line.split(',')) {
            let wanted = match &entry[column] {
                Value::String(text) => text.clone(),
                Value::Null => String::new(),
                other => other.to_string(),
            };
            assert_eq!(value, wanted, "{column} of {line}");
        }
    }
    // Only links of these names are logged, and there must be one.
    json(&longwire(&["run", &scenario, "--virtual", "--json", "--log", &log, "--log-links", "back"]), 0);
    assert_eq!(entries(&log, &[]), [] as [Value; 0]);
    let output = longwire(&["run", &scenario, "--virtual", "--log", &log, "--log-links", "dsl*"]);
    assert!(stderr(&output).contains("no link matches dsl*"), "{}", stderr(&output));
    let output = longwire(&["run", &scenario, "--virtual", "--log", &folder.text("x.log")]);
    assert!(stderr(&output).contains(".lwlog, for longwire log"), "{}", stderr(&output));
}

#[test]
fn a_log_is_cut_into_files() {
    let folder = Folder::new("log-rotation");
    let (scenario, log) = (folder.write("net.toml", NET), folder.text("run.lwlog"));
    let run = |args: &[&str]| {
        json(&longwire(&[&["run", &scenario, "--virtual", "--json", "--log", &log], args].concat()), 0)
    };
    run(&[]);
    let all = entries(&log, &[]);
    std::fs::remove_file(&log).unwrap();
    run(&["--file-size", "64KiB", "--file-count", "2"]);
    let mut kept = Vec::new();
    for name in ["run.1.lwlog", "run.lwlog"] {
        let length = std::fs::metadata(folder.path(name)).unwrap().len();
        assert!(length < 64 * 1024 + 200, "{name}: {length} bytes");
        kept.extend(entries(&folder.text(name), &[]));
    }
    assert!(!folder.path("run.2.lwlog").exists());
    assert!(kept.len() < all.len());
    assert_eq!(kept, all[all.len() - kept.len()..]);
}

/// Who follows a log has all from the file on with which it began, over those that came after it, until the
/// run ends.
#[test]
fn a_log_is_followed_until_its_run_ends() {
    let folder = Folder::new("log-follow");
    let text = NET.replace("\"3 Mbit/s\"", "\"12 Mbit/s\"").replace("\"2 Mbit/s\"", "\"20 Mbit/s\"");
    let scenario = folder.write("net.toml", text.replace("for = \"4 s\"", "for = \"1 h\""));
    for (extension, files) in [("lwlog", 2), ("pcapng", 10)] {
        let log = folder.text(&format!("run.{extension}"));
        let name = format!("t{}-follow-{extension}", std::process::id());
        let mut run = Command::new(env!("CARGO_BIN_EXE_longwire"));
        run.args(["run", &scenario, "--name", &name, "--json", "--log", &log]);
        let (mut run, _) =
            Started::ready(run.args(["--file-size", "64KiB", "--file-count", "200"]), "running as");
        let mut reader = Command::new(env!("CARGO_BIN_EXE_longwire"));
        let mut reader =
            reader.args(["log", &log, "--follow", "--json"]).stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(reader.stdout.take().unwrap()).lines().map(Result::unwrap);
        let mut followed: Vec<String> = lines.by_ref().take(4000).collect();
        assert!(followed.len() == 4000 && run.child.try_wait().unwrap().is_none(), "it ended");
        assert_eq!(run.end().code, Some(0));
        followed.extend(lines);
        assert!(reader.wait().unwrap().success());
        let older = (1..).map(|number| folder.text(&format!("run.{number}.{extension}")));
        let mut names: Vec<String> = older.take_while(|name| std::fs::exists(name).unwrap()).collect();
        assert!(names.len() >= files, "{names:?}");
        names.reverse();
        names.push(log);
        let kept: Vec<Value> = names.iter().flat_map(|name| entries(name, &[])).collect();
        let followed: Vec<Value> = followed.iter().map(|line| serde_json::from_str(line).unwrap()).collect();
        // Files may have been complete before it began.
        assert!(kept.ends_with(&followed), "{} followed, {} kept", followed.len(), kept.len());
    }
}

#[test]
fn a_series_is_cut_into_files() {
    let folder = Folder::new("series-rotation");
    let scenario = folder.write("net.toml", NET);
    for extension in ["csv", "jsonl"] {
        let file = |name: &str| folder.path(&format!("{name}.{extension}"));
        let run = |name: &str, args: &[&str]| {
            let series = file(name).display().to_string();
            let all = ["run", &scenario, "--virtual", "--json", "--series", &series, "--every", "2ms"];
            json(&longwire(&[&all[..], args].concat()), 0);
            std::fs::read_to_string(file(name)).unwrap()
        };
        let whole = run("whole", &[]);
        let current = run("cut", &["--file-size", "64KiB", "--file-count", "2"]);
        let older = std::fs::read_to_string(file("cut.1")).unwrap();
        assert!(!file("cut.2").exists() && older.len() < 64 * 1024 + 300, "{} bytes", older.len());
        let header = if extension == "csv" { whole.split_inclusive('\n').next().unwrap() } else { "" };
        let rows = [older, current].map(|text| text.strip_prefix(header).unwrap().to_owned()).concat();
        assert!(rows.len() > 64 * 1024 && whole.ends_with(&rows), "{extension}");
    }
    let alone = longwire(&["run", &scenario, "--virtual", "--file-size", "64KiB"]);
    assert!(stderr(&alone).contains("required arguments were not provided"), "{}", stderr(&alone));
}

/// The packets in a capture (pcap, nanoseconds).
fn packets(capture: &[u8]) -> u64 {
    assert_eq!(capture[..4], 0xa1b2_3c4d_u32.to_le_bytes());
    let (mut at, mut count) = (24, 0);
    while at < capture.len() {
        let length = u32::from_le_bytes(capture[at + 8..at + 12].try_into().unwrap());
        at += 16 + length as usize;
        count += 1;
    }
    assert_eq!(at, capture.len(), "cut off");
    count
}

#[test]
fn a_capture_of_what_a_port_sends_is_cut_into_files() {
    if !can_make_labs("a_capture_of_what_a_port_sends_is_cut_into_files") {
        return;
    }
    let folder = Folder::new("output-rotation");
    let scenario = folder.write(
        "net.toml",
        "[[host]]\nname = \"h\"\naddress = \"10.0.0.1/24\"\n\
         [[port]]\nname = \"a\"\ndriver = \"source\"\naddresses = \"10.0.0.2\"\n\
         [[link]]\nname = \"l\"\nbetween = [\"a\", \"h\"]\n\
         [[source]]\nname = \"s\"\nfrom = \"a\"\nto = \"h\"\nrate = \"10 Mbit/s\"\nsize = \"1000 B\"\n\
         packets = 500\n",
    );
    let out = format!("h={}", folder.text("out.pcap"));
    let name = format!("t{}-output-rotation", std::process::id());
    let words = ["run", &scenario, "--name", &name, "--for", "2s", "--quiet", "--json", "--output", &out];
    let report = json(&longwire(&[&words[..], &["--file-size", "64KiB", "--file-count", "50"]].concat()), 0);
    let older = (1..).map(|number| folder.path(&format!("out.{number}.pcap")));
    let mut files: Vec<_> = older.take_while(|file| file.exists()).collect();
    assert!(files.len() >= 5, "{files:?}");
    files.push(folder.path("out.pcap"));
    let all: Vec<Vec<u8>> = files.iter().map(|file| std::fs::read(file).unwrap()).collect();
    assert!(all.iter().all(|capture| capture.len() < 64 * 1024 + 2000));
    let sent = row(&report, "port h")["out_frames"].as_u64().unwrap();
    assert!(sent >= 500 && all.iter().map(|capture| packets(capture)).sum::<u64>() == sent, "{report:#}");
}

/// Each scenario of a service has files of its own, which are rotated, also by the next service.
#[test]
fn a_service_records_each_scenario() {
    let folder = Folder::new("log-serve");
    let scenarios = ["one", "two"].map(|name| folder.write(&format!("{name}.toml"), NET));
    let files = ["packets.lwlog", "rates.csv", "all.pcapng"].map(|name| folder.text(name));
    let [log, series, record] = &files;
    let kept = ["--every", "10ms", "--file-size", "64KiB", "--file-count", "3"];
    let options = [&["--log", log, "--series", series, "--record", record], &kept[..]].concat();
    let start = || Service::start(&folder, &[&[&*scenarios[0], &*scenarios[1]], &options[..]].concat());
    let service = start();
    let until = Instant::now() + Duration::from_secs(60);
    while !["one-all.1.pcapng", "two-all.1.pcapng"].iter().all(|name| folder.path(name).exists()) {
        assert!(Instant::now() < until, "nothing was rotated");
    }
    service.signal("TERM");
    let stopped = service.event("stopped");
    assert_eq!(stopped["log"]["file"], folder.text("one-packets.lwlog"));
    assert_eq!(service.wait(), Some(0));
    assert!(files.iter().all(|file| !std::path::Path::new(file).exists()), "files of no scenario");
    for name in ["one", "two"] {
        let read = |file: &str| std::fs::read(folder.path(&format!("{name}-{file}"))).unwrap();
        for file in ["all.pcapng", "all.1.pcapng"] {
            let bytes = read(file);
            // A section header block (pcapng).
            assert!(bytes.starts_with(&[0x0a, 0x0d, 0x0d, 0x0a]), "{name} {file}");
            assert!(bytes.len() < 64 * 1024 + 2000, "{name} {file}: {} bytes", bytes.len());
        }
        assert!(read("rates.csv").starts_with(b"time_ns,link,"), "{name}");
        assert!(!entries(&folder.text(&format!("{name}-packets.lwlog")), &[]).is_empty(), "{name}");
    }
    // The next one begins new files.
    let before = std::fs::read(folder.path("one-rates.csv")).unwrap();
    let service = start();
    assert_eq!(std::fs::read(folder.path("one-rates.1.csv")).unwrap(), before);
    assert_eq!(service.end(), Some(0));
}

/// /dev/full is a full disk.
#[test]
fn a_file_that_can_not_be_written_any_more_is_said_at_once() {
    let folder = Folder::new("log-full");
    let scenario = folder.write("net.toml", NET.replace("for = \"4 s\"", "for = \"1000 h\""));
    let names = ["packets.lwlog", "rates.csv", "all.pcapng"];
    for name in names {
        std::os::unix::fs::symlink("/dev/full", folder.path(name)).unwrap();
        std::os::unix::fs::symlink("/dev/full", folder.path(&format!("net-{name}"))).unwrap();
    }
    let options = |[log, series, record]: [&str; 3]| {
        ["--log", log, "--series", series, "--every", "1ms", "--record", record].map(str::to_owned)
    };
    let files = names.map(|name| folder.text(name));
    let options = options(files.each_ref().map(String::as_str));
    let options: Vec<&str> = options.iter().map(String::as_str).collect();
    let wanted = |start: &str| {
        let full = |kind: &str, name: &str| {
            let file = folder.text(&format!("{start}{name}"));
            format!("the {kind} {file} is incomplete: No space left on device (os error 28)")
        };
        [full("capture", names[2]), full("log", names[0]), full("time series", names[1])]
    };
    let service = Service::start(&folder, &[&[&*scenario], &options[..]].concat());
    let mut said = [(); 3].map(|()| service.event("not-recorded")["error"].as_str().unwrap().to_owned());
    said.sort();
    assert_eq!(said, wanted("net-"));
    let stats = json(&service.ctl(&["stats", "--json"]), 0);
    let mut failures: Vec<_> = stats["failures"].as_array().unwrap().clone();
    failures.sort_by_key(Value::to_string);
    assert_eq!(failures, wanted("net-").map(Value::from));
    let carried = |stats: &Value| number(row(stats, "link access"), "out_packets");
    let until = Instant::now() + Duration::from_secs(60);
    while carried(&json(&service.ctl(&["stats", "--json"]), 0)) == carried(&stats) {
        assert!(Instant::now() < until, "the traffic ended");
    }
    assert_eq!(service.end(), Some(0));
    // A run on its own, which goes on, too.
    let run = |more: &[&str], kind: usize| {
        let mut run = Command::new(env!("CARGO_BIN_EXE_longwire"));
        let warning = format!("warning: {}", wanted("")[kind]);
        let (run, _) = Started::ready(run.args(["run", &scenario, "--quiet"]).args(more), &warning);
        run.end().code
    };
    let name = format!("t{}-log-full", std::process::id());
    for (kind, option) in [(0, "--record"), (1, "--log"), (2, "--series")] {
        let place = options.iter().position(|known| *known == option).unwrap();
        let of_file = [&["--name", &name][..], &options[place..place + 2]].concat();
        let every: &[&str] = if option == "--series" { &["--every", "1ms"] } else { &[] };
        assert_eq!(run(&[&of_file[..], every].concat(), kind), Some(1), "{option}");
    }
    assert_eq!(run(&["--virtual", "--log", &files[0]], 1), None, "ended by the signal");
}

#[test]
fn damaged_logs_are_refused() {
    let folder = Folder::new("log-damage");
    let (scenario, log) = (folder.write("net.toml", NET), folder.text("run.lwlog"));
    json(&longwire(&["run", &scenario, "--virtual", "--json", "--log", &log, "--for", "1s"]), 0);
    let bytes = std::fs::read(&log).unwrap();
    let mut unknown = bytes.clone();
    unknown[32 + 50] = 77;
    let mut huge = bytes.clone();
    huge[32 + 52..32 + 56].fill(0xff);
    for (name, bytes, said) in [
        ("cut.lwlog", &bytes[..bytes.len() - 7], "is cut off"),
        ("head.lwlog", &bytes[..20], "the header is cut off"),
        ("unknown.lwlog", &unknown[..], "unknown event 77"),
        ("huge.lwlog", &huge[..], "4294967295 bytes"),
        ("text.lwlog", b"hello, world", "is not a packet log"),
        ("empty.lwlog", b"", "is not a packet log"),
        ("capture.pcapng", b"\x0a\x0d\x0d\x0a\xff\xff\xff\xff1234", "capture"),
    ] {
        let output = longwire(&["log", &folder.write(name, bytes)]);
        assert_eq!(output.status.code(), Some(2), "{name}: {}", stdout(&output));
        assert!(stderr(&output).contains(said), "{name}: {}", stderr(&output));
    }
}

#[test]
fn tshark_reads_the_comments() {
    if Command::new("tshark").arg("-v").output().is_err() {
        println!("tshark_reads_the_comments: skipped: there is no tshark");
        return;
    }
    let folder = Folder::new("log-tshark");
    let (scenario, log) = (folder.write("net.toml", NET), folder.text("run.pcapng"));
    let report = json(&longwire(&["run", &scenario, "--virtual", "--json", "--log", &log]), 0);
    let fields = ["-e", "frame.interface_name", "-e", "frame.time_epoch", "-e", "frame.comment"];
    let filter = ["-Y", "frame.comment contains \"drop queue-full\""];
    let mut tshark = Command::new("tshark");
    let output = tshark.args(["-r", &log, "-T", "fields"]).args(fields).args(filter).output().unwrap();
    let text = stdout(&output);
    let dropped = number(&row(&report, "link access")["dropped"], "queue-full");
    assert_eq!(text.lines().count() as u64, dropped, "{text}");
    assert!(text.lines().all(|line| line.starts_with("access\t") && line.contains("id=")), "{text}");
}

#[test]
fn a_series_adds_up() {
    let folder = Folder::new("series");
    let scenario = folder.write("net.toml", NET);
    let (csv, lines) = (folder.text("run.csv"), folder.text("run.jsonl"));
    let run = |file: &str, more: &[&str]| {
        let args =
            ["run", &scenario, "--virtual", "--json", "--series", file, "--every", "50ms", "--for", "5s"];
        json(&longwire(&[&args[..], more].concat()), 0)
    };
    let report = run(&lines, &[]);
    let plain = json(&longwire(&["run", &scenario, "--virtual", "--json", "--for", "5s"]), 0);
    assert_eq!(row(&plain, "link access"), row(&report, "link access"));
    let text = std::fs::read_to_string(&lines).unwrap();
    let rows: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    // 100 samples of each of two links.
    assert_eq!((rows.len(), report["series"]["rows"].as_u64()), (200, Some(200)));
    let own: Vec<_> = rows.iter().filter(|row| row["link"] == "access").collect();
    let sum = |key: &str| own.iter().map(|row| number(row, key)).sum::<u64>();
    let link = row(&report, "link access");
    for key in ["in_packets", "out_packets", "in_bytes", "out_bytes"] {
        assert_eq!(sum(key), number(link, key), "{key}");
    }
    for (at, row) in own.iter().enumerate() {
        assert_eq!(number(row, "time_ns"), (at as u64 + 1) * 50_000_000);
        assert_eq!(number(row, "in_bit_s"), number(row, "in_bytes") * 8 * 20);
        assert!(number(row, "queue_packets") <= 10);
    }
    assert!(own.iter().any(|row| number(row, "queue_packets") == 10), "the queue is full now and then");
    run(&csv, &["--series-links", "acc*"]);
    let text = std::fs::read_to_string(&csv).unwrap();
    assert_eq!(text.lines().count(), 101, "{text}");
    assert!(text.starts_with("time_ns,link,in_packets,"), "{text}");
}

/// Background traffic that a change stops at 330 ms, when no packets are left; in between a burst waits.
const CHANGED: &str = r#"
[[port]]
name = "a"
driver = "source"
addresses = "10.0.0.1"

[[port]]
name = "b"
driver = "source"
addresses = "10.0.0.2"

[[link]]
name = "busy"
from = "a"
to = "b"
rate = "1 Mbit/s"
background = { kind = "cbr", rate = "2 Mbit/s", size = "496 B" }

[[link]]
name = "back"
from = "b"
to = "a"
rate = "1 Mbit/s"
delay = "1 s"

[[source]]
from = "a"
to = "b"
size = "60 B"
interval = "10 ms"
packets = 5

[[source]]
from = "b"
to = "a"
size = "996 B"
interval = "100 us"
packets = 50

[[at]]
time = "330 ms"
link = "busy"
rate = "0"

[[at]]
time = "330 ms"
link = "back"
loss = "1 %"
"#;

#[test]
fn samples_come_before_changes_and_change_nothing() {
    let folder = Folder::new("series-changes");
    let scenario = folder.write("net.toml", CHANGED);
    let series = folder.text("run.jsonl");
    let words = ["run", &scenario, "--virtual", "--json", "--for", "1050ms"];
    let plain = json(&longwire(&words), 0);
    let report = json(&longwire(&[&words[..], &["--series", &series, "--every", "100ms"]].concat()), 0);
    let text = std::fs::read_to_string(&series).unwrap();
    let rows: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    for name in ["busy", "back"] {
        let link = row(&plain, &format!("link {name}"));
        assert_eq!(link, row(&report, &format!("link {name}")));
        let own: Vec<_> = rows.iter().filter(|row| row["link"] == name).collect();
        let times: Vec<u64> = own.iter().map(|row| number(row, "time_ns") / 1_000_000).collect();
        assert_eq!(times, [100, 200, 300, 400, 500, 600, 700, 800, 900, 1000, 1050], "the rest is a row too");
        let sum = |key: &str| own.iter().map(|row| number(row, key)).sum::<u64>();
        assert_eq!(sum("out_packets"), number(link, "out_packets"), "{name}");
    }
    // A packet of 996 bytes and its FCS takes 8 ms.
    let waiting = rows.iter().filter(|row| row["link"] == "back").map(|row| number(row, "queue_packets"));
    assert_eq!(waiting.take(4).collect::<Vec<_>>(), [38, 25, 13, 0]);
}

/// CoDel decides at the head of its queue, when the link is next served.
#[test]
fn events_are_sorted_on_request() {
    let folder = Folder::new("log-sorted");
    let net = NET.replace("10 packets", "codel").replace("3 Mbit/s", "4 Mbit/s");
    let scenario = folder.write("net.toml", net);
    for name in ["run.lwlog", "run.pcapng"] {
        let log = folder.text(name);
        let output = longwire(&["run", &scenario, "--virtual", "--log", &log]);
        assert!(output.status.success(), "{}", stderr(&output));
        let (mut decided, sorted) = (entries(&log, &[]), entries(&log, &["--sort"]));
        let is_sorted = |entries: &[Value]| entries.is_sorted_by_key(|entry| number(entry, "time_ns"));
        assert!(!is_sorted(&decided) && is_sorted(&sorted), "{name}");
        decided.sort_by_key(|entry| number(entry, "time_ns"));
        assert!(decided == sorted, "{name}: those of one time stay in their order");
        let drops = entries(&log, &["--sort", "--event", "drop"]);
        assert!(is_sorted(&drops) && drops.len() < sorted.len(), "{name}");
    }
    let followed = longwire(&["log", &folder.text("run.lwlog"), "--sort", "--follow"]);
    assert_eq!(followed.status.code(), Some(2), "{}", stderr(&followed));
}

/// In any scenario, a log agrees with the counters.
#[test]
fn logs_of_the_examples_agree_with_their_counters() {
    let folder = Folder::new("log-examples");
    for name in ["dumbbell", "two-hosts", "home-access", "multihop", "wifi-cell", "ethernet-lan", "handover"]
    {
        let scenario = repository(&format!("scenarios/{name}.toml")).display().to_string();
        let log = folder.text(&format!("{name}.lwlog"));
        let args = ["run", &scenario, "--virtual", "--json", "--for", "2s"];
        let plain = json(&longwire(&args), 0);
        let logged = json(&longwire(&[&args[..], &["--log", &log]].concat()), 0);
        let entries = entries(&log, &[]);
        for row in logged["rows"].as_array().unwrap().iter().filter(|row| row["kind"] == "link") {
            let name = row["name"].as_str().unwrap();
            assert_eq!(row, support::row(&plain, &format!("link {name}")), "{name}");
            let counts = counts(&entries, name);
            let count = |what: &str| counts.get(what).copied().unwrap_or_default();
            assert_eq!(count("arrive"), number(row, "in_packets"), "{scenario} {row:#}");
            assert_eq!(count("leave"), number(row, "out_packets"), "{scenario} {row:#}");
            assert_eq!(count("mark"), number(row, "marked_packets"), "{scenario} {row:#}");
            for (reason, dropped) in row["dropped"].as_object().into_iter().flatten() {
                assert_eq!(Some(count(&format!("drop {reason}"))), dropped.as_u64(), "{scenario} {row:#}");
            }
        }
    }
}

/// Links that join in a run, one in the place of another, are logged under their names.
#[test]
fn links_that_join_are_logged() {
    let folder = Folder::new("log-joined");
    let link = "from = \"a\"\nto = \"b\"\ndelay = \"5 ms\"";
    let stages = [("1 s", "remove = \"access\"".to_owned())].into_iter().chain(
        [("1500 ms", "second"), ("2500 ms", "third")].map(|(time, name)| {
            let before = if name == "third" { "remove = \"second\"\n" } else { "" };
            (time, format!("{before}[at.add.link]\nname = \"{name}\"\n{link}\nloss = \"10 %\""))
        }),
    );
    let stages: String =
        stages.map(|(time, text)| format!("\n[[at]]\ntime = \"{time}\"\n{text}\n")).collect();
    let scenario = folder.write("net.toml", format!("{NET}{stages}"));
    for (options, names) in
        [(&[][..], ["access", "second", "third"]), (&["--log-links", "*d,back"], ["", "second", "third"])]
    {
        let file = folder.text("run.lwlog");
        let args = [&["run", &scenario, "--virtual", "--json", "--log", &file], options].concat();
        let report = json(&longwire(&args), 0);
        let entries = entries(&file, &[]);
        let logged: std::collections::BTreeSet<_> = entries
            .iter()
            .filter_map(|entry| entry["link"].as_str())
            .filter(|name| *name != "back")
            .collect();
        assert_eq!(logged, names.into_iter().filter(|name| !name.is_empty()).collect());
        let (link, third) = (row(&report, "link third"), counts(&entries, "third"));
        assert_eq!(third["arrive"], number(link, "in_packets"));
        assert_eq!(third["leave"], number(link, "out_packets"));
        let second = counts(&entries, "second");
        let dropped =
            ["drop loss", "drop link-removed"].map(|what| second.get(what).copied().unwrap_or_default());
        assert_eq!(second["arrive"], second["leave"] + dropped[0] + dropped[1]);
        assert!(dropped[0] > 10 && second["leave"] > 100, "{second:?}");
        let times = entries.iter().filter(|entry| entry["link"] == "second" && entry["event"] == "arrive");
        assert!(
            times
                .map(|entry| number(entry, "time_ns"))
                .all(|time| (1_500_000_000..2_500_000_000).contains(&time))
        );
    }
}

/// A link that is removed and added again counts from zero, and the others keep their names.
#[test]
fn a_series_has_links_that_join_again() {
    let folder = Folder::new("series-joined");
    let link = NET.split("[[link]]").nth(1).unwrap();
    let stages = format!(
        "\n[[at]]\ntime = \"1 s\"\nremove = \"access\"\n[[at]]\ntime = \"1500 ms\"\n[at.add.link]{link}"
    );
    let (scenario, file) = (folder.write("net.toml", format!("{NET}{stages}")), folder.text("run.jsonl"));
    let args = ["run", &scenario, "--virtual", "--json", "--series", &file, "--for", "5s"];
    let report = json(&longwire(&args), 0);
    let text = std::fs::read_to_string(&file).unwrap();
    let rows: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let of = |name: &str| -> Vec<&Value> { rows.iter().filter(|row| row["link"] == name).collect() };
    let times: Vec<_> = of("access").iter().map(|row| number(row, "time_ns") / 100_000_000).collect();
    // The second row of its removal has what that dropped.
    assert_eq!(times, (1..=10).chain([10]).chain(16..=50).collect::<Vec<_>>());
    let again = of("access").into_iter().filter(|row| number(row, "time_ns") > 1_500_000_000);
    let packets: u64 = again.map(|row| number(row, "in_packets")).sum();
    assert_eq!(packets, number(row(&report, "link access"), "in_packets"));
    assert!(packets > 500, "{report}");
    assert_eq!(of("back").len(), 50);
}

/// What a link holds when the run is stopped, or when it is removed, is dropped then; and that is the end.
#[test]
fn what_is_held_at_the_end_is_dropped_then() {
    let folder = Folder::new("log-end");
    let ports = [("a", 1), ("b", 2)].map(|(name, host)| {
        format!("[[port]]\nname = \"{name}\"\ndriver = \"source\"\naddresses = \"10.0.0.{host}\"\n")
    });
    let net = "[[link]]\nfrom = \"a\"\nto = \"b\"\nrate = \"100 kbit/s\"\n[[source]]\nfrom = \"a\"\n\
        to = \"b\"\nsize = \"996 B\"\ninterval = \"1 ms\"\npackets = 3\n";
    let net = ports.concat() + net;
    let removed = format!("{net}[[at]]\ntime = \"2500 us\"\nremove = \"a\"\n");
    for (text, options, reason, end) in
        [(&net, &["--for", "70ms"][..], "stopped", 70_000_000), (&removed, &[], "link-removed", 2_500_000)]
    {
        let (scenario, file) = (folder.write("net.toml", text), folder.text("run.lwlog"));
        let args = [&["run", &scenario, "--virtual", "--json", "--log", &file], options].concat();
        assert_eq!(json(&longwire(&args), 0)["elapsed_ns"], end, "{reason}");
        let entries = entries(&file, &["--event", "drop"]);
        let times: Vec<_> =
            entries.iter().map(|entry| (entry["reason"].as_str(), number(entry, "time_ns"))).collect();
        assert_eq!(times, [(Some(reason), end); 3]);
    }
}

/// What the hosts' kernels say when their interfaces come up is enough to count.
#[test]
fn a_real_run_is_logged() {
    if !can_make_labs("a_real_run_is_logged") {
        return;
    }
    let folder = Folder::new("log-real");
    let scenario = repository("scenarios/two-hosts.toml").display().to_string();
    let (log, series, sent) = (folder.text("run.lwlog"), folder.text("run.csv"), folder.text("b.pcap"));
    let (name, output) = (format!("log{}", std::process::id()), format!("b={sent}"));
    let args = ["run", &scenario, "--name", &name, "--for", "3s", "--quiet", "--json", "--log", &log];
    let more = ["--series", &series, "--every", "200ms", "--output", &output];
    let report = json(&longwire(&[&args[..], &more].concat()), 0);
    let entries = entries(&log, &[]);
    for name in ["up.forward", "up.backward"] {
        let (link, counts) = (row(&report, &format!("link {name}")), counts(&entries, name));
        assert_eq!(counts.get("arrive").copied().unwrap_or_default(), number(link, "in_packets"));
        assert_eq!(counts.get("leave").copied().unwrap_or_default(), number(link, "out_packets"));
    }
    assert!(entries.iter().any(|entry| entry["event"] == "leave"), "{entries:?}");
    let frames = support::read_pcap(&folder.path("b.pcap"));
    assert_eq!(frames.len() as u64, number(row(&report, "port b"), "out_frames"));
    // The samples add up, including the last.
    let text = std::fs::read_to_string(&series).unwrap();
    let own = text.lines().filter(|line| line.split(',').nth(1) == Some("up.forward"));
    let packets: u64 = own.map(|line| line.split(',').nth(2).unwrap().parse::<u64>().unwrap()).sum();
    assert!(packets <= number(row(&report, "link up.forward"), "in_packets"));
    assert!(packets > 0, "{text}");
}
