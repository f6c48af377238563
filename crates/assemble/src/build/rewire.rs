//! Changing from one plan to another while the engine runs: links that join and leave, and the new map.

use super::{Shards, assign, links_of, map_over, routers};
use longwire_block::Port;
use longwire_block::path::{Fork, LinkRef, MAX_LINKS, Paths};
use longwire_engine::{AtNode, GONE_PORT, Home, InnerPort, Part, PortSetup, Rewiring};
use longwire_link::{GONE, Joining};
use longwire_router::Bridge;
use longwire_scenario::{Host, Link, Plan, changed_sections};
use longwire_units::Nanos;
use std::any::Any;
use std::collections::{HashMap, HashSet};
use std::ops::Range;
use thiserror::Error;

/// The engine's references to the plan's objects, and its spare room.
#[derive(Debug, Clone)]
pub struct Layout {
    /// By link.
    pub links: Vec<LinkRef>,
    pub(super) homes: Vec<Home>,
    pub(super) paths: Paths,
    pub(super) floods: HashMap<u16, Fork>,
    pub(super) workers: Vec<Indices>,
    /// By segment: the index of its node at its (first) worker.
    pub(super) nodes: Vec<u32>,
    /// Number of port slots at the first worker, including removed ones.
    pub(super) slots: u32,
}

/// The indices of a worker's links.
#[derive(Debug, Clone, Default)]
pub(super) struct Indices {
    /// Number of indices, including free ones.
    pub count: u32,
    /// Indices that can be reused.
    pub free: Vec<u32>,
    /// Capacity of the worker's arrays and timing wheel.
    pub room: usize,
}

/// A change of plan that is impossible while the engine runs; nothing has changed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct CantRewire(String);

/// A change from one plan to another.
pub struct Rewired {
    /// The engine's part.
    pub rewiring: Rewiring,
    /// The layout afterwards.
    pub layout: Layout,
    /// Places in the new plan of links that join.
    pub added: Vec<u32>,
    /// Places in the old plan of links that leave.
    pub removed: Vec<u32>,
    /// New hosts by index; the caller provides their ports.
    pub new_hosts: Range<usize>,
    /// Removed hosts by index in the old plan.
    pub old_hosts: Range<usize>,
    /// Where the new hosts' ports go.
    wanted: Vec<PortRequest>,
}

/// A port that the caller must provide.
struct PortRequest {
    place: u16,
    slot: u32,
    node: u32,
}

impl Rewired {
    /// Provides the ports of new hosts, in order.
    pub fn give_ports(&mut self, ports: Vec<Box<dyn Port>>) {
        let worker = &mut self.rewiring.parts[0];
        for (PortRequest { place, slot, node }, port) in self.wanted.drain(..).zip(ports) {
            worker.ports.push((slot, PortSetup { place, node: node as usize, port }));
        }
        worker.ports.sort_by_key(|(slot, _)| *slot);
    }
}

/// Compares the plan `old`, laid out as `layout`, with `new`. Links with the same name and ends are kept with
/// their current settings; removed ones drop what they hold, unless `drained`.
///
/// # Errors
/// If the plans differ in something that can't change while packets flow.
pub fn rewire(old: &Plan, layout: &Layout, new: &Plan, drained: bool) -> Result<Rewired, CantRewire> {
    let shards = Shards::of(new);
    check(old, new, &shards)?;
    let mut next = layout.clone();
    let (kept, removed) = kept(old, layout, new);
    let added: Vec<u32> = (0..).zip(&kept).filter(|(_, link)| link.is_none()).map(|(at, _)| at).collect();
    check_events(new, &added)?;
    let hosts = changed_hosts(old, new, &mut next)?;
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
        // The old plan's classifier with the extended table of paths.
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
        // No packet can be under way to them.
        if shards.flat && !several && !drained {
            indices.free.extend(&leaving);
        }
        let joining = Joining::new(links_of(new, own), slots, places, longer);
        let wheel = longer.then_some(indices.room);
        let (ports, acts) = (Vec::new(), Vec::new());
        Part { joining, wheel, leaving, drained, exact: !shards.flat, ports, acts }
    });
    let mut parts: Vec<Part> = parts.collect();
    let Hosts { kept, closed, acts, wanted } = hosts;
    parts[0].ports.extend(closed);
    parts[0].acts.extend(acts);
    let (new_hosts, old_hosts) = (kept..new.hosts.len(), kept..old.hosts.len());
    let rewiring = Rewiring { map, before, parts };
    Ok(Rewired { rewiring, layout: next, added, removed, new_hosts, old_hosts, wanted })
}

/// The rewirings of a plan's stages in virtual time, laid out as `layout` at the start.
///
/// # Errors
/// If a stage is impossible while packets flow.
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
    /// An index for a link that joins, reusing free ones first.
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

/// By link of the new plan: the engine's reference, if the link is kept; and the places of removed links in
/// the old plan.
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

/// Checks what must be equal in both plans, and what the new one must not have.
fn check(old: &Plan, new: &Plan, shards: &Shards) -> Result<(), CantRewire> {
    let refused = |why: String| Err(CantRewire(why));
    if let Some(section) = changed_sections(&old.text, &new.text).first() {
        return refused(format!(
            "{section} differs, and only links and hosts can be added and removed while it runs: start it \
             again"
        ));
    }
    if !old.media.is_empty() {
        return refused(
            "links share a medium here, whose stations can't change while it runs: start it again".into(),
        );
    }
    let kept = check_hosts(old, new)?;
    let ports = |plan: &Plan| -> Vec<_> {
        let host = |place: u16| plan.ports[usize::from(place)].attachment.host();
        let stay = |place: &u16| host(*place).is_none_or(|host| (host as usize) < kept);
        let all = (0..plan.ports.len() as u16).filter(stay);
        let port = |place: u16| {
            let port = &plan.ports[usize::from(place)];
            (place, port.name.clone(), port.bridge, port.segment, port.router)
        };
        all.map(port).collect()
    };
    let segments = |plan: &Plan| -> Vec<_> {
        plan.segments.iter().map(|segment| (segment.router, segment.bridges.clone())).collect()
    };
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

/// Checks the change of hosts; returns the number of hosts that both plans have.
fn check_hosts(old: &Plan, new: &Plan) -> Result<usize, CantRewire> {
    let refused =
        |why: &str| Err(CantRewire(format!("hosts are not added and removed {why}: start it again")));
    let kept = kept_hosts(old, new);
    if kept == old.hosts.len() && kept == new.hosts.len() {
        return Ok(kept);
    }
    // Their ports come first in a plan, and must keep their places.
    if old.ports.len() != old.hosts.len() {
        return refused("where there are ports and routers besides");
    }
    if old.engine.workers > 1 {
        return refused("with several workers");
    }
    if old.engine.tick != Nanos::ZERO {
        return refused("with [engine] tick");
    }
    let stay = |host: &Host| old.hosts[kept..].iter().any(|known| known.name == host.name);
    if let Some(host) = new.hosts[kept..].iter().find(|host| stay(host)) {
        return Err(CantRewire(format!(
            "host \"{}\" would change, or a host before it is gone: only the last ones of a scenario can be \
             added and removed",
            host.name
        )));
    }
    Ok(kept)
}

/// Number of leading hosts that both plans have alike.
fn kept_hosts(old: &Plan, new: &Plan) -> usize {
    old.hosts.iter().zip(&new.hosts).take_while(|(old, new)| old == new).count()
}

/// Changes of ports and bridges when hosts join and leave.
struct Hosts {
    kept: usize,
    closed: Vec<(u32, PortSetup)>,
    acts: Vec<(u32, AtNode)>,
    wanted: Vec<PortRequest>,
}

/// Removes and adds the hosts after those that both plans have.
fn changed_hosts(old: &Plan, new: &Plan, layout: &mut Layout) -> Result<Hosts, CantRewire> {
    let kept = kept_hosts(old, new);
    let mut hosts = Hosts { kept, closed: Vec::new(), acts: Vec::new(), wanted: Vec::new() };
    if kept == old.hosts.len() && kept == new.hosts.len() {
        return Ok(hosts);
    }
    for host in &new.hosts[kept..] {
        let place = host.port;
        if usize::from(place) == layout.homes.len() {
            layout.homes.push(Home::single(0, layout.slots));
            layout.slots += 1;
        }
        let home = layout.homes.get(usize::from(place)).copied();
        let home = home.ok_or_else(|| CantRewire("the port of a host has no place".into()))?;
        let segment = new.ports[usize::from(place)].segment;
        hosts.wanted.push(PortRequest { place, slot: home.slot, node: layout.nodes[segment as usize] });
    }
    for host in &old.hosts[kept..] {
        // Unless a new host takes its place.
        if !new.hosts[kept..].iter().any(|new| new.port == host.port) {
            let slot = layout.homes[usize::from(host.port)].slot;
            let node = layout.nodes[old.ports[usize::from(host.port)].segment as usize] as usize;
            let port = Box::new(InnerPort::removed());
            hosts.closed.push((slot, PortSetup { place: GONE_PORT, node, port }));
        }
    }
    for (index, segment) in new.segments.iter().enumerate() {
        if segment.router.is_some() || old.segments[index].ports == segment.ports {
            continue;
        }
        let mut fresh = assign::bridge(new, index as u32, segment);
        let joined: Vec<_> = new.hosts[kept..]
            .iter()
            .filter(|host| segment.ports.contains(&host.port))
            .map(|host| (host.mac.0, host.port))
            .collect();
        let act: AtNode = Box::new(move |node, _| {
            let node: &mut dyn Any = node;
            if let Some(bridge) = node.downcast_mut::<Bridge>() {
                bridge.exchange_ports(&mut fresh);
                joined.iter().for_each(|(mac, port)| bridge.expect(*mac, *port));
            }
        });
        hosts.acts.push((layout.nodes[index], act));
    }
    Ok(hosts)
}

/// Refuses links that events would change: events were planned without them.
fn check_events(new: &Plan, added: &[u32]) -> Result<(), CantRewire> {
    let named = new.events.iter().flat_map(|event| &*event.links).find(|place| added.contains(place));
    named.map_or(Ok(()), |&place| {
        let name = &new.links[place as usize].name;
        Err(CantRewire(format!(
            "link \"{name}\": an [[at]] event would change it, and was planned without it"
        )))
    })
}
