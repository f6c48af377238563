//! `longwire lab`: hosts and links that stay up in the background.

mod support;

use longwire_lab::abilities;
use serde_json::Value;
use std::io::Write;
use std::process::{Command, Output, Stdio};
use support::{Folder, json, longwire, repository, row, stderr, stdout};

/// A lab that is taken down when dropped.
struct Up {
    name: String,
    report: Value,
}

impl Up {
    /// Skips the test, and says so, where there can be none.
    fn new(test: &str, scenario: &str) -> Option<Self> {
        Self::with_input(test, scenario, "")
    }

    /// The same, with a text on standard input.
    fn with_input(test: &str, scenario: &str, input: &str) -> Option<Self> {
        let can = abilities();
        for ability in [&can.root, &can.namespaces] {
            if !ability.available {
                println!("skipped {test}: {}", ability.reason);
                return None;
            }
        }
        let name = format!("t{}-{test}", std::process::id());
        let report = json(&fed(&["lab", "up", scenario, "--name", &name, "--json"], input), 0);
        Some(Self { name, report })
    }

    fn sh(&self, host: &str, script: &str) -> Output {
        longwire(&["lab", "exec", &self.name, host, "--", "sh", "-c", script])
    }

    /// Everything on the machine that has this lab's name.
    fn traces(&self) -> Vec<String> {
        let names = ["/run/netns", "/run/longwire"].into_iter().flat_map(|folder| {
            let entries = std::fs::read_dir(folder).into_iter().flatten();
            entries.map(|entry| entry.unwrap().path().display().to_string())
        });
        names.filter(|path| path.contains(&self.name)).collect()
    }
}

impl Drop for Up {
    fn drop(&mut self) {
        // Most tests have taken it down.
        longwire(&["lab", "down", &self.name]);
    }
}

/// Longwire with a text on its standard input.
fn fed(args: &[&str], input: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_longwire"));
    command.args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    child.wait_with_output().unwrap()
}

fn two_hosts() -> String {
    repository("scenarios/two-hosts.toml").display().to_string()
}

#[test]
fn up_exec_list_down() {
    let Some(lab) = Up::new("life", &two_hosts()) else { return };
    assert_eq!(row(&lab.report, "host a")["measured"], "10.0.0.1/24, fd00::1/64");
    let again = longwire(&["lab", "up", &two_hosts(), "--name", &lab.name]);
    assert_eq!(again.status.code(), Some(2));
    assert!(stderr(&again).contains("is up already"), "{}", stderr(&again));
    // Packets flow as soon as it is up, names resolve, and the exit code is kept.
    let ping = lab.sh("a", "ping -4 -q -c 5 -i 0.1 -W 2 b | grep -c 'min/avg'; exit 5");
    assert_eq!((ping.status.code(), stdout(&ping).as_str()), (Some(5), "1\n"), "{}", stderr(&ping));
    let list = json(&longwire(&["lab", "list", "--json"]), 0);
    assert_eq!(row(&list, &lab.name)["hosts"], serde_json::json!(["a", "b"]));
    let unknown = longwire(&["lab", "exec", &lab.name, "c", "--", "true"]);
    assert!(stderr(&unknown).contains("it has a, b"), "{}", stderr(&unknown));
    // Its links can be changed while it is up.
    let set = longwire(&["ctl", "set", "up.forward", "delay=5ms", "--instance", &lab.name]);
    assert!(set.status.success(), "{}", stderr(&set));
    assert!(!lab.traces().is_empty());
    let down = longwire(&["lab", "down", &lab.name]);
    assert!(down.status.success(), "{}", stderr(&down));
    assert_eq!(lab.traces(), [""; 0]);
    assert!(stderr(&longwire(&["lab", "down", &lab.name])).contains("no lab"));
}

#[test]
fn a_scenario_comes_from_standard_input() {
    let text = std::fs::read_to_string(two_hosts()).unwrap();
    let unnamed = fed(&["lab", "up", "-"], &text);
    assert_eq!(unnamed.status.code(), Some(2));
    assert!(stderr(&unnamed).contains("lab up - --name NAME"), "{}", stderr(&unnamed));
    let Some(lab) = Up::with_input("piped", "-", &text) else { return };
    let ping = lab.sh("a", "ping -4 -q -c 1 -W 2 b");
    assert!(ping.status.success(), "{}{}", stdout(&ping), stderr(&ping));
    let down = longwire(&["lab", "down", &lab.name]);
    assert!(down.status.success(), "{}", stderr(&down));
}

#[test]
fn what_a_killed_lab_left_is_found_and_removed() {
    let Some(lab) = Up::new("killed", &two_hosts()) else { return };
    let pid = lab.report["pid"].to_string();
    assert!(Command::new("kill").args(["-KILL", &pid]).status().unwrap().success());
    // Until the system has taken the process away, it counts as up, and is asked to end.
    let down = longwire(&["lab", "down", &lab.name]);
    assert!(down.status.success(), "{}", stderr(&down));
    assert_eq!(lab.traces(), [""; 0]);
}

#[test]
fn iperf_gets_what_the_link_carries() {
    if Command::new("iperf3").arg("--version").output().is_err() {
        return println!("skipped iperf_gets_what_the_link_carries: iperf3 is not installed");
    }
    let folder = Folder::new("iperf");
    let scenario = folder.write(
        "iperf.toml",
        "[[host]]\nname = \"a\"\naddress = \"10.0.0.1/24\"\n[[host]]\nname = \"b\"\naddress = \"10.0.0.2/24\"\n\
         [[link]]\nname = \"l\"\nbetween = [\"a\", \"b\"]\nrate = \"20 Mbit/s\"\ndelay = \"5 ms\"\nqueue = \"100 packets\"\n",
    );
    let Some(lab) = Up::new("iperf", &scenario) else { return };
    let server = lab.sh("b", "iperf3 -s -D --logfile /dev/null && for i in 1 2 3 4 5 6 7 8 9; do ss -Hltn | grep -q 5201 && break; sleep 0.1; done");
    assert!(server.status.success(), "{}", stderr(&server));
    let output = lab.sh("a", "iperf3 -c b -t 3 -O 1 -C cubic -J");
    let result: Value =
        serde_json::from_slice(&output.stdout).unwrap_or_else(|e| panic!("{e}: {}", stderr(&output)));
    let goodput =
        result["end"]["sum_received"]["bits_per_second"].as_f64().unwrap_or_else(|| panic!("{result:#}"));
    // 1448 of 1518 bytes of each frame are payload.
    let expected = 20e6 * 1448.0 / 1518.0;
    assert!((0.9 * expected..1.02 * expected).contains(&goodput), "{goodput} instead of {expected}");
    let down = longwire(&["lab", "down", &lab.name]);
    assert!(down.status.success(), "{}", stderr(&down));
    assert_eq!(lab.traces(), [""; 0], "the server ends with its host");
}

#[test]
fn a_lab_that_cannot_be_made_says_why() {
    let folder = Folder::new("lab");
    let nothing = folder.write("nothing.toml", "[[bridge]]\nname = \"x\"\n");
    for (scenario, part) in [
        (nothing, "nothing can send"),
        (repository("scenarios/virtual-pcap.toml").display().to_string(), "no hosts"),
        (folder.write("wrong.toml", "[[host]]\nname = \"a\"\naddres = \"10.0.0.1/24\"\n"), "address"),
        (folder.text("missing.toml"), "missing.toml"),
    ] {
        let output = longwire(&["lab", "up", &scenario]);
        assert_eq!(output.status.code(), Some(2));
        assert!(stderr(&output).contains(part), "{}", stderr(&output));
    }
}
