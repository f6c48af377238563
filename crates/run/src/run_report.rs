//! The report at the end of a run. `report_text` prints it.

use crate::objects::settings::Settings;
use crate::objects::sources::why_silent;
use crate::replay_port::PortWatch;
use crate::router_rows::{self, in_order, is_far_side, level_rows, router_row};
use crate::verdict::is_judged;
use longwire_block::Underlay;
use longwire_control::Kind;
use longwire_engine::{
    Fidelity, JudgedWindow, LinkReport, NodeReport, PortReport, Quantiles, TunnelRecord, WindowVerdicts,
    WorkerReport,
};
use longwire_link::LinkStats;
use longwire_port::driver::source::{DelayHistogram, ReceivedCounters, SentCounters};
use longwire_report::{Report, Row, shown};
use longwire_scenario::{Plan, Source};
use longwire_units::Nanos;
use serde_json::{Map, Value, json};
use std::sync::Arc;

/// Most links with rows: those that carried most.
const MOST_ROWS: usize = 10_000;

/// A number in the row of a link, and its name there.
type LinkCount = (&'static str, fn(&LinkStats) -> u64);

/// The numbers in the row of a link, except for its rate.
pub(crate) const LINK_COUNTS: [LinkCount; 15] = [
    ("in_packets", |stats| stats.in_packets),
    ("in_bytes", |stats| stats.in_bytes),
    ("out_packets", |stats| stats.out_packets),
    ("out_bytes", |stats| stats.out_bytes),
    ("made_packets", |stats| stats.made_packets),
    ("consumed_packets", |stats| stats.consumed_packets),
    ("steered_packets", |stats| stats.steered_packets),
    ("marked_packets", |stats| stats.marked_packets),
    ("corrupted_packets", |stats| stats.corrupted_packets),
    ("collisions", |stats| stats.collisions),
    ("queued_packets", |stats| stats.queued_packets),
    ("queued_bytes", |stats| stats.queued_bytes),
    ("travelling_packets", |stats| stats.travelling_packets),
    ("late_packets", |stats| stats.late_packets),
    ("max_late_ns", |stats| stats.max_late.0),
];

/// The result of a run in real time.
pub struct ReportInput<'a> {
    /// The plan that was run.
    pub plan: Arc<Plan>,
    /// The engine's counters.
    pub counted: Arc<longwire_engine::Report>,
    /// What is left of ports without an interface, by place in the plan.
    pub watches: Vec<Option<PortWatch>>,
    /// `real` or `virtual`.
    pub mode: &'static str,
    /// Duration on its own clock.
    pub elapsed: Nanos,
    /// Settings of a link at the end, by place in the plan.
    pub settings: Box<dyn Fn(usize) -> Settings + 'a>,
    /// Ports to which changes have directed a source, by its place in the plan.
    pub aims: Box<dyn Fn(usize) -> Vec<u16> + 'a>,
    /// A row for each control plane of a router.
    pub planes: Vec<Row>,
    /// A row for each program of a router.
    pub programs: Vec<Row>,
    /// The row of NESP, if it is on.
    pub nesp: Option<Row>,
}

/// A traffic source's sent packets, and the received ones unless they went to a host or interface.
struct SourceDelivery<'a> {
    source: &'a Source,
    sent: SentCounters,
    received: Option<ReceivedCounters>,
    delays: DelayHistogram,
    /// Why it did not run, if so.
    silent: Option<String>,
}

impl ReportInput<'_> {
    /// Builds the report.
    pub fn report(&self) -> Report {
        let counted = &self.counted;
        let mut report = Report::new("run")
            .with("mode", self.mode)
            .with("scenario", self.plan.file.as_str())
            .with("elapsed_ns", self.elapsed.0)
            .with("fidelity", counted.fidelity.as_ref().map(fidelity_json))
            .with("window", counted.window.as_ref().map(window_json))
            .with("flow", serde_json::to_value(&counted.flow).unwrap_or_default())
            .with("workers", counted.workers.iter().map(worker_json).collect::<Vec<_>>())
            .with("pool", json!({ "peak_bytes": counted.pool_peak, "bytes": counted.pool_capacity }))
            .with("links", self.plan.links.len())
            .with("made_by_links", self.over_links(|stats| stats.made_packets))
            .with("consumed_by_links", self.over_links(|stats| stats.consumed_packets))
            .with("held", self.held())
            .with("dropped", by_reason(&self.dropped()));
        let delivered = (0..self.plan.sources.len()).filter_map(|place| self.delivered_of(place));
        report.extend(delivered.map(|delivered| source_row(&delivered)));
        report.extend(busiest(&counted.links).into_iter().map(|link| self.link_row(link)));
        let ports = counted.ports.iter().filter(|port| !is_far_side(&self.plan, port.place));
        report.extend(ports.map(|port| self.port_row(port)));
        report.extend(in_order(&self.plan, counted).into_iter().map(|node| router_row(&self.plan, node)));
        report.extend(self.programs.iter().cloned());
        report.extend(self.planes.iter().cloned());
        report.extend(self.nesp.iter().cloned());
        report
            .extend(in_order(&self.plan, counted).into_iter().flat_map(|node| level_rows(&self.plan, node)));
        report.push(self.conservation_row());
        for (at, error) in counted.errors.iter().enumerate() {
            // A port's fault may also be that of its end.
            if !counted.errors[..at].contains(error) {
                report.fail(error.as_str());
            }
        }
        report
    }

    /// The row of a source, a port or a router.
    pub(crate) fn row_of(&self, kind: Kind, name: &str) -> Option<Row> {
        match kind {
            Kind::Source => {
                let place = self.plan.sources.iter().position(|source| &*source.name == name)?;
                Some(source_row(&self.delivered_of(place)?))
            }
            Kind::Port => {
                let port = self.counted.ports.iter().find(|port| &*port.name == name)?;
                Some(self.port_row(port))
            }
            Kind::Router => {
                let own = |node: &&NodeReport| router_rows::name(&self.plan, node) == name;
                Some(router_row(&self.plan, self.counted.nodes.iter().find(own)?))
            }
            _ => None,
        }
    }

    /// What the source at this place in the plan has sent; none if it has not run, and nobody needs to know
    /// why.
    fn delivered_of(&self, at: usize) -> Option<SourceDelivery<'_>> {
        let source = &self.plan.sources[at];
        let watch = |place: u16| self.watches.get(usize::from(place))?.as_ref();
        let Some(own) = watch(source.in_port) else {
            let silent = Some(why_silent(&self.plan, source)?);
            let delays = DelayHistogram::default();
            return Some(SourceDelivery { source, sent: SentCounters::NONE, received: None, delays, silent });
        };
        let sent = own.tally().sent(source.number);
        let mut ends = self.plan.aims(at);
        ends.extend((self.aims)(at));
        ends.sort_unstable();
        ends.dedup();
        let (mut received, mut delays) = (None, DelayHistogram::default());
        for tally in ends.into_iter().filter_map(watch).map(PortWatch::tally) {
            received.get_or_insert(ReceivedCounters::NONE).add(&tally.received(source.number));
            tally.add_delays(source.number, &mut delays);
        }
        Some(SourceDelivery { source, sent, received, delays, silent: None })
    }

    /// Mean output rate of a link in bits per second.
    pub(crate) fn link_rate(&self, link: &LinkReport) -> f64 {
        let seconds = self.elapsed.0 as f64 / 1e9;
        if seconds == 0.0 { 0.0 } else { link.stats.out_bytes as f64 * 8.0 / seconds }
    }

    pub(crate) fn link_row(&self, link: &LinkReport) -> Row {
        let stats = &link.stats;
        let place = link.place as usize;
        let row = Row::new(&*self.plan.links[place].name, "bit/s")
            .measured(self.link_rate(link).round())
            .extra("kind", "link")
            .extra("settings", serde_json::to_value((self.settings)(place)).unwrap_or_default())
            .extra("dropped", by_reason(&stats.drops))
            .extra("lateness_ns", link.lateness.as_ref().map(quantiles));
        LINK_COUNTS.iter().fold(row, |row, (name, count)| row.extra(*name, count(stats)))
    }

    fn port_row(&self, port: &PortReport) -> Row {
        let stats = serde_json::to_value(port.stats).unwrap_or_default();
        let mut row = Row::new(&*port.name, "packets").measured(port.stats.out_frames);
        row = row
            .extra("kind", "port")
            .extra("driver", port.driver.as_str())
            .extra("fault", port.fault.clone());
        for (name, value) in stats.as_object().into_iter().flatten() {
            row = row.extra(name, value.clone());
        }
        if let Some(underlay) = &port.underlay {
            row = row.extra("underlay", underlay_json(underlay));
            row = underlay_notes(underlay).into_iter().fold(row, Row::note);
        }
        if port.stats.outages > 0 {
            let down = shown::time(port.stats.down.0 as f64);
            let times = match port.stats.outages {
                1 => "once".to_owned(),
                outages => format!("{outages} times"),
            };
            let what = match port.underlay {
                Some(_) => "its peer did not answer",
                None => "its interface was down or gone",
            };
            row = row.note(format!("{what} {times}, for {down} in all"));
        }
        if let Some(fault) = &port.fault
            && !self.counted.errors.contains(fault)
        {
            // The row is named after the port.
            let name = format!("port {}: ", port.name);
            row = row.note(fault.strip_prefix(&name).unwrap_or(fault));
        }
        let watch = self.watches.get(usize::from(port.place)).and_then(Option::as_ref);
        capture_notes(watch).into_iter().fold(row, Row::note)
    }

    fn over_links(&self, count: fn(&LinkStats) -> u64) -> u64 {
        self.counted.all_links().map(count).sum()
    }

    /// Packets on links.
    pub(crate) fn held(&self) -> u64 {
        self.over_links(|stats| stats.queued_packets + stats.travelling_packets)
    }

    /// Dropped packets by reason, on links and elsewhere.
    pub(crate) fn dropped(&self) -> Vec<(&'static str, u64)> {
        let mut all = self.counted.flow.drops.clone();
        for (reason, packets) in self.counted.all_links().flat_map(|stats| &stats.drops) {
            match all.iter_mut().find(|(known, _)| known == reason) {
                Some((_, sum)) => *sum += packets,
                None => all.push((reason, *packets)),
            }
        }
        all
    }

    fn conservation_row(&self) -> Row {
        // Packets passed between workers are counted twice.
        let passed_on = self.counted.flow.received;
        Row::new("packets accounted for", "packets")
            .expected(self.counted.packets_come() - passed_on)
            .measured(self.counted.packets_gone() - passed_on)
            .judged(self.counted.is_conserved())
    }
}

/// The links with rows in the plan's order: those that carried most bytes.
fn busiest(links: &[LinkReport]) -> Vec<&LinkReport> {
    let mut all: Vec<_> = links.iter().collect();
    if all.len() > MOST_ROWS {
        let carried = |link: &&LinkReport| std::cmp::Reverse(link.stats.in_bytes);
        all.select_nth_unstable_by_key(MOST_ROWS - 1, carried);
        all.truncate(MOST_ROWS);
        all.sort_by_key(|link| link.place);
    }
    all
}

/// Points of a distribution, in ns.
fn quantiles(q: &Quantiles) -> Value {
    json!({ "p50": q.p50.0, "p99": q.p99.0, "p999": q.p999.0, "max": q.max.0 })
}

/// A worker's counters, times in ns.
fn worker_json(worker: &WorkerReport) -> Value {
    json!({
        "worker": worker.worker,
        "taken": worker.taken,
        "packets": worker.lateness.packets,
        "late": worker.lateness.late,
        "lateness_ns": quantiles(&worker.lateness.all),
        "pauses": worker.lateness.pauses,
        "pool_peak_bytes": worker.pool_peak,
    })
}

/// The verdict and the numbers behind it, times in ns.
pub fn fidelity_json(fidelity: &Fidelity) -> Value {
    let late = &fidelity.lateness;
    json!({
        "faithful": fidelity.faithful,
        "judged": is_judged(fidelity),
        "causes": fidelity.causes,
        "brief": fidelity.brief,
        "packets": late.packets,
        "late": late.late,
        "late_without_pauses": late.late_without_pauses,
        "waited_too_long": late.waited_too_long,
        "lateness_ns": quantiles(&late.all),
        "lateness_without_pauses_ns": quantiles(&late.without_pauses),
        "poll_wait_ns": quantiles(&late.poll_wait),
        "pauses": late.pauses,
        "preemptions": late.preemptions,
        "paused_ns": late.paused.0,
        "longest_pause_ns": late.longest_pause.0,
        "tunnels": fidelity.tunnels.iter().map(tunnel_json).collect::<Vec<_>>(),
    })
}

/// The verdicts on a run's windows, times in ns.
pub(crate) fn window_json(window: &WindowVerdicts) -> Value {
    let one = |window: &JudgedWindow| {
        json!({
            "from_ns": window.from.0,
            "to_ns": window.to.0,
            "fidelity": fidelity_json(&window.fidelity),
        })
    };
    json!({
        "length_ns": window.length.0,
        "judged": window.judged,
        "faithful": window.faithful,
        "last": one(&window.last),
        "worst": window.worst.as_deref().map(one),
    })
}

fn source_row(delivered: &SourceDelivery<'_>) -> Row {
    let SourceDelivery { source, sent, received, delays, silent } = delivered;
    let rounded = |rate: Option<f64>| rate.map(f64::round);
    let row = Row::new(&*source.name, "packets")
        .expected(sent.packets)
        .extra("kind", "source")
        .extra("offered_bit_per_s", rounded(sent.offered()));
    if let Some(why) = silent {
        return row.note(why.as_str());
    }
    let Some(received) = received else {
        return row.note("sent; what arrives is for the program at its end to count");
    };
    let time = |time: Nanos| (received.packets > 0).then_some(time.0);
    row.measured(received.packets)
        .extra("lost", received.lost(sent.packets))
        .extra("copies", received.copies)
        .extra("corrupt", received.corrupt)
        .extra("reordered", received.reordered)
        .extra("delivered_bit_per_s", rounded(received.delivered(sent)))
        .extra("delay_ns_min", time(received.delay_min))
        .extra("delay_ns_mean", received.delay_mean().map(|mean| mean.round() as u64))
        .extra("delay_ns_p50", time(delays.quantile(0.5)))
        .extra("delay_ns_p95", time(delays.quantile(0.95)))
        .extra("delay_ns_p99", time(delays.quantile(0.99)))
        .extra("delay_ns_max", time(received.delay_max))
}

fn by_reason(drops: &[(&'static str, u64)]) -> Map<String, Value> {
    drops.iter().map(|&(reason, packets)| (reason.to_owned(), packets.into())).collect()
}

/// Notes on a port's captures.
fn capture_notes(watch: Option<&PortWatch>) -> Vec<String> {
    let Some(report) = watch.map(PortWatch::capture) else { return Vec::new() };
    let input = report.input;
    let notes = [
        (
            input.cut_short,
            "frames were cut short by the capture; they count with their original length".into(),
        ),
        (
            input.oversize,
            format!(
                "frames are longer than the MTU (up to {} bytes), most likely trains of the capturing \
                 machine's segmentation offload; they were left out. Capture with offloads off (ethtool -K \
                 IFACE tso off gso off gro off)",
                input.largest_oversize
            ),
        ),
        (input.too_short, "frames were too short to be any; they were left out".into()),
        (input.backwards, "frames had a time before the one in front of them; they got that time".into()),
        (report.not_written, "frames are missing in the output: engine.pool is too small".into()),
    ];
    notes.into_iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}")).collect()
}

/// A tunnel's part in the verdict.
fn tunnel_json(tunnel: &TunnelRecord) -> Value {
    json!({
        "name": &*tunnel.name,
        "overdue_packets": tunnel.overdue,
        "lost_messages": tunnel.lost,
        "clock_jumps": tunnel.clock_jumps,
        "clock_error_ns": tunnel.clock_error.map(|error| error.0),
    })
}

/// The network under a tunnel, as its port sees it.
fn underlay_json(underlay: &Underlay) -> Value {
    json!({
        "connected": underlay.is_connected,
        "sessions": underlay.sessions,
        "overdue_packets": underlay.overdue,
        "lost_messages": underlay.lost,
        "reordered": underlay.reordered,
        "replayed": underlay.replayed,
        "forged": underlay.forged,
        "malformed": underlay.malformed,
        "other_session": underlay.other_session,
        "other_version": underlay.other_version,
        "clock_jumps": underlay.clock_jumps,
        "round_trip_ns": underlay.round_trip.map(|time| time.0),
        "clock_offset_ns": underlay.clock_offset,
        "clock_error_ns": underlay.clock_error.map(|error| error.0),
    })
}

/// Notes on it for people.
fn underlay_notes(underlay: &Underlay) -> Vec<String> {
    let mut notes = Vec::new();
    let time = |time: Nanos| shown::time(time.0 as f64);
    if let (Some(error), Some(round_trip)) = (underlay.clock_error, underlay.round_trip) {
        let (error, round_trip) = (time(error), time(round_trip));
        notes.push(format!("the peer's clock is known to {error}; round trip {round_trip}"));
    }
    let counted = [
        (underlay.overdue, "came later than they were due"),
        (underlay.lost, "were lost by the network under it"),
        (underlay.replayed, "were replayed"),
        (underlay.forged, "were forged"),
        (underlay.malformed, "were malformed"),
        (underlay.other_session, "were of no session, or of an ended one"),
        (underlay.other_version, "were of another version"),
    ];
    let counted = counted.into_iter().filter(|(count, _)| *count > 0);
    notes.extend(counted.map(|(count, what)| format!("{count} messages {what}")));
    if underlay.clock_jumps > 0 {
        notes.push(format!("a clock jumped {} times", underlay.clock_jumps));
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_name_what_happened_only() {
        let mut underlay = Underlay::default();
        assert_eq!(underlay_notes(&underlay), Vec::<String>::new());
        underlay.clock_error = Some(Nanos::from_micros(12));
        underlay.round_trip = Some(Nanos::from_micros(20));
        (underlay.forged, underlay.clock_jumps) = (3, 1);
        let notes = underlay_notes(&underlay);
        assert_eq!(notes.len(), 3, "{notes:?}");
        assert!(notes[0].contains("round trip") && notes[1] == "3 messages were forged", "{notes:?}");
        assert_eq!(underlay_json(&underlay)["clock_error_ns"], 12_000);
    }
}
