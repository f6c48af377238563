//! Labs that are up: finding them, and taking them down with the last words of their runs.

use crate::test_hosts::{log_of, remove_log};
use anyhow::{anyhow, bail, ensure};
use longwire_control::{Client, InstanceSocket};
use longwire_lab::{Lab, LabError, LabInfo, join_user_namespace, private_labs};
use longwire_report::{Report, Row};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;
use std::time::{Duration, Instant};

/// Time for a lab to be taken down.
const PATIENCE: Duration = Duration::from_secs(15);
const LOOK: Duration = Duration::from_millis(10);

/// A lab, or the remains of one whose process was killed.
#[derive(Debug)]
pub struct LabEntry {
    /// The lab as it is registered.
    pub info: LabInfo,
    /// Whether it was made without privileges, in its own user namespace.
    pub private: bool,
}

impl LabEntry {
    /// Whether this instance has made it.
    fn is_of(&self, instance: &InstanceSocket) -> bool {
        self.info.instance == instance.name && self.info.owner == Some(instance.pid)
    }
}

/// All labs: those of this machine, and those that this user made without privileges.
///
/// # Errors
/// If the system does not let them be listed.
pub fn labs() -> anyhow::Result<Vec<LabEntry>> {
    let open = match Lab::list() {
        // The machine's labs belong to root; other users can neither see nor use them.
        Err(LabError::System { source, .. }) if source.kind() == io::ErrorKind::PermissionDenied => {
            Vec::new()
        }
        other => other?,
    };
    let open = open.into_iter().map(|info| LabEntry { info, private: false });
    Ok(open.chain(private_labs().into_iter().map(|info| LabEntry { info, private: true })).collect())
}

/// The names of all labs, each with its hosts.
///
/// # Errors
/// As [`labs`].
pub fn names() -> anyhow::Result<Vec<(String, Vec<String>)>> {
    let hosts = |info: &LabInfo| info.hosts.iter().map(|host| host.name.to_string()).collect();
    Ok(labs()?.into_iter().map(|LabEntry { info, .. }| (info.instance.clone(), hosts(&info))).collect())
}

/// The error for an unknown lab.
pub fn unknown(name: &str) -> anyhow::Error {
    anyhow!(
        "no lab {name} of this user is up; `longwire lab list` shows those that are. One that another user \
         made without privileges is used and taken down by that user only"
    )
}

/// The lab of this name.
///
/// # Errors
/// As [`labs`].
pub fn find(name: &str) -> anyhow::Result<Option<LabEntry>> {
    Ok(labs()?.into_iter().find(|lab| lab.info.instance == name))
}

/// Opens a lab. If it was made without privileges, its namespaces are joined, which a single-threaded process
/// can do.
///
/// # Errors
/// If there is no such lab, or its process was killed.
pub fn open(name: &str) -> anyhow::Result<Lab> {
    let found = find(name)?.ok_or_else(|| unknown(name))?;
    if found.info.dead {
        bail!(
            "lab {name} was left by a process that was killed; take the rest of it down with `longwire lab \
             down {name}`"
        );
    }
    if found.private {
        ensure!(join_user_namespace(name)?, "lab {name} has just ended");
    }
    Ok(Lab::open(name)?)
}

/// Whether the hosts of an instance are there, or what is left of them while it takes them down.
///
/// # Errors
/// As [`labs`].
pub fn has_hosts(instance: &InstanceSocket) -> anyhow::Result<bool> {
    Ok(labs()?.iter().any(|lab| lab.is_of(instance) && !lab.info.dead))
}

/// Takes down the lab that this instance keeps up, if any, as `lab down` does.
///
/// # Errors
/// As [`take_down`].
pub fn end_kept(instance: &InstanceSocket) -> anyhow::Result<Option<EndedLab>> {
    let own = labs()?.into_iter().find(|lab| lab.is_of(instance));
    match own.filter(|lab| log_of(&lab.info.instance).exists()) {
        Some(lab) => take_down(&lab).map(Some),
        None => Ok(None),
    }
}

/// A lab that was taken down.
#[derive(Debug)]
pub struct EndedLab {
    /// Its name.
    pub name: String,
    /// The process that kept it up.
    pub pid: Option<u32>,
    /// The final output of that process.
    pub words: FinalOutput,
    /// Whether it had ended before.
    pub by_itself: bool,
}

impl EndedLab {
    /// A row for the lab, with the report of its run, if there is one.
    pub fn row(&self) -> Row {
        let report = self.words.report.as_ref();
        let report = report.map(|report| serde_json::to_value(report).unwrap_or_default());
        Row::new(&*self.name, "").extra("kind", "lab").extra("pid", self.pid).extra("report", report)
    }

    /// What a lab that has ended by itself has left, if it has left its reason.
    ///
    /// # Errors
    /// If its log can't be read.
    pub fn by_itself(name: &str) -> anyhow::Result<Option<Self>> {
        let words = LabLog::all_of(name).map(LabLog::read).transpose()?;
        Ok(words.map(|words| Self { name: name.to_owned(), pid: None, words, by_itself: true }))
    }
}

/// The contents of a lab's log.
#[derive(Debug, Default)]
pub struct FinalOutput {
    /// Lines of text.
    pub text: String,
    /// The report of its run.
    pub report: Option<Report>,
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

/// Takes a lab down: its process ends it, or what a killed one has left is removed.
///
/// # Errors
/// If its process does not end in time, or something can't be removed.
pub fn take_down(lab: &LabEntry) -> anyhow::Result<EndedLab> {
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
        // No lab has another name, and the path would be that of somebody else's file.
        let fits = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        if name.is_empty() || name.starts_with('.') || !name.chars().all(fits) {
            return None;
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_labs_have_logs() {
        let file = std::env::temp_dir().join(format!("longwire-labs-{}.log", std::process::id()));
        std::fs::write(&file, "of somebody else\n").unwrap();
        let absolute = file.with_extension("").display().to_string();
        let up = format!("{}{absolute}", "../".repeat(64));
        for name in [&*absolute, &*up, "", "..", "a\nb"] {
            assert!(EndedLab::by_itself(name).unwrap().is_none(), "{name}");
        }
        std::fs::remove_file(&file).expect("it is still there");
    }
}
