//! From one plan to another while the engine runs: which links join and leave, and the new map.

use super::{Shards, links_of, map_over, routers};
use longwire_block::path::{Fork, LinkRef, MAX_LINKS, Paths};
use longwire_engine::{Home, Part, Rewiring};
use longwire_link::{GONE, Joining};
use longwire_scenario::{Link, Plan, changed_sections};
use longwire_units::Nanos;
use std::collections::{HashMap, HashSet};
use thiserror::Error;

/// Where the engine has what the plan names, and what it has room for.
#[derive(Debug, Clone)]
pub struct Layout {
    /// By a link's place in the plan.
    pub links: Vec<LinkRef>,
    pub(super) homes: Vec<Home>,
    pub(super) paths: Paths,
    pub(super) floods: HashMap<u16, Fork>,
    pub(super) workers: Vec<Indices>,
}

/// The indices of a worker's links.
#[derive(Debug, Clone, Default)]
pub(super) struct Indices {
    /// How many there are, with those that links have left.
    pub count: u32,
    /// Those that can be used again.
    pub free: Vec<u32>,
    /// How many its arrays, and its timing wheel, have room for.
    pub room: usize,
}

/// A plan can't be brought to another while it runs. Nothing has changed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct CantRewire(String);

/// What brings an engine from one plan to another.
pub struct Rewired {
    /// The engine's part.
    pub rewiring: Rewiring,
    /// The layout afterwards.
    pub layout: Layout,
    /// Places in the new plan of links that join.
    pub added: Vec<u32>,
    /// Places in the old plan of links that leave.
    pub removed: Vec<u32>,
}

/// Compares the plan `old`, whose engine is laid out like `layout`, with `new`. Links of the same name and
/// ends stay what they are, whatever they are set to; what removed ones hold is dropped, unless they are
/// `drained`.
///
/// # Errors
/// If the plans differ in what can't change while packets flow.
pub fn rewire(old: &Plan, layout: &Layout, new: &Plan, drained: bool) -> Result<Rewired, CantRewire> {
    let shards = Shards::of(new);
    check(old, new, &shards)?;
    let mut next = layout.clone();
    let (kept, removed) = kept(old, layout, new);
    let added: Vec<u32> = (0..).zip(&kept).filter(|(_, link)| link.is_none()).map(|(at, _)| at).collect();
    check_events(new, &added)?;
    let mut slots: Vec<Vec<u32>> = vec![Vec::new(); next.workers.len()];
    let mut own: Vec<Vec<u32>> = vec![Vec::new(); next.workers.len()];
    for &place in &added {
        let worker = shards.link_workers[place as usize];
        let slot = next.workers[worker as usize].take()?;
        slots[worker as usize].push(slot);
        own[worker as usize].push(place);
    }
    let mut places: Vec<Vec<u32>> =
        next.workers.iter().map(|indices| vec![GONE; indices.count as usize]).collect();
    let mut taken = slots.iter().map(|slots| slots.iter().copied()).collect::<Vec<_>>();
    next.links = (0..)
        .zip(kept)
        .map(|(place, kept)| {
            let link = kept.unwrap_or_else(|| {
                let worker = shards.link_workers[place as usize];
                let slot = taken[worker as usize].next();
                LinkRef::new(worker, slot.expect("each link that joins has an index"))
            });
            places[link.worker() as usize][link.local() as usize] = place;
            link
        })
        .collect();
    let leaving: Vec<LinkRef> = removed.iter().map(|&place| layout.links[place as usize]).collect();
    let map = map_over(new, &mut next, Some((old, layout)), routers::joints(new, &shards));
    let several = next.workers.len() > 1;
    let before = several.then(|| {
        // The classifier of the old plan with the longer table.
        let mut with = Layout { paths: map.paths.clone(), ..layout.clone() };
        map_over(old, &mut with, Some((old, layout)), routers::joints(new, &shards))
    });
    if let Some(before) = &before {
        next.paths = before.paths.clone();
    }
    let map = longwire_engine::Map { paths: next.paths.clone(), ..map };
    let parts = (0u32..).zip(slots).zip(places).zip(&own).map(|(((worker, slots), places), own)| {
        let indices = &mut next.workers[worker as usize];
        let longer = places.len() > indices.room;
        if longer {
            indices.room = Joining::room_for(places.len());
        }
        let gone = leaving.iter().filter(|link| link.worker() == worker).map(|link| link.local());
        let leaving: Vec<u32> = gone.collect();
        // Where a packet can't be on its way to them any more.
        if shards.flat && !several && !drained {
            indices.free.extend(&leaving);
        }
        let joining = Joining::new(links_of(new, own), slots, places, longer);
        let wheel = longer.then_some(indices.room);
        Part { joining, wheel, leaving, drained, exact: !shards.flat }
    });
    let parts = parts.collect();
    Ok(Rewired { rewiring: Rewiring { map, before, parts }, layout: next, added, removed })
}

/// What the plan adds and removes while it runs in virtual time, laid out at the start like `layout`.
///
/// # Errors
/// If that can't be made while packets flow.
pub fn rewirings(plan: &Plan, layout: &Layout) -> Result<Vec<(Nanos, Rewiring)>, CantRewire> {
    if plan.engine.workers > 1 && !plan.stages.is_empty() {
        let why = "with several workers nothing is added and removed in virtual time: write workers = 1";
        return Err(CantRewire(why.into()));
    }
    let (mut now, mut layout) = (plan, layout.clone());
    let mut all = Vec::with_capacity(plan.stages.len());
    for stage in &plan.stages {
        let made = rewire(now, &layout, &stage.plan, stage.drain)
            .map_err(|error| CantRewire(format!("[[at]] {}: {error}", stage.time)))?;
        all.push((stage.time, made.rewiring));
        (now, layout) = (&stage.plan, made.layout);
    }
    Ok(all)
}

impl Indices {
    /// An index for a link that joins: of those to be used again first.
    fn take(&mut self) -> Result<u32, CantRewire> {
        if let Some(slot) = self.free.pop() {
            return Ok(slot);
        }
        if self.count + 1 >= MAX_LINKS {
            return Err(CantRewire(format!("a worker has at most {MAX_LINKS} links")));
        }
        self.count += 1;
        Ok(self.count - 1)
    }
}

/// By a link's place in the new plan: the engine's, if it was there before; and the places in the old plan of
/// those that are not there any more.
fn kept(old: &Plan, layout: &Layout, new: &Plan) -> (Vec<Option<LinkRef>>, Vec<u32>) {
    let names: HashMap<&str, u32> = old.links.iter().map(|link| &*link.name).zip(0..).collect();
    let ends =
        |plan: &Plan, link: &Link| [plan.end_name(link.from), plan.end_name(link.to)].map(str::to_owned);
    let mut stay = HashSet::new();
    let kept = new.links.iter().map(|link| {
        let &place = names.get(&*link.name)?;
        let before = &old.links[place as usize];
        if ends(old, before) != ends(new, link) {
            return None;
        }
        stay.insert(place);
        Some(layout.links[place as usize])
    });
    let kept = kept.collect();
    (kept, (0..old.links.len() as u32).filter(|place| !stay.contains(place)).collect())
}

/// What has to be equal, or to be so.
fn check(old: &Plan, new: &Plan, shards: &Shards) -> Result<(), CantRewire> {
    let refused = |why: String| Err(CantRewire(why));
    if let Some(section) = changed_sections(&old.text, &new.text).first() {
        return refused(format!(
            "{section} differs, and only links can be added and removed while it runs: start it again"
        ));
    }
    if !old.media.is_empty() {
        return refused(
            "links share a medium here, whose stations can't change while it runs: start it again".into(),
        );
    }
    let ports = |plan: &Plan| -> Vec<_> {
        plan.ports.iter().map(|port| (port.name.clone(), port.bridge, port.segment, port.router)).collect()
    };
    let segments =
        |plan: &Plan| -> Vec<_> { plan.segments.iter().map(|segment| segment.ports.clone()).collect() };
    if ports(old) != ports(new) || segments(old) != segments(new) {
        return refused(
            "it would join, or part, bridges or routers, which learn and decide as one: start it again"
                .into(),
        );
    }
    let choices = |plan: &Plan| -> Vec<_> {
        let names = |router: &longwire_scenario::Router| -> Vec<Box<str>> {
            router.links.iter().map(|link| link.name.clone()).collect()
        };
        plan.routers.iter().map(names).collect()
    };
    if choices(old) != choices(new) {
        return refused(
            "it begins or ends at a router's own port, whose programs name links by number: start it again"
                .into(),
        );
    }
    let before = Shards::of(old);
    if before.in_turn != shards.in_turn {
        return refused(
            "with it routers would decide about each packet in turn (mtu too-big): start it again".into(),
        );
    }
    if old.engine.workers > 1 && !(before.flat && shards.flat) {
        return refused(
            "with several workers, links are added and removed where no packet crosses two of them; write \
             workers = 1, or start it again"
                .into(),
        );
    }
    Ok(())
}

/// Events that were planned know the links of then.
fn check_events(new: &Plan, added: &[u32]) -> Result<(), CantRewire> {
    let named = new.events.iter().flat_map(|event| &*event.links).find(|place| added.contains(place));
    named.map_or(Ok(()), |&place| {
        let name = &new.links[place as usize].name;
        Err(CantRewire(format!(
            "link \"{name}\": an [[at]] event would change it, and was planned without it"
        )))
    })
}
