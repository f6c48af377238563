//! `longwire check`

use crate::{Json, Outcome, outcome};
use longwire_assemble::{Calibration, Capacity, Pricing, predict, price};
use longwire_prices::{MachinePrices, own_prices, prices_of};
use longwire_report::{Report, Row};
use longwire_run::capacity_rows;
use longwire_run::fitted::fit_pool;
use longwire_run::objects::sources::why_silent;
use longwire_scenario::{Plan, Receiver};
use longwire_units::Bytes;
use std::path::{Path, PathBuf};

/// Most events printed.
const MOST_EVENTS: usize = 100;

/// Check a scenario and report what does not fit on this machine
///
/// Reads the scenario, reports every mistake with its place and fix, and predicts the load if every link is
/// full and every source sends: of each worker and each port's driver, the lateness of packets, and memory
/// for links, packets in flight and waiting packets. Prices are those that `longwire calibrate` measured on
/// this machine, if any.
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
        let silent =
            plan.sources.iter().filter_map(|source| Some((&source.name, why_silent(&plan, source)?)));
        let silent = silent.collect::<Vec<_>>();
        let processes: Vec<&str> = processes(&plan).collect();
        let (prices, from) = self.prices()?;
        let mut report =
            Report::new("check").with("scenario", plan.file.as_str()).with("prices", from.as_str());
        let capacity = predict(&plan, &prices.engine, Bytes(self.frame_bytes));
        let pricing = priced(&plan, &report, &capacity);
        report.set("capacity", serde_json::to_value(&capacity)?);
        report.set("pricing", serde_json::to_value(&pricing)?);
        report.set("hosts", plan.hosts.len());
        report.set("ports", plan.ports.len());
        report.set("routers", plan.routers.len());
        report.set("sources", plan.sources.len());
        report.set("sources_in_virtual_time_only", silent.len());
        report.set("control_planes", plan.control_planes().count());
        report.set("control_processes", processes.len());
        report.set("events", timeline(&plan));
        report.extend(rows(&pricing));
        report.extend(capacity_rows::rows(&capacity));
        for shortfall in pricing.shortfalls.iter().chain(&capacity.shortfalls) {
            report.fail(format!("{}: {}", shortfall.what, shortfall.fix));
        }
        let checked = outcome::print_report(&report, self.json.on)?;
        if !self.json.on && !silent.is_empty() {
            let more =
                if silent.len() > 1 { format!(" (and {} more)", silent.len() - 1) } else { String::new() };
            let (name, why) = &silent[0];
            outcome::note(&format!("note: source \"{name}\" is {why}{more}"));
        }
        if !self.json.on
            && let Some(router) = plan.control_planes().next()
        {
            let what = "has a control plane: this scenario runs in real time only, and --virtual is refused";
            outcome::note(&format!("note: router \"{}\" {what}", router.name));
        }
        if !self.json.on && !processes.is_empty() {
            let names = processes.join(", ");
            outcome::note(&format!(
                "note: control processes ({names}) are there in real time only: run --virtual refuses this \
                 scenario"
            ));
        }
        if !self.json.on {
            let refused = plan.routers.iter().filter_map(|router| router.not_in_real_time.as_ref());
            refused.for_each(|finding| {
                outcome::note(&format!("note: a run in real time refuses this: {finding}"));
            });
        }
        if !self.json.on {
            capacity_rows::notes(&capacity, &from).iter().for_each(|note| outcome::note(note));
        }
        let cores = u32::try_from(report.machine.cores).unwrap_or(u32::MAX);
        if !self.json.on
            && let Some(note) = crowded(&plan, cores)
        {
            outcome::note(&note);
        }
        let timeline = timeline(&plan);
        if !self.json.on && !timeline.is_empty() {
            outcome::print(&format!("\n{}", timeline.join("\n")))?;
        }
        Ok(checked)
    }

    /// The selected prices, and their source.
    fn prices(&self) -> anyhow::Result<(MachinePrices, String)> {
        let here = Path::new("");
        if let Some(meant) = &self.prices {
            let prices = prices_of(meant, here).map_err(|why| anyhow::anyhow!("--prices: {why}"))?;
            return Ok((prices, meant.clone()));
        }
        let Some(place) = own_prices().filter(|place| place.exists()) else {
            return Ok((MachinePrices::default(), "assumed".into()));
        };
        match prices_of("calibrated", here) {
            Ok(prices) => Ok((prices, place.display().to_string())),
            Err(why) => {
                outcome::note(&format!("note: {why}"));
                Ok((MachinePrices::default(), "assumed".into()))
            }
        }
    }
}

/// Memory needs, at the predicted packet rate of the workers.
fn priced(plan: &Plan, report: &Report, capacity: &Capacity) -> Pricing {
    let machine = &report.machine;
    let carried = capacity.workers.iter().map(|worker| worker.saturated_at).sum();
    let calibration = Calibration {
        memory: (machine.memory_bytes > 0).then_some(Bytes(machine.memory_bytes)),
        processors: u32::try_from(machine.cores).ok().filter(|&cores| cores > 0),
        frame: capacity.frame,
        capacity: Some(carried),
        ..Calibration::default()
    };
    price(plan, &calibration)
}

/// The expected control processes.
fn processes(plan: &Plan) -> impl Iterator<Item = &str> {
    let above = plan.forwarders.iter().filter_map(|planned| planned.request.above.as_ref());
    above.filter(|above| above.receiver == Receiver::Process).map(|above| &*above.name)
}

/// A note on routers' processors that are threads in real time, if the machine has fewer cores than busy
/// threads. `cores` is 0 if unknown.
fn crowded(plan: &Plan, cores: u32) -> Option<String> {
    let each = plan.routers.iter().filter_map(|router| router.sharing.as_ref());
    let threads: u32 =
        each.map(|sharing| sharing.settings.processors).filter(|&processors| processors > 1).sum();
    let busy = threads + plan.engine.workers;
    (threads > 0 && cores > 0 && busy > cores).then(|| {
        format!(
            "note: in real time routers' processors are {threads} threads, beside {} of workers, and this \
             machine has {cores} cores: more threads process no more packets there",
            plan.engine.workers
        )
    })
}

/// Changes during the run, by time.
fn timeline(plan: &Plan) -> Vec<String> {
    let of_links = plan.events.iter().map(|event| (event.time, event.describe(plan)));
    let of_routers = plan.router_events.iter().map(|event| (event.time, event.describe(&plan.routers)));
    let mut events: Vec<_> = of_links.chain(of_routers).collect();
    events.sort_by_key(|(time, _)| *time);
    let told = events.iter().take(MOST_EVENTS).map(|(time, what)| format!("at {time}  {what}"));
    let mut lines: Vec<_> = told.collect();
    if events.len() > MOST_EVENTS {
        lines.push(format!("and {} more", events.len() - MOST_EVENTS));
    }
    lines
}

/// Rows for memory needs.
fn rows(pricing: &Pricing) -> Vec<Row> {
    let queues = Row::new("memory for packets in queues, at most", "bytes");
    let mut rows = vec![
        Row::new("links", "").measured(pricing.links),
        Row::new("links that a packet passes, on average", "").measured(pricing.hops),
        Row::new("memory for links and rules", "bytes").measured(pricing.link_memory.0),
        Row::new("memory for packets (engine.pool)", "bytes").measured(pricing.pool.0),
        Row::new("memory for packets in delay lines, at most", "bytes").measured(pricing.delay_lines.0),
        match pricing.queues {
            Some(bytes) => queues.measured(bytes.0),
            None => queues.measured("unlimited").note(
                "a queue without a limit can fill any pool; give it one, as in queue = \"1000 \
                    packets\", if that is not meant",
            ),
        },
    ];
    if pricing.routers > 0.0 {
        rows.insert(2, Row::new("routers that a packet passes, on average", "").measured(pricing.routers));
        rows.insert(3, Row::new("routes of routers", "").measured(pricing.routes));
    }
    rows
}
