//! The API's overview of a run: scheduled changes, and links sorted by counters.

use crate::link_now::LinkNow;
use crate::running_state::{Earlier, RunningState};
use longwire_control::{ObjectNames, ObjectQuery, PlannedEvent, Sort};
use longwire_engine::{LinkReport, Report};
use longwire_scenario::{Event, Plan};
use longwire_units::Nanos;
use std::cmp::Reverse;

/// Most scheduled changes that are listed.
const MOST_LISTED: usize = 1000;
/// Most scheduled changes that are logged at a time, and repetitions of each.
const MOST_NOTED: usize = 100;

/// The scheduled changes of a plan.
pub(crate) fn planned(plan: &Plan) -> Vec<PlannedEvent> {
    let of_links = plan.events.iter().map(|event| PlannedEvent {
        at_ns: event.time.0,
        every_ns: event.repeat.map(|repeat| repeat.every.0),
        times: event.repeat.and_then(|repeat| repeat.times),
        over_ns: event.ramp.map(|ramp| ramp.over.0),
        what: event.describe(plan),
    });
    let of_routers = plan.router_events.iter().map(|event| PlannedEvent {
        at_ns: event.time.0,
        every_ns: None,
        times: None,
        over_ns: None,
        what: event.describe(&plan.routers),
    });
    of_links.chain(of_routers).take(MOST_LISTED).collect()
}

/// Scheduled changes after `since` up to `now`, in order; only some if there are very many. Changes
/// at time 0 are after 0.
pub(crate) fn come(plan: &Plan, since: Nanos, now: Nanos) -> Vec<(Nanos, String)> {
    let times_of = |event: &Event| {
        let at_start = (since == Nanos::ZERO && event.time == Nanos::ZERO).then_some(Nanos::ZERO);
        let mut time = since;
        let later = std::iter::from_fn(|| {
            time = event.next_after(time)?;
            (time <= now).then_some(time)
        });
        at_start.into_iter().chain(later.take(MOST_NOTED)).collect::<Vec<_>>()
    };
    let mut come = Vec::new();
    for event in plan.events.iter().take(MOST_NOTED) {
        come.extend(times_of(event).into_iter().map(|time| (time, event.describe(plan))));
    }
    let of_routers = plan.router_events.iter().filter(|event| event.time > since && event.time <= now);
    come.extend(of_routers.take(MOST_NOTED).map(|event| (event.time, event.describe(&plan.routers))));
    come.sort();
    come
}

/// Names of links by what they have counted in `report`, which was taken so long after the start; of rates,
/// since the `earlier` counters.
pub(crate) fn sorted_links(
    state: &RunningState,
    report: &Report,
    (elapsed, earlier): (Nanos, Option<&Earlier>),
    choice: &ObjectQuery,
    sort: Sort,
) -> ObjectNames {
    let now = |link: &LinkReport| LinkNow::of(state, link, (elapsed, earlier));
    let rates = |link: &LinkReport| now(link).rates.unwrap_or_default();
    // Bits per second, and shares in millionths, are whole numbers here.
    let key = |link: &LinkReport| match sort {
        Sort::Name => 0,
        Sort::In => rates(link).0 as u64,
        Sort::Rate => rates(link).1 as u64,
        Sort::Load => match now(link) {
            LinkNow { down: true, .. } => u64::MAX,
            LinkNow { load, .. } => (load.unwrap_or(0.0) * 1e6) as u64,
        },
        Sort::Carried => link.stats.out_bytes,
        Sort::Queued => link.stats.queued_bytes,
        Sort::Delay => now(link).delay.0,
        Sort::Dropped => link.stats.dropped(),
        Sort::Late => link.stats.max_late.0,
    };
    let all = state.objects.links.names();
    let named = report.links.iter().filter_map(|link| Some((all.get(link.place as usize)?, link)));
    let fitting = named.filter(|(name, _)| choice.has(name));
    let mut found: Vec<_> = fitting.map(|(name, link)| (Reverse(key(link)), link.place, name)).collect();
    type RankedLink<'a> = (Reverse<u64>, u32, &'a String);
    let order = |a: &RankedLink<'_>, b: &RankedLink<'_>| {
        let order = if sort == Sort::Name { a.2.cmp(b.2) } else { (a.0, a.1).cmp(&(b.0, b.1)) };
        if choice.reverse { order.reverse() } else { order }
    };
    let (total, behind) = (found.len(), choice.from.saturating_add(choice.count));
    if behind < total {
        found.select_nth_unstable_by(behind, order);
        found.truncate(behind);
    }
    found.sort_unstable_by(order);
    let page = found.iter().skip(choice.from).take(choice.count);
    ObjectNames { total, names: page.map(|(_, _, name)| (*name).clone()).collect() }
}
