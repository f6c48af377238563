//! Report of the flows that share processors.

use super::{Sharing, Stage};
use longwire_block::{FlowStats, ProcessorStats};
use longwire_sched::{Counters, FlowView, RareCounters, Weight};
use std::collections::BTreeSet;

/// Most unnamed flows in a report.
const MOST: usize = 64;

impl Sharing {
    /// The counters. `places` are the indices of the ports, by number.
    pub fn stats(&self, places: &[u16]) -> ProcessorStats {
        let scheduler = self.scheduler();
        let RareCounters { queue_full, table_full, no_room, recycled, exploded, beyond_quantum, .. } =
            scheduler.happened();
        let ports = u32::from(scheduler.settings().ports);
        let named = self.config.flows.len() as u32 * ports;
        let mut flows: Vec<FlowView> =
            scheduler.flows().filter(|flow| flow.key >= named || is_used(&flow.counters)).collect();
        let heard: BTreeSet<u32> =
            flows.iter().filter(|flow| flow.key < named).map(|flow| flow.key / ports).collect();
        // Named flows without packets are reported once, whatever ports there are.
        let is_silent = |flow: &FlowView| {
            flow.key < named && flow.key.is_multiple_of(ports) && !heard.contains(&(flow.key / ports))
        };
        let silent: Vec<FlowView> = scheduler.flows().filter(is_silent).collect();
        let flows_known = flows.len() as u64;
        // Named ones first, then by use of the processors.
        flows.sort_by_key(|flow| (flow.key >= named, u64::MAX - flow.counters.cycles, flow.place));
        let with_names = flows.iter().take_while(|flow| flow.key < named).count();
        flows.truncate(with_names + MOST);
        let flows_left_out = flows_known - flows.len() as u64;
        flows.extend(silent);
        flows.sort_by_key(|flow| flow.place);
        let clock = u64::from(scheduler.settings().clock_mhz);
        let one = |flow: &FlowView| FlowStats {
            flow: self.identity.name(flow.place, flow.key),
            port: match is_used(&flow.counters) {
                true => places.get(usize::from(flow.port)).copied().unwrap_or(u16::MAX),
                false => u16::MAX,
            },
            weight: flow.weight,
            inside: flow.inside.into(),
            estimate_ns: flow.estimate.0,
            ..counted(&flow.counters, clock)
        };
        ProcessorStats {
            scheduler: scheduler.spec().name,
            processors: scheduler.settings().processors,
            measured: !matches!(self.stage, Stage::Model(_)),
            waiting: scheduler.waiting().into(),
            input_full: match &self.stage {
                Stage::Model(model) => model.machine.stats().dropped_at_input,
                // Nothing is between the worker and its scheduler.
                Stage::Live(_) => 0,
            },
            queue_full,
            table_full,
            no_room,
            recycled,
            exploded,
            beyond_quantum,
            flows_known,
            flows_left_out,
            flows: flows.iter().map(one).collect(),
            all: FlowStats {
                flow: "all".into(),
                weight: Weight::ONE.number(),
                inside: scheduler.inside().into(),
                ..counted(&scheduler.totals(), clock)
            },
        }
    }
}

/// Whether any packet arrived.
fn is_used(counters: &Counters) -> bool {
    counters.in_packets + counters.refused > 0
}

fn counted(counters: &Counters, clock_mhz: u64) -> FlowStats {
    FlowStats {
        in_packets: counters.in_packets,
        out_packets: counters.out_packets,
        out_bytes: counters.out_bytes,
        refused: counters.refused,
        consumed: counters.consumed,
        abandoned: counters.abandoned,
        processor_ns: (u128::from(counters.cycles) * 1000 / u128::from(clock_mhz)) as u64,
        ..FlowStats::default()
    }
}
