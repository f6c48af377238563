//! A service of a test: `longwire serve` with a run directory of its own, and its log.

use super::started::Started;
use super::{Folder, stderr};
use serde_json::Value;
use std::ops::{Deref, DerefMut};
use std::process::{Command, Output};

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

/// A router between two ports without interfaces, two links, a source, and an event.
pub const ROUTED: &str = r#"
[[port]]
name = "a"
driver = "source"
addresses = "10.0.1.9/24"

[[port]]
name = "b"
driver = "source"
addresses = "10.0.2.9/24"

[[router]]
name = "r"
ports = [
  { port = "a", addresses = "10.0.1.1/24" },
  { port = "b", addresses = "10.0.2.1/24" },
]
routes = [{ to = "10.7.0.0/16", via = "10.0.2.9" }]

[[link]]
name = "up"
from = "a"
to = "b"
rate = "10 Mbit/s" # to the street
delay = "10 ms"

[[link]]
name = "down"
from = "b"
to = "a"
rate = "20 Mbit/s"

[[source]]
name = "video"
from = "a"
to = "b"
model = "poisson"
rate = "1 Mbit/s"

[[at]]
time = "1000 s"
link = "down"
loss = "5 %"
"#;

/// A running service.
pub struct Service {
    running: Started,
    /// The event of its first scenario's start, if it was waited for.
    pub started: Value,
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
        Self { running: Started::begin(&mut command), started: Value::Null, folder: run }
    }

    /// Waits for an event in the log.
    pub fn event(&self, event: &str) -> Value {
        self.running.line(event, |line| {
            let line: Value = serde_json::from_str(&line).ok()?;
            (line["event"] == event).then_some(line)
        })
    }

    pub fn ctl(&self, args: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_longwire"));
        let output = command.env("LONGWIRE_RUN_DIR", &self.folder).arg("ctl").args(args).output().unwrap();
        assert!(!stderr(&output).contains("panicked"), "{}", stderr(&output));
        output
    }

    /// Waits until it ends by itself; returns its exit status. A second SIGTERM would end it at once.
    pub fn wait(self) -> Option<i32> {
        self.running.wait().code
    }

    /// Ends it by SIGTERM; returns its exit status.
    pub fn end(self) -> Option<i32> {
        self.running.end().code
    }
}

impl Deref for Service {
    type Target = Started;

    fn deref(&self) -> &Started {
        &self.running
    }
}

impl DerefMut for Service {
    fn deref_mut(&mut self) -> &mut Started {
        &mut self.running
    }
}
