//! `longwire demo`

mod criteria;
mod fairness;
mod fairness_traffic;
mod measured;
mod simulated;

use crate::stop_flag::stop_flag;
use crate::{Json, Outcome, outcome, verdict};
use anyhow::Context;
use criteria::LinkConfiguration;
use longwire_drivers::HostDriver;
use longwire_engine::Fidelity;
use longwire_lab::{abilities, enter_user_namespace};
use longwire_report::{Report, Row};
use longwire_run::real_run::{RealOptions, RealRun};
use longwire_run::run_report::fidelity_json;
use longwire_run::test_hosts::TestHosts;
use longwire_scenario::Plan;
use std::sync::atomic::{AtomicBool, Ordering};

/// The scenario of the demo.
const SCENARIO: &str = include_str!("../../../../../scenarios/demo.toml");
/// File name in its error messages.
const FILE: &str = "demo.toml";
const LINK: &str =
    "link between hosts a and b, the same each way: 10 Mbit/s, 20 ms, 2 % loss, a queue of 100 packets";
/// Beginning of the part of the scenario that real runs do not need.
const ONLY_VIRTUAL: &str = "# In virtual time";
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

/// Measurements of the demo.
struct DemoReport {
    mode: &'static str,
    rows: Vec<Row>,
    fidelity: Option<Fidelity>,
    errors: Vec<String>,
}

impl Args {
    /// Runs it and prints the result.
    ///
    /// # Errors
    /// If the hosts can't be made, or something between them fails.
    pub fn run(self) -> anyhow::Result<Outcome> {
        if self.scenario {
            let scenario = if self.what == Demo::Link { SCENARIO } else { fairness::SCENARIO };
            return outcome::print(scenario.trim_end()).map(|()| Outcome::Well);
        }
        if self.what == Demo::Fairness {
            return fairness::run(self.json.on, self.r#virtual);
        }
        let plan = longwire_scenario::parse(FILE, SCENARIO).context("the demo's own scenario")?;
        say(LINK);
        let mode = if self.r#virtual { Mode::Virtual("as requested".into()) } else { find_mode()? };
        let stop = stop_flag()?;
        let measured = match mode {
            Mode::Real(driver) => real(plan, driver, &stop),
            Mode::Virtual(reason) => {
                say(&format!("in virtual time, with traffic sources instead of programs: {reason}"));
                simulated(&plan)
            }
        };
        if stop.load(Ordering::Relaxed) {
            say("stopped; nothing is left behind");
            return Ok(Outcome::Status(130));
        }
        let measured = measured?;
        let report = measured.report();
        let outcome = outcome::print_report(&report, self.json.on)?;
        if !self.json.on {
            outcome::print(&measured.verdict())?;
            outcome::print(&format!("\nThe scenario was:\n{}\n{HINT}", indented_scenario()))?;
        }
        Ok(outcome)
    }
}

/// How the demo can run on this system.
enum Mode {
    /// On test hosts with this wiring.
    Real(HostDriver),
    /// Without any, for this reason.
    Virtual(String),
}

/// Enters a user namespace if test hosts are only possible there. Must be called before a second thread
/// starts.
fn find_mode() -> anyhow::Result<Mode> {
    let mut can = abilities();
    if !can.namespaces.available {
        if !can.user_namespaces.available {
            let reasons = format!("{}; {}", can.namespaces.reason, can.user_namespaces.reason);
            return Ok(Mode::Virtual(reasons));
        }
        enter_user_namespace()?;
        can = abilities();
    }
    Ok(Mode::Real(if can.tap.available { HostDriver::TAP } else { HostDriver::VETH }))
}

fn real(mut plan: Plan, driver: HostDriver, stop: &AtomicBool) -> anyhow::Result<DemoReport> {
    for host in &mut plan.hosts {
        host.driver = driver;
    }
    let link = LinkConfiguration::of(&plan);
    let name = format!("demo-{}", std::process::id());
    let hosts = TestHosts::make(&name, &plan)?;
    let run = RealRun::start(plan, hosts, RealOptions { name, ..RealOptions::default() })?;
    let lab = run.hosts().context("the demo's hosts")?.lab();
    let rows = measured::measure(lab.host("a")?, lab.host("b")?, &link, stop, &say);
    let counted = run.stop().counted;
    Ok(DemoReport {
        mode: "real",
        rows: rows?,
        fidelity: counted.fidelity.clone(),
        errors: counted.errors.clone(),
    })
}

fn simulated(plan: &Plan) -> anyhow::Result<DemoReport> {
    let (rows, fidelity) = simulated::run(plan)?;
    Ok(DemoReport { mode: "virtual", rows, fidelity, errors: Vec::new() })
}

/// A line of progress.
fn say(what: &str) {
    outcome::note(&format!("· {what}"));
}

/// The hosts and the link, without comments.
fn indented_scenario() -> String {
    let real = SCENARIO.split(ONLY_VIRTUAL).next().unwrap_or_default();
    let lines = real.lines().filter(|line| !line.starts_with('#'));
    let lines = lines.map(|line| if line.is_empty() { String::new() } else { format!("    {line}") });
    lines.collect::<Vec<_>>().join("\n").trim_end().trim_start_matches('\n').to_owned() + "\n"
}

impl DemoReport {
    fn report(&self) -> Report {
        let mut report = Report::new("demo")
            .with("mode", self.mode)
            .with("fidelity", self.fidelity.as_ref().map(fidelity_json));
        report.extend(self.rows.iter().cloned());
        for error in &self.errors {
            report.fail(error.as_str());
        }
        report
    }

    fn verdict(&self) -> String {
        match &self.fidelity {
            Some(fidelity) if self.mode == "real" => verdict::real(fidelity),
            Some(fidelity) => verdict::simulated(fidelity),
            None => "whether this was faithful is not known".to_owned(),
        }
    }
}
