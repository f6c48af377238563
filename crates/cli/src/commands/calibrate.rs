//! `longwire calibrate`

use crate::stop_flag::stop_flag;
use crate::outcome::print_report;
use crate::progress::Progress;
use crate::{Outcome, outcome};
use anyhow::Context;
use longwire_bench::Settings;
use longwire_report::{Report, Row};
use longwire_router::RouterPrices;
use longwire_scenario::{named_prices, own_prices, write_prices};
use std::path::{Path, PathBuf};

/// Measure what programs and forwarding cost on this machine
///
/// A router that has a line rate as its budget admits programs by what they cost at worst. Without a measurement these
/// prices are assumptions. This measures them: instructions, divisions, accesses to packets, state and maps, helpers, classifying
/// and forwarding, everything that is not in the packet as a cache miss. They are written to a file, which a router uses
/// that says prices = "calibrated", or its name.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  longwire calibrate
  longwire calibrate --output ./prices --json
  longwire calibrate --quick

The file is longwire/prices in $XDG_CONFIG_HOME, or in ~/.config. It takes about a minute. Let the machine do nothing else meanwhile.")]
pub struct Args {
    /// Write the prices to this file. Default: where routers look for this machine's.
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,

    /// Measure shorter: shows that it works, not what things cost. Nothing is written without --output.
    #[arg(long)]
    quick: bool,

    /// Print JSON.
    #[arg(long)]
    json: bool,
}

impl Args {
    /// Measures, prints and writes the prices.
    ///
    /// # Errors
    /// It was stopped, or the file or standard output can't be written to.
    pub fn run(self) -> anyhow::Result<Outcome> {
        let stop = stop_flag()?;
        if cfg!(debug_assertions) {
            outcome::note("note: this is a debug build; calibrate with cargo build --release");
        }
        let progress = Progress::of_steps("calibrate");
        let say = |what: &str| progress.say(what);
        let settings = Settings { runs: None, quick: self.quick, say: &say, stop: &stop };
        let prices = longwire_bench::calibrate::prices(&settings)?;
        drop(progress);
        let mut report = Report::new("calibrate").with("quick", self.quick);
        let assumed = RouterPrices::default();
        for ((name, price), (_, assumed)) in named_prices(&prices).zip(named_prices(&assumed)) {
            let row = Row::new(name, "ns").extra("picoseconds", price).measured(price as f64 / 1e3);
            report.push(row.note(format!("assumed without a measurement: {} ns", assumed as f64 / 1e3)));
        }
        let place = match self.output {
            Some(output) => Some(output),
            None if self.quick => None,
            None => Some(own_prices().context("neither XDG_CONFIG_HOME nor HOME is set: name a file with --output")?),
        };
        if let Some(place) = &place {
            let machine = &report.machine;
            let about = format!("{}, Linux {}, longwire {}", machine.cpu_model, machine.kernel, report.version);
            write(place, &write_prices(&prices, &about))
                .with_context(|| format!("can't write the prices to {}", place.display()))?;
            report.set("file", place.display().to_string());
            outcome::note(&format!("written to {}", place.display()));
        }
        print_report(&report, self.json)
    }
}

/// Writes a file whole, or not at all.
fn write(place: &Path, text: &str) -> std::io::Result<()> {
    if let Some(folder) = place.parent() {
        std::fs::create_dir_all(folder)?;
    }
    let mut new = place.as_os_str().to_owned();
    new.push(".new");
    std::fs::write(&new, text)?;
    std::fs::rename(new, place)
}
