//! Programs on routers as users meet them: what they cost, in a lab with real traffic, and refused.

mod support;

use longwire_lab::abilities;
use serde_json::Value;
use std::process::Output;
use support::{Folder, json, longwire, repository, stderr, stdout};

#[test]
fn what_a_program_costs_is_said_without_a_run() {
    let cost = longwire(&["forwarder", "cost", "syn-monitor"]);
    assert!(cost.status.success(), "{}", stderr(&cost));
    let text = stdout(&cost);
    for part in [
        "syn_monitor: ",
        "12 bytes of state, compiled",
        "longest path",
        "vrp: fits: ",
        "line-rate 1 Gbit/s: fits",
    ] {
        assert!(text.contains(part), "{part} in {text}");
    }
    let dear = longwire(&["forwarder", "cost", "nat44"]);
    assert!(
        stdout(&dear).contains("refused: the budget per packet does not suffice: classifier"),
        "{}",
        stdout(&dear)
    );
    let none = longwire(&["forwarder", "cost", "firewall"]);
    assert_eq!(none.status.code(), Some(2));
    assert!(stderr(&none).contains("or one of ack-monitor, detector"), "{}", stderr(&none));
}

#[test]
fn a_budget_that_does_not_suffice_is_a_mistake_of_the_scenario() {
    let text = std::fs::read_to_string(repository("scenarios/programs.toml")).unwrap();
    let folder = Folder::new("programs");
    let tight = folder.write("tight.toml", text.replace("line-rate = \"100 Mbit/s\"", "profile = \"vrp\""));
    let check = longwire(&["check", &tight]);
    let told = stdout(&check) + &stderr(&check);
    assert!(!check.status.success() && told.contains("bytes of state, 96 allowed"), "{told}");
}

#[test]
fn prices_are_measured_and_used() {
    let folder = Folder::new("prices");
    let prices = folder.text("prices");
    let report = json(&longwire(&["calibrate", "--quick", "--json", "--output", &prices]), 0);
    let rows = report["rows"].as_array().unwrap();
    assert!(
        rows.iter().any(|row| row["name"] == "state-line" && row["picoseconds"].as_u64() > Some(0)),
        "{rows:?}"
    );
    assert!(report["file"] == prices.as_str());
    // As they were measured, an instruction is dear enough for any machine to be told from the assumption.
    let text = std::fs::read_to_string(&prices).unwrap();
    let line = text.lines().find(|line| line.starts_with("instruction = ")).unwrap();
    folder.write("dear", text.replace(line, "instruction = 90000000"));
    let scenario = |prices: &str| {
        let text = std::fs::read_to_string(repository("scenarios/programs.toml")).unwrap();
        let line = "line-rate = \"100 Mbit/s\"";
        assert!(text.contains(line));
        folder.write("routers.toml", text.replace(line, &format!("{line}\nprices = \"{prices}\"")))
    };
    let told = |prices: &str| {
        let check = longwire(&["check", &scenario(prices)]);
        (check.status.code(), stdout(&check) + &stderr(&check))
    };
    let (_, assumed) = told("assumed");
    assert!(!assumed.contains("picoseconds"), "{assumed}");
    let (_, measured) = told("prices");
    assert!(!measured.contains("no list") && !measured.contains("calibrate"), "{measured}");
    let (code, dear) = told("dear");
    assert!(code == Some(2) && dear.contains("picoseconds, 6720000 allowed"), "{dear}");
    let (code, none) = told("none");
    assert!(code == Some(2) && none.contains("none: ") && none.contains("longwire calibrate"), "{none}");
    let cost = longwire(&["forwarder", "cost", "syn-monitor", "--prices", &folder.text("dear")]);
    assert!(stdout(&cost).contains("line-rate 1 Gbit/s: refused"), "{}{}", stdout(&cost), stderr(&cost));
}

/// A lab that is taken down when dropped.
struct Up {
    name: String,
}

impl Up {
    /// Skips the test, and says so, where there can be none.
    fn new(test: &str) -> Option<Self> {
        let can = abilities();
        for ability in [&can.root, &can.namespaces] {
            if !ability.available {
                println!("skipped {test}: {}", ability.reason);
                return None;
            }
        }
        let name = format!("t{}-{test}", std::process::id());
        let text = std::fs::read_to_string(repository("scenarios/programs.toml")).unwrap();
        let folder = Folder::new("programs-lab");
        let scenario = folder.write("programs.toml", text.split("[[source]]").next().unwrap());
        let up = longwire(&["lab", "up", &scenario, "--name", &name]);
        assert!(up.status.success(), "{}", stderr(&up));
        Some(Self { name })
    }

    fn sh(&self, host: &str, script: &str) -> Output {
        longwire(&["lab", "exec", &self.name, host, "--", "bash", "-c", script])
    }

    fn forwarder(&self, args: &[&str]) -> String {
        let done = longwire(&[&["forwarder"], args, &["--instance", &self.name]].concat());
        assert!(done.status.success(), "{args:?}: {}", stderr(&done));
        stdout(&done).trim().to_owned()
    }

    /// What the program with this place in the list has counted.
    fn counted(&self, place: usize, what: &str) -> u64 {
        let list = json(&longwire(&["forwarder", "list", "r1", "--json", "--instance", &self.name]), 0);
        let one: &Value = &list["forwarders"][place];
        one[what].as_u64().unwrap_or_else(|| panic!("{what} in {list}"))
    }
}

impl Drop for Up {
    fn drop(&mut self) {
        longwire(&["lab", "down", &self.name]);
    }
}

#[test]
fn programs_act_on_real_traffic() {
    let Some(lab) = Up::new("programs") else { return };
    let ping = lab.sh("a", "ping -c 3 -i 0.2 -W 2 10.0.2.9");
    assert!(ping.status.success(), "{}", stdout(&ping));
    // Two connections that are refused by the host, which come through; one that is dropped on the way, and told so by nobody.
    for _ in 0..2 {
        assert!(!lab.sh("a", "echo > /dev/tcp/10.0.2.9/80").status.success());
    }
    assert!(!lab.sh("a", "timeout 0.5 bash -c 'echo > /dev/tcp/10.0.2.9/23'").status.success());
    assert_eq!(&lab.forwarder(&["get", "r1", "1"])[..8], "03000000", "three SYNs");
    assert_eq!(lab.counted(1, "dropped"), 1);
    for _ in 0..4 {
        assert!(lab.sh("a", "echo > /dev/udp/10.0.2.9/5001; echo > /dev/udp/10.0.2.9/5002").status.success());
    }
    assert_eq!(lab.counted(2, "packets"), 4, "only what goes to its port");
    assert_eq!(&lab.forwarder(&["get", "r1", "3"])[16..18], "04", "all of them changed");

    // Telnet comes through again, and then nothing at all.
    lab.forwarder(&["remove", "r1", "2"]);
    assert!(!lab.sh("a", "timeout 5 bash -c 'echo > /dev/tcp/10.0.2.9/23'").status.success());
    assert_eq!(&lab.forwarder(&["get", "r1", "1"])[..8], "04000000");
    let all = lab.forwarder(&[
        "install",
        "r1",
        "port-filter",
        "--data",
        "ffff0000 00000000 00000000 00000000 00000000",
    ]);
    assert_eq!(all, "4");
    assert!(!lab.sh("a", "timeout 0.5 bash -c 'echo > /dev/tcp/10.0.2.9/80'").status.success());
    assert!(lab.counted(2, "dropped") >= 1);
    lab.forwarder(&["set", "r1", "4", "00000000 00000000 00000000 00000000 00000000"]);
    let refused = lab.sh("a", "timeout 5 bash -c 'echo > /dev/tcp/10.0.2.9/80'");
    assert!(stderr(&refused).contains("refused"), "{}", stderr(&refused));
    assert!(lab.sh("a", "ping -c 1 -W 2 10.0.2.9").status.success());
}
