//! The background process that keeps a lab up.

use crate::{Outcome, outcome};
use anyhow::{Context, ensure};
use longwire_lab::{CommandRole, has_reader, keep_for};
use longwire_run::fitted::fit_pool;
use longwire_run::real_run::{RealOptions, RealRun};
use longwire_run::test_hosts::{TestHosts, gain_privileges, log_of, remove_log};
use longwire_rundir::StopSignals;
use std::fs::File;
use std::io::{self, Write};
use std::path::PathBuf;
use std::time::Duration;

/// Its message when packets can flow.
pub const READY: &str = "ready";
/// The beginning of a note for the user.
pub const NOTE: &str = "note: ";

/// Interval between checks for signals.
const LOOK: Duration = Duration::from_millis(100);

/// Keep a lab up until it is ended; `lab up` starts this in the background
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The scenario file.
    scenario: PathBuf,

    /// The lab's name.
    #[arg(long)]
    name: String,
}

impl Args {
    pub(super) fn run(self) -> anyhow::Result<Outcome> {
        longwire_lab::detach().context("leaving the terminal")?;
        let text = longwire_scenario::read_text(&self.scenario)?;
        // Files that it names are still found after the change of directory. Its errors have been reported by
        // `lab up`, under the name that the user wrote.
        let file = std::path::absolute(&self.scenario).context("finding the scenario's folder")?;
        let mut plan = longwire_scenario::parse(&file.display().to_string(), &text)?;
        fit_pool(&mut plan);
        // A working directory on a file system would prevent unmounting it.
        std::env::set_current_dir("/")?;
        // `lab up` passes these on.
        gain_privileges(&mut plan)?.iter().for_each(|note| outcome::note(&format!("{NOTE}{note}")));
        keep_for(CommandRole::Carries).context("giving up what root need not keep")?;
        let signals = StopSignals::catch().context("catching signals")?;
        let hosts = TestHosts::make(&self.name, &plan)?;
        // If the caller has ended, the lab is not needed, and the next steps take seconds.
        ensure!(has_reader(&io::stdout()), "the process that started the lab has ended");
        let options = RealOptions { name: self.name.clone(), ..RealOptions::default() };
        let run = RealRun::start(plan, hosts, options)?;
        let mut log = File::create(log_of(&self.name)).context("making the log file")?;
        writeln!(log, "lab {} is up (process {})", self.name, std::process::id())?;
        // The caller may have ended meanwhile: then the lab is not needed.
        let wanted = writeln!(io::stdout(), "{READY}").and_then(|()| io::stdout().flush()).is_ok();
        while wanted && signals.came().is_none() && !run.has_ended() {
            if run.stopped().recv_timeout(LOOK).is_ok() {
                break;
            }
        }
        let broken = run.has_ended();
        let ended = run.stop();
        let ran = ended.ran();
        writeln!(log, "{}", serde_json::to_string(&ran.report())?)?;
        if !broken {
            // If `lab down` requested the end, it has the file open. Otherwise the file stays, with the
            // reason, and `lab down` shows it.
            remove_log(&self.name);
        }
        Ok(Outcome::Well)
    }
}
