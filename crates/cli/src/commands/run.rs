//! `longwire run`

use crate::port_files::{PortFile, PortFiles};
use crate::run_report::Ran;
use crate::virtual_run::simulate;
use crate::{Outcome, outcome};
use longwire_scenario::Plan;
use longwire_units::Nanos;
use serde_json::{Map, Value};
use std::path::PathBuf;

/// Run a scenario, in real time or in virtual time
///
/// In real time Longwire makes the scenario's test hosts, opens its interfaces and carries what the programs send. With
/// --virtual it runs on captures and on the scenario's traffic sources, as fast as the machine can, with exact times.
/// Either way it ends with a report: what each link and port carried and dropped, and how faithful that was.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  longwire run scenarios/two-hosts.toml --virtual
  longwire run scenarios/virtual-pcap.toml --virtual --input ground=in.pcap --output space=out.pcapng
  longwire run scenarios/dumbbell.toml --virtual --for 1s --json")]
pub struct Args {
    /// The scenario file.
    scenario: PathBuf,

    /// Use the simulated clock: nothing of the machine but files is touched.
    #[arg(long)]
    r#virtual: bool,

    /// End after this time: 10s, 500ms. Without it a run in virtual time goes on until nothing is left to happen.
    #[arg(long = "for", value_name = "TIME")]
    time: Option<Nanos>,

    /// Take what comes in by PORT from a capture (pcap or pcapng); repeatable. All inputs count from the earliest's
    /// first frame.
    #[arg(long = "input", value_name = "PORT=FILE")]
    inputs: Vec<PortFile>,

    /// Write what goes out by PORT to a capture (pcapng if its name ends so, else pcap); repeatable.
    #[arg(long = "output", value_name = "PORT=FILE")]
    outputs: Vec<PortFile>,

    /// Print JSON.
    #[arg(long)]
    json: bool,
}

impl Args {
    /// Runs it and prints the report.
    ///
    /// # Errors
    /// A mistake in the scenario, files that can't be used, a full packet pool.
    pub fn run(self) -> anyhow::Result<Outcome> {
        let plan = longwire_scenario::load(&self.scenario)?;
        outcome::print_notes(&plan);
        self.run_virtual(&plan)
    }

    fn run_virtual(&self, plan: &Plan) -> anyhow::Result<Outcome> {
        let files = PortFiles::new(plan, &self.inputs, &self.outputs)?;
        let run = simulate(plan, &files, self.time)?;
        let settings = |place: usize| settings_of(plan, place);
        let (counted, watches, elapsed) = (run.counted, run.watches, run.elapsed);
        let ran = Ran { plan, counted, watches, mode: "virtual", elapsed, settings: &settings };
        self.finish(&ran)
    }

    fn finish(&self, ran: &Ran<'_>) -> anyhow::Result<Outcome> {
        let report = ran.report();
        if self.json {
            return outcome::print_report(&report, true);
        }
        ran.print(&report, &mut std::io::stdout().lock())?;
        Ok(Outcome::of(report.pass))
    }
}

/// What a link's scenario says it is.
fn settings_of(plan: &Plan, place: usize) -> Map<String, Value> {
    let blocks = plan.profile(place).blocks.iter().flat_map(|(spec, values)| {
        spec.params.iter().zip(values.as_slice()).enumerate().map(|(index, (param, value))| {
            let key = if index == 0 { spec.key.to_owned() } else { format!("{}.{}", spec.key, param.name) };
            (key, value.print(param.kind).into())
        })
    });
    blocks.collect()
}
