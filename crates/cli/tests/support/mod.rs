//! Code shared by tests of the binary. Each test program uses a part of it.
#![allow(unused, reason = "each test program includes this module and uses its own part")]

pub mod guarded;
pub mod halves;
pub mod lab;
pub mod places;
pub mod service;
pub mod started;

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::atomic::{AtomicU32, Ordering};

/// A temporary folder, removed at the end.
pub struct Folder(PathBuf);

impl Folder {
    pub fn new(what: &str) -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("longwire-{what}-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    pub fn write(&self, name: &str, bytes: impl AsRef<[u8]>) -> String {
        std::fs::write(self.path(name), bytes).unwrap();
        self.text(name)
    }

    /// A file's path as text.
    pub fn text(&self, name: &str) -> String {
        self.path(name).display().to_string()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.0).unwrap();
    }
}

/// A file of this repository.
pub fn repository(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(name)
}

pub fn longwire(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_longwire")).args(args).output().unwrap()
}

/// Starts its arguments as a command that all ending signals end: under `nohup`, or behind `&` in a script, a
/// test's processes would ignore some of them.
pub fn ended_by_all() -> Command {
    let mut command = Command::new("env");
    command.arg("--default-signal=HUP,INT,QUIT,TERM");
    command
}

/// Whether there is a `script`, which makes a terminal for a command; says so if not.
pub fn can_make_terminals() -> bool {
    let version = Command::new("script").arg("--version").output();
    let is_known = version.is_ok_and(|output| stdout(&output).contains("util-linux"));
    if !is_known {
        eprintln!("skipped: needs script of util-linux");
    }
    is_known
}

pub fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

pub fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// Whether a command whose link carried packets has said on standard error how faithful it was.
pub fn has_verdict(said: &str) -> bool {
    let is_verdict = |line: &str| {
        let beginnings = ["not faithful: ", "too few packets to judge ("];
        line == "faithful" || beginnings.iter().any(|beginning| line.starts_with(beginning))
    };
    said.lines().filter_map(|line| line.strip_prefix("longwire: ")).any(is_verdict)
}

/// Standard output as JSON, of a command that ended with `status`.
pub fn json(output: &Output, status: i32) -> Value {
    assert_eq!(output.status.code(), Some(status), "{}\n{}", stdout(output), stderr(output));
    serde_json::from_slice(&output.stdout).unwrap_or_else(|e| panic!("{e}: {}", stdout(output)))
}

/// The row of an object, by its name or by its kind and name: `link up`.
pub fn row<'a>(report: &'a Value, name: &str) -> &'a Value {
    let rows = report["rows"].as_array().unwrap();
    let named = |row: &&Value| {
        let called = row["name"].as_str().unwrap_or_default();
        let kind = row["kind"].as_str().unwrap_or_default().replace('-', " ");
        called == name || format!("{kind} {called}") == name
    };
    rows.iter().find(named).unwrap_or_else(|| panic!("no row {name} in {report:#}"))
}

/// A frame in a capture: its time since 1970 in ns, its original length, its bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    pub time: u64,
    pub wire_len: u32,
    pub bytes: Vec<u8>,
}

/// An IPv4 UDP frame of `len` bytes from station `from` to station `to`, whose last byte is `mark`.
pub fn frame(from: u8, to: u8, len: usize, mark: u8) -> Vec<u8> {
    let mut bytes = vec![0; len];
    bytes[..12].copy_from_slice(&[2, 0, 0, 0, 0, to, 2, 0, 0, 0, 0, from]);
    bytes[12..14].copy_from_slice(&[8, 0]);
    let ip_len = (len - 14) as u16;
    bytes[14..24].copy_from_slice(&[0x45, 0, (ip_len >> 8) as u8, ip_len as u8, 0, 0, 0, 0, 64, 17]);
    bytes[26..34].copy_from_slice(&[10, 0, 0, from, 10, 0, 0, to]);
    bytes[len - 1] = mark;
    bytes
}

/// A pcap file with nanoseconds.
pub fn pcap(frames: &[Frame]) -> Vec<u8> {
    let mut file = Vec::new();
    for word in [0xa1b2_3c4du32, 0x0004_0002, 0, 0, 262_144, 1] {
        file.extend(word.to_le_bytes());
    }
    for frame in frames {
        let (seconds, nanos) = (frame.time / 1_000_000_000, frame.time % 1_000_000_000);
        for word in [seconds as u32, nanos as u32, frame.bytes.len() as u32, frame.wire_len] {
            file.extend(word.to_le_bytes());
        }
        file.extend(&frame.bytes);
    }
    file
}

/// The frames of a pcap file with nanoseconds.
pub fn read_pcap(path: &Path) -> Vec<Frame> {
    let file = std::fs::read(path).unwrap();
    let magic = u32::from_ne_bytes(file[..4].try_into().unwrap());
    assert_eq!(magic, 0xa1b2_3c4d, "nanoseconds, in this machine's order");
    let mut frames = Vec::new();
    let mut rest = &file[24..];
    while !rest.is_empty() {
        let word = |at: usize| u32::from_ne_bytes(rest[at..at + 4].try_into().unwrap());
        let len = word(8) as usize;
        frames.push(Frame {
            time: u64::from(word(0)) * 1_000_000_000 + u64::from(word(4)),
            wire_len: word(12),
            bytes: rest[16..16 + len].to_vec(),
        });
        rest = &rest[16 + len..];
    }
    frames
}
