//! `longwire check`

use crate::{Json, Outcome, json, outcome};
use longwire_prices::{MachinePrices, own_prices, prices_of};
use longwire_run::fitted::fit_pool;
use longwire_run::scenario_check::ScenarioCheck;
use longwire_units::Bytes;
use std::path::{Path, PathBuf};

/// Check a scenario and report what does not fit on this machine
///
/// Reads the scenario, reports mistakes with their places and fixes (unknown names first, wrong values once
/// there are none), and predicts the load if every link is full and every source sends: of each worker and
/// each port's driver, the lateness of packets, and memory for links, packets in flight and waiting packets.
/// Keys, captures, interfaces and network namespaces that are missing here are warnings.
/// Prices are those that `longwire calibrate` measured on this machine, if any.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  longwire check scenarios/two-hosts.toml
  longwire check scenarios/dsl-1000.toml --json
  longwire check scenarios/two-hosts.toml --frame-bytes 60
  longwire check scenarios/two-hosts.toml --prices ./prices
  longwire import netem 'delay 100ms loss 1%' | longwire check -

Exit status: 0 if it fits, 1 if something does not, 2 if the scenario has mistakes.")]
pub struct Args {
    /// The scenario file, or - for standard input.
    scenario: PathBuf,

    /// Prices from "longwire calibrate": "calibrated", "assumed", or a file that it wrote. Default: this
    /// machine's if there are any, else assumed.
    #[arg(long, value_name = "FILE")]
    prices: Option<String>,

    /// Length of the frames that fill links, without FCS, 60 to 65535: shorter ones mean more packets a
    /// second. Default: 1514.
    #[arg(long, value_name = "N", default_value_t = 1514, hide_default_value = true,
        value_parser = clap::value_parser!(u64).range(60..=65_535))]
    frame_bytes: u64,

    #[command(flatten)]
    json: Json,
}

impl Args {
    /// Checks the scenario and prints its needs.
    ///
    /// # Errors
    /// The mistakes in the scenario.
    pub fn run(self) -> anyhow::Result<Outcome> {
        let mut plan = longwire_scenario::load(&self.scenario)?;
        fit_pool(&mut plan);
        outcome::print_notes(&plan);
        let (prices, from) = self.prices()?;
        let mut checked = ScenarioCheck::of(&plan, (&prices, &from), Bytes(self.frame_bytes))?;
        checked.report.set("warnings", json::of_warnings(&plan.notes, &checked.absences));
        let outcome = outcome::print_report(&checked.report, self.json.on)?;
        if self.json.on {
            return Ok(outcome);
        }
        let absences = checked.absences.iter().map(ToString::to_string);
        absences.chain(checked.notes).for_each(|note| outcome::note(&format!("note: {note}")));
        if !checked.timeline.is_empty() {
            outcome::print(&format!("\n{}", checked.timeline.join("\n")))?;
        }
        Ok(outcome)
    }

    /// The selected prices, and their source.
    fn prices(&self) -> anyhow::Result<(MachinePrices, String)> {
        let here = Path::new("");
        if let Some(meant) = &self.prices {
            let prices = prices_of(meant, here).map_err(|why| anyhow::anyhow!("--prices: {why}"))?;
            return Ok((prices, meant.clone()));
        }
        let assumed = (MachinePrices::default(), "assumed".to_owned());
        let Some(place) = own_prices().filter(|place| place.exists()) else { return Ok(assumed) };
        Ok(match prices_of("calibrated", here) {
            Ok(prices) => (prices, place.display().to_string()),
            Err(why) => {
                outcome::note(&format!("note: {why}"));
                assumed
            }
        })
    }
}
