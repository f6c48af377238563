//! What a scenario needs of this machine, and what of it does not fit: the report of `check`.

use crate::absences::{Absence, absences};
use crate::objects::sources::why_silent;
use longwire_assemble::{Calibration, Capacity, PortLoad, Pricing, WorkerLoad, predict, price};
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
        report.extend(capacity_rows(&capacity));
        for shortfall in pricing.shortfalls.iter().chain(&capacity.shortfalls) {
            report.fail(format!("{}: {}", shortfall.what, shortfall.fix));
        }
        let mut notes = clock_notes(plan, &silent);
        notes.extend(capacity_notes(&capacity, from));
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

/// Most ports listed in the table; the JSON has all.
const MOST_PORTS: usize = 24;
/// Most names of prices listed in a note.
const MOST_NAMES: usize = 8;

/// Rows for workers, for the ports with the most expensive drivers, and for lateness.
fn capacity_rows(capacity: &Capacity) -> Vec<Row> {
    let mut rows = vec![packets(capacity)];
    rows.extend(capacity.workers.iter().map(worker));
    let mut ports: Vec<&PortLoad> = capacity.ports.iter().filter(|port| port.load_ppm > 0).collect();
    ports.sort_by_key(|port| std::cmp::Reverse(port.load_ppm));
    rows.extend(ports.into_iter().take(MOST_PORTS).map(port));
    let [p50, p99] = capacity.lateness.map(|late| late.0);
    rows.push(Row::new("expected lateness of packets, p50", "ns").measured(p50));
    rows.push(Row::new("expected lateness of packets, p99", "ns").measured(p99));
    rows
}

fn packets(capacity: &Capacity) -> Row {
    let row = Row::new("packets a second that come in", "packets/s");
    let frame = format!(
        "links are full of frames of {} bytes without FCS (--frame-bytes); sources send what they are set to",
        capacity.frame.0
    );
    match (capacity.packets_per_second, capacity.unbounded) {
        (0, true) => row.measured("unlimited").note("no link has a rate, and no source sends"),
        (packets, true) => row.measured(packets).note(frame).note("and packets on unbounded paths"),
        (packets, false) => row.measured(packets).note(frame),
    }
}

fn worker(worker: &WorkerLoad) -> Row {
    let row = Row::new(format!("worker {}, load", worker.worker), "%");
    let limit = format!(
        "{:.1} ns a packet: saturated at {} packets/s",
        worker.packet_picoseconds as f64 / 1e3,
        worker.saturated_at
    );
    let row = match (worker.packets_per_second, worker.unbounded) {
        (0, true) => row.measured("unlimited").note(limit),
        (packets, unbounded) => {
            let more = if unbounded { ", and unbounded packets" } else { "" };
            row.measured(percent(worker.load_ppm)).note(format!("{packets} packets/s{more}; {limit}"))
        }
    };
    if worker.in_flight == 0 {
        row
    } else {
        row.note(format!("{} packets on their way at once", worker.in_flight))
    }
}

fn port(port: &PortLoad) -> Row {
    let workers = match port.queues {
        1 => format!("worker {}", port.worker),
        queues => format!("workers {} to {} together", port.worker, port.worker + queues - 1),
    };
    Row::new(format!("port {} ({}), driver's part of {workers}", port.port, port.driver), "%")
        .measured(percent(port.load_ppm))
        .note(format!("{} packets/s in, {} out", port.received_per_second, port.sent_per_second))
}

/// Millionths as percent, in tenths.
fn percent(ppm: u64) -> f64 {
    (ppm as f64 / 1e3).round() / 10.0
}

/// Further notes; `from` is the source of the prices.
fn capacity_notes(capacity: &Capacity, from: &str) -> Vec<String> {
    let mut notes = Vec::new();
    if !capacity.measured {
        notes.push(
            "loads and lateness are computed from assumed prices; \"longwire calibrate\" \
            measures those of this machine"
                .into(),
        );
    } else if !capacity.assumed.is_empty() {
        let mut names = capacity.assumed.iter().take(MOST_NAMES).cloned().collect::<Vec<_>>().join(", ");
        if capacity.assumed.len() > MOST_NAMES {
            names += &format!(" and {} more", capacity.assumed.len() - MOST_NAMES);
        }
        notes.push(format!(
            "{from} has no price of {names}: assumed, or those of the most expensive block of the \
             stage; \"longwire calibrate\" measures ports as root"
        ));
    }
    notes.extend(capacity.notes.iter().cloned());
    notes
}

#[cfg(test)]
mod tests {
    use super::*;
    use longwire_prices::{EnginePrices, Price};

    fn capacity(link: &str, prices: &EnginePrices) -> Capacity {
        let port = |name: &str| format!("[[port]]\nname = \"{name}\"\ndriver = \"memory\"\n");
        let text = format!("{}{}[[link]]\nfrom = \"a\"\nto = \"b\"\n{link}", port("a"), port("b"));
        let plan = longwire_scenario::plan_of(&text);
        predict(&plan, prices, Bytes(1514))
    }

    #[test]
    fn unbounded_load_is_unlimited_and_has_its_limit() {
        let mut prices = EnginePrices::default();
        prices.set("packet", Price::exact(100_000));
        let text = |link: &str| format!("{:?}", capacity_rows(&capacity(link, &prices)));
        let unlimited = text("loss = \"1 %\"");
        assert!(unlimited.contains("unlimited") && unlimited.contains("saturated at"), "{unlimited}");
        let bounded = text("rate = \"1 Gbit/s\"");
        assert!(bounded.contains("frames of 1514 bytes") && !bounded.contains("unlimited"), "{bounded}");
    }

    #[test]
    fn assumed_prices_are_named_with_what_measures_them() {
        let none = capacity_notes(&capacity("", &EnginePrices::default()), "assumed");
        assert!(none[0].contains("longwire calibrate"), "{none:?}");
        let mut prices = EnginePrices::default();
        prices.set("packet", Price::exact(1));
        let some = capacity_notes(&capacity("queue = { kind = \"red\" }\nrate = \"1 Mbit/s\"", &prices), "p");
        assert!(some[0].contains("p has no price of block-queue-red"), "{some:?}");
    }
}
