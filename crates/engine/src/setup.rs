//! Construction data of an engine.

use crate::bell::Bell;
use crate::between::{Peers, RingKind, connect};
use crate::events::Agenda;
use crate::fidelity::Tolerance;
use crate::map::Map;
use crate::observer::{Observer, Sampler};
use crate::order::LONGEST;
use crate::windows::{WindowBarrier, Windows};
use longwire_block::{Node, Port};
use longwire_link::Links;
use longwire_packet::Pool;
use longwire_units::Nanos;
use std::sync::Arc;

/// How a worker waits in real time when nothing is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Wait {
    /// Never sleeps. Most accurate, but takes a whole processor.
    Spin,
    /// Sleeps until shortly before the next deadline, then spins.
    #[default]
    SleepThenSpin,
    /// Sleeps until the deadline. Cheapest; late by the kernel's wake-up time.
    Sleep,
}

/// A port with its place in the plan and its node's index at the worker.
pub struct PortSetup {
    /// Place in the plan.
    pub place: u16,
    /// Index into [`WorkerSetup::nodes`].
    pub node: usize,
    /// The driver.
    pub port: Box<dyn Port>,
}

/// Construction data of one worker.
pub struct WorkerSetup {
    /// The processor to which it is pinned.
    pub cpu: Option<usize>,
    /// Its packet memory.
    pub pool: Pool,
    /// Its ports.
    pub ports: Vec<PortSetup>,
    /// Its bridges and routers.
    pub nodes: Vec<Box<dyn Node>>,
    /// Its links.
    pub links: Links,
    /// Whether every path through its links has one link, so that links need not be served in exact order.
    /// Then nothing that leaves a link may enter one: no filter steers, no node decides in turn, and there
    /// are no media.
    pub flat: bool,
    /// For each link, whether packets continue from it to a link of another worker.
    pub crossing: Vec<bool>,
    /// Changes of its links and sources.
    pub agenda: Agenda,
    /// Observer of packets.
    pub observer: Option<Box<dyn Observer>>,
    /// Sampler of links, in virtual time.
    pub sampler: Option<Box<dyn Sampler>>,
}

impl WorkerSetup {
    /// A worker with these links only, for paths of one link.
    pub fn new(pool: Pool, links: Links) -> Self {
        Self {
            cpu: None,
            pool,
            ports: Vec::new(),
            nodes: Vec::new(),
            links,
            flat: true,
            crossing: Vec::new(),
            agenda: Agenda::default(),
            observer: None,
            sampler: None,
        }
    }
}

/// Construction data of a run.
pub struct Setup {
    /// The workers, in order.
    pub workers: Vec<WorkerSetup>,
    /// The data shared by all workers.
    pub map: Map,
    /// Required fidelity.
    pub tolerance: Tolerance,
    /// How workers wait in real time.
    pub wait: Wait,
    /// Kind of rings between workers.
    pub between: RingKind,
    /// The lowest delay of the links that lead to another worker's links, which bounds the windows of
    /// simulated runs.
    pub lead: Nanos,
}

/// Data that one worker is started with.
pub(crate) struct Parts {
    pub index: u32,
    pub setup: WorkerSetup,
    pub map: Arc<Map>,
    pub peers: Peers,
    pub tolerance: Tolerance,
    pub simulated: bool,
    pub windows: Option<Windows>,
    pub start: Nanos,
}

/// A simulated time that is never reached: the run continues until no event is left.
pub const TO_THE_END: Nanos = Nanos(u64::MAX - 1);

impl Setup {
    /// Workers that spin, none of whose links lead to another worker's.
    pub fn new(workers: Vec<WorkerSetup>, map: Map) -> Self {
        let (tolerance, between) = (Tolerance::default(), RingKind::default());
        Self { workers, map, tolerance, wait: Wait::Spin, between, lead: Nanos::NEVER }
    }

    pub(crate) fn into_parts(self, simulated: bool, start: Nanos) -> Vec<Parts> {
        let count = self.workers.len();
        let map = Arc::new(self.map);
        let (barrier, window) = (Arc::new(WindowBarrier::of(count)), self.lead.min(LONGEST));
        let bells: Arc<[Bell]> = (0..count).map(|_| Bell::new()).collect();
        let each = self.workers.into_iter().zip(connect(count, self.between)).enumerate();
        let each = each.map(|(index, (setup, (outbound, inbox)))| Parts {
            index: index as u32,
            setup,
            map: Arc::clone(&map),
            peers: Peers { inbox, outbound, bells: Arc::clone(&bells) },
            tolerance: self.tolerance,
            simulated,
            windows: (simulated && count > 1).then(|| Windows::new(window, Arc::clone(&barrier))),
            start,
        });
        each.collect()
    }
}
