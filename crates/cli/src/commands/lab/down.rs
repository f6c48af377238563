//! `longwire lab down`

use super::{Found, find, labs, unknown};
use crate::{Outcome, outcome};
use anyhow::ensure;
use longwire_control::Client;
use longwire_lab::Lab;
use longwire_run::test_hosts::{log_of, remove_log};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;
use std::time::{Duration, Instant};

/// How long a lab has to come down.
const PATIENCE: Duration = Duration::from_secs(15);
const LOOK: Duration = Duration::from_millis(10);

/// Take labs down: end what runs in their hosts and remove all that was made
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  longwire lab down two-hosts
  longwire lab down --all")]
pub struct Args {
    /// The lab.
    #[arg(required_unless_present = "all")]
    lab: Option<String>,

    /// All labs that `lab up` made, and what killed processes left.
    #[arg(long, conflicts_with = "lab")]
    all: bool,
}

impl Args {
    pub(super) fn run(self) -> anyhow::Result<Outcome> {
        if let Some(name) = &self.lab {
            let Some(lab) = find(name)? else {
                // One that ended by itself has left its reason.
                let log = LastWords::all_of(name).ok_or_else(|| unknown(name))?;
                log.print()?;
                return Ok(Outcome::Well);
            };
            take_down(&lab)?;
            return Ok(Outcome::Well);
        }
        // Runs and commands behind a link have labs, too; those are ended by whoever started them.
        let kept =
            |lab: &Found| lab.info.dead || lab.info.owner.is_none() || log_of(&lab.info.instance).exists();
        let all: Vec<_> = labs()?.into_iter().filter(kept).collect();
        if all.is_empty() {
            outcome::print("no lab is up")?;
        }
        all.iter().try_for_each(take_down)?;
        Ok(Outcome::Well)
    }
}

pub(super) fn take_down(lab: &Found) -> anyhow::Result<()> {
    let name = &lab.info.instance;
    let words = LastWords::from_now(name);
    let sockets = longwire_control::directory();
    match lab.info.owner {
        None => Lab::open(name)?.down()?,
        Some(_) if lab.info.dead => {}
        Some(pid) => {
            // By its process, too: a name may be another run's.
            let asked =
                Client::connect(&sockets, Some(&format!("{name}-{pid}"))).and_then(|client| client.stop());
            // One that is still being made, or no longer answers, understands SIGTERM.
            if asked.is_err() {
                lab.info.ask_to_end();
            }
            ensure!(
                lab.info.wait_for_end(PATIENCE),
                "process {pid}, which keeps lab {name} up, has not ended within {PATIENCE:?}; end it with `kill -9 {pid}`, \
                 and the rest with `longwire lab down {name}`"
            );
        }
    }
    // What a process left that did not end by itself: its lab, and its socket, which looking at it removes.
    if !lab.private {
        longwire_lab::sweep()?;
    }
    if let Some(pid) = lab.info.owner {
        wait_until_silent(&sockets, pid)?;
    }
    words.map_or(Ok(()), LastWords::print)?;
    outcome::print(&format!("lab {name} is down"))
}

/// The log of a lab, held open: the process that keeps the lab up writes its report there at the end, and removes it.
struct LastWords {
    log: File,
    name: String,
}

impl LastWords {
    /// What is said from now on.
    fn from_now(name: &str) -> Option<Self> {
        let mut words = Self::all_of(name)?;
        words.log.seek(SeekFrom::End(0)).ok().map(|_| words)
    }

    /// Everything.
    fn all_of(name: &str) -> Option<Self> {
        let log = File::open(log_of(name)).ok()?;
        Some(Self { log, name: name.to_owned() })
    }

    /// Prints it, once nothing more is to come.
    fn print(mut self) -> anyhow::Result<()> {
        let mut text = Vec::new();
        self.log.read_to_end(&mut text)?;
        // Left by a process that was killed.
        remove_log(&self.name);
        outcome::print_with(|out| out.write_all(&text))
    }
}

/// Looks at the sockets until the process has none: of a process that was killed, threads may take a moment to go.
fn wait_until_silent(sockets: &Path, pid: u32) -> anyhow::Result<()> {
    let deadline = Instant::now() + PATIENCE;
    while longwire_control::list(sockets)?.iter().any(|found| found.pid == pid) && Instant::now() < deadline {
        std::thread::sleep(LOOK);
    }
    Ok(())
}
