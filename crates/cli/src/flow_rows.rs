//! Screen table of flows that share routers' processors.

use longwire_block::{FlowStats, ProcessorStats};
use longwire_engine::{NodeReport, Report};
use longwire_report::{cells, shown};
use longwire_run::router_rows;
use longwire_scenario::Plan;

/// Lines for at most `most` flows, by processor time used since the previous report. Empty if no router
/// shares its processors.
pub fn screen(
    plan: &Plan,
    report: &Report,
    before: Option<&Report>,
    seconds: f64,
    most: usize,
) -> Vec<Vec<String>> {
    let mut flows: Vec<_> = router_rows::in_order(plan, report)
        .into_iter()
        .filter_map(|node| Some((node, node.stats.processors.as_ref()?)))
        .flat_map(|(node, processors)| {
            let old = before.and_then(|before| earlier(before, node));
            let shares = processors.flows.iter().map(move |flow| Share::new(processors, flow, old, seconds));
            shares.map(move |share| (node, share))
        })
        .collect();
    if flows.is_empty() {
        return Vec::new();
    }
    // A stable sort: flows with the same use stay in the routers' order.
    flows.sort_by(|(_, a), (_, b)| b.of_processors.total_cmp(&a.of_processors));
    let mut lines =
        vec![cells!["router", "flow", "weight", "out", "of its processors", "waiting", "refused"]];
    lines.extend(flows.iter().take(most).map(|(node, share)| {
        let flow = share.flow;
        cells![
            router_rows::name(plan, node),
            flow.flow.as_str(),
            shown::count(flow.weight.into()),
            shown::rate(share.bits),
            router_rows::percent(share.of_processors),
            shown::count(flow.inside),
            shown::count(flow.refused),
        ]
    }));
    lines
}

/// A note on how many flows are not shown, if any.
pub fn left_out(nodes: &[NodeReport], shown: usize) -> Option<String> {
    let sharing = nodes.iter().filter_map(|node| node.stats.processors.as_ref());
    let all: u64 = sharing.map(|processors| processors.flows.len() as u64 + processors.flows_left_out).sum();
    let told = || format!("({} of {} flows)", shown::count(shown as u64), shown::count(all));
    (all > shown as u64).then(told)
}

/// Counters of a router's processors at the previous report.
fn earlier<'r>(before: &'r Report, node: &NodeReport) -> Option<&'r ProcessorStats> {
    let old = before.nodes.iter().find(|old| old.port == node.port)?;
    old.stats.processors.as_ref()
}

/// A flow's share since the previous report.
struct Share<'r> {
    flow: &'r FlowStats,
    /// Bits per second sent.
    bits: f64,
    /// Fraction of all processors' time used, 0 to 1.
    of_processors: f64,
}

impl<'r> Share<'r> {
    fn new(all: &ProcessorStats, flow: &'r FlowStats, before: Option<&ProcessorStats>, seconds: f64) -> Self {
        let old = before.and_then(|before| {
            before.flows.iter().find(|old| old.flow == flow.flow && old.port == flow.port)
        });
        let (bytes, time) = old.map_or((0, 0), |old| (old.out_bytes, old.processor_ns));
        let time = flow.processor_ns.saturating_sub(time) as f64;
        Self {
            flow,
            bits: flow.out_bytes.saturating_sub(bytes) as f64 * 8.0 / seconds,
            of_processors: time / (seconds * 1e9 * f64::from(all.processors.max(1))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use longwire_block::NodeStats;

    fn flow(name: &str, out_bytes: u64, processor_ns: u64) -> FlowStats {
        FlowStats { flow: name.into(), weight: 1, out_bytes, processor_ns, ..FlowStats::default() }
    }

    fn processors(flows: Vec<FlowStats>) -> ProcessorStats {
        ProcessorStats { processors: 2, flows, ..ProcessorStats::default() }
    }

    #[test]
    fn hidden_flows_are_mentioned() {
        let node = |left_out| {
            let processors = ProcessorStats {
                flows_left_out: left_out,
                ..processors(vec![flow("a", 0, 0), flow("b", 0, 0)])
            };
            let stats = NodeStats { processors: Some(processors), ..NodeStats::default() };
            NodeReport { port: 0, stats }
        };
        let told = |shown| left_out(&[node(0), node(3)], shown);
        assert_eq!(told(3).as_deref(), Some("(3 of 7 flows)"));
        assert_eq!((told(7), left_out(&[], 0)), (None, None));
    }

    #[test]
    fn shares_are_those_since_the_moment_before() {
        let before = processors(vec![flow("a", 1000, 400_000_000)]);
        let now = processors(vec![flow("a", 2000, 900_000_000), flow("b", 500, 100_000_000)]);
        // Half a second on two processors: a used 0.5 s of 1 s, b 0.1 s.
        let shares: Vec<_> =
            now.flows.iter().map(|flow| Share::new(&now, flow, Some(&before), 0.5)).collect();
        let close = |a: f64, b: f64| (a - b).abs() < 1e-9;
        assert!(close(shares[0].bits, 16_000.0) && close(shares[0].of_processors, 0.5));
        assert!(close(shares[1].bits, 8_000.0) && close(shares[1].of_processors, 0.1));
    }
}
