//! The findings as rows of a report.

use crate::delay::{DelayFinding, Order, SHARES};
use crate::distilled::Distilled;
use crate::estimate::Estimate;
use crate::loss::Process;
use crate::pairing::Clocks;
use crate::queue::{QueueFinding, QueueUnit};
use crate::rate::RateFinding;
use crate::shown::{interval, percent};
use crate::statistics::Level;
use longwire_report::Row;

/// The method of intervals that have all that rounding leaves open.
const ROUNDING: &str = "rounding";

/// A row for each count and each estimate; one without a value, and with the reason, for what the data do not
/// determine.
pub fn rows(found: &Distilled) -> Vec<Row> {
    let level = found.assumptions.level;
    let mut rows = counts(found);
    if let Some(drift) = found.drift_ppm {
        rows.push(Row::new("drift", "ppm").measured(drift).note(
            "of the receiver's clock, assuming that the least delay did not change; without an interval",
        ));
    }
    rows.push(rate(&found.rate, level));
    rows.push(queue(found, level));
    losses(found, level, &mut rows);
    let copies = &found.copies;
    rows.push(share("duplicates", &copies.share, level).extra("packets", copies.copied));
    if let Some(later) = &copies.later_ns {
        rows.push(estimate("duplicate delay", "ns", later, level, ROUNDING));
    }
    delay(found, level, &mut rows);
    rows
}

fn counts(found: &Distilled) -> Vec<Row> {
    let counts = &found.counts;
    let all = [
        ("sent", counts.sent, ""),
        ("received", counts.received, ""),
        ("paired", counts.paired, ""),
        ("ambiguous", counts.ambiguous, "sent packets with the same bytes as others: left out"),
        ("foreign", counts.foreign, "received packets that were not sent: left out"),
        ("backward", counts.backward, "packets that arrived before they were sent, of the other direction"),
        ("outside", counts.outside, "sent before the first or after the last that arrived: not judged"),
        ("oversize", counts.oversize, "lost, and longer than all that arrived: trains, not judged"),
        ("copies", counts.copies, ""),
        ("reordered", found.reordered, ""),
    ];
    let row = |(name, count, note): (&str, u64, &str)| {
        let row = Row::new(name, "packets").measured(count);
        if count == 0 || note.is_empty() { row } else { row.note(note) }
    };
    all.into_iter().map(row).collect()
}

/// A row of an estimate, in the unit of the row. Times are whole nanoseconds.
fn estimate(name: &str, unit: &str, found: &Estimate, level: Level, method: &str) -> Row {
    let Estimate { value, low, high, samples } = *found;
    let row = Row::new(name, unit);
    let row = if unit == "ns" {
        let [value, low, high] = [value.round(), low.floor(), high.ceil()].map(|time| time as i64);
        row.measured(value).extra("low", low).extra("high", high)
    } else {
        row.measured(value).extra("low", low).extra("high", high)
    };
    let is_certain = method == ROUNDING;
    let level = if is_certain { 1.0 } else { level.share() };
    let how = if is_certain { ROUNDING.to_owned() } else { format!("{}, {method}", percent(level)) };
    row.extra("level", level)
        .extra("samples", samples)
        .extra("method", method)
        .note(format!("{} ({how})", interval(found, unit)))
}

/// A row of a share, in per cent.
fn share(name: &str, found: &Estimate, level: Level) -> Row {
    estimate(name, "%", &found.map(|share| share * 100.0), level, "Wilson")
}

fn rate(found: &RateFinding, level: Level) -> Row {
    match found {
        RateFinding::Limited(rate) => estimate("rate", "bit/s", rate, level, "sign test"),
        RateFinding::Unknown { fastest_bit_per_second, waited } => {
            let why = match waited {
                0 => {
                    "not determined: no packet was seen to wait for another, which jitter can hide".to_owned()
                }
                _ => format!("not determined: packets that waited for others: {waited}, too few"),
            };
            let row = Row::new("rate", "bit/s").note(why);
            match fastest_bit_per_second {
                Some(fastest) => row.extra("fastest", *fastest),
                None => row,
            }
        }
    }
}

fn queue(found: &Distilled, level: Level) -> Row {
    match &found.queue {
        None => Row::new("queue", "packets").note("not determined: it needs the rate"),
        Some(QueueFinding::Full { limit, unit, lost, is_either }) => {
            let unit = if *unit == QueueUnit::Packets { "packets" } else { "bytes" };
            let row = Row::new("queue", unit).measured(limit.value as u64);
            row.extra("low", limit.low as u64)
                .extra("high", limit.high as u64)
                .extra("level", level.share())
                .extra("samples", limit.samples)
                .extra("method", "backlog at losses")
                .extra("lost", *lost)
                .extra("either_unit", *is_either)
                .note(format!("{} to {} {unit}; lost at a full queue: {lost} packets", limit.low, limit.high))
        }
        Some(QueueFinding::AtLeast(most)) => Row::new("queue", "packets")
            .extra("low", *most)
            .note(format!("not determined: no loss shows a full queue, which holds {most} packets or more")),
    }
}

fn losses(found: &Distilled, level: Level, rows: &mut Vec<Row>) {
    let loss = &found.loss;
    let process = match loss.process {
        Process::None => "none",
        Process::Independent => "independent",
        Process::Bursts { is_rejected: false, .. } => "gilbert-elliott",
        Process::Bursts { is_rejected: true, .. } => "neither",
    };
    let row = share("loss", &loss.share, level).extra("process", process);
    rows.push(row.extra("packets", loss.lost).extra("runs", loss.runs.0).extra("longest_run", loss.runs.1));
    if let Process::Bursts { p, r, is_rejected } = &loss.process {
        let row = share("loss p", p, level);
        rows.push(if *is_rejected {
            row.note("these losses have a longer memory than a channel of two states")
        } else {
            row
        });
        rows.push(share("loss r", r, level));
    }
}

fn delay(found: &Distilled, level: Level, rows: &mut Vec<Row>) {
    let absolute = match (found.assumptions.clocks, found.assumptions.least_delay) {
        (Clocks::One, _) => None,
        (Clocks::Two, Some(_)) => Some("the least is as given: two clocks don't show it"),
        (Clocks::Two, None) => Some("the least is taken as 0: two clocks don't show it"),
    };
    let noted = |row: Row| match absolute {
        Some(note) => row.note(note),
        None => row,
    };
    match &found.delay {
        None => rows.push(Row::new("delay", "ns").note("not determined: each packet arrived more than once")),
        Some(DelayFinding::Constant { delay_ns, early }) => {
            rows.push(noted(estimate("delay", "ns", delay_ns, level, ROUNDING)));
            if let Some(early) = early {
                rows.push(share("reorder", &early.share, level));
                let method = if early.is_constant { ROUNDING } else { "order statistics" };
                rows.push(estimate("reorder by", "ns", &early.by_ns, level, method));
            }
        }
        Some(DelayFinding::Varying(varying)) => {
            let order = match varying.order {
                Order::Kept => "keep",
                Order::Changed => "reorder",
                Order::Unknown => "unknown",
            };
            let mean = estimate("delay", "ns", &varying.mean_ns, level, "central limit");
            rows.push(noted(mean.extra("order", order).extra("correlation", varying.correlation)));
            let least = varying.least_ns.round() as i64;
            rows.push(Row::new("least delay", "ns").measured(least).note("the shortest that was seen"));
            for (share, quantile) in SHARES.iter().zip(&varying.quantiles_ns) {
                let name = format!("delay {}", percent(*share));
                rows.push(match quantile {
                    Some(quantile) => estimate(&name, "ns", quantile, level, "order statistics"),
                    None => Row::new(name, "ns").note("not determined: too few packets"),
                });
            }
        }
    }
}
