//! Processors of `[[router]]` that flows share.

use super::{Entry, Resolver};
use crate::file_router;
use crate::finding::Finding;
use crate::router_plan::RouterPort;
use crate::settings::{FlowSettings, LONGEST, RingSettings, RouterSettings, SchedulerName};
use crate::written::{Name, Text};
use longwire_block::Settings as _;
use longwire_router::{FlowFields, NamedFlow, RouterPrices, SharingConfig};
use longwire_sched::model::Demand;
use longwire_sched::{PerByte, Scheduler, Settings, Warning, Weight};
use longwire_units::{Nanos, counted};
use std::collections::{HashMap, HashSet};
use std::ops::Range;

/// The scheduler with one queue for all.
pub(super) const FIRST_COME: &str = "fifo";
/// Default budget of a program in microseconds.
const BUDGET: u64 = 100;
/// Default quantum where no cost is known.
const QUANTUM: Nanos = Nanos::from_micros(20);
/// Default number of packets inside: `EACH` for each flow known at once, within these bounds. The maximum
/// takes half of the initial packet memory.
const EACH: u32 = 4;
const PACKETS: (u32, u32) = (4096, 65_536);
/// Fields of packets that distinguish flows, in the order of [`FlowFields`].
const FIELDS: [&str; 5] = ["source", "source-port", "destination", "destination-port", "protocol"];
/// Ethernet header in bytes, which an MTU excludes.
const ETHERNET: u32 = 14;

/// Least packets for each flow: one that is processed or sent, and one that waits meanwhile.
const LEAST_EACH: u64 = 2;
/// Most packets inside.
const MOST_PACKETS: u64 = 1 << 20;

/// The key of a flow whose cost is the router's `cycles`.
const WEIGHT: &str = "flows.weight";

/// Packets with a known cost: of a flow, or of all others.
struct Costs<'a> {
    /// Whose packets, in words.
    of: String,
    weight: u32,
    demand: Demand,
    span: &'a Range<usize>,
    key: &'static str,
}

impl Resolver<'_, '_> {
    /// How a router's processors are shared, if they are. None after an error.
    pub(super) fn processors(
        &mut self,
        entry: &Entry<'_>,
        (written, settings): (&file_router::Router, &RouterSettings),
        (ports, prices): (&[RouterPort], &RouterPrices),
    ) -> Option<Option<SharingConfig>> {
        let Some(SchedulerName(scheduler)) = settings.scheduler else {
            let Some((key, span)) = about_processors(written) else { return Some(None) };
            let what = format!("{key} is about processors that flows share, and there is no scheduler");
            let fix = "add one, such as scheduler = \"gmr3\" (docs/book/sharing.md says which there are), or \
                       leave it out";
            return self.refuse(span, entry, key, what, fix);
        };
        let flows = self.named_flows(entry, written)?;
        let longest = ports.iter().map(|port| port.mtu + ETHERNET).max().unwrap_or_default();
        let cycles = settings.cycles.as_deref().copied();
        let mut settings = self.scheduling(entry, written, settings, longest)?;
        settings.ports = u16::try_from(ports.len()).unwrap_or(u16::MAX);
        if scheduler == FIRST_COME && written.span("flow-limit").is_none() {
            // A limit per flow would even out flows regardless of arrival order.
            settings.flow_limit = settings.packets;
        }
        let config = SharingConfig {
            scheduler: scheduler.into(),
            fields: self.flow_fields(entry, written)?,
            rings: self.subtable::<_, RingSettings>(entry, "rings", written.rings.as_ref())?.rings(),
            settings,
            flows,
            cycles,
        };
        self.checked(entry, written, config, prices).map(Some)
    }

    /// Why these processors can't be threads in real time.
    pub(super) fn beyond_threads(
        &self,
        entry: &Entry<'_>,
        written: &file_router::Router,
        sharing: Option<&SharingConfig>,
    ) -> Option<Finding> {
        let sharing = sharing?;
        let (requests, processors) = (sharing.rings.requests, sharing.settings.processors);
        let most = sharing.most_requests().filter(|most| requests > *most)?;
        let span = written.rings.as_ref()?.span("requests")?;
        let what = format!(
            "{requests} is too much before each of {processors} processors in real time, where they are \
             threads"
        );
        let (field, fix) = (entry.field("rings.requests"), format!("give {most} or less"));
        Some(self.findings.finding(span, &field, what, fix))
    }

    /// The scheduler's settings.
    fn scheduling(
        &mut self,
        entry: &Entry<'_>,
        written: &file_router::Router,
        settings: &RouterSettings,
        longest: u32,
    ) -> Option<Settings> {
        let default = Settings::default();
        let port = PerByte::of_rate(settings.port_rate.as_ref().map_or(0, |rate| rate.0));
        let budget = settings.budget.unwrap_or((BUDGET * u64::from(*settings.clock)).min(1 << 30));
        if let Some(first) = settings.first_estimate.filter(|first| *first > budget) {
            let what = format!("{first} is out of range: 0 to {budget}");
            return self.refuse(written.span("first-estimate")?, entry, "first-estimate", what, "");
        }
        let enough = (EACH * settings.flow_table).clamp(PACKETS.0, PACKETS.1);
        Some(Settings {
            flows: settings.flow_table,
            packets: settings.packets.unwrap_or(enough),
            flow_limit: settings.flow_limit.unwrap_or(default.flow_limit),
            processors: settings.processors,
            clock_mhz: *settings.clock,
            port,
            charged: settings.byte_charge.map_or(port, |Nanos(ns)| PerByte::of_ns(ns as u32)),
            quantum: settings.quantum.unwrap_or(QUANTUM),
            quantum_bytes: settings.quantum_bytes.unwrap_or(longest.max(default.quantum_bytes)),
            dovetail: settings.dovetail.unwrap_or(Nanos::NEVER),
            estimator: *settings.estimator,
            first_estimate: settings.first_estimate,
            budget,
            longest,
            ..default
        })
    }

    fn flow_fields(&mut self, entry: &Entry<'_>, written: &file_router::Router) -> Option<FlowFields> {
        if written.flow_key.0.is_empty() {
            return Some(FlowFields::default());
        }
        let mut given = [false; FIELDS.len()];
        for text in &written.flow_key.0 {
            let Text(name) = self.term(entry, "flow-key", text)?;
            let Some(place) = FIELDS.iter().position(|field| *field == name) else {
                let fix = format!("give {}, or several of them", FIELDS.join(", "));
                let what = format!("packets have no \"{name}\"");
                return self.refuse(&text.span, entry, "flow-key", what, fix);
            };
            given[place] = true;
        }
        let [source, source_port, destination, destination_port, protocol] = given;
        Some(FlowFields { source, source_port, destination, destination_port, protocol })
    }

    fn named_flows(&mut self, entry: &Entry<'_>, written: &file_router::Router) -> Option<Vec<NamedFlow>> {
        let mut flows: Vec<NamedFlow> = Vec::with_capacity(written.flows.len());
        let (mut names, mut keys) = (HashSet::new(), HashMap::new());
        for flow in &written.flows {
            let Name(name) = self.term(entry, "flows.name", &flow.name)?;
            if !names.insert(name.clone()) {
                let what = format!("there are two flows named \"{name}\"");
                let fix = "give each a name of its own";
                return self.refuse(&flow.name.span, entry, "flows.name", what, fix);
            }
            let key = flow.key.text().read().map_err(|fault| fault.why);
            let key = self.accept(&flow.name.span, entry, "flows.key", key)?;
            let first = keys.entry(key).or_insert_with(|| name.clone());
            if *first != name {
                let what = format!(
                    "flow \"{name}\" has the same key as flow \"{first}\", which gets all the packets"
                );
                let fix = "give it a key of its own, or leave it out";
                self.findings.note(flow.name.span.clone(), &entry.field("flows.key"), what, fix);
            }
            let FlowSettings { weight, cycles } = self.subtable(entry, "flows", Some(flow))?;
            let weight = Weight::new(weight.into()).ok()?;
            flows.push(NamedFlow { name, key, weight, cycles: cycles.as_deref().copied() });
        }
        Some(flows)
    }

    /// Checks the whole: a missing quantum becomes the largest known cost, and a smaller one is warned of.
    fn checked(
        &mut self,
        entry: &Entry<'_>,
        written: &file_router::Router,
        mut config: SharingConfig,
        prices: &RouterPrices,
    ) -> Option<SharingConfig> {
        let span = |key| written.span(key).unwrap_or(&written.name.span);
        let ports = usize::from(config.settings.ports);
        let (flows, named) = (config.settings.flows as usize, config.flows.len() * ports);
        if flows <= named {
            let what = format!(
                "there is room for {}, and {}",
                counted(flows as u64, "flow"),
                places(config.flows.len() as u64, ports as u64)
            );
            let fix = format!("give {} or more", named + 1);
            return self.refuse(span("flow-table"), entry, "flow-table", what, fix);
        }
        // A small scheduler of the same kind reports errors and the cost of a packet.
        let (most, is_most) = most_cycles(&config, written.span("budget").is_some(), prices);
        let budget = most.min(config.settings.budget);
        let small = Settings {
            flows: 1,
            packets: 1,
            budget: budget.max(1),
            first_estimate: None,
            ..config.settings.clone()
        };
        let scheduler = Scheduler::new(&config.scheduler, &small);
        let scheduler = self.accept(span("scheduler"), entry, "scheduler", scheduler)?;
        if written.span("quantum").is_none()
            && let Some(largest) = scheduler.largest_cost()
        {
            let least = if is_most { 1 } else { QUANTUM.0 };
            config.settings.quantum = Nanos(largest.clamp(least, LONGEST.0));
        }
        for warning in scheduler.warnings() {
            let Warning::QuantumBelowCost { field, quantum, largest, .. } = warning;
            let is_time = field == "quantum";
            let key = if is_time { "quantum" } else { "quantum-bytes" };
            // A default is large enough.
            let Some(place) = written.span(key) else { continue };
            let told = |number| if is_time { Nanos(number).to_string() } else { counted(number, "byte") };
            let (quantum, largest) = (told(quantum), told(largest));
            let what = format!(
                "{quantum} is below what a packet may cost, {largest}: such a packet waits for several rounds"
            );
            self.findings.note(place.clone(), &entry.field(key), what, format!("give {largest} or more"));
        }
        self.sharing_warnings(entry, written, &config);
        Some(config)
    }

    /// Warns about a router's limits that are too small.
    pub(super) fn sharing_warnings(
        &mut self,
        entry: &Entry<'_>,
        written: &file_router::Router,
        config: &SharingConfig,
    ) {
        self.room_for_all(entry, written, config);
        let costs = costs(written, config);
        for own in costs.iter().filter(|own| own.key != WEIGHT) {
            self.budget_for(entry, own, config);
        }
        self.limit_for_a_round(entry, written, &costs, config);
    }

    /// Warns of room for fewer packets than the flows need.
    fn room_for_all(&mut self, entry: &Entry<'_>, written: &file_router::Router, config: &SharingConfig) {
        let (packets, flows) = (u64::from(config.settings.packets), u64::from(config.settings.flows));
        let mut keys = ["packets", "flow-table"].into_iter();
        let Some((key, span)) = keys.find_map(|key| Some((key, written.span(key)?))) else { return };
        if config.scheduler.as_ref() == FIRST_COME || packets >= LEAST_EACH * flows {
            return;
        }
        let what = format!(
            "room for {} is not enough for {} (flow-table): if all have some, not each has one that waits \
             when its turn comes",
            counted(packets, "packet"),
            counted(flows, "flow")
        );
        let mut fix = format!("give packets = {} or more", (LEAST_EACH * flows).min(MOST_PACKETS));
        // No table is small enough for fewer packets than one flow needs.
        if packets >= LEAST_EACH {
            fix += &format!(", or flow-table = {} or less", packets / LEAST_EACH);
        }
        self.findings.note(span.clone(), &entry.field(key), what, fix);
    }

    /// Warns of packets that always exceed the budget.
    fn budget_for(&mut self, entry: &Entry<'_>, own: &Costs<'_>, config: &SharingConfig) {
        let budget = config.settings.budget;
        let Some(least) = least_cycles(own.demand).filter(|least| *least > budget) else { return };
        let what = format!(
            "each packet of {} takes at least {} in virtual time, and is stopped and lost after {budget} \
             (budget)",
            own.of,
            counted(least, "cycle")
        );
        let fix = match least <= 1 << 30 {
            true => format!("give budget = {least} or more, or fewer cycles"),
            false => "give fewer cycles".into(),
        };
        self.findings.note(own.span.clone(), &entry.field(own.key), what, fix);
    }

    /// Warns of the flow that exceeds its limit most: its weight lets it send more in a turn than may wait.
    fn limit_for_a_round(
        &mut self,
        entry: &Entry<'_>,
        written: &file_router::Router,
        costs: &[Costs<'_>],
        config: &SharingConfig,
    ) {
        let limit = u64::from(config.settings.flow_limit);
        let turns = costs.iter().filter_map(|own| Some((packets_of_a_turn(own, config)?, own)));
        let Some((turn, own)) = turns.max_by_key(|(turn, _)| *turn).filter(|(turn, _)| *turn > limit) else {
            return;
        };
        let what = format!(
            "{} of {} may wait (flow-limit), and in a turn its weight lets it send {turn}: it may run empty \
             before it has had its share",
            counted(limit, "packet"),
            own.of
        );
        let room = room_for_turns(turn, own.weight, config);
        let fix = match room {
            room if room > MOST_PACKETS => "make its weight, or the quantum, smaller".into(),
            room if room > u64::from(config.settings.packets) => {
                format!("give flow-limit = {turn} or more, and packets = {room} or more")
            }
            _ => format!("give flow-limit = {turn} or more"),
        };
        let (span, key) = match written.span("flow-limit") {
            Some(span) => (span, "flow-limit"),
            None => (own.span, own.key),
        };
        self.findings.note(span.clone(), &entry.field(key), what, fix);
    }
}

/// The places that named flows take, one per port.
fn places(named: u64, ports: u64) -> String {
    let flows = counted(named, "flow");
    let (have, each) = if named == 1 { ("has a name", "with") } else { ("have names", "each with") };
    match (named, ports) {
        (_, 1) => format!("{flows} {have}"),
        _ => format!("{flows} {have}, {each} a place for every one of {ports} ports: {}", named * ports),
    }
}

/// The most expensive packet in cycles, as far as known, and whether that is a bound.
fn most_cycles(config: &SharingConfig, has_budget: bool, prices: &RouterPrices) -> (u64, bool) {
    let longest = u64::from(config.settings.longest);
    let most = |demand: Demand| match demand {
        Demand::PerPacket(cycles) => cycles,
        Demand::BySize { base, per_byte } => base.saturating_add(per_byte.saturating_mul(longest)),
        Demand::Drawn { to, .. } => to,
        Demand::Endless => u64::MAX,
    };
    let of_all = config.cycles.map(most).or(has_budget.then_some(config.settings.budget));
    // The router's own work in picoseconds, without programs.
    let own =
        || (prices.classify + prices.forward).saturating_mul(config.settings.clock_mhz.into()) / 1_000_000;
    let named = config.flows.iter().filter_map(|flow| flow.cycles).map(most);
    (named.fold(of_all.unwrap_or_else(own), u64::max), of_all.is_some())
}

/// The first key of a section that concerns processors, besides the scheduler: settings declared after it,
/// flows and rings.
fn about_processors(written: &file_router::Router) -> Option<(&'static str, &Range<usize>)> {
    let settings = RouterSettings::SPEC.params.iter().map(|param| param.name);
    let settings = settings.skip_while(|name| *name != "scheduler").skip(1);
    let lists = [
        ("flow-key", written.flow_key.0.first().map(|text| &text.span)),
        ("flows", written.flows.first().map(|flow| &flow.name.span)),
        ("rings", written.rings.as_ref().map(|_| &written.name.span)),
    ];
    let mut keys = settings.map(|name| (name, written.span(name))).chain(lists);
    keys.find_map(|(key, span)| Some((key, span?)))
}

/// Flows with `cycles`, all others if the router has them, and then flows with weights whose cost is the
/// router's `cycles`.
fn costs<'a>(written: &'a file_router::Router, config: &SharingConfig) -> Vec<Costs<'a>> {
    let named = written.flows.iter().zip(&config.flows).filter_map(|(written, flow)| {
        let (key, span, demand) = match written.span("cycles") {
            Some(span) => ("flows.cycles", span, flow.cycles?),
            None => (WEIGHT, written.span("weight")?, config.cycles?),
        };
        let (of, weight) = (format!("flow \"{}\"", flow.name), flow.weight.number());
        Some(Costs { of, weight, demand, span, key })
    });
    let others = written.span("cycles").zip(config.cycles).map(|(span, demand)| Costs {
        of: "a flow without cycles of its own".into(),
        weight: Weight::ONE.number(),
        demand,
        span,
        key: "cycles",
    });
    let mut costs: Vec<Costs<'a>> = named.chain(others).collect();
    costs.sort_by_key(|own| own.key == WEIGHT);
    costs
}

/// The least cost of a packet; none for endless ones, which are meant to be stopped.
const fn least_cycles(demand: Demand) -> Option<u64> {
    match demand {
        Demand::PerPacket(least) | Demand::BySize { base: least, .. } | Demand::Drawn { from: least, .. } => {
            Some(least)
        }
        Demand::Endless => None,
    }
}

/// Packets that a flow may send in its turn, where each costs the same and the scheduler has a quantum: for
/// the longest packets, if length matters.
fn packets_of_a_turn(own: &Costs<'_>, config: &SharingConfig) -> Option<u64> {
    let Demand::PerPacket(cycles @ 1..) = own.demand else { return None };
    let budget = cycles.min(config.settings.budget);
    let small = Settings { flows: 1, packets: 1, budget, first_estimate: None, ..config.settings.clone() };
    let cost = Scheduler::new(&config.scheduler, &small).ok()?.largest_cost().filter(|cost| *cost > 0)?;
    let quantum = config.settings.quantum.0;
    let credit = match config.scheduler.as_ref() {
        // Groups of similar weights: heavy flows have more turns of one or two quanta.
        "gmr3" => (quantum * u64::from(own.weight)) >> own.weight.ilog2(),
        _ => quantum * u64::from(own.weight),
    };
    Some(credit.div_ceil(cost))
}

/// The room in which a flow of this weight may hold `packets` while all named flows, and one unnamed, hold
/// their maximum: half is shared equally, half by weight, as if there were one flow more, and 1/256 is
/// reserved.
fn room_for_turns(packets: u64, weight: u32, config: &SharingConfig) -> u64 {
    let flows = config.flows.len() as u128 + 2;
    let weights = config.flows.iter().map(|flow| u128::from(flow.weight.number())).sum::<u128>() + 2;
    let part = 255 * (weights + u128::from(weight) * flows);
    let room = (512 * u128::from(packets) * flows * weights).div_ceil(part) + 2;
    u64::try_from(room).unwrap_or(u64::MAX)
}
