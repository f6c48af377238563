//! The cost of each block of a link: nanoseconds per packet over the same link without it, in the engine
//! bench.

use crate::engine::{Case, Outcome, run};
use crate::{BenchError, Sample, Settings};
use longwire_block::{Spec, Values};
use longwire_link::{LinkConfig, registry};
use longwire_prices::block_price;
use longwire_report::Row;
use std::time::Duration;

/// A block and its baseline: key, kind, parameters, and the limit of its cost in ns.
struct Trial {
    key: &'static str,
    kind: &'static str,
    given: &'static [(&'static str, &'static str)],
    most: f64,
}

const fn trial(
    key: &'static str,
    kind: &'static str,
    given: &'static [(&'static str, &'static str)],
    most: f64,
) -> Trial {
    Trial { key, kind, given, most }
}

/// On a link without rate and delay, against none of its kind.
const JUDGES: &[Trial] = &[
    trial("loss", "independent", &[("probability", "1 %")], 5.0),
    trial("loss", "independent", &[("probability", "1 %"), ("where", "wire")], 5.0),
    trial("loss", "correlated", &[("probability", "1 %"), ("correlation", "25 %")], 5.0),
    trial("loss", "burst", &[("loss", "1 %")], 5.0),
    trial("loss", "gilbert-elliott", &[("p", "1 %"), ("r", "25 %")], 5.0),
    trial("loss", "markov", &[("p13", "1 %"), ("p31", "25 %")], 5.0),
    trial("loss", "drawn", &[("distribution", "0 0; 0.02 1")], 5.0),
    trial("loss", "limited", &[("probability", "1 %"), ("most", "3")], 5.0),
    trial("loss", "pattern", &[("every", "100")], 5.0),
    trial("loss", "trace", &[("file", "0 s 1 %; 1 s 2 %")], 5.0),
    trial("bit-error", "rate", &[("rate", "1e-6")], 5.0),
    trial("bit-error", "per-packet", &[("probability", "0.1 %")], 5.0),
    trial("duplicate", "independent", &[("probability", "0.1 %")], 5.0),
    trial("reorder", "independent", &[("probability", "1 %")], 5.0),
    trial("mtu", "drop", &[("mtu", "1500")], 5.0),
    trial("state", "flap", &[("up", "1000 s"), ("down", "1 s")], 5.0),
    trial("state", "trace", &[("file", "0 s up; 1000 s down")], 5.0),
    trial("filter", "rules", &[("rules", "drop if tcp port 80")], 5.0),
];

/// On a link of 10 ms, against a constant delay.
const DELAYS: &[Trial] = &[
    trial("delay", "jitter", &[("delay", "10 ms"), ("jitter", "1 ms")], 5.0),
    trial("delay", "jitter", &[("delay", "10 ms"), ("jitter", "1 ms"), ("order", "reorder")], 5.0),
    trial("delay", "trace", &[("file", "0 s 10 ms; 1 s 11 ms")], 5.0),
];

/// Against a constant rate of 100 Gbit/s.
const RATES: &[Trial] = &[
    trial("rate", "token-bucket", &[("rate", "100 Gbit/s"), ("burst", "1 MB")], 5.0),
    trial("rate", "trace", &[("file", "0 s 100 Gbit/s; 1 s 101 Gbit/s")], 5.0),
];

/// At 100 Gbit/s, where packets of a burst queue, against tail drop.
const QUEUES: &[Trial] = &[
    trial("queue", "red", &[], 15.0),
    trial("queue", "codel", &[], 15.0),
    trial("queue", "pie", &[], 15.0),
    trial("queue", "fq-codel", &[], 40.0),
    trial("queue", "fq-pie", &[], 40.0),
    trial("queue", "dualpi2", &[], 40.0),
    trial("queue", "ared", &[], 15.0),
    trial("queue", "drr", &[], 40.0),
    trial("queue", "priority", &[], 15.0),
];

/// Those that are faster while one flow, or band, waits.
const QUEUES_OF_TWO: &[Trial] = &[
    trial("queue", "fq-codel", &[], 40.0),
    trial("queue", "priority", &[("classes", "a if ip[19] & 8 = 0\nb")], 15.0),
];

/// Bands that tell a scenario's two flows apart, so that the price of priority is that of bands that meet.
const APART: &[(&str, &str)] = &[("classes", "a if dst net 12.0.0.0/8\nb")];

/// Trials against the same baseline.
struct Group {
    /// Keys of the baseline link.
    base: &'static [(&'static str, &'static str)],
    /// Name of the baseline.
    what: &'static str,
    trials: &'static [Trial],
    /// Flows on each link, whose packets come in turn.
    flows: u32,
}

const GROUPS: [Group; 5] = [
    Group { base: &[], what: "a link without it", trials: JUDGES, flows: 1 },
    Group { base: &[("delay", "10 ms")], what: "a constant delay", trials: DELAYS, flows: 1 },
    Group { base: &[("rate", "100 Gbit/s")], what: "a constant rate", trials: RATES, flows: 1 },
    Group { base: &[("rate", "100 Gbit/s")], what: "tail drop", trials: QUEUES, flows: 1 },
    Group { base: &[("rate", "100 Gbit/s")], what: "tail drop, two flows", trials: QUEUES_OF_TWO, flows: 2 },
];

/// The rows of this bench.
pub(crate) fn rows(settings: &Settings<'_>) -> Result<Vec<Row>, BenchError> {
    let mut rows = Vec::new();
    for group in &GROUPS {
        for trial in group.trials {
            rows.push(compared(settings, group, trial)?);
        }
    }
    Ok(rows)
}

/// For each trial, its name and links with the block.
pub(crate) fn cases() -> Result<Vec<(String, Case)>, BenchError> {
    let mut cases = Vec::new();
    for group in &GROUPS {
        let flows = if group.flows == 1 { String::new() } else { format!(", {} flows", group.flows) };
        for trial in group.trials {
            let config = trial.on(&link(group.base)?)?;
            let case = Case { flows: group.flows, ..Case::new(&config, Duration::ZERO) };
            cases.push((trial.shown() + &flows, case));
        }
    }
    Ok(cases)
}

/// A trial as lines of a scenario.
pub(crate) struct Scenario {
    /// The name of its price.
    pub price: String,
    /// Keys of the baseline link.
    pub base: String,
    /// Keys of the link with the block.
    pub keys: String,
}

/// Each block as lines of a scenario.
pub(crate) fn scenarios() -> Result<Vec<Scenario>, BenchError> {
    let mut scenarios = Vec::new();
    for group in GROUPS.iter().filter(|group| group.flows == 1) {
        let base: String = group.base.iter().map(|(key, text)| format!("{key} = \"{text}\"\n")).collect();
        for trial in group.trials {
            let spec = trial.spec()?;
            let given = if trial.kind == "priority" { APART } else { trial.given };
            let given = given.iter().map(|(name, text)| format!(", {name} = {text:?}"));
            let keys =
                format!("{} = {{ kind = \"{}\"{} }}\n", trial.key, trial.kind, given.collect::<String>());
            // Its rate or delay replaces that of the baseline.
            let keys = if base.starts_with(trial.key) { keys } else { format!("{base}{keys}") };
            let price = block_price(spec, &Values::read(spec, trial.given)?);
            scenarios.push(Scenario { price, base: base.clone(), keys });
        }
    }
    Ok(scenarios)
}

fn link(keys: &[(&str, &str)]) -> Result<LinkConfig, BenchError> {
    let mut config = LinkConfig::default();
    for (key, text) in keys {
        config = config.with_text(key, text)?;
    }
    Ok(config)
}

impl Trial {
    /// Its name among the trials.
    fn shown(&self) -> String {
        let given: Vec<String> = self.given.iter().map(|(name, text)| format!("{name} {text}")).collect();
        match &given[..] {
            [] => format!("{} {}", self.key, self.kind),
            _ => format!("{} {} ({})", self.key, self.kind, given.join(", ").replace('\n', "; ")),
        }
    }

    fn spec(&self) -> Result<&'static Spec, BenchError> {
        let spec = registry().into_iter().find(|spec| (spec.key, spec.kind) == (self.key, self.kind));
        spec.ok_or_else(|| BenchError::NotHere(format!("there is no {}", self.shown())))
    }

    /// This block on a link.
    fn on(&self, base: &LinkConfig) -> Result<LinkConfig, BenchError> {
        let spec = self.spec()?;
        Ok(base.clone().with(spec, Values::read(spec, self.given)?))
    }
}

/// Alternates runs with and without a block; the cost is the median of the rounds' differences.
fn compared(settings: &Settings<'_>, group: &Group, trial: &Trial) -> Result<Row, BenchError> {
    let base = link(group.base)?;
    let with = trial.on(&base)?;
    let name = format!("blocks: {} over {}", trial.shown(), group.what);
    let ns = |outcome: &Outcome| 1e9 / outcome.packets_per_second;
    let (mut bases, mut withs, mut costs) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..settings.runs(11) {
        settings.next(&name)?;
        let [before, after] = [&base, &with].map(|config| {
            let case = Case::new(config, settings.time(Duration::from_millis(120)));
            run(&Case { flows: group.flows, ..case })
        });
        let (before, after) = (before?, after?);
        // A block that drops packets sends fewer, so packets taken are counted, whether dropped or not.
        costs.push(ns(&after) * (1.0 - lost_share(&after)) - ns(&before));
        bases.push(ns(&before));
        withs.push(ns(&after));
    }
    let [base, with] = [bases, withs].map(|sample| Sample::from_iter(sample).median());
    let row = Sample::from_iter(costs).median_at_most(&name, "ns", trial.most);
    let row = row.extra("base_ns", base).extra("with_ns", with);
    Ok(row.note(format!("medians: {with:.1} ns a packet sent, {base:.1} without")))
}

/// Share of packets dropped by links during the run.
fn lost_share(outcome: &Outcome) -> f64 {
    let links = || outcome.report.links.iter().map(|link| &link.stats);
    let stopped = |name: &str| name == longwire_block::DropReason::Stopped.name();
    let drops = links().flat_map(|link| &link.drops).filter(|(name, _)| !stopped(name));
    let dropped: u64 = drops.map(|(_, packets)| packets).sum();
    let taken: u64 = links().map(|link| link.in_packets).sum();
    dropped as f64 / taken.max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicBool;

    #[test]
    fn every_trial_can_be_read() {
        let cases = cases().unwrap();
        assert_eq!(cases.len(), GROUPS.iter().map(|group| group.trials.len()).sum::<usize>());
    }

    #[test]
    fn a_short_run_gives_a_row() {
        let settings = Settings { runs: None, quick: true, say: &|_| (), stop: &AtomicBool::new(false) };
        let row = compared(&settings, &GROUPS[0], &JUDGES[0]).unwrap();
        assert!(row.measured.is_some() && row.pass.is_some(), "{row:?}");
    }
}
