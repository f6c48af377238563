//! `longwire forwarder cost`

use super::program_args::ProgramArgs;
use crate::{Json, Outcome, outcome};
use longwire_prices::prices_of;
use longwire_router::RouterPrices;
use longwire_run::program_cost::ProgramCost;
use longwire_units::{Probability, Rate};
use std::path::Path;

/// Verify a program and print its worst-case cost per packet
///
/// The longest path is priced item by item; no instance need run. A refused program is reported with the
/// instruction, the source line if known, and the fix. Prices are assumptions about a processor of 3 GHz with
/// a memory latency of 90 ns, or measured: see --prices.
#[derive(Debug, clap::Args)]
#[command(mut_arg("json", |json| json.help("Print JSON; prices are in picoseconds")))]
#[command(after_long_help = "\
Examples:
  longwire forwarder cost syn-monitor
  longwire forwarder cost mine.o --function count
  longwire forwarder cost mine.o --function redirect --exit stamp
  longwire forwarder cost nat44 --line-rate 100mbit --path
  longwire forwarder cost tcp-splicer --set-aside '10 %'
  longwire forwarder cost nat44 --prices calibrated
  longwire forwarder cost nat44 --json")]
pub struct Args {
    /// A built-in program, or an object file.
    program: String,

    #[command(flatten)]
    chosen: ProgramArgs,

    /// A line rate to be guaranteed, besides 1 Gbit/s.
    #[arg(long, value_name = "RATE")]
    line_rate: Option<String>,

    /// The worker's share for packets to and from other levels, the sum of "worker" in a router's slow-path
    /// and control: "10 %".
    #[arg(long, value_name = "PART", default_value = "0 %")]
    set_aside: Probability,

    /// Prices from "longwire calibrate": "calibrated", or a file that it wrote. Default: "assumed".
    #[arg(long, value_name = "PRICES")]
    prices: Option<String>,

    /// Print the instructions of the worst-case path.
    #[arg(long)]
    path: bool,

    #[command(flatten)]
    json: Json,
}

impl Args {
    /// Prints the cost.
    ///
    /// # Errors
    /// If there is no such program, or the verifier refuses it.
    pub fn run(self) -> anyhow::Result<Outcome> {
        let written = self.chosen.of(self.program);
        let prices = self.prices.as_deref().map_or(Ok(RouterPrices::default()), |name| {
            prices_of(name, Path::new("")).map(|prices| prices.router)
        });
        let prices = prices.map_err(|error| anyhow::anyhow!("--prices: {error}"))?;
        let mut rates = vec![Rate(1_000_000_000)];
        if let Some(rate) = self.line_rate {
            rates.push(held(&rate).map_err(|why| anyhow::anyhow!("--line-rate: {why}"))?);
        }
        let cost = ProgramCost::of(&written, prices, (&rates, self.set_aside))?;
        if self.json.on {
            return outcome::print_report(&cost.report(self.path), true);
        }
        outcome::print(&cost.lines(self.path).join("\n"))
    }
}

/// Parses a rate that can be guaranteed.
fn held(text: &str) -> Result<Rate, String> {
    match text.parse() {
        Ok(Rate(0) | Rate::UNLIMITED) => {
            Err(format!("\"{text}\" promises nothing: write the rate that is to be held"))
        }
        Ok(rate) => Ok(rate),
        Err(error) => Err(error.to_string()),
    }
}
