//! Where an engine has the objects of its plan.

use longwire_block::path::{Fork, LinkRef, MAX_LINKS, Paths};
use longwire_engine::{NodeRef, PortLocation, SourceRef};
use longwire_link::GONE;
use longwire_scenario::Plan;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use thiserror::Error;

/// Where the engine has what the plan names, and what it has room for.
#[derive(Debug, Clone)]
pub struct Layout {
    /// By a link's place in the plan.
    pub links: Vec<LinkRef>,
    pub(super) port_locations: Vec<PortLocation>,
    pub(super) paths: Paths,
    pub(super) floods: HashMap<u16, Fork>,
    pub(super) workers: Vec<Indices>,
    /// Whether every path so far has had one link.
    pub(super) flat: bool,
    /// By a segment's index: its node at its worker, or the first of several.
    pub(super) nodes: Vec<NodeRef>,
    /// Number of nodes at each worker, with the places that nodes have left.
    pub(super) node_counts: Vec<u32>,
    /// Places of these that can be used again.
    pub(super) free_nodes: Vec<NodeRef>,
    /// Places of routers that have left, and whether each can be used again.
    pub(super) retired: Vec<(NodeRef, Arc<AtomicBool>)>,
    /// By worker.
    pub(super) slots: Vec<Slots>,
    /// By a traffic source's place in the plan.
    pub sources: Vec<SourceRef>,
    /// Number of indices that sources have had at each worker.
    pub(super) source_counts: Vec<u32>,
    /// Those that can be used again.
    pub(super) free_sources: Vec<SourceRef>,
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
    /// Whether there can be more: there are no media, whose numbers are behind those of links.
    pub grows: bool,
}

/// A plan can't be brought to another while it runs. Nothing has changed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct CantRewire(pub(super) String);

impl CantRewire {
    /// That something would join which events change: they were planned without it.
    pub(super) fn planned_without(kind: &str, name: &str) -> Self {
        Self(format!("{kind} \"{name}\": an [[at]] event would change it, and was planned without it"))
    }
}

/// The indices of a worker's ports.
#[derive(Debug, Clone, Default)]
pub(super) struct Slots {
    /// How many there are, with those that ports have left.
    pub count: u32,
    /// Those that can be used again.
    pub free: Vec<u32>,
    /// Where packets go that are still bound for a port that has left: they are dropped there.
    pub gone: Option<u32>,
}

impl Layout {
    /// The engine's reference to each router of the plan that is laid out like this.
    pub fn routers(&self, plan: &Plan) -> Vec<NodeRef> {
        plan.routers.iter().map(|router| self.nodes[router.segment as usize]).collect()
    }

    /// Puts the links of a plan down, by place: those that are `kept`, and at an index of its worker each
    /// that joins. By worker and index: their places.
    pub(super) fn take_links(
        &mut self,
        kept: &[Option<LinkRef>],
        link_workers: &[u32],
    ) -> Result<Vec<Vec<u32>>, CantRewire> {
        let mut links = Vec::with_capacity(kept.len());
        for (kept, &worker) in kept.iter().zip(link_workers) {
            links.push(match kept {
                Some(link) => *link,
                None => LinkRef::new(worker, self.workers[worker as usize].take()?),
            });
        }
        let all = self.workers.iter().map(|indices| vec![GONE; indices.count as usize]);
        let mut places: Vec<Vec<u32>> = all.collect();
        for (link, place) in links.iter().zip(0..) {
            places[link.worker() as usize][link.local() as usize] = place;
        }
        self.links = links;
        Ok(places)
    }
}

impl Indices {
    /// An index for a link that joins: of those to be used again first.
    pub fn take(&mut self) -> Result<u32, CantRewire> {
        if let Some(slot) = self.free.pop() {
            return Ok(slot);
        }
        if !self.grows {
            return Err(CantRewire(
                "beside shared media there is room for 64 links that join while it runs: start it again"
                    .into(),
            ));
        }
        if self.count + 1 >= MAX_LINKS {
            return Err(CantRewire(format!("a worker has at most {MAX_LINKS} links")));
        }
        self.count += 1;
        Ok(self.count - 1)
    }
}

impl Slots {
    /// An index for a port that joins.
    pub fn take(&mut self) -> u32 {
        self.free.pop().unwrap_or_else(|| {
            self.count += 1;
            self.count - 1
        })
    }
}
