//! `longwire demo`: a newcomer's first command.

mod support;

use longwire_lab::abilities;
use serde_json::Value;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};
use support::lab::can_make_labs;
use support::{ended_by_all, json, longwire, repository, row, stderr, stdout};

/// Names of everything that a run could leave: namespaces, interfaces, firewall tables, states, sockets.
fn machine_state() -> Vec<String> {
    let list = |path: &str| {
        let entries = std::fs::read_dir(path).into_iter().flatten();
        entries.map(|entry| entry.unwrap().path().display().to_string()).collect::<Vec<_>>()
    };
    let mut all = ["/run/netns", "/run/longwire", "/sys/class/net"].map(list).concat();
    if let Ok(tables) = Command::new("nft").args(["list", "tables"]).output() {
        all.extend(String::from_utf8_lossy(&tables.stdout).lines().map(str::to_owned));
    }
    all.sort();
    all
}

/// Runs the command, after which nothing of its own may remain. Its objects have its process id in their
/// names; those of others come and go.
fn ran_without_a_trace(args: &[&str]) -> Output {
    let before = machine_state();
    let mut command = Command::new(env!("CARGO_BIN_EXE_longwire"));
    let child = command.args(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mark = format!("demo-{}", child.id());
    let output = child.wait_with_output().unwrap();
    let left: Vec<String> =
        machine_state().into_iter().filter(|line| !before.contains(line) && line.contains(&mark)).collect();
    assert_eq!(left, [""; 0]);
    output
}

#[test]
fn a_terminal_that_is_closed_leaves_nothing() {
    if !can_make_labs("a_terminal_that_is_closed_leaves_nothing") {
        return;
    }
    let mut command = ended_by_all();
    command.args([env!("CARGO_BIN_EXE_longwire"), "demo", "--json"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mark = format!("demo-{}", child.id());
    let is_up = || machine_state().iter().any(|line| line.contains(&format!("lw-{mark}-core")));
    while !is_up() {
        assert!(child.try_wait().unwrap().is_none(), "it ended before it had hosts");
    }
    assert!(Command::new("kill").args(["-HUP", &child.id().to_string()]).status().unwrap().success());
    let status = child.wait_with_output().unwrap().status;
    assert!(status.code().is_some(), "it was ended by the signal: {status}");
    let left: Vec<_> = machine_state().into_iter().filter(|line| line.contains(&mark)).collect();
    assert_eq!(left, [""; 0]);
}

fn number(row: &Value, field: &str) -> f64 {
    row[field].as_f64().unwrap_or_else(|| panic!("no number {field} in {row:#}"))
}

#[test]
fn a_newcomer_sees_the_link_at_work_and_nothing_remains() {
    let begin = Instant::now();
    let output = ran_without_a_trace(&["demo", "--json"]);
    let took = begin.elapsed();
    assert!(took < Duration::from_secs(40), "{took:?}");
    let report: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|e| {
        panic!("{e}: {}{}", stdout(&output), stderr(&output));
    });
    assert!(report["fidelity"]["faithful"].is_boolean(), "{report:#}");
    let can = abilities();
    let real = can.namespaces.available || can.user_namespaces.available;
    assert_eq!(report["mode"], if real { "real" } else { "virtual" });
    // Bounds for a busy machine; the command's own are narrower. A run that says that its packets were late
    // has none.
    let most = |most: f64| if report["fidelity"]["faithful"] == true { most } else { f64::INFINITY };
    let round_trip = number(row(&report, "round trip"), "measured");
    assert!((40e6..most(60e6)).contains(&round_trip), "{report:#}");
    let one_way = number(row(&report, "one-way delay"), "measured");
    assert!((20e6..most(30e6)).contains(&one_way), "{report:#}");
    let bandwidth = number(row(&report, "bandwidth"), "measured");
    assert!((9.5e6..10.5e6).contains(&bandwidth), "{report:#}");
    for name in ["loss", "round trip loss"].iter().take(if real { 2 } else { 1 }) {
        assert_eq!(row(&report, name)["pass"], true, "{report:#}");
    }
    let tcp = row(&report, "tcp goodput");
    assert!(tcp["congestion_control"].is_string(), "{tcp:#}");
    if real {
        assert!((0.3e6..9.6e6).contains(&number(tcp, "measured")), "{tcp:#}");
    }
}

#[test]
fn in_virtual_time_every_row_is_exact() {
    let report = json(&longwire(&["demo", "--virtual", "--json"]), 0);
    assert_eq!((&report["mode"], &report["pass"]), (&"virtual".into(), &true.into()));
    assert_eq!(report["fidelity"]["faithful"], true);
    for name in ["round trip", "one-way delay", "bandwidth"] {
        let error = number(row(&report, name), "error_percent");
        assert!(error.abs() < 0.001, "{name}: {error} %");
    }
    // A frame of 146 bytes at 10 Mbit/s, and 20 ms.
    assert_eq!(number(row(&report, "one-way delay"), "expected"), 20_116_800.0);
    assert_eq!(row(&report, "loss")["pass"], true);
    assert!(row(&report, "tcp goodput")["measured"].is_null());
}

#[test]
fn says_what_it_does_and_how_to_go_on() {
    let output = longwire(&["demo", "--virtual"]);
    let (text, progress) = (stdout(&output), stderr(&output));
    for part in ["configured", "measured", "error", "round trip", "faithful", "[[link]]", "longwire run"] {
        assert!(text.contains(part), "no \"{part}\" in {text}");
    }
    assert!(
        progress.contains("virtual time") && progress.contains("10 Mbit/s, 20 ms, 2 % loss"),
        "{progress}"
    );
    let scenario = stdout(&longwire(&["demo", "--scenario"]));
    assert_eq!(scenario, std::fs::read_to_string(repository("scenarios/demo.toml")).unwrap());
}

#[test]
fn more_of_a_cheap_flow_comes_through_beside_a_heavy_one_where_it_is_shared() {
    let output = ran_without_a_trace(&["demo", "fairness", "--json"]);
    let report: Value =
        serde_json::from_slice(&output.stdout).unwrap_or_else(|e| panic!("{e}: {}", stderr(&output)));
    let can = abilities();
    let real = can.namespaces.available || can.user_namespaces.available;
    assert_eq!(report["mode"], if real { "real" } else { "virtual" });
    // How much is delivered depends on the load of the machine: the demo judges that, and so does its test in
    // virtual time. Here it is only more than without fairness, unless nothing was short.
    let through = |scheduler: &str| row(&report, &format!("cheap flow with {scheduler}"));
    let unfair = through("fifo");
    for scheduler in ["fifo", "cbcs", "gmr3"] {
        let row = through(scheduler);
        if scheduler != "fifo" && !unfair["pass"].is_null() && !row["pass"].is_null() {
            assert!(number(row, "measured") > number(unfair, "measured"), "{report:#}");
        }
        let count = |name: &str| number(row, name);
        assert!(count("cheap_out") > 100.0 && count("heavy_out") > 1.0, "{row:#}");
        assert!(
            count("heavy_processor_ns") / count("heavy_out")
                > 2.0 * count("cheap_processor_ns") / count("cheap_out")
        );
        if real {
            assert!(count("cheap_arrived") > 100.0 && count("heavy_arrived") > 1.0, "{row:#}");
        }
    }
}
