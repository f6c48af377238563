//! `longwire lab`

mod down;
mod enter;
mod hold;
mod list;
mod up;

use crate::Outcome;
use anyhow::{anyhow, bail, ensure};
use clap::Subcommand;
pub(crate) use down::EndedLab;
use longwire_lab::{Lab, LabError, LabInfo, join_user_namespace, private_labs};
use longwire_run::test_hosts::log_of;
use std::io;

/// Keep a scenario's test hosts and links up, and run programs in them
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  longwire lab up scenarios/two-hosts.toml
  longwire lab exec two-hosts a -- ping -c 3 b
  longwire lab list
  longwire lab down two-hosts")]
pub struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    Up(up::Args),
    Exec(enter::Args),
    List(list::Args),
    Down(down::Args),
    #[command(hide = true)]
    Hold(hold::Args),
}

impl Args {
    /// Runs the action.
    ///
    /// # Errors
    /// If there is no such lab, or the system does not allow it.
    pub fn run(self) -> anyhow::Result<Outcome> {
        match self.action {
            Action::Up(args) => args.run(),
            Action::Exec(args) => args.run(),
            Action::List(args) => args.run(),
            Action::Down(args) => args.run(),
            Action::Hold(args) => args.run(),
        }
    }
}

/// A lab, or the remains of one whose process was killed.
struct LabEntry {
    info: LabInfo,
    /// Whether it was made without privileges, in its own user namespace.
    private: bool,
}

/// All labs: those of this machine, and those that this user made without privileges.
fn labs() -> anyhow::Result<Vec<LabEntry>> {
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
pub(crate) fn names() -> anyhow::Result<Vec<(String, Vec<String>)>> {
    let hosts = |info: &LabInfo| info.hosts.iter().map(|host| host.name.to_string()).collect();
    Ok(labs()?.into_iter().map(|LabEntry { info, .. }| (info.instance.clone(), hosts(&info))).collect())
}

/// The error for an unknown lab.
fn unknown(name: &str) -> anyhow::Error {
    anyhow!(
        "no lab {name} of this user is up; `longwire lab list` shows those that are. One that another user \
         made without privileges is used and taken down by that user only"
    )
}

fn find(name: &str) -> anyhow::Result<Option<LabEntry>> {
    Ok(labs()?.into_iter().find(|lab| lab.info.instance == name))
}

/// Opens a lab. If it was made without privileges, its namespaces are joined, which a single-threaded process
/// can do.
pub(crate) fn open(name: &str) -> anyhow::Result<Lab> {
    let Some(found) = find(name)? else {
        return Err(unknown(name));
    };
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

/// Takes down the lab that this instance keeps up, if any, as `lab down` does.
pub(crate) fn end_kept(instance: &longwire_control::InstanceSocket) -> anyhow::Result<Option<EndedLab>> {
    let is_it = |lab: &LabEntry| lab.info.instance == instance.name && lab.info.owner == Some(instance.pid);
    match labs()?.into_iter().find(is_it).filter(|lab| log_of(&lab.info.instance).exists()) {
        Some(lab) => down::take_down(&lab).map(Some),
        None => Ok(None),
    }
}
