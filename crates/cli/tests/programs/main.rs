//! Programs on routers from the user's view: costs, a lab with real traffic, and refusals.

#[path = "../support/mod.rs"]
mod support;

mod costs;
mod levels;
mod maps;
mod real_traffic;
mod records;

use serde_json::Value;
use std::ops::Deref;
use std::process::Output;
use std::time::{Duration, Instant};
use support::lab::RunningLab;
use support::{json, longwire, repository, row, stderr, stdout};

/// A lab whose router has programs.
struct ProgramLab(RunningLab);

impl ProgramLab {
    /// Skips the test with a message if labs are impossible.
    fn new(test: &str, scenario: &str) -> Option<Self> {
        Self::of(test, &std::fs::read_to_string(repository(scenario)).unwrap())
    }

    /// The lab of this scenario, without its sources.
    fn of(test: &str, text: &str) -> Option<Self> {
        RunningLab::of(test, text.split("[[source]]").next().unwrap()).map(Self)
    }

    fn bash(&self, host: &str, script: &str) -> Output {
        self.exec(host, &["bash", "-c", script])
    }

    /// The message of a refusal.
    fn refused(&self, args: &[&str]) -> String {
        let done = longwire(&[&["forwarder"], args, &["--instance", &self.name]].concat());
        assert_eq!(done.status.code(), Some(2), "{args:?}: {}", stdout(&done));
        stderr(&done)
    }

    /// Waits until at least `packets` packets arrived at a link, and returns the numbers for each link in
    /// `asked`. Counters are slightly older than the request.
    fn entered<const N: usize>(&self, link: &str, packets: u64, asked: [&str; N]) -> [u64; N] {
        let begin = Instant::now();
        loop {
            let stats = self.stats();
            let of = |link: &str| row(&stats, &format!("link {link}"))["in_packets"].as_u64().unwrap();
            if of(link) >= packets {
                return asked.map(of);
            }
            assert!(begin.elapsed() < PATIENCE, "{stats:#}");
        }
    }

    fn forwarder(&self, args: &[&str]) -> String {
        let done = longwire(&[&["forwarder"], args, &["--instance", &self.name]].concat());
        assert!(done.status.success(), "{args:?}: {}", stderr(&done));
        stdout(&done).trim().to_owned()
    }

    /// The attachment of a level with this name.
    fn attachment(&self, level: &str, name: &str) -> Value {
        let levels = self.forwarder(&["levels", "r1", "--json"]);
        let levels: Value = serde_json::from_str(&levels).unwrap();
        let mut attachments = levels["rows"].as_array().into_iter().flatten();
        let attachment =
            attachments.find(|attachment| attachment["level"] == level && attachment["who"] == name);
        attachment.unwrap_or_else(|| panic!("no {level} {name} in {levels}")).clone()
    }

    /// Waits until the counters of an attachment are as wanted.
    fn until(&self, level: &str, name: &str, wanted: impl Fn(&Value) -> bool) {
        let begin = Instant::now();
        while !wanted(&self.attachment(level, name)) {
            assert!(begin.elapsed() < PATIENCE, "{:#}", self.attachment(level, name));
        }
    }

    /// Sends a word until it comes back: on a busy machine a verdict may be late, and the packet is
    /// forwarded.
    fn answered(&self, port: u16, word: &str) {
        let begin = Instant::now();
        while self.echo(port, word, "1") != word {
            assert!(begin.elapsed() < PATIENCE, "{word} to {port} is not answered");
        }
    }

    /// The reply to a word sent to a UDP port of b's; empty after a timeout.
    fn echo(&self, port: u16, word: &str, seconds: &str) -> String {
        let script =
            format!("exec 3<>/dev/udp/10.0.2.9/{port}; echo {word} >&3; timeout {seconds} head -1 <&3");
        stdout(&self.bash("a", &script)).trim().to_owned()
    }

    /// Waits until a program has counted this many: it may run after its packet's sender has ended.
    fn until_counted(&self, place: usize, what: &str, wanted: u64) {
        let begin = Instant::now();
        while self.counted(place, what) != wanted {
            assert!(begin.elapsed() < PATIENCE, "{} {what}, not {wanted}", self.counted(place, what));
        }
    }

    /// The count of the program with this index in the list.
    fn counted(&self, place: usize, what: &str) -> u64 {
        let list = json(&longwire(&["forwarder", "list", "r1", "--json", "--instance", &self.name]), 0);
        let one: &Value = &list["rows"][place];
        one[what].as_u64().unwrap_or_else(|| panic!("{what} in {list}"))
    }
}

impl Deref for ProgramLab {
    type Target = RunningLab;

    fn deref(&self) -> &RunningLab {
        &self.0
    }
}

/// A bound on operations that should take milliseconds.
const PATIENCE: Duration = Duration::from_secs(60);
