//! A run under traffic with continuous changes: all packets stay accounted for, and its memory stays bounded.

use super::support::guarded::Guarded;
use super::support::lab::can_make_labs;
use super::support::{Folder, json, longwire, row, stderr};
use super::{Dice, PATIENCE, times, until, wait, whole};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const SCENARIO: &str = "\
[[host]]
name = \"a\"
address = \"10.67.0.1/24\"
[[host]]
name = \"b\"
address = \"10.67.0.2/24\"
[[link]]
name = \"l\"
between = [\"a\", \"b\"]
rate = \"50 Mbit/s\"
delay = \"5 ms\"
";

/// Changes of a link.
const CHANGES: [&str; 14] = [
    "rate=1mbit",
    "rate=0",
    "rate=unlimited",
    "rate=50mbit",
    "delay=0ms",
    "delay=200ms",
    "delay=5ms",
    "loss=10%",
    "loss=0%",
    "queue=codel",
    "queue=fq-codel",
    "queue=red",
    "queue=10 packets",
    "queue=1000 packets",
];

/// Memory of a process in kB.
fn resident(process: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

#[test]
fn changes_without_a_pause_lose_nothing() {
    if !can_make_labs("changes_without_a_pause_lose_nothing") {
        return;
    }
    let mut dice = Dice::new("changes_without_a_pause_lose_nothing");
    let folder = Folder::new("soak");
    let name = format!("soak{}", std::process::id());
    let report = std::fs::File::create(folder.path("report.json")).unwrap();
    let mut run = Guarded::killed(
        Command::new(env!("CARGO_BIN_EXE_longwire"))
            .args(["run", &folder.write("s.toml", SCENARIO), "--name", &name, "--json"])
            .stdout(report)
            .stderr(Stdio::null())
            .spawn()
            .unwrap(),
    );
    let up = until(PATIENCE, || {
        longwire(&["ctl", "get", "l", "--instance", &name]).status.success().then_some(())
    });
    assert!(up.is_some(), "it does not come up");
    let ping = Command::new(env!("CARGO_BIN_EXE_longwire"))
        .args(["lab", "exec", &name, "a", "--", "ping", "-q", "-i", "0.002", "b"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let ping = Guarded::killed(ping);
    let mut early = 0;
    let count = times(40, 6000);
    let start = Instant::now();
    for number in 0..count {
        if whole() {
            // Ten a second: 600 s in all.
            let due = start + Duration::from_millis(100) * number as u32;
            until(Duration::from_secs(1), || (Instant::now() >= due).then_some(()));
            if number % 600 == 0 {
                println!("changes_without_a_pause_lose_nothing: {number} of {count} changes");
            }
        }
        let link = ["l", "l.forward", "l.backward"][dice.below(3) as usize];
        let change = CHANGES[dice.below(CHANGES.len() as u64) as usize];
        let set = longwire(&["ctl", "set", link, change, "--instance", &name]);
        assert!(set.status.success(), "{link} {change}: {}", stderr(&set));
        if number == count / 10 {
            early = resident(run.id());
        }
    }
    let late = resident(run.id());
    assert!(late < early + early / 4 + 20_000, "{early} kB grew to {late} kB");
    drop(ping);
    let counted = json(&longwire(&["ctl", "stats", &name, "--json"]), 0);
    assert!(counted.is_object());
    assert!(longwire(&["ctl", "stop", &name]).status.success());
    let status = wait(&mut run, PATIENCE).expect("it ends when it is asked to");
    let text = std::fs::read_to_string(folder.path("report.json")).unwrap();
    let report: serde_json::Value = serde_json::from_str(&text).unwrap();
    let accounted = row(&report, "packets accounted for");
    assert_eq!(accounted["pass"], true, "{status}: {text}");
    assert!(accounted["measured"].as_u64().is_some_and(|packets| packets > 0), "{text}");
}
