//! Warnings about shared processors: limits that are too small.

use super::{Entry, Resolver};
use crate::file_router;
use longwire_router::SharingConfig;
use longwire_sched::model::Demand;
use longwire_sched::{Scheduler, Settings, Weight};
use longwire_units::counted;
use std::ops::Range;

/// Least packets for each flow: one that is processed or sent, and one that waits meanwhile.
const LEAST_EACH: u64 = 2;
/// Most packets inside.
const MOST_PACKETS: u64 = 1 << 20;

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
    /// Warns about a router's limits that are too small.
    pub(super) fn sharing_warnings(
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

    /// Warns of room for fewer packets than the flows need.
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

/// Flows with `cycles`, and all others if the router has them.
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

/// Flows with weights whose cost is the router's `cycles`.
fn weighty<'a>(written: &'a file_router::Router, config: &SharingConfig) -> impl Iterator<Item = Costs<'a>> {
    let silent =
        written.flows.iter().zip(&config.flows).filter(|(written, _)| written.span("cycles").is_none());
    silent.filter_map(|(own, flow)| {
        let span = own.span("weight")?;
        let (of, weight) = (format!("flow \"{}\"", flow.name), flow.weight.number());
        Some(Costs { of, weight, demand: config.cycles?, span, key: "flows.weight" })
    })
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
