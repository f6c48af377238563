//! `longwire bench`

use crate::outcome::print_report;
use crate::progress::Progress;
use crate::stop_flag::stop_flag;
use crate::{Json, Outcome, outcome};
use longwire_bench::Settings;
use longwire_report::Report;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Measure the performance of Longwire on this machine
///
/// Each row shows the target, the best run, and whether it reached the target; a note has the median and the
/// spread of the runs. Comparisons, and rows without a target, show the median. The machine should be idle
/// otherwise. Benches on real ports make their own test hosts, which needs root; without it their rows say
/// that they were not run.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  longwire bench
  longwire bench engine lateness
  longwire bench delay --runs 5 --json
  longwire bench peers
  longwire bench --quick

All of them take about 28 minutes.")]
pub struct Args {
    /// What to measure. Default: everything.
    #[arg(value_name = "NAME", value_parser = known_names())]
    names: Vec<String>,

    /// Number of repetitions, 1 to 100. Default: 1 to 300, by measurement.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100))]
    runs: Option<u32>,

    /// Measure shorter and once: a functional test, not a measurement of the machine.
    #[arg(long)]
    quick: bool,

    #[command(flatten)]
    json: Json,
}

fn known_names() -> clap::builder::PossibleValuesParser {
    let value = |(name, what)| clap::builder::PossibleValue::new(name).help(what);
    let all = ("all", "every one of them");
    clap::builder::PossibleValuesParser::new(longwire_bench::names().chain([all]).map(value))
}

impl Args {
    /// Runs the benches and prints the report.
    ///
    /// # Errors
    /// If standard output can't be written to.
    pub fn run(self) -> anyhow::Result<Outcome> {
        let stop = stop_flag()?;
        if cfg!(debug_assertions) {
            outcome::note("note: this is a debug build; measure with cargo build --release");
        }
        let progress = Progress::of_steps("bench");
        let chosen = self.chosen();
        let (all, begun) = (chosen.len(), AtomicUsize::new(0));
        let say = |what: &str| {
            progress.say(format!("{what} (bench {} of {all})", begun.load(Ordering::Relaxed)));
        };
        let settings = Settings { runs: self.runs, quick: self.quick, say: &say, stop: &stop };
        let mut report = Report::new(format!("bench {}", self.title())).with("quick", self.quick);
        for name in chosen.into_iter().take_while(|_| !stop.load(Ordering::Relaxed)) {
            begun.fetch_add(1, Ordering::Relaxed);
            report.extend(longwire_bench::run(name, &settings).unwrap_or_default());
        }
        if stop.load(Ordering::Relaxed) {
            report.fail("stopped before the end");
        }
        drop(progress);
        print_report(&report, self.json.on)
    }

    /// The requested benches, each once, in their own order.
    fn chosen(&self) -> Vec<&'static str> {
        let all = self.names.is_empty() || self.names.iter().any(|name| name == "all");
        let names = longwire_bench::names().map(|(name, _)| name);
        names.filter(|name| all || self.names.iter().any(|chosen| chosen == name)).collect()
    }

    fn title(&self) -> String {
        if self.names.is_empty() { "all".into() } else { self.names.join(" ") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: Args,
    }

    fn chosen(line: &[&str]) -> Vec<&'static str> {
        let line =
            Line::try_parse_from([&["bench"], line].concat()).unwrap_or_else(|error| panic!("{error}"));
        line.args.chosen()
    }

    #[test]
    fn benches_run_once_each_in_their_own_order() {
        assert_eq!(chosen(&["lateness", "engine", "lateness"]), ["engine", "lateness"]);
        assert_eq!(chosen(&[]), chosen(&["memory", "all"]));
        assert!(Line::try_parse_from(["bench", "nonsense"]).is_err());
        assert!(Line::try_parse_from(["bench", "--runs", "0"]).is_err());
    }
}
