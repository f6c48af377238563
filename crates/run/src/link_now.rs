//! How links are doing: rates since the counters before the last ones, and what follows from their settings.

use crate::running_state::{Earlier, RunningState};
use longwire_block::Value;
use longwire_block::change::Blocks;
use longwire_engine::LinkReport;
use longwire_units::{Nanos, Rate};

/// A link at its last counters.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct LinkNow {
    /// Bits per second that came, and that left; none before there are counters to compare with.
    pub(crate) rates: Option<(f64, f64)>,
    /// What a packet takes that comes now: the delay, and the queue at the link's rate, or at the present one
    /// if that varies.
    pub(crate) delay: Nanos,
    /// The share of its rate that it lets out, if that is limited and known.
    pub(crate) load: Option<f64>,
    /// Whether it lets nothing through.
    pub(crate) down: bool,
}

impl LinkNow {
    /// A link of `state` with these counters, taken so long after the start.
    pub(crate) fn of(
        state: &RunningState,
        link: &LinkReport,
        (elapsed, earlier): (Nanos, Option<&Earlier>),
    ) -> Self {
        let rates = earlier.and_then(|earlier| {
            let old = find(&earlier.report.links, link.place)?;
            let seconds = elapsed.since(earlier.elapsed).0 as f64 / 1e9;
            let rate = |new: u64, old: u64| new.saturating_sub(old) as f64 * 8.0 / seconds;
            let (new, old) = (&link.stats, &old.stats);
            (seconds > 0.0).then(|| (rate(new.in_bytes, old.in_bytes), rate(new.out_bytes, old.out_bytes)))
        });
        let blocks = state.objects.links.known(link.place);
        let limit = match setting(&blocks, "rate", "rate") {
            Some(Value::Rate(Rate::UNLIMITED)) | None => None,
            Some(Value::Rate(rate)) => Some(rate.0 as f64),
            Some(_) => None,
        };
        let out = rates.map(|(_, out)| out);
        let waits = match limit.filter(|limit| *limit > 0.0).or(out).filter(|rate| *rate > 0.0) {
            Some(rate) => link.stats.queued_bytes as f64 * 8e9 / rate,
            None => 0.0,
        };
        let delay = match setting(&blocks, "delay", "delay") {
            Some(Value::Time(delay)) => delay,
            _ => Nanos::ZERO,
        };
        let state = blocks.iter().find(|(spec, _)| (spec.key, spec.kind) == ("state", "fixed"));
        let is_off = state.is_some_and(|(spec, values)| {
            spec.params.iter().zip(values.as_slice()).any(|(param, value)| value.print(param.kind) == "down")
        });
        let load = limit.filter(|limit| *limit > 0.0).zip(out).map(|(limit, out)| out / limit);
        Self {
            rates,
            delay: Nanos(delay.0.saturating_add(waits as u64)),
            load,
            down: is_off || limit == Some(0.0),
        }
    }
}

/// How long it had run at the last counters, and the counters to compare them with.
pub(crate) fn compared(state: &RunningState) -> (Nanos, Option<Earlier>) {
    let counted = state.counted();
    (counted.last.as_ref().map_or(Nanos::ZERO, |(_, elapsed, _)| *elapsed), counted.earlier())
}

/// What a link has counted, and how it is doing.
pub(crate) fn link_stats(state: &RunningState, link: &LinkReport) -> Option<serde_json::Value> {
    let (elapsed, earlier) = compared(state);
    let now = LinkNow::of(state, link, (elapsed, earlier.as_ref()));
    let mut stats = serde_json::to_value(&link.stats).ok()?;
    let (come, left) = now.rates.unzip();
    stats["in_bit_per_s"] = come.map(f64::round).into();
    stats["out_bit_per_s"] = left.map(f64::round).into();
    stats["load"] = now.load.into();
    stats["delay_ns"] = now.delay.0.into();
    stats["down"] = now.down.into();
    Some(stats)
}

/// A link's counters. Links are in the plan's order.
pub(crate) fn find(links: &[LinkReport], place: u32) -> Option<&LinkReport> {
    links.binary_search_by_key(&place, |link| link.place).ok().map(|at| &links[at])
}

/// A link's setting, if it has a block of this key with such a parameter.
fn setting(blocks: &Blocks, key: &str, name: &str) -> Option<Value> {
    let (spec, values) = blocks.iter().find(|(spec, _)| spec.key == key)?;
    let at = spec.params.iter().position(|param| param.name == name)?;
    values.as_slice().get(at).cloned()
}
