//! `longwire run` in real time, on test hosts, and `longwire ctl` with it. Needs root; skipped with a message
//! otherwise.

#[path = "../support/mod.rs"]
mod support;

mod changes;
mod ends;
mod processors;
mod traffic;

use longwire_lab::Lab;
use serde_json::Value;
use std::process::{Command, Output};
use support::started::{Ended, Started};
use support::{json, longwire, stderr, stdout};

/// A run with its own name.
struct Running {
    running: Started,
    name: String,
}

impl Running {
    /// Starts it and waits until its hosts are up and it answers.
    fn start(scenario: &str, what: &str, args: &[&str]) -> Self {
        let name = format!("t{}-{what}", std::process::id());
        let mut command = Command::new(env!("CARGO_BIN_EXE_longwire"));
        command.args(["run", scenario, "--name", &name, "--json"]).args(args);
        Self { running: Started::ready(&mut command, "running as").0, name }
    }

    fn lab(&self) -> Lab {
        Lab::open(&self.name).unwrap()
    }

    /// `ping` from one host to an address: lost packets and the lowest round trip in ms.
    fn ping(&self, from: &str, to: &str, args: &[&str]) -> (String, Option<f64>) {
        let mut command = self.lab().host(from).unwrap().command("ping").unwrap();
        let output = command.args(["-n", "-q"]).args(args).arg(to).output().unwrap();
        let text = stdout(&output);
        let least = text.split("min/avg/max/mdev = ").nth(1).and_then(|rest| rest.split('/').next());
        (text.clone(), least.and_then(|ms| ms.parse().ok()))
    }

    fn ctl(&self, args: &[&str]) -> Output {
        let output = longwire(&[&["ctl"], args].concat());
        assert!(!stderr(&output).contains("panicked"), "{}", stderr(&output));
        output
    }

    fn signal(&self, name: &str) {
        self.running.signal(name);
    }

    /// Waits for its end: exit status and report.
    fn end(self) -> (Option<i32>, Value) {
        let Ended { code, output, .. } = self.running.wait();
        (code, serde_json::from_str(&output).unwrap_or_else(|e| panic!("{e}: {output}")))
    }
}

/// Two hosts, 10 ms apart, without loss.
const TWO_HOSTS: &str = r#"
[[host]]
name = "a"
address = "10.0.0.1/24"

[[host]]
name = "b"
address = "10.0.0.2/24"

[[link]]
name = "up"
between = ["a", "b"]
rate = "10 Mbit/s"
delay = "10 ms"
"#;

fn assert_nothing_left(name: &str) {
    let namespaces = std::fs::read_dir("/run/netns").map(|dir| dir.flatten().collect::<Vec<_>>());
    let left = namespaces
        .unwrap_or_default()
        .into_iter()
        .filter(|entry| entry.file_name().to_string_lossy().starts_with(&format!("lw-{name}-")));
    assert_eq!(left.count(), 0, "namespaces");
    assert!(!Lab::list().unwrap().iter().any(|lab| lab.instance == name), "the lab's state");
    let list = json(&longwire(&["ctl", "list", "--json"]), 0);
    assert!(!list["rows"].as_array().unwrap().iter().any(|row| row["name"] == name), "the socket");
}
