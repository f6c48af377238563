//! `longwire demo`

use crate::stop_flag::stop_flag;
use crate::{Json, Outcome, outcome};
use longwire_demo::Mode;
use longwire_demo::fairness::{self, FairnessDemo};
use longwire_demo::link::{self, LinkDemo, indented_scenario};
use std::sync::atomic::{AtomicBool, Ordering};

const HINT: &str = "\
Run it yourself, or a program of yours behind such a link:
    longwire demo --scenario > demo.toml; longwire run demo.toml
    longwire exec --rate 10mbit --delay 20ms --loss 2% -- COMMAND";

/// Show an emulated link, or flows that share a router, within fifteen seconds
///
/// `demo` makes two test hosts and a link of 10 Mbit/s, 20 ms and 2 % loss in each direction between them,
/// sends ping, UDP and TCP through it, and prints the configured values beside the measured ones. `demo
/// fairness` sends a flow whose packets need an expensive program beside a cheap one through a router that
/// can't serve both, and compares schedulers that know the cost of packets with one that does not. Nothing
/// remains on the machine. It needs root or a system that allows user namespaces; elsewhere the same link
/// runs in virtual time.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  longwire demo
  longwire demo --json
  longwire demo fairness
  longwire demo --scenario > demo.toml; longwire run demo.toml --virtual")]
pub struct Args {
    /// The demo.
    #[arg(default_value = "link")]
    what: Demo,

    #[command(flatten)]
    json: Json,

    /// Run in virtual time even if real packets are possible.
    #[arg(long)]
    r#virtual: bool,

    /// Print the scenario without running it.
    #[arg(long, conflicts_with_all = ["json", "virtual"])]
    scenario: bool,
}

/// The demos.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Demo {
    /// A link of 10 Mbit/s, 20 ms and 2 % loss.
    Link,
    /// Flows that share a router's processor.
    Fairness,
}

impl Args {
    /// Runs it and prints the result.
    ///
    /// # Errors
    /// If the hosts can't be made, or something between them fails.
    pub fn run(self) -> anyhow::Result<Outcome> {
        if self.scenario {
            let scenario = if self.what == Demo::Link { link::SCENARIO } else { fairness::SCENARIO };
            return outcome::print(scenario.trim_end());
        }
        let mode = if self.r#virtual { Mode::Virtual("as requested".into()) } else { Mode::find()? };
        let stop = stop_flag()?;
        match self.what {
            Demo::Link => self.link(mode, &stop),
            Demo::Fairness => self.fairness(mode, &stop),
        }
    }

    fn link(&self, mode: Mode, stop: &AtomicBool) -> anyhow::Result<Outcome> {
        let demo = LinkDemo::run(mode, stop);
        if stop.load(Ordering::Relaxed) {
            return stopped();
        }
        let demo = demo?;
        let outcome = outcome::print_report(&demo.report(), self.json.on)?;
        if !self.json.on {
            outcome::print(&demo.verdict())?;
            outcome::print(&format!("\nThe scenario was:\n{}\n{HINT}", indented_scenario()))?;
        }
        Ok(outcome)
    }

    fn fairness(&self, mode: Mode, stop: &AtomicBool) -> anyhow::Result<Outcome> {
        let demo = FairnessDemo::run(mode, stop);
        if stop.load(Ordering::Relaxed) {
            return stopped();
        }
        let demo = demo?;
        if !self.json.on {
            outcome::print(&demo.picture())?;
        }
        outcome::print_report(&demo.report(), self.json.on)
    }
}

fn stopped() -> anyhow::Result<Outcome> {
    outcome::note("· stopped; nothing is left behind");
    Ok(Outcome::Status(130))
}
