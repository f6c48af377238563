//! The scenario: a link with what is known, and comments with how well.

use crate::delay::{DelayFinding, Distribution, Early, Order, POINTS};
use crate::distilled::Distilled;
use crate::loss::{LossFinding, Process};
use crate::pairing::Clocks;
use crate::queue::{QueueFinding, QueueUnit};
use crate::rate::RateFinding;
use crate::shown::{interval, nanos, percent, roundest};
use longwire_report::in_unit;
use longwire_units::{Nanos, Rate, counted};
use std::fmt::Write;

/// Longest line of a comment.
const WIDTH: usize = 96;
/// Longest delay of a link.
const MOST_DELAY_NS: f64 = 100e9;
/// The limit of a queue whose limit is left out, in packets.
const DEFAULT_QUEUE: u64 = 1000;

/// Writes the scenario of a path. `sent` and `received` name the captures.
pub fn scenario(found: &Distilled, sent: &str, received: &str) -> String {
    let mut text = Text::default();
    let counts = &found.counts;
    text.comment(&format!(
        "A path as it was measured: {} of {} arrived, in {}.",
        counts.paired,
        counted(counts.sent, "packet"),
        in_unit(found.span_ns, "ns")
    ));
    text.comment(&format!("Sent: {}. Received: {}.", plain(sent), plain(received)));
    text.comment(&format!(
        "Intervals are at {}. docs/book/distill.md says what is assumed.",
        percent(found.assumptions.level.share())
    ));
    if let Some(drift) = found.drift_ppm {
        text.comment(&format!(
            "Two clocks: the receiver's runs faster by {drift:.3} ppm, if the least delay did not change."
        ));
    }
    for (name, address) in [("a", "10.0.0.1/24"), ("b", "10.0.0.2/24")] {
        let _ = write!(text.0, "\n[[host]]\nname = \"{name}\"\naddress = \"{address}\"\n");
    }
    text.0 += "\n";
    text.comment("Only this direction was measured; the other has no link.");
    text.0 += "[[link]]\nname = \"path\"\nfrom = \"a\"\nto = \"b\"\n";
    rate(&mut text, &found.rate);
    if let Some(queue_found) = &found.queue {
        queue(&mut text, queue_found);
    }
    loss(&mut text, &found.loss);
    copies(&mut text, found);
    delay(&mut text, found);
    text.0
}

/// Lines of the scenario.
#[derive(Debug, Default)]
struct Text(String);

impl Text {
    /// Adds a comment, broken into lines.
    fn comment(&mut self, words: &str) {
        let mut line = String::from("#");
        for word in words.split_whitespace() {
            if line.chars().count() + 1 + word.chars().count() > WIDTH && line.len() > 1 {
                let _ = writeln!(self.0, "{line}");
                line = String::from("#");
            }
            line.push(' ');
            line += word;
        }
        let _ = writeln!(self.0, "{line}");
    }

    fn key(&mut self, name: &str, value: &str) {
        let _ = writeln!(self.0, "{name} = {value}");
    }
}

/// A file's name in a comment.
fn plain(name: &str) -> String {
    name.escape_debug().to_string()
}

fn quoted(value: &str) -> String {
    format!("\"{value}\"")
}

fn rate(text: &mut Text, found: &RateFinding) {
    match found {
        RateFinding::Limited(estimate) => {
            text.comment(&format!(
                "Rate of Ethernet frames: {}, by {} of dispersion.",
                interval(estimate, "bit/s"),
                counted(estimate.samples, "measurement")
            ));
            let rate = Rate(roundest(estimate).round() as u64);
            if (Rate::MIN..=Rate::MAX).contains(&rate) {
                text.key("rate", &quoted(&rate.to_string()));
            }
        }
        RateFinding::Unknown { fastest_bit_per_second, waited } => {
            let why = match waited {
                0 => "no packet was seen to wait for another, which jitter can hide".into(),
                _ => format!("only {} waited for others", counted(*waited, "packet")),
            };
            let fastest = fastest_bit_per_second.map(|rate| {
                format!(" The fastest ten packets in a row arrived at {}.", in_unit(rate, "bit/s"))
            });
            text.comment(&format!("No rate: {why}.{}", fastest.unwrap_or_default()));
        }
    }
}

fn queue(text: &mut Text, found: &QueueFinding) {
    match found {
        QueueFinding::Full { limit, unit, lost, is_either } => {
            let (name, word) = match unit {
                QueueUnit::Packets => ("packets", "packets"),
                QueueUnit::Bytes => ("B", "bytes"),
            };
            let either = if *is_either { " A limit in bytes explains them, too." } else { "" };
            text.comment(&format!(
                "Queue limit: {} to {} {word}, what is being sent included; {} lost at a full queue.{either}",
                limit.low,
                limit.high,
                match lost {
                    1 => "1 packet was".into(),
                    _ => format!("{lost} packets were"),
                }
            ));
            text.key("queue", &quoted(&format!("{} {name}", limit.value as u64)));
        }
        QueueFinding::AtLeast(most) => {
            text.comment(&format!(
                "No queue limit: no loss shows a full queue; it holds {most} packets or more."
            ));
            if *most > DEFAULT_QUEUE {
                text.key("queue", &quoted(&format!("{most} packets")));
            }
        }
    }
}

fn loss(text: &mut Text, found: &LossFinding) {
    let share = interval(&found.share.map(|share| share * 100.0), "%");
    let counts = format!("{} of {}", found.lost, found.trials);
    match found.process {
        Process::None => text.comment(&format!("No loss: {counts}; at most {}.", percent(found.share.high))),
        Process::Independent => {
            text.comment(&format!("Loss: {share} ({counts}), each packet by itself."));
            text.key("loss", &quoted(&percent(found.share.value)));
        }
        Process::Bursts { p, r, is_rejected } => {
            text.comment(&format!(
                "Loss: {share} ({counts}), in {} of up to {}; p {}, r {}.",
                counted(found.runs.0, "burst"),
                counted(found.runs.1, "packet"),
                interval(&p.map(|p| p * 100.0), "%"),
                interval(&r.map(|r| r * 100.0), "%")
            ));
            if is_rejected {
                text.comment("These losses have a longer memory than a channel of two states.");
            }
            let (p, r) = (percent(p.value), percent(r.value));
            text.key("loss", &format!("{{ kind = \"gilbert-elliott\", p = \"{p}\", r = \"{r}\" }}"));
        }
    }
}

fn copies(text: &mut Text, found: &Distilled) {
    let copies = &found.copies;
    if copies.copied == 0 {
        text.comment(&format!("No duplicates: at most {}.", percent(copies.share.high)));
        return;
    }
    let share = interval(&copies.share.map(|share| share * 100.0), "%");
    let is_constant = matches!(found.delay, Some(DelayFinding::Constant { .. }));
    let later = copies.later_ns.filter(|_| is_constant);
    let when = match later {
        Some(later) => format!("copies come {} later", interval(&later, "ns")),
        None => "when copies come is left out, because delays vary".into(),
    };
    text.comment(&format!("Duplicates: {share} ({} of {}); {when}.", copies.copied, copies.share.samples));
    let delay = later.map(|later| nanos(roundest(&later).min(MOST_DELAY_NS)));
    let delay = delay.filter(|delay| *delay > Nanos::ZERO);
    let delay = delay.map(|delay| format!(", delay = \"{delay}\"")).unwrap_or_default();
    text.key("duplicate", &format!("{{ probability = \"{}\"{delay} }}", percent(copies.share.value)));
}

fn delay(text: &mut Text, found: &Distilled) {
    match &found.delay {
        None => text.comment("No delay: each packet arrived more than once."),
        Some(DelayFinding::Constant { delay_ns, early }) => {
            let early = early.as_ref();
            text.comment(&match (found.assumptions.clocks, found.assumptions.least_delay) {
                (Clocks::One, _) => format!(
                    "Delay: {}, constant{}.",
                    interval(delay_ns, "ns"),
                    if early.is_some() { " but for packets that overtake" } else { "" }
                ),
                (Clocks::Two, Some(_)) => "Delay: constant, as given.".into(),
                (Clocks::Two, None) => "Delay: constant, but two clocks don't show how long it is.".into(),
            });
            if delay_ns.value <= MOST_DELAY_NS {
                text.key("delay", &quoted(&nanos(roundest(delay_ns)).to_string()));
            }
            overtaking(text, early, delay_ns.value);
        }
        Some(DelayFinding::Varying(varying)) => distribution(text, found, varying),
    }
}

fn overtaking(text: &mut Text, early: Option<&Early>, delay_ns: f64) {
    let Some(early) = early else {
        text.comment("No reordering: no packet came early.");
        return;
    };
    text.comment(&format!(
        "Packets with a shorter delay: {} ({} of {}), by {}{}.",
        interval(&early.share.map(|share| share * 100.0), "%"),
        early.by_ns.samples,
        early.share.samples,
        interval(&early.by_ns, "ns"),
        if early.is_constant { "" } else { " in the median, as it varies" }
    ));
    let (probability, by) = (percent(early.share.value), nanos(roundest(&early.by_ns).min(MOST_DELAY_NS)));
    if delay_ns <= 0.0 {
        text.comment("They are left out: without a delay there is nothing to overtake.");
    } else {
        text.key("reorder", &format!("{{ probability = \"{probability}\", by = \"{by}\" }}"));
    }
}

fn distribution(text: &mut Text, found: &Distilled, varying: &Distribution) {
    let middle = varying.quantiles_ns[3].map(|median| format!(", median {}", interval(&median, "ns")));
    text.comment(&format!(
        "Delay: mean {}{}; each quantile's interval is in the report (--json).",
        interval(&varying.mean_ns, "ns"),
        middle.unwrap_or_default()
    ));
    match (found.assumptions.clocks, found.assumptions.least_delay) {
        (Clocks::Two, None) => text.comment("Two clocks don't show delays: the least is taken as 0."),
        (Clocks::Two, Some(_)) => text.comment("The least is as given: two clocks don't show it."),
        (Clocks::One, _) => {}
    }
    if varying.correlation > 0.1 {
        text.comment(&format!(
            "Consecutive delays are correlated ({:.2}): only their distribution is reproduced.",
            varying.correlation
        ));
    }
    let order = match varying.order {
        Order::Changed => {
            text.comment(&format!("Order: {} arrived after later ones.", counted(found.reordered, "packet")));
            ", order = \"reorder\""
        }
        Order::Kept => {
            text.comment("Order: kept, so that the spread is that under this load.");
            ", order = \"keep\""
        }
        Order::Unknown => {
            text.comment("Order: not known; packets were too far apart to overtake.");
            ""
        }
    };
    if varying.points_ns.iter().any(|point| *point > MOST_DELAY_NS) {
        text.comment("It is left out: a link delays at most 100 s.");
        return;
    }
    let points: Vec<String> = varying
        .points_ns
        .iter()
        .enumerate()
        .map(|(n, point)| {
            let milliseconds = format!("{:.6}", nanos(*point).0 as f64 / 1e6);
            let milliseconds = milliseconds.trim_end_matches('0').trim_end_matches('.');
            format!("{milliseconds} {}", n as f64 / (POINTS - 1) as f64)
        })
        .collect();
    let points = points.join("; ");
    text.key("delay", &format!("{{ kind = \"distribution\", distribution = \"{points}\"{order} }}"));
}
