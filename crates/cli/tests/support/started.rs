//! A command of a test that runs until it is ended: it has said that it is ready.

use super::guarded::Guarded;
use super::stderr;
use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// It runs. What it prints is taken at once, because a full pipe would stop it.
pub struct Started {
    pub child: Guarded,
    said: Receiver<String>,
    output: Option<JoinHandle<String>>,
}

/// How it ended.
pub struct Ended {
    pub code: Option<i32>,
    /// All of its standard output.
    pub output: String,
    /// The lines of its standard error that nobody waited for.
    pub said: String,
}

impl Started {
    /// Starts it; it may not be ready.
    pub fn begin(command: &mut Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let (sender, said) = channel();
        let lines = BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok);
        std::thread::spawn(move || lines.map_while(|line| sender.send(line).ok()).for_each(drop));
        let mut printed = child.stdout.take().unwrap();
        let output = std::thread::spawn(move || {
            let mut text = Vec::new();
            printed.read_to_end(&mut text).unwrap();
            String::from_utf8(text).unwrap()
        });
        Self { child: Guarded::terminated(child), said, output: Some(output) }
    }

    /// Starts it, and waits for a line with these words.
    pub fn ready(command: &mut Command, words: &str) -> (Self, String) {
        let started = Self::begin(command);
        let line = started.line(words, |line| line.contains(words).then_some(line));
        (started, line)
    }

    /// Waits for a line of standard error from which `find` makes something; `what` it waits for.
    pub fn line<T>(&self, what: &str, find: impl Fn(String) -> Option<T>) -> T {
        let mut before = Vec::new();
        loop {
            let line = self.said.recv_timeout(Duration::from_secs(60));
            let line = line.unwrap_or_else(|e| panic!("no {what}: {e}; before: {before:#?}"));
            before.push(line.clone());
            if let Some(found) = find(line) {
                return found;
            }
        }
    }

    pub fn signal(&self, name: &str) {
        let sent = Command::new("kill").args(["-s", name, &self.child.id().to_string()]).output().unwrap();
        assert!(sent.status.success(), "{}", stderr(&sent));
    }

    /// Waits until it ends by itself.
    pub fn wait(mut self) -> Ended {
        let output = self.output.take().unwrap().join().unwrap();
        let code = self.child.wait().unwrap().code();
        let said: Vec<String> = self.said.iter().collect();
        Ended { code, output, said: said.join("\n") }
    }

    /// Ends it by SIGTERM.
    pub fn end(self) -> Ended {
        self.signal("TERM");
        self.wait()
    }
}
