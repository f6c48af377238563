//! `longwire partition`

use crate::inputs::keep_inputs;
use crate::{Json, Outcome, outcome};
use longwire_partition::{Machines, ReportRows, partition};
use longwire_units::Bytes;
use std::path::PathBuf;

/// Cut a scenario into parts for several machines
///
/// Cuts links whose delay is at least the latency of the network between the machines plus the error of
/// their clocks, keeps all else together, and spreads it so that no core has more to do than others, at the
/// prices of "longwire check". Prints what is where and why, each cut with its arithmetic, and the load of
/// each machine. --write writes a scenario for each machine; their tunnels make one network of them.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  longwire partition wan.toml --machines machines.toml
  longwire partition wan.toml --machines machines.toml --json
  longwire partition wan.toml --machines machines.toml --write parts

Exit status: 0 if it can be cut and fits, 1 if not, 2 if a file has mistakes.")]
pub struct Args {
    /// The scenario file, or - for standard input.
    scenario: PathBuf,

    /// The file of machines: see docs/book/cluster.md.
    #[arg(long, value_name = "FILE")]
    machines: PathBuf,

    /// Write a scenario for each machine into this folder, as MACHINE.toml. The part of an earlier cut is
    /// removed for a machine that has none now; no other file is replaced.
    #[arg(long, value_name = "FOLDER")]
    write: Option<PathBuf>,

    /// Length of the frames that fill links, without FCS, 60 to 65535. Default: 1514.
    #[arg(long, value_name = "N", default_value_t = 1514, hide_default_value = true,
        value_parser = clap::value_parser!(u64).range(60..=65_535))]
    frame_bytes: u64,

    #[command(flatten)]
    json: Json,
}

impl Args {
    /// Cuts the scenario, prints the result, and writes the parts.
    ///
    /// # Errors
    /// The mistakes in the scenario or the file of machines, or what can't be written: an input never is.
    pub fn run(self) -> anyhow::Result<Outcome> {
        let machines = Machines::load(&self.machines)?;
        let plan = longwire_scenario::load(&self.scenario)?;
        outcome::print_notes(&plan);
        let found = partition(&plan, &machines, Bytes(self.frame_bytes))?;
        let rows = if self.json.on { ReportRows::All } else { ReportRows::Table };
        let mut report = found.report(&plan.file, rows);
        let mut notes = found.notes();
        if let Some(folder) = &self.write {
            let leftovers = found.leftovers(folder);
            let changed = found.files(folder).chain(leftovers.iter().cloned());
            keep_inputs(changed, &[&*self.scenario, &*self.machines])?;
            report.set("parts", found.write(folder)?);
            let removed = leftovers.iter().map(|file| file.display());
            notes.extend(removed.map(|file| format!("removed {file}: that machine has no part any more")));
        }
        report.set("notes", notes.clone());
        let printed = outcome::print_report(&report, self.json.on)?;
        if !self.json.on {
            notes.iter().for_each(|note| outcome::note(&format!("note: {note}")));
        }
        Ok(printed)
    }
}
