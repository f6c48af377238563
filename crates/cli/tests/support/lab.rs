//! Labs that stay up for a test.

use super::{Folder, json, longwire, stderr, stdout};
use longwire_lab::{Ability, Lab, abilities};
use serde_json::Value;
use std::process::{Child, Output, Stdio};
use std::time::{Duration, Instant};

/// Whether all of these are there; prints why a test is skipped if not.
pub fn are_available(test: &str, needed: &[&Ability]) -> bool {
    let missing = needed.iter().find(|ability| !ability.available);
    missing.inspect(|ability| println!("skipped {test}: {}", ability.reason)).is_none()
}

/// Whether labs are possible; prints why a test is skipped if not.
pub fn can_make_labs(test: &str) -> bool {
    let can = abilities();
    are_available(test, &[&can.root, &can.namespaces])
}

/// A lab that is taken down when dropped.
pub struct RunningLab {
    pub name: String,
}

impl RunningLab {
    /// The lab of this scenario. None, with a message, if labs are impossible.
    pub fn of(test: &str, scenario: &str) -> Option<Self> {
        let folder = Folder::new(test);
        Self::of_file(test, &folder.write("scenario.toml", scenario))
    }

    /// The lab of a scenario file. None, with a message, if labs are impossible.
    pub fn of_file(test: &str, scenario: &str) -> Option<Self> {
        let (lab, up) = Self::by(test, |name| longwire(&["lab", "up", scenario, "--name", name]))?;
        assert!(up.status.success(), "{}", stderr(&up));
        Some(lab)
    }

    /// The lab that `up` makes with this name, and the outcome. None, with a message, if labs are impossible.
    pub fn by(test: &str, up: impl FnOnce(&str) -> Output) -> Option<(Self, Output)> {
        let name = format!("t{}-{test}", std::process::id());
        can_make_labs(test).then(|| {
            let up = up(&name);
            (Self { name }, up)
        })
    }

    /// Runs a command in a host.
    pub fn exec(&self, host: &str, command: &[&str]) -> Output {
        longwire(&[&["lab", "exec", &self.name, host, "--"], command].concat())
    }

    /// Runs a shell script in a host.
    pub fn sh(&self, host: &str, script: &str) -> Output {
        self.exec(host, &["sh", "-c", script])
    }

    /// The counters.
    pub fn stats(&self) -> Value {
        json(&longwire(&["ctl", "stats", &self.name, "--json"]), 0)
    }
}

impl Drop for RunningLab {
    fn drop(&mut self) {
        // Some tests have taken it down.
        longwire(&["lab", "down", &self.name]);
    }
}

/// Echoes from a host of a lab, one every 10 ms.
///
/// Lost is what is not answered within 20 s of the last, by the host's counters: ping itself waits for the
/// last answers only twice as long as for the others, which a busy machine exceeds.
pub struct Echoes {
    lab: Lab,
    from: String,
    ping: Child,
}

impl Echoes {
    pub fn start(lab: &str, from: &str, to: &str, count: u32) -> Self {
        let lab = Lab::open(lab).unwrap();
        let mut command = lab.host(from).unwrap().command("ping").unwrap();
        command.args(["-n", "-q", "-c", &count.to_string(), "-i", "0.01", "-W", "20", to]);
        let ping = command.stdout(Stdio::piped()).spawn().unwrap();
        Self { lab, from: from.to_owned(), ping }
    }

    /// Waits for the end. All echoes of the host, from other pings too, must have been answered then.
    pub fn lost_nothing(self) {
        let text = stdout(&self.ping.wait_with_output().unwrap());
        let host = self.lab.host(&self.from).unwrap();
        let until = Instant::now() + Duration::from_secs(20);
        loop {
            let read = || std::fs::read_to_string("/proc/thread-self/net/snmp").unwrap();
            let counters = host.run(read).unwrap();
            let [sent, answered] = ["OutEchos", "InEchoReps"].map(|name| icmp(&counters, name));
            if sent == answered && sent > 0 {
                return;
            }
            assert!(Instant::now() < until, "{sent} sent, {answered} answered\n{text}");
            std::thread::yield_now();
        }
    }
}

/// A counter of ICMP in the kernel's table, where a line of names precedes one of values.
fn icmp(table: &str, name: &str) -> u64 {
    let mut lines = table.lines().filter_map(|line| line.strip_prefix("Icmp: "));
    let (names, values) = (lines.next().unwrap(), lines.next().unwrap());
    let at = names.split(' ').position(|other| other == name).unwrap();
    values.split(' ').nth(at).unwrap().parse().unwrap()
}
