//! `longwire top`

use crate::commands::ctl::elsewhere::{Elsewhere, InstanceName};
use crate::{Outcome, outcome};
use anyhow::Context;
use longwire_rundir::StopSignals;
use longwire_terminal::{InstanceOwner, ViewEnd};

/// Watch a running instance on the terminal, and change its objects
///
/// Shows what `longwire run` shows of its own run: tables of links, sources, ports and routers, sorted and
/// searched, the last minutes of the selected link, and the log of events. Leaving it does not end the
/// instance.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  longwire top
  longwire top two-hosts
  longwire top --remote https://lab:8399 --ca ca.pem --cert me.pem --key me.key

Keys: ? shows all. Enter changes the selected link: rate=5mbit delay=40ms. q leaves.

Where there is no terminal, longwire ctl stats prints the counters once, and with --json as JSON.")]
pub struct Args {
    #[command(flatten)]
    instance: InstanceName,

    #[command(flatten)]
    at: Elsewhere,
}

impl Args {
    /// Shows the view until somebody leaves, or the instance has ended.
    ///
    /// # Errors
    /// If there is no such instance, or no terminal.
    pub fn run(self) -> anyhow::Result<Outcome> {
        let client = self.at.connect(self.instance.get())?;
        anyhow::ensure!(
            longwire_terminal::fits(),
            "no terminal that can show the view; longwire ctl stats prints the counters once"
        );
        let name = client.name();
        // So that the terminal is restored.
        let signals = StopSignals::catch().context("catching signals")?;
        let over = || signals.came().is_some();
        let (owner, titles) = (InstanceOwner::OtherProcess, (name.clone(), None));
        if let ViewEnd::Gone(_) = longwire_terminal::view(Box::new(client), owner, titles, over)? {
            outcome::note(&format!("{name} has ended"));
        }
        Ok(Outcome::Well)
    }
}
