//! `longwire calibrate`

use crate::outcome::print_report;
use crate::progress::Progress;
use crate::stop_flag::stop_flag;
use crate::{Json, Outcome, outcome};
use anyhow::Context;
use longwire_bench::Settings;
use longwire_prices::{EnginePrices, MachinePrices, named_prices, own_prices, write_prices};
use longwire_report::{Report, Row, whole_file};
use longwire_router::RouterPrices;
use std::path::{Path, PathBuf};

/// Measure the cost of packets, links, ports and programs on this machine
///
/// `longwire check` computes from these prices the load of each worker and port, and how late packets leave;
/// a router with prices = "calibrated" admits programs by them. The measurements cover the engine's stages,
/// each block of a link, cache misses of links and packets, packets handed to another worker, the drivers of
/// ports (TAP, AF_PACKET, AF_XDP: as root, in their own namespaces), lateness by the workers' way of waiting,
/// and programs on routers. The file has medians and the spread of the runs.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  sudo longwire calibrate
  longwire calibrate --output ./prices --json
  longwire calibrate --quick

The file is longwire/prices in $XDG_CONFIG_HOME, or in ~/.config. It takes about five minutes. Let the \
machine do nothing else meanwhile.")]
pub struct Args {
    /// Write the prices to this file. Default: where routers and check look for this machine's.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,

    /// Measure shorter: a functional test, not real prices. Nothing is written without --output.
    #[arg(long)]
    quick: bool,

    #[command(flatten)]
    json: Json,
}

impl Args {
    /// Measures, prints and writes the prices.
    ///
    /// # Errors
    /// It was stopped, or the file or standard output can't be written to: the file is tried before the
    /// measurements.
    pub fn run(self) -> anyhow::Result<Outcome> {
        let stop = stop_flag()?;
        let place = self.place()?;
        if cfg!(debug_assertions) {
            outcome::note("note: this is a debug build; calibrate with cargo build --release");
        }
        let progress = Progress::of_steps("calibrate");
        let say = |what: &str| progress.say(what);
        let settings = Settings { runs: None, quick: self.quick, say: &say, stop: &stop };
        let (engine, skipped) = longwire_bench::capacity::prices(&settings)?;
        let router = longwire_bench::calibrate::prices(&settings)?;
        drop(progress);
        let prices = MachinePrices { router, engine };
        let mut report = Report::new("calibrate").with("quick", self.quick).with_rows(rows(&prices));
        for (driver, why) in &skipped {
            report.push(Row::new(*driver, "").measured("not measured").note(why.clone()));
        }
        let Some(place) = place else { return print_report(&report, self.json.on) };
        let machine = &report.machine;
        let about = format!("{}, Linux {}, longwire {}", machine.cpu_model, machine.kernel, report.version);
        if let Err(why) = whole_file::write(&place, &write_prices(&prices, &about)) {
            // What was measured is not lost.
            report.fail(format!("{}: {why}", unwritable(&place)));
            print_report(&report, self.json.on)?;
            return Ok(Outcome::Status(2));
        }
        report.set("file", place.display().to_string());
        outcome::note(&format!("written to {}", place.display()));
        print_report(&report, self.json.on)
    }

    /// Where to write the prices, which has been found possible; none if they are not to be written.
    fn place(&self) -> anyhow::Result<Option<PathBuf>> {
        let place = match &self.output {
            Some(output) => output.clone(),
            None if self.quick => return Ok(None),
            None => {
                let none = "neither XDG_CONFIG_HOME nor HOME is set: name a file with --output";
                let own = own_prices().context(none)?;
                if let Some(folder) = own.parent() {
                    std::fs::create_dir_all(folder).with_context(|| unwritable(&own))?;
                }
                own
            }
        };
        whole_file::check(&place).with_context(|| unwritable(&place))?;
        Ok(Some(place))
    }
}

fn unwritable(place: &Path) -> String {
    format!("can't write the prices to {}", place.display())
}

/// A row for each price.
fn rows(prices: &MachinePrices) -> Vec<Row> {
    let ns = |picoseconds: u64| picoseconds as f64 / 1e3;
    let row = |name: &str, price: u64, assumed: u64| {
        let row = Row::new(name, "ns").extra("picoseconds", price).measured(ns(price));
        row.note(format!("assumed without a measurement: {} ns", ns(assumed)))
    };
    let engine = prices.engine.measured().map(|(name, price)| {
        let row = row(name, price.median, EnginePrices::assumed(name));
        row.extra("least", ns(price.least)).extra("most", ns(price.most))
    });
    let assumed = RouterPrices::default();
    let programs = named_prices(&prices.router).zip(named_prices(&assumed));
    engine.chain(programs.map(|((name, price), (_, assumed))| row(name, price, assumed))).collect()
}
