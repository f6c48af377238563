//! `longwire validate`

use crate::progress::Progress;
use crate::stop_flag::stop_flag;
use crate::usage::choice;
use crate::{Json, Outcome, outcome};
use anyhow::Context;
use longwire_report::{Report, whole_file};
use longwire_validate::{Driver, Findings, Paper, Settings, html, print_table, run};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

/// Compare the tables and figures of a paper with Longwire's own values
///
/// Each row shows the paper's value, the configured one, the measured one, and whether it passes. On real
/// ports test hosts are made, as root or in a user namespace; with --virtual the same traffic runs on the
/// virtual clock, where results are exact. A row that was not run says why. The exit status is 1 if a row
/// failed.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  longwire validate linkem
  longwire validate linkem --virtual
  longwire validate linkem --only \"table 5.3\" --driver af_xdp
  longwire validate osaka --quick --html report.html
  longwire validate osaka --list
  longwire validate linkem --only \"table 5.6\" --seed 2718
  longwire validate cbcs --html cbcs.html
  longwire validate princeton --html princeton.html

On real ports linkem takes about a quarter of an hour, osaka about five minutes; princeton, from memory to \
memory, about four; cbcs always runs in virtual time, in less than a minute. Let the machine do nothing else \
meanwhile.")]
pub struct Args {
    /// The paper.
    #[arg(value_name = "PAPER",
        value_parser = choice(PAPERS.map(|(paper, help)| (paper.name(), paper, help))))]
    paper: Paper,

    /// The driver of Longwire's ports.
    #[arg(long, value_name = "DRIVER", default_value = "af_packet", conflicts_with = "simulate",
        value_parser = choice(DRIVERS.map(|(driver, help)| (driver.name(), driver, help))))]
    driver: Driver,

    /// Run in virtual time: exact, without privileges; rows about speed and real TCP are not run.
    #[arg(long = "virtual")]
    simulate: bool,

    /// Run shorter, with fewer packets: a functional test, not a precise one.
    #[arg(long)]
    quick: bool,

    /// Run as long as the papers, if that is longer: TCP for 120 s, losses of 120 000 packets for each seed.
    #[arg(long, conflicts_with = "quick")]
    full: bool,

    /// Seed of losses: the same number gives the same losses. Default: a random seed for each run, which is
    /// printed.
    #[arg(long, value_name = "NUMBER")]
    seed: Option<u64>,

    /// Run only rows whose names contain this text, ignoring case; may be given several times.
    #[arg(long, value_name = "TEXT")]
    only: Vec<String>,

    /// List the rows without running any.
    #[arg(long)]
    list: bool,

    #[command(flatten)]
    json: Json,

    /// Write a self-contained HTML report with figures to this file.
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

const PAPERS: [(Paper, &str); 4] = [
    (Paper::Linkem, "Link emulation: bandwidth, delay, loss, forwarding, multiplexed links (Utah, 2004)"),
    (Paper::Osaka, "Network emulation: cost of tail drop and RED, ports, input rate, loss (Osaka)"),
    (
        Paper::Cbcs,
        "Sharing processors and ports: CBCS compared with separate DRR and later schedulers (UNSW, 2005)",
    ),
    (
        Paper::Princeton,
        "An extensible router: queues, levels, programs, installing, robustness (Princeton, 2001)",
    ),
];

const DRIVERS: [(Driver, &str); 3] = [
    (Driver::Tap, "TAP interfaces with the virtio header"),
    (Driver::AfPacket, "Packet sockets on veth pairs"),
    (Driver::AfXdp, "AF_XDP on veth pairs"),
];

impl Args {
    /// Reproduces the paper and prints the report.
    ///
    /// # Errors
    /// If standard output or the HTML file can't be written to: the file is tried before the measurements.
    pub fn run(mut self) -> anyhow::Result<Outcome> {
        let paper = self.paper;
        self.simulate |= paper.is_virtual();
        if let Some(file) = self.html.as_deref().filter(|_| !self.list) {
            whole_file::check(file).with_context(|| unwritable(file))?;
        }
        if !self.simulate && !self.list && paper.has_hosts() {
            enter_private_world()?;
        }
        let stop = stop_flag()?;
        let seed = self.seed.unwrap_or_else(drawn_seed);
        if cfg!(debug_assertions) && !self.simulate && !self.list {
            outcome::note("note: this is a debug build; measure with cargo build --release");
        }
        let progress = Progress::of_steps("validate");
        let say = |what: &str| progress.say(what);
        let settings = Settings {
            driver: self.driver,
            simulate: self.simulate,
            quick: self.quick,
            full: self.full,
            seed,
            only: &self.only,
            list: self.list,
            say: &say,
            stop: &stop,
        };
        self.seed = Some(seed);
        let findings = run(paper, &settings);
        drop(progress);
        if self.list && !self.json.on {
            let names: Vec<_> = findings.rows.iter().map(|row| row.name.as_str()).collect();
            return outcome::print(&names.join("\n"));
        }
        anyhow::ensure!(
            findings.matched,
            "no row's name contains {}; `longwire validate {} --list` names them",
            self.only.iter().map(|text| format!("\"{text}\"")).collect::<Vec<_>>().join(" or "),
            paper.name()
        );
        let mut report = self.report(&findings, stop.load(Ordering::Relaxed));
        let mut ended = Outcome::of(report.pass);
        if let Some(file) = &self.html
            && let Err(why) = std::fs::write(file, html::page(paper.title(), &report, &findings.plots))
        {
            // What was measured is not lost.
            let fault = format!("{}: {why}", unwritable(file));
            outcome::note(&format!("error: {fault}"));
            report.fail(fault);
            ended = Outcome::Status(2);
        }
        if self.json.on {
            outcome::print(&report.to_json())?;
        } else {
            outcome::print_with(|out| print_table(&report, out))?;
        }
        Ok(ended)
    }

    fn report(&self, findings: &Findings, stopped: bool) -> Report {
        let paper = self.paper;
        let mode = if self.simulate { "virtual" } else { "real" };
        let mut report = Report::new(format!("validate {}", paper.name()))
            .with("paper", paper.title())
            .with("mode", mode)
            .with("quick", self.quick);
        if !self.simulate && paper.has_hosts() {
            report.set("driver", self.driver.name());
        }
        if let Some(seed) = self.seed {
            report.set("seed", seed);
        }
        if self.full {
            report.set("full", true);
        }
        if !findings.summary.is_empty() {
            report.set("summary", findings.summary.clone());
        }
        report.extend(findings.rows.iter().cloned());
        if stopped {
            report.fail("stopped before the end");
        }
        report
    }
}

fn unwritable(file: &Path) -> String {
    format!("can't write the report to {}", file.display())
}

/// A random seed, short enough to type: the keys of standard hash maps come from the system's random
/// generator.
fn drawn_seed() -> u64 {
    RandomState::new().build_hasher().finish() >> 32
}

/// Enters a user namespace if test hosts are only possible there; if they are impossible, rows say so. Must
/// be called before a second thread starts.
fn enter_private_world() -> anyhow::Result<()> {
    let can = longwire_lab::abilities();
    if !can.namespaces.available && can.user_namespaces.available {
        longwire_lab::enter_user_namespace()?;
    }
    if let Err(error) = longwire_lab::sweep() {
        // Remains of killed runs stay; rows that need hosts report whether they can run.
        outcome::note(&format!("note: {error}"));
    }
    Ok(())
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

    fn read(line: &[&str]) -> Result<Args, clap::Error> {
        Line::try_parse_from([&["validate"], line].concat()).map(|line| line.args)
    }

    #[test]
    fn rows_are_chosen_by_their_names() {
        let args = read(&["linkem", "--only", "5.3", "--only", "tick", "--driver", "af_xdp"]).unwrap();
        assert_eq!((args.only.len(), args.driver), (2, Driver::AfXdp));
        assert!(read(&["princetown"]).is_err() && read(&[]).is_err());
        assert!(read(&["osaka", "--virtual", "--driver", "tap"]).is_err(), "virtual time has no driver");
    }

    #[test]
    fn the_report_says_how_it_was_made() {
        let args = read(&["osaka", "--virtual", "--quick"]).unwrap();
        let findings = Findings { rows: Vec::new(), plots: Vec::new(), matched: true, summary: Vec::new() };
        let report = args.report(&findings, true);
        assert_eq!((&report.extra["mode"], &report.extra["quick"]), (&"virtual".into(), &true.into()));
        assert!(!report.pass && !report.extra.contains_key("driver"));
        let args = read(&["osaka", "--seed", "7", "--full"]).unwrap();
        let findings = Findings { summary: vec!["x".into()], ..findings };
        let report = args.report(&findings, false);
        assert_eq!((&report.extra["seed"], &report.extra["full"]), (&7.into(), &true.into()));
        assert_eq!(report.extra["summary"][0], "x");
        assert!(read(&["osaka", "--quick", "--full"]).is_err());
        assert!((0..10).any(|_| drawn_seed() != drawn_seed()), "each run draws anew");
    }
}
