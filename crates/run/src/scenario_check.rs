//! What a scenario needs of this machine, and what of it does not fit: the report of `check`.

use crate::absences::{Absence, absences};
use crate::capacity_rows;
use crate::objects::sources::why_silent;
use longwire_assemble::{Calibration, Capacity, Pricing, predict, price};
use longwire_prices::MachinePrices;
use longwire_report::{Report, Row};
use longwire_scenario::{Plan, Receiver};
use longwire_units::Bytes;

/// Most changes of a run that are listed.
const MOST_EVENTS: usize = 100;

/// The result of checking a scenario.
#[derive(Debug)]
pub struct ScenarioCheck {
    /// What it needs. It fails if something does not fit.
    pub report: Report,
    /// What is allowed, but may not be meant.
    pub notes: Vec<String>,
    /// What its ports need in a run, and is not here now.
    pub absences: Vec<Absence>,
    /// Changes during the run, by time.
    pub timeline: Vec<String>,
}

impl ScenarioCheck {
    /// Checks `plan` at `prices`, which are `from` a file or assumed. Links are full of frames of `frame`
    /// bytes without FCS.
    ///
    /// # Errors
    /// If the result can't be written as JSON.
    pub fn of(plan: &Plan, (prices, from): (&MachinePrices, &str), frame: Bytes) -> serde_json::Result<Self> {
        let mut report = Report::new("check").with("scenario", plan.file.as_str()).with("prices", from);
        let capacity = predict(plan, &prices.engine, frame);
        let pricing = priced(plan, &report, &capacity);
        let (silent, timeline) = (silent(plan), timeline(plan));
        report.set("capacity", serde_json::to_value(&capacity)?);
        report.set("pricing", serde_json::to_value(&pricing)?);
        report.set("hosts", plan.hosts.len());
        report.set("ports", plan.ports.len());
        report.set("routers", plan.routers.len());
        report.set("sources", plan.sources.len());
        report.set("sources_in_virtual_time_only", silent.len());
        report.set("control_planes", plan.control_planes().count());
        report.set("control_processes", processes(plan).len());
        report.set("events", timeline.clone());
        report.extend(rows(&pricing));
        report.extend(capacity_rows::rows(&capacity));
        for shortfall in pricing.shortfalls.iter().chain(&capacity.shortfalls) {
            report.fail(format!("{}: {}", shortfall.what, shortfall.fix));
        }
        let mut notes = clock_notes(plan, &silent);
        notes.extend(capacity_rows::notes(&capacity, from));
        let cores = u32::try_from(report.machine.cores).unwrap_or(u32::MAX);
        notes.extend(crowded(plan, cores));
        Ok(Self { report, notes, absences: absences(plan), timeline })
    }
}

/// Sources that send in virtual time only, and why.
fn silent(plan: &Plan) -> Vec<(&str, String)> {
    let each = plan.sources.iter();
    each.filter_map(|source| Some((&*source.name, why_silent(plan, source)?))).collect()
}

/// The expected control processes.
fn processes(plan: &Plan) -> Vec<&str> {
    let above = plan.forwarders.iter().filter_map(|planned| planned.request.above.as_ref());
    above.filter(|above| above.receiver == Receiver::Process).map(|above| &*above.name).collect()
}

/// What is there in real time only, or in virtual time only.
fn clock_notes(plan: &Plan, silent: &[(&str, String)]) -> Vec<String> {
    let mut notes = Vec::new();
    if let [(name, why), others @ ..] = silent {
        let more = if others.is_empty() { String::new() } else { format!(" (and {} more)", others.len()) };
        notes.push(format!("source \"{name}\" is {why}{more}"));
    }
    notes.extend(plan.control_planes().next().map(|router| {
        let what = "has a control plane: this scenario runs in real time only, and --virtual is refused";
        format!("router \"{}\" {what}", router.name)
    }));
    let processes = processes(plan);
    if !processes.is_empty() {
        let names = processes.join(", ");
        notes.push(format!(
            "control processes ({names}) are there in real time only: run --virtual refuses this scenario"
        ));
    }
    let refused = plan.routers.iter().filter_map(|router| router.not_in_real_time.as_ref());
    notes.extend(refused.map(|finding| format!("a run in real time refuses this: {finding}")));
    notes
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

/// A note on routers' processors that are threads in real time, if the machine has fewer cores than busy
/// threads. `cores` is 0 if unknown.
fn crowded(plan: &Plan, cores: u32) -> Option<String> {
    let each = plan.routers.iter().filter_map(|router| router.sharing.as_ref());
    let threads: u32 =
        each.map(|sharing| sharing.settings.processors).filter(|&processors| processors > 1).sum();
    let busy = threads + plan.engine.workers;
    (threads > 0 && cores > 0 && busy > cores).then(|| {
        format!(
            "in real time routers' processors are {threads} threads, beside {} of workers, and this machine \
             has {cores} cores: more threads process no more packets there",
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
