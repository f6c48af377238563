//! The API's overview of a run: scheduled changes, and links sorted by counters.

use crate::event_log::MOST_LOGGED;
use crate::link_now::LinkNow;
use crate::planned_rewiring::objects_between;
use crate::running_state::{Earlier, RunningState};
use longwire_block::change::Repeat;
use longwire_control::{ObjectNames, ObjectQuery, PlannedEvent, RewireResponse, RewiredObject, Sort};
use longwire_engine::{LinkReport, Report};
use longwire_scenario::{Event, Plan, RouterEvent};
use longwire_units::Nanos;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Most scheduled changes that are listed.
const MOST_LISTED: usize = 1000;

/// A scheduled change.
#[derive(Clone, Copy)]
enum Scheduled<'p> {
    /// Of links, sources or media.
    Settings(&'p Event),
    Router(&'p RouterEvent),
    /// An addition or removal.
    Rewiring(&'p PlannedEvent),
}

impl Scheduled<'_> {
    /// Its next time after `now`, or else how long its first time has been past.
    fn next_or_age(self, now: Nanos) -> Result<Nanos, Nanos> {
        let (first, next) = match self {
            Self::Settings(event) => (event.time, event.next_after(now)),
            Self::Router(event) => (event.time, None),
            Self::Rewiring(event) => (Nanos(event.at_ns), None),
        };
        next.or((first > now).then_some(first)).ok_or_else(|| now.since(first))
    }

    fn listed(self, plan: &Plan) -> PlannedEvent {
        match self {
            Self::Settings(event) => PlannedEvent {
                every_ns: event.repeat.map(|repeat| repeat.every.0),
                times: event.repeat.and_then(|repeat| repeat.times),
                over_ns: event.ramp.map(|ramp| ramp.over.0),
                ..once(event.time, event.describe(plan))
            },
            Self::Router(event) => once(event.time, event.describe(&plan.routers)),
            Self::Rewiring(event) => event.clone(),
        }
    }
}

fn once(time: Nanos, what: String) -> PlannedEvent {
    PlannedEvent { at_ns: time.0, every_ns: None, times: None, over_ns: None, what }
}

/// The additions and removals that are scheduled at the start of a run. A plan has them no longer once it
/// was rewired.
pub(crate) fn scheduled_rewirings(plan: &Plan) -> Vec<PlannedEvent> {
    let before = std::iter::once(plan).chain(plan.stages.iter().map(|stage| &*stage.plan));
    let rewirings = plan.stages.iter().zip(before).map(|(stage, before)| {
        let rewired = objects_between(before, &stage.plan);
        once(stage.time, rewired_text(&rewired, ["add", "remove"]).join(", "))
    });
    rewirings.collect()
}

/// What was added and removed, behind a word for each.
pub(crate) fn rewired_text(rewired: &RewireResponse, words: [&str; 2]) -> Vec<String> {
    let texts = words.into_iter().zip([&rewired.added, &rewired.removed]).filter_map(|(word, objects)| {
        let RewiredObject { kind, name } = objects.first()?;
        let more = objects.len() - 1;
        let others = if more > 0 { format!(" and {more} more") } else { String::new() };
        Some(format!("{word} {kind} {name}{others}"))
    });
    texts.collect()
}

/// The scheduled changes of a plan, and the `rewirings`: those to come by time, then the past, the latest
/// first.
pub(crate) fn planned(plan: &Plan, rewirings: &[PlannedEvent], now: Nanos) -> Vec<PlannedEvent> {
    let of_settings = plan.events.iter().map(Scheduled::Settings);
    let of_routers = plan.router_events.iter().map(Scheduled::Router);
    let all = of_settings.chain(of_routers).chain(rewirings.iter().map(Scheduled::Rewiring));
    let mut all: Vec<_> = all.map(|scheduled| (scheduled.next_or_age(now), scheduled)).collect();
    // `Ok` is less than `Err`.
    all.sort_by_key(|(time, _)| *time);
    all.into_iter().take(MOST_LISTED).map(|(_, scheduled)| scheduled.listed(plan)).collect()
}

/// Scheduled changes of settings and routers after `since` up to `now`, in order; the newest if there are
/// more than the log keeps. Changes at time 0 are after 0.
pub(crate) fn come(plan: &Plan, since: Nanos, now: Nanos) -> Vec<(Nanos, String)> {
    let is_new = |time: &Nanos| *time > since || (since == Nanos::ZERO && *time == Nanos::ZERO);
    let of_settings = plan.events.iter().map(|event| (Scheduled::Settings(event), event.time, event.repeat));
    let of_routers = plan.router_events.iter().map(|event| (Scheduled::Router(event), event.time, None));
    let all: Vec<_> = of_settings.chain(of_routers).collect();
    let mut newest = BinaryHeap::new();
    for (index, (_, first, repeat)) in all.iter().enumerate().filter(|(_, (_, first, _))| *first <= now) {
        for time in times_back(*first, *repeat, now).take_while(is_new) {
            newest.push(Reverse((time, index)));
            if newest.len() > MOST_LOGGED && newest.pop() == Some(Reverse((time, index))) {
                // Earlier times of it are older still.
                break;
            }
        }
    }
    // Ascending by the reverse: the latest first.
    let latest_first = newest.into_sorted_vec().into_iter();
    latest_first.rev().map(|Reverse((time, index))| (time, all[index].0.listed(plan).what)).collect()
}

/// The times of a change up to `now`, the latest first; its `first` is not after that.
fn times_back(first: Nanos, repeat: Option<Repeat>, now: Nanos) -> impl Iterator<Item = Nanos> {
    let (every, times) = repeat.map_or((Nanos(1), Some(1)), |repeat| (repeat.every, repeat.times));
    let passed = now.since(first).0 / every.0;
    let last = times.map_or(passed, |times| passed.min(times - 1));
    (0..=last).rev().map(move |number| Nanos(first.0 + every.0 * number))
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

#[cfg(test)]
mod tests {
    use super::*;
    use longwire_scenario::plan_of;

    const LINKS: &str = "\
        [[port]]\nname = \"a\"\ndriver = \"source\"\naddresses = \"10.0.1.1\"\n\
        [[port]]\nname = \"b\"\ndriver = \"source\"\naddresses = \"10.0.1.2\"\n\
        [[link]]\nname = \"up\"\nfrom = \"a\"\nto = \"b\"\n\
        [[link]]\nname = \"k\"\nfrom = \"b\"\nto = \"a\"\n";

    fn plan(changes: impl Iterator<Item = String>) -> Plan {
        plan_of(&(LINKS.to_owned() + &changes.collect::<String>()))
    }

    /// A change of the delay to as many milliseconds as seconds have passed.
    fn at(seconds: u64, more: &str) -> String {
        format!("[[at]]\ntime = \"{seconds} s\"\nlink = \"up\"\ndelay = \"{seconds} ms\"\n{more}\n")
    }

    fn seconds(planned: &[PlannedEvent]) -> Vec<u64> {
        planned.iter().map(|event| event.at_ns / 1_000_000_000).collect()
    }

    #[test]
    fn additions_and_removals_are_listed_among_other_changes() {
        let rewired = "[[at]]\ntime = \"25 s\"\n[at.add.link]\nname = \"late\"\nfrom = \"b\"\nto = \"a\"\n\
            [[at]]\ntime = \"20 s\"\nremove = \"k\"\n";
        let plan = plan([at(60, ""), rewired.into(), at(10, "")].into_iter());
        let rewirings = scheduled_rewirings(&plan);
        let shown = planned(&plan, &rewirings, Nanos::ZERO);
        let whats: Vec<_> = shown.iter().map(|event| &*event.what).collect();
        assert_eq!(whats, ["up: delay 10 ms", "remove link k", "add link late", "up: delay 60 ms"]);
        assert_eq!(seconds(&shown), [10, 20, 25, 60]);
        // What is past is behind what is to come.
        assert_eq!(seconds(&planned(&plan, &rewirings, Nanos::from_secs(20))), [25, 60, 20, 10]);
    }

    #[test]
    fn of_very_many_changes_those_are_listed_that_come_next() {
        let plan = plan((1..=1500).rev().map(|second| at(second, "")));
        let shown = seconds(&planned(&plan, &[], Nanos::from_secs(700)));
        assert_eq!(shown, (701..=1500).chain((501..=700).rev()).collect::<Vec<_>>());
    }

    #[test]
    fn all_changes_that_come_are_logged_by_time() {
        let plan = plan((1..=150).rev().map(|second| at(second, "")));
        let times = |since, now| {
            let come = come(&plan, Nanos::from_secs(since), Nanos::from_secs(now)).into_iter();
            come.map(|(time, _)| time.0 / 1_000_000_000).collect::<Vec<_>>()
        };
        assert_eq!(times(0, 200), (1..=150).collect::<Vec<_>>());
        assert_eq!(times(120, 121), [121]);
        assert!(times(150, 200).is_empty());
    }

    #[test]
    fn the_newest_of_very_many_changes_are_logged() {
        let often = at(0, "every = \"1 ms\"");
        let plan = plan([often, at(3, ""), at(4, "every = \"1 s\"\ntimes = 2")].into_iter());
        let found = come(&plan, Nanos::ZERO, Nanos::from_secs(9));
        assert_eq!((found.len(), found[0].0), (MOST_LOGGED, Nanos::from_millis(8001)));
        assert!(found.is_sorted_by_key(|(time, _)| *time));
        let found = come(&plan, Nanos::from_millis(4998), Nanos::from_secs(5));
        let whats: Vec<_> = found.iter().map(|(time, what)| (time.0 / 1_000_000, &what[..14])).collect();
        assert_eq!(whats, [(4999, "up: delay 0 ms"), (5000, "up: delay 0 ms"), (5000, "up: delay 4 ms")]);
        assert_eq!(come(&plan, Nanos::ZERO, Nanos::ZERO).len(), 1, "at the start");
    }
}
