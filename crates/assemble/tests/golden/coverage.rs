//! Coverage: the features that the cases contain and trigger, and those that they must.

use super::cases::Case;
use super::draw;
use super::trace::{PacketView, Trace, read};
use longwire_assemble::{TO_THE_END, port_workers};
use longwire_block::DropReason;
use longwire_engine::Report;
use longwire_link::{MEDIA, without};
use longwire_program::ShippedForwarder;
use longwire_scenario::{Plan, RouteChange};
use std::collections::{BTreeSet, HashSet};

/// Drops that no case has: memory and rings are large enough by design, ports always accept packets, no chain
/// of links duplicates, and no service drops packets or exceeds its guarantee.
const OUT_OF_REACH: &[&str] = &[
    "pool-full",
    "ring-full",
    "port-down",
    "port-mtu",
    "port-full",
    "loop",
    "level-full",
    "level-late",
    "service",
    // The cases are of nets that stay as they are; `rewiring.rs` draws links that come and go.
    "link-removed",
];

/// Features covered, by name.
#[derive(Debug, Default)]
pub struct Coverage(BTreeSet<String>);

impl Coverage {
    /// The features of a case and its run.
    pub fn of(case: &Case, plan: &Plan, trace: &Trace, report: &Report) -> Self {
        let mut met = Self::default();
        met.made_of(plan);
        met.changes(plan);
        met.workers(case);
        met.trains(trace);
        met.outcome(plan, report);
        met.when(case.until != TO_THE_END, "a run cut short");
        met.when(plan.engine.tick.0 > 0, "ticks");
        met
    }

    pub fn add(&mut self, other: &Self) {
        self.0.extend(other.0.iter().cloned());
    }

    /// The blocks of a case's links.
    pub fn blocks(&self) -> Vec<&str> {
        self.0.iter().filter_map(|name| name.strip_prefix("block ")).collect()
    }

    /// Required features that were not covered.
    pub fn missing(&self) -> Vec<String> {
        wanted().into_iter().filter(|name| !self.0.contains(name)).collect()
    }

    /// Covered features that should be impossible.
    pub fn reached_nevertheless(&self) -> Vec<String> {
        let names = OUT_OF_REACH.iter().map(|reason| format!("drop {reason}"));
        names.filter(|name| self.0.contains(name)).collect()
    }

    fn met(&mut self, name: impl Into<String>) {
        self.0.insert(name.into());
    }

    fn when(&mut self, is_so: bool, name: &str) {
        if is_so {
            self.met(name);
        }
    }

    fn made_of(&mut self, plan: &Plan) {
        for link in &plan.links {
            for (spec, values) in &plan.profiles[link.profile as usize].blocks {
                self.met(format!("block {}/{}", spec.key, spec.kind));
                for (param, value) in spec.params.iter().zip(values.as_slice()) {
                    let default = param.default.value().and_then(|text| param.read(text).ok());
                    self.when(
                        default.as_ref() != Some(value),
                        &format!("parameter {}/{} {}", spec.key, spec.kind, param.name),
                    );
                }
            }
        }
        plan.media.iter().for_each(|medium| self.met(format!("medium {}", medium.spec.kind)));
        for router in &plan.routers {
            if let Some(sharing) = &router.sharing {
                self.met(format!("scheduler {}", sharing.scheduler));
            }
        }
        for forwarder in &plan.forwarders {
            self.met(format!("program {}", forwarder.request.installation.name));
        }
        self.when(!plan.hosts.is_empty(), "hosts");
        self.when(plan.bridges.iter().any(|bridge| bridge.declared), "bridges");
        self.when(plan.sources.iter().any(|source| source.count.is_some()), "sources");
        self.when(
            plan.pair_rules.iter().any(|rule| plan.routes.links(&rule.route).len() > 1),
            "several hops",
        );
    }

    fn changes(&mut self, plan: &Plan) {
        for event in &plan.events {
            self.when(event.ramp.is_some(), "ramps");
            self.when(event.repeat.is_some_and(|repeat| repeat.times.is_some()), "repetitions");
            self.when(event.repeat.is_some_and(|repeat| repeat.times.is_none()), "endless repetitions");
            let what = match (event.sources.is_empty(), event.media.is_empty()) {
                (false, _) => "source",
                (_, false) => "medium",
                _ => "link",
            };
            for edit in &*event.edits {
                self.met(format!("change of a {what}: {}/{}", edit.spec.key, edit.spec.kind));
                self.met(format!("change of a {what}"));
            }
        }
        for event in &plan.router_events {
            self.when(event.weight.is_some(), "change of a weight");
            for change in &event.changes {
                self.met(match change {
                    RouteChange::Add(_) => "route added",
                    RouteChange::Remove(_) | RouteChange::RemoveDefault => "route removed",
                });
            }
        }
    }

    fn workers(&mut self, case: &Case) {
        for workers in 2..=4 {
            let plan = read(case, workers).expect("it was read before");
            let used: HashSet<u32> = port_workers(&plan).into_iter().collect();
            self.met(format!("ports on {} workers", used.len()));
        }
    }

    fn trains(&mut self, trace: &Trace) {
        let is_train = |view: &&PacketView| view.segments > 1;
        let left = || trace.left.iter().flatten();
        let came: HashSet<u32> = trace.entered.iter().filter(is_train).map(|view| view.len).collect();
        self.when(left().any(|view| view.segments > 1 && came.contains(&view.len)), "trains that stay whole");
        self.when(left().any(|view| view.segments > 1 && !came.contains(&view.len)), "trains that are cut");
        self.when(left().any(|view| view.checksum.0 == 1), "open checksums");
    }

    fn outcome(&mut self, plan: &Plan, report: &Report) {
        for link in &report.links {
            let stats = &link.stats;
            stats.drops.iter().for_each(|(name, _)| self.met(format!("drop {name}")));
            self.when(stats.steered_packets > 0, "steering");
            self.when(stats.made_packets > stats.consumed_packets, "copies");
            self.when(stats.consumed_packets > 0, "background traffic");
            self.when(stats.marked_packets > 0, "marks");
            self.when(stats.corrupted_packets > 0, "corruption");
            self.when(stats.collisions > 0, "collisions");
        }
        report.flow.drops.iter().for_each(|(name, _)| self.met(format!("drop {name}")));
        for node in &report.nodes {
            self.met("routers");
            node.stats.exceptions.iter().for_each(|(name, _)| self.met(format!("exception {name}")));
            self.when(!node.stats.policed.is_empty(), "policing");
            self.when(node.stats.errors > 0, "errors of routers");
            for level in node.stats.levels.iter().filter(|level| level.verdicts > 0) {
                self.met(format!("service {}", level.name));
            }
        }
        self.when(plan.routers.is_empty() && report.flow.made > 0, "floods");
    }
}

/// All required features.
fn wanted() -> Vec<String> {
    let mut wanted = Vec::new();
    for spec in draw::kinds() {
        let name = format!("{}/{}", spec.key, spec.kind);
        wanted.extend(spec.params.iter().map(|param| format!("parameter {name} {}", param.name)));
        wanted.push(format!("change of a link: {name}"));
        wanted.push(format!("block {name}"));
        wanted.extend(without(spec.key).map(|none| format!("change of a link: {}/{}", none.key, none.kind)));
    }
    for spec in MEDIA {
        wanted.push(format!("medium {}", spec.kind));
        wanted.push(format!("change of a medium: {}/{}", spec.key, spec.kind));
    }
    wanted.extend(longwire_sched::SPECS.iter().map(|spec| format!("scheduler {}", spec.name)));
    wanted.extend(ShippedForwarder::ALL.iter().map(|shipped| format!("program {}", shipped.name)));
    let reasons = DropReason::ALL.iter().map(|reason| reason.name());
    wanted.extend(reasons.filter(|name| !OUT_OF_REACH.contains(name)).map(|name| format!("drop {name}")));
    wanted.extend((1..=4).map(|workers| format!("ports on {workers} workers")));
    let rest = [
        "a run cut short",
        "ticks",
        "hosts",
        "bridges",
        "routers",
        "sources",
        "several hops",
        "ramps",
        "repetitions",
        "endless repetitions",
        "change of a link",
        "change of a source",
        "change of a medium",
        "change of a weight",
        "route added",
        "route removed",
        "trains that stay whole",
        "trains that are cut",
        "open checksums",
        "steering",
        "copies",
        "background traffic",
        "marks",
        "corruption",
        "collisions",
        "policing",
        "errors of routers",
        "floods",
        "service echo",
        "service witness",
        "exception unresolved",
    ];
    wanted.extend(rest.map(String::from));
    wanted.sort();
    wanted.dedup();
    wanted
}
