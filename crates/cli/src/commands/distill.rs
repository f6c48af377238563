//! `longwire distill`

use crate::inputs::keep_inputs;
use crate::{Json, Outcome, outcome};
use anyhow::Context;
use longwire_distill::{Assumptions, Capture, Clocks, Level, Selection, distill, rows, scenario};
use longwire_expression::Expression;
use longwire_report::Report;
use longwire_units::{Nanos, Probability};
use std::fs::File;
use std::path::{Path, PathBuf};

/// Make a scenario from a measured path
///
/// Compares a capture from the sender's end of a path with one from the receiver's end, and writes a scenario
/// with a link like the path: rate, queue limit, loss, duplicates, reordering and delay, each with its
/// interval as a comment. What the captures do not determine is left out, and the comment says so.
#[derive(Debug, clap::Args)]
#[command(mut_arg("json", |json| json.help("Print JSON: the scenario, and a row for each estimate")))]
#[command(after_long_help = "\
Examples:
  longwire distill sent.pcap received.pcap
  longwire distill sent.pcap received.pcap --output path.toml
  longwire distill sent.pcap received.pcap --filter 'udp and src host 192.0.2.1' --json
  longwire distill sent.pcapng received.pcapng --two-clocks --delay 12ms --level 99%

Without --output and --json the scenario is printed.")]
pub struct Args {
    /// Capture at the sender, pcap or pcapng of Ethernet frames.
    sent: PathBuf,

    /// Capture at the receiver.
    received: PathBuf,

    /// Write the scenario to a file, and print a table.
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,

    /// The captures have two clocks: estimate offset and drift, and take the least delay as 0.
    #[arg(long)]
    two_clocks: bool,

    /// The least delay of the path, which two clocks do not show, up to 100 s.
    #[arg(long, value_name = "TIME", requires = "two_clocks", value_parser = least_delay)]
    delay: Option<Nanos>,

    /// Use packets that match this pcap-filter expression.
    #[arg(long, value_name = "EXPRESSION", value_parser = filter)]
    filter: Option<Expression>,

    /// Confidence of intervals, 50 % to 99.9999 %. Default: 95 %.
    #[arg(long, value_name = "SHARE", value_parser = level)]
    level: Option<Level>,

    #[command(flatten)]
    json: Json,
}

fn least_delay(text: &str) -> Result<Nanos, String> {
    let delay: Nanos = text.parse().map_err(|error| format!("{error}"))?;
    if delay <= Nanos::from_secs(100) { Ok(delay) } else { Err("give at most 100 s".into()) }
}

fn filter(text: &str) -> Result<Expression, String> {
    Expression::parse(text).map_err(|error| error.to_string())
}

fn level(text: &str) -> Result<Level, String> {
    let share: Probability = text.parse().map_err(|error| format!("{error}"))?;
    Level::new(share.as_f64()).ok_or_else(|| "give a share from 50 % to 99.9999 %".into())
}

impl Args {
    /// Distils the path, and prints or writes the scenario.
    ///
    /// # Errors
    /// If a capture can't be read, the two have no packets in common, or the scenario can't be written: it
    /// never is over a capture.
    pub fn run(self) -> anyhow::Result<Outcome> {
        keep_inputs(&self.output, &[&*self.sent, &*self.received])?;
        let [sent, received] = self.captures()?;
        let assumptions = Assumptions {
            clocks: if self.two_clocks { Clocks::Two } else { Clocks::One },
            least_delay: self.delay,
            level: self.level.unwrap_or(Level::DEFAULT),
        };
        let found = distill(&sent, &received, assumptions)?;
        let names = [&self.sent, &self.received].map(|path| path.display().to_string());
        let text = scenario(&found, &names[0], &names[1]);
        if let Some(file) = &self.output {
            std::fs::write(file, &text)
                .with_context(|| format!("the scenario can't be written to {}", file.display()))?;
        }
        let report = Report::new("distill")
            .with("sent_file", &*names[0])
            .with("received_file", &*names[1])
            .with("scenario", text)
            .with("level", assumptions.level.share())
            .with_rows(rows(&found));
        for (name, capture) in names.iter().zip([&sent, &received]) {
            if let Some(damage) = &capture.damage {
                outcome::note(&format!("note: {name}: {damage}; the good packets are used"));
            }
            if capture.backwards > 0 {
                outcome::note(&format!("note: {name}: {} packets were not in order", capture.backwards));
            }
        }
        if self.json.on || self.output.is_some() {
            return outcome::print_report(&report, self.json.on);
        }
        outcome::print(report.extra["scenario"].as_str().unwrap_or_default().trim_end())
    }

    /// Reads both captures. If one has cut frames, packets are identified by as many bytes as all have.
    fn captures(&self) -> anyhow::Result<[Capture; 2]> {
        let read = |path: &Path, most_bytes| -> anyhow::Result<Capture> {
            let file = path.display();
            let opened = File::open(path).with_context(|| format!("{file} can't be read"))?;
            let selection = Selection { filter: self.filter.as_ref(), most_bytes };
            Capture::read(opened, selection).with_context(|| file.to_string())
        };
        let both = [read(&self.sent, usize::MAX)?, read(&self.received, usize::MAX)?];
        match both.iter().filter_map(|capture| capture.shortest_cut).min() {
            Some(shortest) => Ok([read(&self.sent, shortest)?, read(&self.received, shortest)?]),
            None => Ok(both),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_checked() {
        assert_eq!(least_delay("12ms"), Ok(Nanos::from_millis(12)));
        assert!(least_delay("101 s").is_err() && least_delay("x").is_err());
        assert!(level("99 %").is_ok_and(|level| (level.share() - 0.99).abs() < 1e-9));
        assert!(level("100 %").is_err() && level("x").is_err());
        assert!(filter("udp").is_ok() && filter("udp prot 1").is_err());
    }
}
