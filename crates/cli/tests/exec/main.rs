//! `longwire exec`, on the test's own machine: host a of a lab, connected to host b.

#[path = "../support/mod.rs"]
mod support;

mod commands;
mod services;
mod without_root;

use longwire_lab::abilities;
use std::process::Output;
use support::lab::are_available;
use support::{Folder, longwire, stderr, stdout};

const LONGWIRE: &str = env!("CARGO_BIN_EXE_longwire");

const NOBODY: u32 = 65_534;

/// Two directly connected hosts.
const SCENARIO: &str = "\
[[host]]
name = \"a\"
address = \"10.77.0.1/24\"

[[host]]
name = \"b\"
address = \"10.77.0.2/24\"
";

/// A lab that exists until dropped; its host a is the machine that `exec` changes and restores.
struct Machine {
    name: String,
    _folder: Folder,
}

impl Machine {
    /// Skips the test with a message if labs are impossible.
    fn new(test: &str) -> Option<Self> {
        let can = abilities();
        if !are_available(test, &[&can.root, &can.namespaces, &can.nft]) {
            return None;
        }
        let folder = Folder::new("exec");
        let scenario = folder.write("machine.toml", SCENARIO);
        let name = format!("t{}-{test}", std::process::id());
        let up = longwire(&["lab", "up", &scenario, "--name", &name]);
        assert!(up.status.success(), "{}", stderr(&up));
        Some(Self { name, _folder: folder })
    }

    /// Runs a shell script on it.
    fn sh(&self, script: &str) -> Output {
        longwire(&["lab", "exec", &self.name, "a", "--", "sh", "-c", script])
    }

    /// Runs a shell script on it, with mounts of its own.
    fn sh_alone(&self, script: &str) -> Output {
        longwire(&[
            "lab", "exec", &self.name, "a", "--", "timeout", "120", "unshare", "-m", "sh", "-c", script,
        ])
    }

    /// Runs `longwire exec` on it.
    fn exec(&self, args: &[&str]) -> Output {
        longwire(&[&["lab", "exec", &self.name, "a", "--", LONGWIRE, "exec"], args].concat())
    }

    /// Everything that `exec` may change.
    fn settings(&self) -> String {
        let script = "ip -brief link; ip route; ip -6 route; cat /proc/sys/net/ipv4/ip_forward
            nft list ruleset; cd /proc/sys/net
            for f in ipv?/conf/*/forwarding ipv6/conf/*/accept_ra; do echo $f $(cat $f); done";
        stdout(&self.sh(script))
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        let down = longwire(&["lab", "down", &self.name]);
        if !std::thread::panicking() {
            assert!(down.status.success(), "{}", stderr(&down));
        }
    }
}

/// The shortest round trip, in ms, of a ping's summary.
fn least_rtt(text: &str) -> f64 {
    let times = text.split("min/avg/max/mdev = ").nth(1).unwrap_or_else(|| panic!("no round trip in {text}"));
    times.split('/').next().unwrap().parse().unwrap()
}
