//! A service of a test: `longwire serve` with a run directory of its own, and its log.

use super::{Folder, stderr};
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

/// Two ports without interfaces, so that anybody may run them, with a link between them.
pub const TWO_PORTS: &str = r#"
[[port]]
name = "a"
driver = "source"
addresses = "10.0.1.1"

[[port]]
name = "b"
driver = "source"
addresses = "10.0.1.2"

[[link]]
name = "up"
between = ["a", "b"]
rate = "10 Mbit/s"
delay = "10 ms"
"#;

/// A running service.
pub struct Service {
    pub child: Child,
    /// The event of its first scenario's start, if it was waited for.
    pub started: Value,
    log: Receiver<Value>,
    folder: String,
}

impl Service {
    /// Starts it with its run directory in `folder`, and waits until it is ready.
    pub fn start(folder: &Folder, args: &[&str]) -> Self {
        let mut service = Self::begin_at(folder, args);
        service.started = service.event("started");
        service.event("ready");
        service
    }

    /// Starts it without waiting.
    pub fn begin_at(folder: &Folder, args: &[&str]) -> Self {
        Self::begin(Command::new(env!("CARGO_BIN_EXE_longwire")), folder, args)
    }

    /// Starts it by this command.
    pub fn begin(mut command: Command, folder: &Folder, args: &[&str]) -> Self {
        let run = folder.text("run");
        command.env("LONGWIRE_RUN_DIR", &run).args(["serve", "--log-format", "json"]).args(args);
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        let (sender, log) = channel();
        let lines = BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok);
        let read = |line: String| serde_json::from_str(&line).unwrap_or_else(|_| Value::from(line));
        std::thread::spawn(move || lines.map(read).map_while(|line| sender.send(line).ok()).for_each(drop));
        Self { child, started: Value::Null, log, folder: run }
    }

    /// Waits for an event in the log.
    pub fn event(&self, event: &str) -> Value {
        let mut before = Vec::new();
        loop {
            let line = self.log.recv_timeout(Duration::from_secs(60));
            let line = line.unwrap_or_else(|e| panic!("no event {event}: {e}; before: {before:?}"));
            if line["event"] == event {
                return line;
            }
            before.push(line);
        }
    }

    pub fn ctl(&self, args: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_longwire"));
        let output = command.env("LONGWIRE_RUN_DIR", &self.folder).arg("ctl").args(args).output().unwrap();
        assert!(!stderr(&output).contains("panicked"), "{}", stderr(&output));
        output
    }

    pub fn signal(&self, name: &str) {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args(["-s", name, &pid]).status().unwrap().success());
    }

    /// Ends it by SIGTERM; returns its exit status.
    pub fn end(mut self) -> Option<i32> {
        self.signal("TERM");
        self.child.wait().unwrap().code()
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        // Left by a failed test.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
