//! `longwire ctl remove`

use super::add::rewire;
use super::elsewhere::{Elsewhere, InstanceArgs};
use crate::Outcome;
use longwire_control::RewireRequest;

/// Remove links, hosts, ports, bridges, routers and traffic sources while it runs
///
/// Packets that they hold are dropped as link-removed, or sent with --drain; packets of other links are not
/// disturbed. Programs in a removed host are ended, and a removed port's interface is let go. What links have
/// counted stays in the sums of the run; packets that a removed source has sent go on.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  longwire ctl remove backup
  longwire ctl remove up down --drain
  longwire ctl remove c")]
pub struct Args {
    /// Names of links, hosts, ports, bridges, routers and sources; a duplex link by its own name. The links
    /// and sources of hosts, ports and bridges go with them, and a router's links and programs.
    #[arg(required = true, value_name = "NAME")]
    names: Vec<String>,

    /// Send the packets that they hold.
    #[arg(long)]
    drain: bool,

    #[command(flatten)]
    of: InstanceArgs,
}

impl Args {
    /// Removes them.
    ///
    /// # Errors
    /// If the instance refuses or does not answer.
    pub fn run(self, at: &Elsewhere) -> anyhow::Result<Outcome> {
        let ask = RewireRequest { remove: self.names, drain: self.drain, ..RewireRequest::default() };
        rewire(at, &self.of, &ask, anyhow::Error::from)
    }
}
