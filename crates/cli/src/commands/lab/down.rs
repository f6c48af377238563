//! `longwire lab down`

use super::{LabEntry, find, labs, unknown};
use crate::outcome::{print_report, print_with};
use crate::{Json, Outcome, outcome};
use anyhow::ensure;
use longwire_control::Client;
use longwire_lab::Lab;
use longwire_port::interface::clear_leftovers;
use longwire_report::{Report, Row};
use longwire_run::report_text;
use longwire_run::test_hosts::{log_of, remove_log};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;
use std::time::{Duration, Instant};

/// Time for a lab to be taken down.
const PATIENCE: Duration = Duration::from_secs(15);
const LOOK: Duration = Duration::from_millis(10);

/// Take labs down: end the programs in their hosts and remove everything that was made
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  longwire lab down two-hosts
  longwire lab down --all")]
pub struct Args {
    /// The lab.
    #[arg(required_unless_present = "all")]
    lab: Option<String>,

    /// All labs made by `lab up`, and the remains of killed processes.
    #[arg(long, conflicts_with = "lab")]
    all: bool,

    #[command(flatten)]
    json: Json,
}

impl Args {
    pub(super) fn run(self) -> anyhow::Result<Outcome> {
        if let Some(name) = &self.lab {
            let Some(lab) = find(name)? else {
                // A lab that ended by itself has left its reason.
                let log = LabLog::all_of(name).ok_or_else(|| unknown(name))?;
                let words = log.read()?;
                return self.tell(&[EndedLab { name: name.clone(), pid: None, words, by_itself: true }]);
            };
            return self.tell(&[take_down(&lab)?]);
        }
        // Listing the sockets removes those of killed runs. A directory that can't be used has none of ours.
        let _ = longwire_control::list(&longwire_control::directory());
        clear_leftovers();
        // Runs and commands behind a link have labs, too, which must be ended by their own processes.
        let kept =
            |lab: &LabEntry| lab.info.dead || lab.info.owner.is_none() || log_of(&lab.info.instance).exists();
        let all: Vec<_> = labs()?.into_iter().filter(kept).collect();
        if self.json.on {
            return self.tell(&all.iter().map(take_down).collect::<anyhow::Result<Vec<_>>>()?);
        }
        if all.is_empty() {
            outcome::print("no lab is up")?;
        }
        all.iter().try_for_each(|lab| take_down(lab)?.print())?;
        Ok(Outcome::Well)
    }

    fn tell(&self, ended: &[EndedLab]) -> anyhow::Result<Outcome> {
        if !self.json.on {
            ended.iter().try_for_each(EndedLab::print)?;
            return Ok(Outcome::Well);
        }
        let mut report = Report::new("lab down");
        report.extend(ended.iter().map(EndedLab::row));
        print_report(&report, true)
    }
}

/// A lab that was taken down.
pub(crate) struct EndedLab {
    name: String,
    /// The process that kept it up.
    pid: Option<u32>,
    /// The final output of that process.
    words: FinalOutput,
    /// Whether it had ended before.
    by_itself: bool,
}

impl EndedLab {
    /// A row for the lab, with the report of its run, if there is one.
    pub(crate) fn row(&self) -> Row {
        let row = Row::new(&*self.name, "").extra("kind", "lab").extra("pid", self.pid);
        row.extra(
            "report",
            self.words.report.as_ref().map(|report| serde_json::to_value(report).unwrap_or_default()),
        )
    }

    /// Prints the result as text.
    pub(crate) fn print(&self) -> anyhow::Result<()> {
        print_with(|out| {
            out.write_all(self.words.text.as_bytes())?;
            self.words.report.iter().try_for_each(|report| report_text::write(report, out))
        })?;
        if self.by_itself { Ok(()) } else { outcome::print(&format!("lab {} is down", self.name)) }
    }
}

/// The contents of a lab's log.
#[derive(Default)]
struct FinalOutput {
    text: String,
    report: Option<Report>,
}

impl FinalOutput {
    /// Parses a log: lines of text, and the report on a line of its own.
    fn of(log: &str) -> Self {
        let mut words = Self::default();
        for line in log.lines() {
            match serde_json::from_str(line) {
                Ok(report) => words.report = Some(report),
                Err(_) => words.text += &format!("{line}\n"),
            }
        }
        words
    }
}

pub(super) fn take_down(lab: &LabEntry) -> anyhow::Result<EndedLab> {
    let name = &lab.info.instance;
    let words = LabLog::from_now(name);
    let sockets = longwire_control::directory();
    match lab.info.owner {
        None => Lab::open(name)?.down()?,
        Some(_) if lab.info.dead => {}
        Some(pid) => {
            // Selected by process, too: another run may have the same name.
            let asked =
                Client::connect(&sockets, Some(&format!("{name}-{pid}"))).and_then(|client| client.stop());
            // A lab that is still being made or does not answer gets SIGTERM.
            if asked.is_err() {
                lab.info.ask_to_end();
            }
            ensure!(
                lab.info.wait_for_end(PATIENCE),
                "process {pid}, which keeps lab {name} up, has not ended within {PATIENCE:?}; end it with \
                 `kill -9 {pid}`, and the rest with `longwire lab down {name}`"
            );
        }
    }
    // Remains of a process that did not end by itself: its lab, and its socket, which is removed when
    // inspected.
    if !lab.private {
        longwire_lab::sweep()?;
    }
    if let Some(pid) = lab.info.owner {
        wait_until_silent(&sockets, pid)?;
    }
    let words = words.map_or_else(|| Ok(FinalOutput::default()), LabLog::read)?;
    Ok(EndedLab { name: name.clone(), pid: lab.info.owner, words, by_itself: false })
}

/// The open log of a lab: its process writes its report there at the end, then removes the file.
struct LabLog {
    log: File,
    name: String,
}

impl LabLog {
    /// Reads what is written from now on.
    fn from_now(name: &str) -> Option<Self> {
        let mut words = Self::all_of(name)?;
        words.log.seek(SeekFrom::End(0)).ok().map(|_| words)
    }

    /// Reads everything.
    fn all_of(name: &str) -> Option<Self> {
        let log = File::open(log_of(name)).ok()?;
        Some(Self { log, name: name.to_owned() })
    }

    /// Reads the log after the last write.
    fn read(mut self) -> anyhow::Result<FinalOutput> {
        let mut text = Vec::new();
        self.log.read_to_end(&mut text)?;
        // Left by a killed process.
        remove_log(&self.name);
        Ok(FinalOutput::of(&String::from_utf8_lossy(&text)))
    }
}

/// Waits until the process has no sockets: threads of a killed process may take a moment to end.
fn wait_until_silent(sockets: &Path, pid: u32) -> anyhow::Result<()> {
    let deadline = Instant::now() + PATIENCE;
    while longwire_control::list(sockets)?.iter().any(|found| found.pid == pid) && Instant::now() < deadline {
        std::thread::sleep(LOOK);
    }
    Ok(())
}
