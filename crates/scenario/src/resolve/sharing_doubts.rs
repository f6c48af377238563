//! Notes on shared processors: limits that are too small for what is to be served.

use super::processors::counted;
use super::{Entry, Resolver};
use crate::file_router;
use longwire_router::SharingConfig;
use longwire_sched::model::Demand;
use longwire_sched::{Scheduler, Settings, Weight};
use std::ops::Range;

/// What is noted if there are fewer packets for each flow: one that is processed or sent, and one that waits
/// meanwhile.
const LEAST_EACH: u64 = 2;
/// Most packets inside.
const MOST_PACKETS: u64 = 1 << 20;

/// Packets of which something says what they cost: of a flow, or of all others.
struct Costs<'a> {
    /// As it is told.
    of: String,
    weight: u32,
    demand: Demand,
    span: &'a Range<usize>,
    key: &'static str,
}

impl Resolver<'_, '_> {
    /// Notes what of a router's limits is too small.
    pub(super) fn sharing_doubts(
        &mut self,
        entry: &Entry<'_>,
        written: &file_router::Router,
        config: &SharingConfig,
    ) {
        self.room_for_all(entry, written, config);
        let mut costs = costs(written, config);
        for own in &costs {
            self.budget_for(entry, own, config);
        }
        costs.extend(weighty(written, config));
        self.limit_for_a_round(entry, written, &costs, config);
    }

    /// Notes room for fewer packets than as many flows as there may be need.
    fn room_for_all(&mut self, entry: &Entry<'_>, written: &file_router::Router, config: &SharingConfig) {
        let (packets, flows) = (u64::from(config.settings.packets), u64::from(config.settings.flows));
        let mut keys = ["packets", "flow-table"].into_iter();
        let Some((key, span)) = keys.find_map(|key| Some((key, written.span(key)?))) else { return };
        if config.scheduler.as_ref() == super::processors::FIRST_COME || packets >= LEAST_EACH * flows {
            return;
        }
        let what = format!(
            "room for {} is not enough for {} (flow-table): if all have some, not each has one that waits \
             when its turn comes",
            counted(packets, "packet"),
            counted(flows, "flow")
        );
        let mut fix = format!("give packets = {} or more", (LEAST_EACH * flows).min(MOST_PACKETS));
        // For fewer packets than one flow needs no table is small enough.
        if packets >= LEAST_EACH {
            fix += &format!(", or flow-table = {} or less", packets / LEAST_EACH);
        }
        self.findings.note(span.clone(), &entry.field(key), what, fix);
    }

    /// Notes packets all of which cost more than the budget.
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

    /// Notes that fewer packets of a flow may wait than its weight lets it send in its turn: of the flow that
    /// lacks most.
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

/// Flows whose `cycles` are given, and all others if the router's are.
fn costs<'a>(written: &'a file_router::Router, config: &SharingConfig) -> Vec<Costs<'a>> {
    let named = written.flows.iter().zip(&config.flows).filter_map(|(written, flow)| {
        let span = written.span("cycles")?;
        let (of, weight) = (format!("flow \"{}\"", flow.name), flow.weight.number());
        Some(Costs { of, weight, demand: flow.cycles?, span, key: "flows.cycles" })
    });
    let others = written.span("cycles").zip(config.cycles).map(|(span, demand)| Costs {
        of: "a flow without cycles of its own".into(),
        weight: Weight::ONE.number(),
        demand,
        span,
        key: "cycles",
    });
    named.chain(others).collect()
}

/// Flows with weights that cost what the router's `cycles` say.
fn weighty<'a>(written: &'a file_router::Router, config: &SharingConfig) -> impl Iterator<Item = Costs<'a>> {
    let silent =
        written.flows.iter().zip(&config.flows).filter(|(written, _)| written.span("cycles").is_none());
    silent.filter_map(|(own, flow)| {
        let span = own.span("weight")?;
        let (of, weight) = (format!("flow \"{}\"", flow.name), flow.weight.number());
        Some(Costs { of, weight, demand: config.cycles?, span, key: "flows.weight" })
    })
}

/// What every packet takes at least; none for what never ends, which somebody wants to be stopped.
const fn least_cycles(demand: Demand) -> Option<u64> {
    match demand {
        Demand::PerPacket(least) | Demand::BySize { base: least, .. } | Demand::Drawn { from: least, .. } => {
            Some(least)
        }
        Demand::Endless => None,
    }
}

/// How many packets a flow may send in its turn, where each takes the same and the scheduler has a quantum:
/// of the longest packets, if length counts.
fn packets_of_a_turn(own: &Costs<'_>, config: &SharingConfig) -> Option<u64> {
    let Demand::PerPacket(cycles @ 1..) = own.demand else { return None };
    let budget = cycles.min(config.settings.budget);
    let small = Settings { flows: 1, packets: 1, budget, first_estimate: None, ..config.settings.clone() };
    let cost = Scheduler::new(&config.scheduler, &small).ok()?.largest_cost().filter(|cost| *cost > 0)?;
    let quantum = config.settings.quantum.0;
    let credit = match config.scheduler.as_ref() {
        // In groups of like weights heavy flows have more turns, and one or two quanta in each.
        "gmr3" => (quantum * u64::from(own.weight)) >> own.weight.ilog2(),
        _ => quantum * u64::from(own.weight),
    };
    Some(credit.div_ceil(cost))
}

/// The room in which a flow of this weight may hold so many packets while all flows with names, and one
/// without, hold all that they can get: half of it they share alike, the other half by weight, as if there
/// were one flow more, and a 256th is nobody's.
fn room_for_turns(packets: u64, weight: u32, config: &SharingConfig) -> u64 {
    let flows = config.flows.len() as u128 + 2;
    let weights = config.flows.iter().map(|flow| u128::from(flow.weight.number())).sum::<u128>() + 2;
    let part = 255 * (weights + u128::from(weight) * flows);
    let room = (512 * u128::from(packets) * flows * weights).div_ceil(part) + 2;
    u64::try_from(room).unwrap_or(u64::MAX)
}
