//! A link of 10 Mbit/s, 20 ms and 2 % loss between two hosts, and the configured values beside the measured
//! ones.

use crate::criteria::LinkConfiguration;
use crate::{Mode, REAL, VIRTUAL, measured, say, say_virtual, simulated};
use anyhow::Context;
use longwire_drivers::HostDriver;
use longwire_engine::Fidelity;
use longwire_report::{Report, Row};
use longwire_run::real_run::{RealOptions, RealRun};
use longwire_run::run_report::fidelity_json;
use longwire_run::test_hosts::TestHosts;
use longwire_run::verdict;
use longwire_scenario::Plan;
use std::sync::atomic::AtomicBool;

/// The scenario.
pub const SCENARIO: &str = include_str!("../../../scenarios/demo.toml");
/// File name in its error messages.
const FILE: &str = "demo.toml";
const LINK: &str =
    "link between hosts a and b, the same each way: 10 Mbit/s, 20 ms, 2 % loss, a queue of 100 packets";
/// Beginning of the part of the scenario that real runs do not need.
const ONLY_VIRTUAL: &str = "# In virtual time";

/// What was measured.
#[derive(Debug)]
pub struct LinkDemo {
    mode: &'static str,
    rows: Vec<Row>,
    fidelity: Option<Fidelity>,
    errors: Vec<String>,
}

impl LinkDemo {
    /// Runs it until it is complete, or `stop` is set.
    ///
    /// # Errors
    /// If the hosts can't be made, or something between them fails.
    pub fn run(mode: Mode, stop: &AtomicBool) -> anyhow::Result<Self> {
        let plan = longwire_scenario::parse(FILE, SCENARIO).context("the demo's own scenario")?;
        say(LINK);
        match mode {
            Mode::Real(driver) => real(plan, driver, stop),
            Mode::Virtual(reason) => {
                say_virtual(&reason);
                let (rows, fidelity) = simulated::run(&plan)?;
                Ok(Self { mode: VIRTUAL, rows, fidelity, errors: Vec::new() })
            }
        }
    }

    /// How faithful the run was, in words.
    pub fn verdict(&self) -> String {
        match &self.fidelity {
            Some(fidelity) if self.mode == REAL => verdict::real(fidelity),
            Some(fidelity) => verdict::simulated(fidelity),
            None => "whether this was faithful is not known".to_owned(),
        }
    }

    /// The configured values beside the measured ones.
    pub fn report(&self) -> Report {
        let mut report = Report::new("demo")
            .with("mode", self.mode)
            .with("fidelity", self.fidelity.as_ref().map(fidelity_json))
            .with_rows(self.rows.iter().cloned());
        for error in &self.errors {
            report.fail(error.as_str());
        }
        report
    }
}

fn real(mut plan: Plan, driver: HostDriver, stop: &AtomicBool) -> anyhow::Result<LinkDemo> {
    plan.hosts.iter_mut().for_each(|host| host.driver = driver);
    let link = LinkConfiguration::of(&plan);
    let name = format!("demo-{}", std::process::id());
    let hosts = TestHosts::make(&name, &plan)?;
    let run = RealRun::start(plan, hosts, RealOptions { name, ..RealOptions::default() })?;
    let lab = run.hosts().context("the demo's hosts")?.lab();
    let rows = measured::measure(lab.host("a")?, lab.host("b")?, &link, stop);
    let counted = run.stop().counted;
    let (fidelity, errors) = (counted.fidelity.clone(), counted.errors.clone());
    Ok(LinkDemo { mode: REAL, rows: rows?, fidelity, errors })
}

/// The hosts and the link, without comments, as text to be shown.
pub fn indented_scenario() -> String {
    let real = SCENARIO.split(ONLY_VIRTUAL).next().unwrap_or_default();
    let lines = real.lines().filter(|line| !line.starts_with('#'));
    let lines = lines.map(|line| if line.is_empty() { String::new() } else { format!("    {line}") });
    lines.collect::<Vec<_>>().join("\n").trim_end().trim_start_matches('\n').to_owned() + "\n"
}
