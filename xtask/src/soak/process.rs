//! The process that is watched.

use super::NAME;
use anyhow::{Context, Result, ensure};
use longwire_report::Report;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// How long an instance may take to be there.
const TO_START: Duration = Duration::from_secs(30);

/// A run in real time.
pub(super) struct SoakRun {
    child: Child,
    socket: PathBuf,
}

/// What a process has at a time.
#[derive(Clone, Copy)]
pub(super) struct Sample {
    /// Resident memory in bytes.
    pub(super) resident: u64,
    pub(super) descriptors: u64,
    pub(super) threads: u64,
}

impl SoakRun {
    /// Starts a run, and waits for its socket.
    pub(super) fn new(binary: &Path, scenario: &Path, time: Duration) -> Result<Self> {
        let seconds = format!("{}s", time.as_secs());
        let child = Command::new(binary)
            .arg("run")
            .arg(scenario)
            .args(["--name", NAME, "--json", "--quiet", "--for", &seconds])
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("starting {}", binary.display()))?;
        let socket = PathBuf::from(format!("/run/longwire/{NAME}-{}.sock", child.id()));
        let mut started = Self { child, socket };
        let start = Instant::now();
        while !started.socket.exists() {
            ensure!(started.child.try_wait()?.is_none(), "the run ended at its start");
            ensure!(start.elapsed() < TO_START, "{} is not there: root is needed", started.socket.display());
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(started)
    }

    pub(super) fn socket(&self) -> &Path {
        &self.socket
    }

    /// What it has now.
    pub(super) fn sample(&mut self) -> Result<Sample> {
        ensure!(self.child.try_wait()?.is_none(), "the run has ended before its time");
        let folder = PathBuf::from(format!("/proc/{}", self.child.id()));
        let status = fs::read_to_string(folder.join("status")).context("reading the status of the run")?;
        let value = |key: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(key));
            let number = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
            number.with_context(|| format!("no {key} in the status of the run"))
        };
        let descriptors = fs::read_dir(folder.join("fd"))?.count() as u64;
        Ok(Sample { resident: value("VmRSS:")? << 10, threads: value("Threads:")?, descriptors })
    }

    /// Waits for its end, and returns what it reports.
    pub(super) fn end(self) -> Result<Report> {
        let output = self.child.wait_with_output().context("waiting for the run")?;
        serde_json::from_slice(&output.stdout).context("the report of the run")
    }
}

/// Takes a host's interface down, or up.
pub(super) fn set_interface(name: &str, host: &str, state: &str) -> Result<()> {
    let namespace = format!("lw-{name}-{host}");
    let status = Command::new("ip").args(["-n", &namespace, "link", "set", "eth0", state]).status();
    ensure!(status.context("running ip")?.success(), "the interface of {host} can't be set {state}");
    Ok(())
}
