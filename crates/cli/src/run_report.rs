//! What a run ends with: the report in the one shape, and as text.

use crate::cells;
use crate::replay_port::Watch;
use crate::shown::{self, columns};
use longwire_engine::{LinkReport, PortReport};
use longwire_report::{Report, Row};
use longwire_scenario::{Plan, Source};
use longwire_units::Nanos;
use serde_json::{Map, Value, json};
use std::io::{self, Write};

/// Most links whose rows stand in the JSON, and most lines of text about them: those that carried most.
const MOST_ROWS: usize = 10_000;
const MOST_LINES: usize = 24;

/// A run that has ended.
pub struct Ran<'a> {
    /// What was run.
    pub plan: &'a Plan,
    /// What the engine counted.
    pub counted: longwire_engine::Report,
    /// What is left of ports without an interface, by place in the plan.
    pub watches: Vec<Option<Watch>>,
    /// `real` or `virtual`.
    pub mode: &'static str,
    /// How long it lasted, on its own clock.
    pub elapsed: Nanos,
    /// By a link's place in the plan: how it was set at the end.
    pub settings: Box<dyn Fn(usize) -> Map<String, Value> + 'a>,
}

/// What a traffic source sent, and what of it arrived.
struct Delivered<'a> {
    source: &'a Source,
    sent: u64,
    received: longwire_port::driver::source::Received,
}

impl Delivered<'_> {
    /// In bit/s of frames, from first to last arrival, the first packet's bits excluded.
    fn rate(&self) -> Option<f64> {
        let time = self.received.last.since(self.received.first);
        let bytes = self.received.bytes.saturating_sub(self.source.size.into());
        (self.received.packets > 1 && time.0 > 0).then(|| bytes as f64 * 8e9 / time.0 as f64)
    }
}

impl Ran<'_> {
    /// The report in the one shape.
    pub fn report(&self) -> Report {
        let counted = &self.counted;
        let mut report = Report::new("run")
            .with("mode", self.mode)
            .with("scenario", self.plan.file.as_str())
            .with("seconds", self.seconds())
            .with("fidelity", serde_json::to_value(&counted.fidelity).unwrap_or_default())
            .with("flow", serde_json::to_value(&counted.flow).unwrap_or_default())
            .with("pool", json!({ "peak_bytes": counted.pool_peak, "bytes": counted.pool_capacity }))
            .with("links", self.plan.links.len());
        report.extend(self.delivered().map(|delivered| source_row(&delivered)));
        report.extend(self.busiest(MOST_ROWS).into_iter().map(|link| self.link_row(link)));
        report.extend(counted.ports.iter().map(|port| self.port_row(port)));
        report.push(self.conservation_row());
        for error in &counted.errors {
            report.fail(error.as_str());
        }
        report
    }

    /// Writes it for people.
    ///
    /// # Errors
    /// If it can't be written.
    pub fn print(&self, report: &Report, out: &mut dyn Write) -> io::Result<()> {
        let time = shown::time(self.elapsed.0 as f64);
        writeln!(out, "{}: {time} of {} time", self.plan.file, self.mode)?;
        for table in [self.link_lines(), self.port_lines(), self.source_lines()] {
            if table.len() > 1 {
                writeln!(out)?;
                columns(&table).iter().try_for_each(|line| writeln!(out, "{line}"))?;
            }
        }
        for (count, what) in
            [(self.plan.links.len(), "links: those that carried most"), (self.plan.sources.len(), "sources")]
        {
            if count > MOST_LINES {
                writeln!(
                    out,
                    "({MOST_LINES} of {} {what}; --json has them all)",
                    shown::count(count as u64)
                )?;
            }
        }
        writeln!(out)?;
        self.print_sums(out)?;
        for row in &report.rows {
            for note in &row.notes {
                writeln!(out, "note: {}: {note}", row.name)?;
            }
        }
        self.counted.errors.iter().try_for_each(|error| writeln!(out, "error: {error}"))
    }

    fn seconds(&self) -> f64 {
        self.elapsed.0 as f64 / 1e9
    }

    /// Up to `most` links in the plan's order: those that carried most bytes.
    fn busiest(&self, most: usize) -> Vec<&LinkReport> {
        busiest(&self.counted.links, most)
    }

    fn delivered(&self) -> impl Iterator<Item = Delivered<'_>> {
        self.plan.sources.iter().enumerate().filter_map(|(id, source)| {
            let watch = |place: u16| self.watches.get(usize::from(place))?.as_ref();
            let sent = watch(source.in_port)?.tally().packets_sent(id as u16);
            let received = watch(source.out_port)?.tally().received(id as u16);
            Some(Delivered { source, sent, received })
        })
    }

    /// Bits that a link let out, over the time of the run.
    fn link_rate(&self, link: &LinkReport) -> f64 {
        if self.elapsed.0 == 0 { 0.0 } else { link.stats.out_bytes as f64 * 8.0 / self.seconds() }
    }

    fn link_row(&self, link: &LinkReport) -> Row {
        let stats = &link.stats;
        let place = link.place as usize;
        Row::new(format!("link {}", self.plan.links[place].name), "bit/s")
            .measured(self.link_rate(link).round())
            .extra("settings", (self.settings)(place))
            .extra("in_packets", stats.in_packets)
            .extra("in_bytes", stats.in_bytes)
            .extra("out_packets", stats.out_packets)
            .extra("out_bytes", stats.out_bytes)
            .extra("dropped", by_reason(&stats.drops))
            .extra("queued_packets", stats.queued_packets)
            .extra("queued_bytes", stats.queued_bytes)
            .extra("travelling_packets", stats.travelling_packets)
            .extra("late_packets", stats.late_packets)
            .extra("max_late_ns", stats.max_late.0)
    }

    fn port_row(&self, port: &PortReport) -> Row {
        let stats = serde_json::to_value(port.stats).unwrap_or_default();
        let mut row = Row::new(format!("port {}", port.name), "packets").measured(port.stats.out_frames);
        row = row.extra("driver", port.driver.as_str()).extra("fault", port.fault.clone());
        for (name, value) in stats.as_object().into_iter().flatten() {
            row = row.extra(name, value.clone());
        }
        if let Some(fault) = &port.fault {
            row = row.note(fault);
        }
        let watch = self.watches.get(usize::from(port.place)).and_then(Option::as_ref);
        capture_notes(watch).into_iter().fold(row, Row::note)
    }

    fn held(&self) -> u64 {
        let links = self.counted.links.iter().map(|link| &link.stats);
        links.map(|stats| stats.queued_packets + stats.travelling_packets).sum()
    }

    fn dropped(&self) -> Vec<(&'static str, u64)> {
        let mut all = self.counted.flow.drops.clone();
        for (reason, packets) in self.counted.links.iter().flat_map(|link| &link.stats.drops) {
            match all.iter_mut().find(|(known, _)| known == reason) {
                Some((_, sum)) => *sum += packets,
                None => all.push((reason, *packets)),
            }
        }
        all
    }

    fn conservation_row(&self) -> Row {
        let flow = &self.counted.flow;
        let dropped: u64 = self.dropped().iter().map(|(_, packets)| packets).sum();
        Row::new("packets accounted for", "packets")
            .expected(flow.taken + flow.made + flow.received)
            .measured(flow.sent + flow.handed_over + dropped + self.held())
            .judged(self.counted.is_conserved())
    }

    fn link_lines(&self) -> Vec<Vec<String>> {
        let mut lines =
            vec![cells!["link", "in", "out", "queued", "on its way", "rate", "max late", "dropped"]];
        for link in self.busiest(MOST_LINES) {
            let stats = &link.stats;
            lines.push(vec![
                self.plan.links[link.place as usize].name.to_string(),
                shown::count(stats.in_packets),
                shown::count(stats.out_packets),
                shown::count(stats.queued_packets),
                shown::count(stats.travelling_packets),
                shown::rate(self.link_rate(link)),
                shown::time(stats.max_late.0 as f64),
                shown::drops(&stats.drops),
            ]);
        }
        lines
    }

    fn port_lines(&self) -> Vec<Vec<String>> {
        let mut lines = vec![cells!["port", "in", "out", "lost", "driver"]];
        for port in &self.counted.ports {
            let stats = &port.stats;
            let lost = stats.in_pool_full
                + stats.in_missed
                + stats.in_bad
                + stats.out_full
                + stats.out_down
                + stats.out_oversize;
            lines.push(vec![
                port.name.clone(),
                shown::count(stats.in_frames),
                shown::count(stats.out_frames),
                shown::count(lost),
                port.driver.clone(),
            ]);
        }
        lines
    }

    fn source_lines(&self) -> Vec<Vec<String>> {
        let mut lines = vec![cells!["source", "sent", "received", "lost", "rate", "delay", ""]];
        for delivered in self.delivered().take(MOST_LINES) {
            let received = &delivered.received;
            let mean = received.delay_mean();
            lines.push(vec![
                delivered.source.name.to_string(),
                shown::count(delivered.sent),
                shown::count(received.packets),
                shown::count(received.lost(delivered.sent)),
                delivered.rate().map_or("-".into(), shown::rate),
                mean.map_or("-".into(), shown::time),
                mean.map_or(String::new(), |_| {
                    let [least, most] =
                        [received.delay_min, received.delay_max].map(|t| shown::time(t.0 as f64));
                    format!("({least} to {most})")
                }),
            ]);
        }
        lines
    }

    fn print_sums(&self, out: &mut dyn Write) -> io::Result<()> {
        let flow = &self.counted.flow;
        let all = if self.counted.is_conserved() { "all accounted for" } else { "NOT all accounted for" };
        writeln!(
            out,
            "packets: {} in, {} copied; {} out, {} held, dropped: {}; {all}",
            shown::count(flow.taken),
            shown::count(flow.made),
            shown::count(flow.sent),
            shown::count(self.held()),
            shown::drops(&self.dropped()),
        )?;
        let Some(fidelity) = &self.counted.fidelity else { return Ok(()) };
        let late = &fidelity.lateness;
        let verdict = if fidelity.faithful { "faithful" } else { "NOT faithful" };
        if self.mode == "virtual" {
            writeln!(out, "{verdict}: every packet left at its time, by definition")?;
        } else {
            writeln!(
                out,
                "{verdict}: {} packets, late by {} (median), {} (99 %), {} (at most); {} pauses of the machine",
                shown::count(late.packets),
                shown::time(late.all.p50.0 as f64),
                shown::time(late.all.p99.0 as f64),
                shown::time(late.all.max.0 as f64),
                late.pauses
            )?;
        }
        fidelity.causes.iter().try_for_each(|cause| writeln!(out, "  because {cause}"))
    }
}

/// Up to `most` links in the plan's order: those that carried most bytes.
pub fn busiest(links: &[LinkReport], most: usize) -> Vec<&LinkReport> {
    let mut all: Vec<_> = links.iter().collect();
    if all.len() > most && most > 0 {
        let carried = |link: &&LinkReport| std::cmp::Reverse(link.stats.in_bytes);
        all.select_nth_unstable_by_key(most - 1, carried);
        all.truncate(most);
        all.sort_by_key(|link| link.place);
    }
    all
}

fn source_row(delivered: &Delivered<'_>) -> Row {
    let Delivered { source, sent, received } = delivered;
    let time = |time: Nanos| (received.packets > 0).then_some(time.0);
    Row::new(format!("source {}", source.name), "packets")
        .expected(*sent)
        .measured(received.packets)
        .extra("lost", received.lost(*sent))
        .extra("reordered", received.reordered)
        .extra("rate_bit_per_s", delivered.rate())
        .extra("delay_ns_min", time(received.delay_min))
        .extra("delay_ns_mean", received.delay_mean())
        .extra("delay_ns_max", time(received.delay_max))
}

fn by_reason(drops: &[(&'static str, u64)]) -> Map<String, Value> {
    drops.iter().map(|&(reason, packets)| (reason.to_owned(), packets.into())).collect()
}

/// What was unusual about a port's captures.
fn capture_notes(watch: Option<&Watch>) -> Vec<String> {
    let Some(report) = watch.map(Watch::capture) else { return Vec::new() };
    let input = report.input;
    let notes = [
        (
            input.cut_short,
            "frames were cut short by the capture; they count with their original length".into(),
        ),
        (
            input.oversize,
            format!(
                "frames are longer than the MTU (up to {} bytes), most likely trains of the capturing machine's \
                 segmentation offload; they were left out. Capture with offloads off (ethtool -K IFACE tso off gso off \
                 gro off)",
                input.largest_oversize
            ),
        ),
        (input.too_short, "frames were too short to be any; they were left out".into()),
        (input.backwards, "frames had a time before the one in front of them; they got that time".into()),
        (report.not_written, "frames are missing in the output: engine.pool is too small".into()),
    ];
    notes.into_iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}")).collect()
}
