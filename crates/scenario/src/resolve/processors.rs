//! What a `[[router]]` section says of its processors: who shares them, and how.

use super::{Entry, Resolver};
use crate::file_router;
use crate::finding::{Finding, suggestion};
use crate::forwarder_plan::ForwarderFault;
use crate::processor_terms::{Clock, Predictor, Weighing};
use crate::router_plan::RouterPort;
use crate::written::{Name, Text, Whole, Written};
use longwire_router::{FlowFields, NamedFlow, Rings, RouterPrices, SharingConfig};
use longwire_sched::model::Demand;
use longwire_sched::{Estimator, PerByte, SPECS, Scheduler, Settings, Warning, Weight};
use longwire_units::Nanos;
use std::ops::Range;

/// The scheduler with one queue for all.
pub(super) const FIRST_COME: &str = "fifo";
/// Most processors of a router.
const MOST_PROCESSORS: u64 = 256;
/// Most messages of a ring.
const MOST_MESSAGES: u64 = 1 << 16;
/// How long a program may take unless it is said, in microseconds.
const BUDGET: u64 = 100;
/// What a round gives where nothing is known of what packets cost.
const QUANTUM: Nanos = Nanos::from_micros(20);
/// The longest time that is charged: schedulers compute in 32 bits.
const LONGEST: Nanos = Nanos::from_micros(4_290_000);
/// How many packets are inside where that is not said: so many for each flow known at once, within these
/// bounds. The most of them take half of the memory that packets have at first.
const EACH: u64 = 4;
const PACKETS: (u64, u64) = (4096, 65_536);
/// Bytes of Ethernet's header, which an MTU does not count.
const ETHERNET: u32 = 14;

impl Resolver<'_, '_> {
    /// How a router's processors are shared; none within if they are not, none after an error.
    pub(super) fn processors(
        &mut self,
        entry: &Entry<'_>,
        written: &file_router::Router,
        (ports, prices): (&[RouterPort], &RouterPrices),
    ) -> Option<Option<SharingConfig>> {
        let Some(scheduler) = &written.scheduler else {
            let Some((key, span)) = first_key(written) else { return Some(None) };
            let what = format!("{key} is about processors that flows share, and there is no scheduler");
            let fix = "add one, such as scheduler = \"gmr3\" (docs/book/sharing.md says which there are), or \
                leave it out";
            self.error(&span, entry, key, what, fix);
            return None;
        };
        let Text(name) = self.term(entry, "scheduler", scheduler)?;
        if !SPECS.iter().any(|spec| spec.name == name) {
            let names: Vec<_> = SPECS.iter().map(|spec| spec.name).collect();
            let fix = match suggestion(&name, names.iter().copied()) {
                Some(near) => format!("did you mean \"{near}\"?"),
                None => format!("there are {}", names.join(", ")),
            };
            self.error(&scheduler.span, entry, "scheduler", format!("there is no scheduler \"{name}\""), fix);
            return None;
        }
        let flows = self.named_flows(entry, written)?;
        let cycles = match &written.cycles {
            Some(cycles) => Some(self.term(entry, "cycles", cycles)?.0),
            None => None,
        };
        let longest = ports.iter().map(|port| port.mtu + ETHERNET).max().unwrap_or_default();
        let mut settings = self.settings(entry, written, longest)?;
        settings.ports = u16::try_from(ports.len()).unwrap_or(u16::MAX);
        if name == FIRST_COME && written.flow_limit.is_none() {
            // With a limit for each flow, flows that are over it would all get the same, whoever comes first.
            settings.flow_limit = settings.packets;
        }
        let config = SharingConfig {
            scheduler: name.into(),
            fields: self.flow_fields(entry, written)?,
            rings: self.rings(entry, written)?,
            settings,
            flows,
            cycles,
        };
        self.checked(entry, written, config, prices).map(Some)
    }

    /// Why these processors can't be threads, as they are in real time.
    pub(super) fn beyond_threads(
        &self,
        entry: &Entry<'_>,
        written: &file_router::Router,
        sharing: Option<&SharingConfig>,
    ) -> Option<Finding> {
        let (sharing, rings) = (sharing?, written.rings.as_ref()?);
        let (requests, processors) = (sharing.rings.requests, sharing.settings.processors);
        let most = sharing.most_requests().filter(|most| requests > *most)?;
        let span = rings.requests.as_ref()?.span.clone();
        let what = format!(
            "{requests} is too much before each of {processors} processors in real time, where they are \
             threads"
        );
        Some(self.findings.finding(
            &span,
            &entry.field("rings.requests"),
            what,
            format!("give {most} or less"),
        ))
    }

    fn settings(
        &mut self,
        entry: &Entry<'_>,
        written: &file_router::Router,
        longest: u32,
    ) -> Option<Settings> {
        let default = Settings::default();
        let processors =
            self.whole_or(entry, "processors", written.processors.as_ref(), 1, 1..=MOST_PROCESSORS)?;
        let Clock(clock_mhz) = self.term_or(entry, "clock", written.clock.as_ref(), Clock(1000))?;
        let port = match &written.port_rate {
            Some(rate) => PerByte::of_rate(self.term(entry, "port-rate", rate)?.0.0),
            None => PerByte::of_rate(0),
        };
        let charged = match &written.byte_charge {
            Some(time) => {
                let Nanos(ns) =
                    self.term_in(entry, "byte-charge", Some(time), Nanos::ZERO, Nanos::ZERO..=LONGEST)?;
                PerByte::of_ns(ns as u32)
            }
            None => port,
        };
        let most = u64::from(u32::MAX);
        let budget_default = (BUDGET * u64::from(clock_mhz)).min(1 << 30);
        let budget = self.whole_or(entry, "budget", written.budget.as_ref(), budget_default, 1..=1 << 30)?;
        let first = match &written.first_estimate {
            Some(first) => Some(self.whole_or(entry, "first-estimate", Some(first), 0, 0..=budget)?),
            None => None,
        };
        let Predictor(estimator) =
            self.term_or(entry, "estimator", written.estimator.as_ref(), Predictor(Estimator::HALF))?;
        let flow_limit = self.whole_or(
            entry,
            "flow-limit",
            written.flow_limit.as_ref(),
            default.flow_limit.into(),
            1..=most,
        )?;
        let flows = self.whole_or(entry, "flow-table", written.flow_table.as_ref(), 1024, 1..=1 << 22)?;
        let enough = (EACH * flows).clamp(PACKETS.0, PACKETS.1);
        let packets = self.whole_or(entry, "packets", written.packets.as_ref(), enough, 1..=1 << 20)?;
        let quantum_bytes = self.whole_or(
            entry,
            "quantum-bytes",
            written.quantum_bytes.as_ref(),
            longest.max(default.quantum_bytes).into(),
            1..=most,
        )?;
        let quantum =
            self.term_in(entry, "quantum", written.quantum.as_ref(), QUANTUM, Nanos(1)..=LONGEST)?;
        Some(Settings {
            flows: flows as u32,
            packets: packets as u32,
            flow_limit: flow_limit as u32,
            processors: processors as u32,
            clock_mhz,
            port,
            charged,
            quantum,
            quantum_bytes: quantum_bytes as u32,
            dovetail: self.term_or(entry, "dovetail", written.dovetail.as_ref(), default.dovetail)?,
            estimator,
            first_estimate: first,
            budget,
            longest,
            ..default
        })
    }

    fn rings(&mut self, entry: &Entry<'_>, written: &file_router::Router) -> Option<Rings> {
        let default = Rings::default();
        let Some(rings) = &written.rings else { return Some(default) };
        let mut ring = |key, text: &Option<Written<Whole>>, default: usize| {
            self.whole_or(entry, key, text.as_ref(), default as u64, 1..=MOST_MESSAGES)
        };
        Some(Rings {
            input: ring("rings.input", &rings.input, default.input)? as usize,
            requests: ring("rings.requests", &rings.requests, default.requests)? as usize,
            feedback: ring("rings.feedback", &rings.feedback, default.feedback)? as usize,
            ready: ring("rings.ready", &rings.ready, default.ready as usize)? as u32,
            step: self.term_in(
                entry,
                "rings.step",
                rings.step.as_ref(),
                default.step,
                Nanos::ZERO..=LONGEST,
            )?,
        })
    }

    fn flow_fields(&mut self, entry: &Entry<'_>, written: &file_router::Router) -> Option<FlowFields> {
        if written.flow_key.0.is_empty() {
            return Some(FlowFields::default());
        }
        let mut fields = FlowFields {
            source: false,
            source_port: false,
            destination: false,
            destination_port: false,
            protocol: false,
        };
        for text in &written.flow_key.0 {
            let Text(name) = self.term(entry, "flow-key", text)?;
            let field = match &*name {
                "source" => &mut fields.source,
                "source-port" => &mut fields.source_port,
                "destination" => &mut fields.destination,
                "destination-port" => &mut fields.destination_port,
                "protocol" => &mut fields.protocol,
                _ => {
                    let fix = "give source, source-port, destination, destination-port, protocol, or several \
                        of them";
                    self.error(&text.span, entry, "flow-key", format!("packets have no \"{name}\""), fix);
                    return None;
                }
            };
            *field = true;
        }
        Some(fields)
    }

    fn named_flows(&mut self, entry: &Entry<'_>, written: &file_router::Router) -> Option<Vec<NamedFlow>> {
        let mut flows: Vec<NamedFlow> = Vec::with_capacity(written.flows.len());
        for flow in &written.flows {
            let Name(name) = self.term(entry, "flows.name", &flow.name)?;
            if flows.iter().any(|other| other.name == name) {
                let what = format!("there are two flows named \"{name}\"");
                self.error(&flow.name.span, entry, "flows.name", what, "give each a name of its own");
                return None;
            }
            let key = match flow.key.text().read() {
                Ok(key) => key,
                Err(ForwarderFault { why, .. }) => {
                    self.error(&flow.name.span, entry, "flows.key", why, "");
                    return None;
                }
            };
            if let Some(other) = flows.iter().find(|other| other.key == key) {
                let what = format!(
                    "flow \"{name}\" has the key of flow \"{}\", whose packets they all are",
                    other.name
                );
                let fix = "give it a key of its own, or leave it out";
                self.findings.note(flow.name.span.clone(), &entry.field("flows.key"), what, fix);
            }
            let Weighing(weight) =
                self.term_or(entry, "flows.weight", flow.weight.as_ref(), Weighing(Weight::ONE))?;
            let cycles = match &flow.cycles {
                Some(cycles) => Some(self.term(entry, "flows.cycles", cycles)?.0),
                None => None,
            };
            flows.push(NamedFlow { name, key, weight, cycles });
        }
        Some(flows)
    }

    /// Looks at it all together: a quantum that was not given becomes the largest cost that is known of, and
    /// one that is below that is warned of.
    fn checked(
        &mut self,
        entry: &Entry<'_>,
        written: &file_router::Router,
        mut config: SharingConfig,
        prices: &RouterPrices,
    ) -> Option<SharingConfig> {
        let span = |text: Option<Range<usize>>| text.unwrap_or_else(|| written.name.span.clone());
        let ports = usize::from(config.settings.ports);
        let (flows, named) = (config.settings.flows as usize, config.flows.len() * ports);
        if flows <= named {
            let place = span(written.flow_table.as_ref().map(|text| text.span.clone()));
            let what = format!(
                "there is room for {}, and {}",
                counted(flows as u64, "flow"),
                places(config.flows.len() as u64, ports as u64)
            );
            self.error(&place, entry, "flow-table", what, format!("give {} or more", named + 1));
            return None;
        }
        // A small one of the same kind says what is wrong, and what a packet costs.
        let (most, is_most) = most_cycles(&config, written.budget.is_some(), prices);
        let budget = most.min(config.settings.budget);
        let small = Settings {
            flows: 1,
            packets: 1,
            budget: budget.max(1),
            first_estimate: None,
            ..config.settings.clone()
        };
        let scheduler = match Scheduler::new(&config.scheduler, &small) {
            Ok(scheduler) => scheduler,
            Err(error) => {
                let place = span(written.scheduler.as_ref().map(|text| text.span.clone()));
                self.error(&place, entry, "scheduler", error.to_string(), "");
                return None;
            }
        };
        if written.quantum.is_none()
            && let Some(largest) = scheduler.largest_cost()
        {
            let least = if is_most { 1 } else { QUANTUM.0 };
            config.settings.quantum = Nanos(largest.clamp(least, LONGEST.0));
        }
        for warning in scheduler.warnings() {
            let Warning::QuantumBelowCost { field, quantum, largest, .. } = warning;
            let is_time = field == "quantum";
            let place = match is_time {
                true => written.quantum.as_ref().map(|text| text.span.clone()),
                false => written.quantum_bytes.as_ref().map(|text| text.span.clone()),
            };
            // What was not given has been made large enough.
            let Some(place) = place else { continue };
            let told = |number| if is_time { Nanos(number).to_string() } else { counted(number, "byte") };
            let (quantum, largest) = (told(quantum), told(largest));
            let what = format!(
                "{quantum} is below what a packet may cost, {largest}: such a packet waits for several rounds"
            );
            let key = if is_time { "quantum" } else { "quantum-bytes" };
            self.findings.note(place, &entry.field(key), what, format!("give {largest} or more"));
        }
        self.sharing_doubts(entry, written, &config);
        Some(config)
    }
}

/// So many of them: `1 packet`, `2 packets`.
pub(super) fn counted(number: u64, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}

/// How many places so many flows with names take, one for each port that they may go to.
fn places(named: u64, ports: u64) -> String {
    let flows = counted(named, "flow");
    let (have, each) = if named == 1 { ("has a name", "with") } else { ("have names", "each with") };
    match (named, ports) {
        (_, 1) => format!("{flows} {have}"),
        _ => format!("{flows} {have}, {each} a place for every one of {ports} ports: {}", named * ports),
    }
}

/// What the most expensive packet takes in cycles, as far as anything says so, and whether none takes more.
fn most_cycles(config: &SharingConfig, has_budget: bool, prices: &RouterPrices) -> (u64, bool) {
    let longest = u64::from(config.settings.longest);
    let most = |demand: Demand| match demand {
        Demand::PerPacket(cycles) => cycles,
        Demand::BySize { base, per_byte } => base.saturating_add(per_byte.saturating_mul(longest)),
        Demand::Drawn { to, .. } => to,
        Demand::Endless => u64::MAX,
    };
    let of_all = config.cycles.map(most).or(has_budget.then_some(config.settings.budget));
    // The router's own work, in picoseconds: programs come on top of it.
    let own =
        || (prices.classify + prices.forward).saturating_mul(config.settings.clock_mhz.into()) / 1_000_000;
    let named = config.flows.iter().filter_map(|flow| flow.cycles).map(most);
    (named.fold(of_all.unwrap_or_else(own), u64::max), of_all.is_some())
}

/// The first key of a section that is about processors.
fn first_key(written: &file_router::Router) -> Option<(&'static str, Range<usize>)> {
    fn place<T>(key: &'static str, text: Option<&Written<T>>) -> Option<(&'static str, Range<usize>)> {
        text.map(|text| (key, text.span.clone()))
    }
    let name = written.name.span.clone();
    place("processors", written.processors.as_ref())
        .or_else(|| place("clock", written.clock.as_ref()))
        .or_else(|| place("port-rate", written.port_rate.as_ref()))
        .or_else(|| place("byte-charge", written.byte_charge.as_ref()))
        .or_else(|| place("cycles", written.cycles.as_ref()))
        .or_else(|| place("budget", written.budget.as_ref()))
        .or_else(|| place("quantum", written.quantum.as_ref()))
        .or_else(|| place("quantum-bytes", written.quantum_bytes.as_ref()))
        .or_else(|| place("dovetail", written.dovetail.as_ref()))
        .or_else(|| place("estimator", written.estimator.as_ref()))
        .or_else(|| place("first-estimate", written.first_estimate.as_ref()))
        .or_else(|| place("flow-limit", written.flow_limit.as_ref()))
        .or_else(|| place("flow-table", written.flow_table.as_ref()))
        .or_else(|| place("packets", written.packets.as_ref()))
        .or_else(|| place("flow-key", written.flow_key.0.first()))
        .or_else(|| place("flows", written.flows.first().map(|flow| &flow.name)))
        .or_else(|| written.rings.is_some().then_some(("rings", name)))
}
