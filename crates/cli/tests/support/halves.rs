//! A router between two hosts, and control halves beside it.

use super::guarded::Guarded;
use super::lab::{RunningLab, are_available};
use super::{json, longwire, repository};
use longwire_lab::{Lab, abilities};
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::net::{SocketAddr, TcpStream};
use std::ops::Deref;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// A bound on operations that should take moments.
pub const PATIENCE: Duration = Duration::from_secs(100);
/// Time limit for the answer to a SYN, which comes at once or never.
pub const MOMENT: Duration = Duration::from_millis(500);

/// A lab with a router between hosts a and b, taken down when dropped.
pub struct RouterLab {
    running: RunningLab,
    pub lab: Lab,
}

impl RouterLab {
    /// Skips the test with a message if labs are impossible.
    pub fn new(test: &str) -> Option<Self> {
        if !are_available(test, &[&abilities().tap]) {
            return None;
        }
        let scenario = repository("scenarios/control-halves.toml").display().to_string();
        RunningLab::of_file(test, &scenario).map(Self::of)
    }

    /// As [`RouterLab::new`], with a budget of the router for this line rate instead of a control plane.
    pub fn with_line_rate(test: &str, rate: &str) -> Option<Self> {
        if !are_available(test, &[&abilities().tap]) {
            return None;
        }
        let scenario = std::fs::read_to_string(repository("scenarios/control-halves.toml")).unwrap();
        let budget = format!("line-rate = \"{rate}\"");
        let scenario = scenario.replacen("control-plane = \"netns\"", &budget, 1);
        RunningLab::of(test, &scenario).map(Self::of)
    }

    fn of(running: RunningLab) -> Self {
        let lab = Lab::open(&running.name).unwrap();
        Self { running, lab }
    }

    /// Runs a function in a host's network.
    pub fn at<R: Send>(&self, host: &str, act: impl FnOnce() -> R + Send) -> R {
        self.lab.host(host).unwrap().run(act).unwrap()
    }

    /// Starts a control half.
    pub fn half(&self, args: &[&str]) -> Half {
        let args = [&["control"], args, &["--json", "--instance", &self.name]].concat();
        let mut child =
            Command::new(env!("CARGO_BIN_EXE_longwire")).args(&args).stdout(Stdio::piped()).spawn().unwrap();
        let (sender, events) = channel();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        std::thread::spawn(move || {
            for line in lines {
                let _ = sender.send(serde_json::from_str(&line.unwrap()).unwrap());
            }
        });
        Half { child: Guarded::killed(child), events, what: args.join(" ") }
    }

    /// The router's programs with this name.
    pub fn programs(&self, name: &str) -> Vec<Value> {
        let list = json(&longwire(&["forwarder", "list", "r1", "--json", "--instance", &self.name]), 0);
        let list = list["rows"].as_array().unwrap();
        list.iter().filter(|one| one["called"] == name).cloned().collect()
    }

    /// Whether a connection from a to an address is refused by its host, and so reaches it.
    pub fn reaches(&self, to: &str) -> bool {
        let to: SocketAddr = to.parse().unwrap();
        let tried = self.at("a", || TcpStream::connect_timeout(&to, MOMENT));
        tried.is_err_and(|error| error.kind() == std::io::ErrorKind::ConnectionRefused)
    }

    pub fn until(&self, what: &str, wanted: impl Fn() -> bool) {
        let begin = Instant::now();
        while !wanted() {
            assert!(begin.elapsed() < PATIENCE, "{what}");
        }
    }
}

impl Deref for RouterLab {
    type Target = RunningLab;

    fn deref(&self) -> &RunningLab {
        &self.running
    }
}

/// Sets a flag when dropped, which ends a thread's loop.
pub struct SetWhenDropped<'f>(pub &'f AtomicBool);

impl Drop for SetWhenDropped<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// A control half, ended when dropped.
pub struct Half {
    pub child: Guarded,
    pub events: Receiver<Value>,
    what: String,
}

impl Half {
    /// The next event of this kind.
    pub fn event(&self, kind: &str) -> Value {
        self.event_where(kind, |_| true)
    }

    pub fn event_where(&self, kind: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        let begin = Instant::now();
        loop {
            let left = PATIENCE.saturating_sub(begin.elapsed());
            let event = self.events.recv_timeout(left);
            let event = event.unwrap_or_else(|error| panic!("{}: no {kind}: {error}", self.what));
            if event["event"] == kind && wanted(&event) {
                return event;
            }
        }
    }

    pub fn signal(&self, signal: &str) {
        assert!(
            Command::new("kill").args([signal, &self.child.id().to_string()]).status().unwrap().success()
        );
    }

    /// Ends it, and waits for its exit.
    pub fn end(mut self) {
        self.signal("-TERM");
        assert!(self.child.wait().unwrap().success(), "{}", self.what);
    }
}
