//! A run in real time that is watched from outside.

use crate::cargo::{run_cargo, target};
use anyhow::{Context, Result, ensure};
use longwire_report::Report;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// How long an instance may take to be there.
const TO_START: Duration = Duration::from_secs(60);

/// The name of the threads that answer requests of the API.
const ANSWERING: &str = "answers";

/// A run in real time.
pub(crate) struct WatchedRun {
    child: Child,
    socket: PathBuf,
}

/// What a process has at a time.
#[derive(Clone, Copy)]
pub(crate) struct Sample {
    /// Resident memory in bytes.
    pub(crate) resident: u64,
    /// Open descriptors.
    pub(crate) descriptors: u64,
    /// Threads, without those that answer.
    pub(crate) threads: u64,
    /// Threads that answer requests of the API: started and ended with the demand.
    pub(crate) answering: u64,
}

impl WatchedRun {
    /// Starts a run of this name and duration with more arguments, and waits for its socket.
    ///
    /// # Errors
    /// It can't be started, or is not there in time.
    pub(crate) fn new(
        binary: &Path,
        scenario: &Path,
        (name, time): (&str, Duration),
        more: &[&str],
    ) -> Result<Self> {
        let seconds = format!("{}s", time.as_secs());
        let child = Command::new(binary)
            .arg("run")
            .arg(scenario)
            .args(["--name", name, "--json", "--quiet", "--for", &seconds])
            .args(more)
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("starting {}", binary.display()))?;
        let socket = PathBuf::from(format!("/run/longwire/{name}-{}.sock", child.id()));
        let mut started = Self { child, socket };
        let start = Instant::now();
        while !started.socket.exists() {
            ensure!(started.child.try_wait()?.is_none(), "the run ended at its start");
            ensure!(start.elapsed() < TO_START, "{} is not there: root is needed", started.socket.display());
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(started)
    }

    /// The number of its process.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// The socket of its API.
    pub(crate) fn socket(&self) -> &Path {
        &self.socket
    }

    /// What it has now.
    pub(crate) fn sample(&mut self) -> Result<Sample> {
        ensure!(self.child.try_wait()?.is_none(), "the run has ended before its time");
        let folder = PathBuf::from(format!("/proc/{}", self.child.id()));
        let status = fs::read_to_string(folder.join("status")).context("reading the status of the run")?;
        let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let resident = resident.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
        let resident = resident.context("no resident memory in the status of the run")? << 10;
        let descriptors = fs::read_dir(folder.join("fd"))?.count() as u64;
        let (answering, threads) = thread_counts(&folder)?;
        Ok(Sample { resident, descriptors, threads, answering })
    }

    /// Asks it to end before its time, and waits for that.
    ///
    /// # Errors
    /// It can't be asked.
    pub(crate) fn stop(self) -> Result<Report> {
        let asked = Command::new("kill").args(["-s", "TERM", &self.id().to_string()]).status();
        ensure!(asked.context("running kill")?.success(), "the run can't be asked to end");
        self.end()
    }

    /// Waits for its end, and returns what it reports.
    ///
    /// # Errors
    /// It has written no report.
    pub(crate) fn end(mut self) -> Result<Report> {
        let mut text = String::new();
        let mut stdout = self.child.stdout.take().context("the report of the run is read once")?;
        stdout.read_to_string(&mut text).context("reading the report of the run")?;
        self.child.wait().context("waiting for the run")?;
        serde_json::from_str(&text).context("the report of the run")
    }
}

impl Drop for WatchedRun {
    fn drop(&mut self) {
        // It ended by itself, unless something went wrong meanwhile; the next run cleans up.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// How many threads of a process answer requests, and how many others it has.
fn thread_counts(process: &Path) -> Result<(u64, u64)> {
    let (mut answering, mut others) = (0, 0);
    for thread in fs::read_dir(process.join("task"))? {
        match fs::read_to_string(thread?.path().join("comm")) {
            Ok(name) if name.trim_end() == ANSWERING => answering += 1,
            Ok(_) => others += 1,
            // It has ended since the folder was read.
            Err(_) => {}
        }
    }
    Ok((answering, others))
}

/// A command in a host of a run of this name, as arguments that follow.
pub(crate) fn in_host(name: &str, host: &str) -> Command {
    let mut command = Command::new("ip");
    command.args(["netns", "exec", &format!("lw-{name}-{host}")]);
    command
}

/// Takes a host's interface down, or up.
pub(crate) fn set_interface(name: &str, host: &str, state: &str) -> Result<()> {
    let namespace = format!("lw-{name}-{host}");
    let status = Command::new("ip").args(["-n", &namespace, "link", "set", "eth0", state]).status();
    ensure!(status.context("running ip")?.success(), "the interface of {host} can't be set {state}");
    Ok(())
}

/// The binary that is named, or one built in this profile.
///
/// # Errors
/// The build failed.
pub(crate) fn built(root: &Path, profile: &str, binary: Option<PathBuf>) -> Result<PathBuf> {
    if let Some(binary) = binary {
        return Ok(binary);
    }
    ensure!(run_cargo(root, &["build", "--profile", profile, "-p", "longwire"])?, "the build failed");
    Ok(target(root).join(profile).join("longwire"))
}
