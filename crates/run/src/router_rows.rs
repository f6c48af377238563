//! Routers in the report of a run.

use longwire_block::AttachmentStats;
use longwire_engine::{NodeReport, Report};
use longwire_report::Row;
use longwire_scenario::Plan;
use serde_json::Value;

/// A row with all counters of a router; it fails if packets are unaccounted for.
pub fn router_row(plan: &Plan, node: &NodeReport) -> Row {
    let stats = &node.stats;
    let mut row = Row::new(name(plan, node), "packets")
        .expected(stats.come())
        .measured(stats.gone())
        .judged(stats.come() == stats.gone())
        .extra("kind", "router");
    let counters = serde_json::to_value(stats).unwrap_or_default();
    // Attachments have rows of their own.
    for (key, value) in counters.as_object().into_iter().flatten().filter(|(key, _)| *key != "levels") {
        // Reasons with their numbers become objects.
        let value = match value.as_array() {
            Some(pairs) => Value::Object(pairs.iter().filter_map(pair).collect()),
            None if key == "processors" => with_port_names(plan, value.clone()),
            None => value.clone(),
        };
        row = row.extra(key.as_str(), value);
    }
    row.extra("cache_hit_rate", hit_rate(stats.cache_hits, stats.cache_misses))
}

/// A scheduler's counters, with names of ports instead of places; empty if no packet has used it.
fn with_port_names(plan: &Plan, mut processors: Value) -> Value {
    let flows = processors.get_mut("flows").and_then(Value::as_array_mut);
    for flow in flows.into_iter().flatten() {
        let place = flow.get("port").and_then(Value::as_u64).and_then(|place| usize::try_from(place).ok());
        let port = place.and_then(|place| plan.ports.get(place));
        flow["port"] = port.map_or(Value::Null, |port| Value::from(&*port.name));
    }
    processors
}

/// A row for each attachment above the router; it fails if packets are unaccounted for.
pub fn level_rows(plan: &Plan, node: &NodeReport) -> Vec<Row> {
    let row = |attachment: &AttachmentStats| {
        let come_back = attachment.verdicts + attachment.late + attachment.returned + attachment.kept;
        let mut row =
            Row::new(format!("{} {} {}", name(plan, node), attachment.level, attachment.name), "packets")
                .expected(attachment.up)
                .measured(come_back)
                .judged(attachment.up == come_back)
                .extra("kind", "level");
        let counters = serde_json::to_value(attachment).unwrap_or_default();
        for (key, value) in counters.as_object().into_iter().flatten() {
            row = row.extra(if key == "name" { "who" } else { key.as_str() }, value.clone());
        }
        row
    };
    node.stats.levels.iter().map(row).collect()
}

fn pair(pair: &Value) -> Option<(String, Value)> {
    Some((pair.get(0)?.as_str()?.to_owned(), pair.get(1)?.clone()))
}

/// The hit rate of the route cache; none if it was never used.
pub fn hit_rate(hits: u64, misses: u64) -> Option<f64> {
    (hits + misses > 0).then(|| hits as f64 / (hits + misses) as f64)
}

/// Routers' counters, in the plan's order.
pub fn in_order<'r>(plan: &Plan, report: &'r Report) -> Vec<&'r NodeReport> {
    let mut nodes: Vec<_> = report.nodes.iter().collect();
    nodes.sort_by_key(|node| plan.ports.get(usize::from(node.port)).map(|port| port.router));
    nodes
}

/// A router's name.
pub fn name<'p>(plan: &'p Plan, node: &NodeReport) -> &'p str {
    let port = plan.ports.get(usize::from(node.port));
    port.and_then(|port| port.router).map_or("?", |router| &plan.routers[router as usize].name)
}

/// Whether a port is only the far side of a router's own port on a bridge, which counts the same packets.
pub fn is_far_side(plan: &Plan, place: u16) -> bool {
    let port = &plan.ports[usize::from(place)];
    port.router.is_none() && port.attachment.far().is_some()
}

/// A share as `97.5 %`.
pub fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}
