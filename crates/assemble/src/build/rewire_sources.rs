//! Traffic sources that join a running engine and leave it.

use super::layout::{CantRewire, Layout};
use longwire_engine::{Part, PartSource, SourceRef, SourceSetup};
use longwire_scenario::Plan;
use std::collections::{HashMap, HashSet};

/// What sources that come and go mean for workers.
pub(super) struct ChangedSources {
    /// Places in the new plan of those that join.
    pub joining: Vec<u32>,
    /// Those that leave.
    pub leaving: Vec<SourceRef>,
}

/// The sources of the new plan, put down in the `layout`, where its ports are already. A source of a port
/// that begins anew does so, too.
///
/// # Errors
/// If an event would change one that joins.
pub(super) fn changed_sources(
    old: &Plan,
    new: &Plan,
    new_ports: &[u16],
    layout: &mut Layout,
) -> Result<ChangedSources, CantRewire> {
    let there = std::mem::take(&mut layout.sources);
    let known: HashMap<&str, SourceRef> =
        old.sources.iter().map(|source| &*source.name).zip(there.iter().copied()).collect();
    let new_ports: HashSet<u16> = new_ports.iter().copied().collect();
    let mut stay = HashSet::new();
    let mut joining = Vec::new();
    for (place, source) in (0..).zip(&new.sources) {
        let before = known.get(&*source.name).filter(|_| !new_ports.contains(&source.in_port));
        if let Some(&before) = before {
            stay.insert(&*source.name);
            layout.sources.push(before);
            continue;
        }
        let worker = layout.port_locations[usize::from(source.in_port)].worker;
        let at = layout.take_source(worker);
        layout.sources.push(at);
        joining.push(place);
    }
    check_events(new, &joining)?;
    let leave = old.sources.iter().zip(&there).filter(|(source, _)| !stay.contains(&*source.name));
    let leaving: Vec<SourceRef> = leave.map(|(_, at)| *at).collect();
    // Others may have these indices from the next time on.
    layout.free_sources.extend(&leaving);
    Ok(ChangedSources { joining, leaving })
}

impl ChangedSources {
    /// Gives each worker its part; `layout` is that of the new plan.
    pub fn give(&self, new: &Plan, layout: &Layout, parts: &mut [Part]) {
        for &place in &self.joining {
            let (source, at) = (&new.sources[place as usize], layout.sources[place as usize]);
            let port = layout.port_locations[usize::from(source.in_port)].slot;
            let setup = SourceSetup { port, name: source.name.clone() };
            parts[at.worker as usize].sources.push((at.place, PartSource { setup, flow: None }));
        }
        for source in &self.leaving {
            parts[source.worker as usize].sources_leaving.push(source.place);
        }
        for part in parts {
            part.sources.sort_by_key(|(index, _)| *index);
        }
    }
}

impl Layout {
    /// An index at a worker for a source that joins: of those to be used again first.
    fn take_source(&mut self, worker: u32) -> SourceRef {
        if let Some(at) = self.free_sources.iter().rposition(|source| source.worker == worker) {
            return self.free_sources.remove(at);
        }
        let count = &mut self.source_counts[worker as usize];
        *count += 1;
        SourceRef { worker, place: *count - 1 }
    }
}

/// Refuses sources that events would change: events were planned without them.
fn check_events(new: &Plan, joining: &[u32]) -> Result<(), CantRewire> {
    let mut named = new.events.iter().flat_map(|event| &*event.sources);
    named.find(|place| joining.contains(place)).map_or(Ok(()), |&place| {
        let name = &new.sources[place as usize].name;
        Err(CantRewire(format!(
            "source \"{name}\": an [[at]] event would change it, and was planned without it"
        )))
    })
}
