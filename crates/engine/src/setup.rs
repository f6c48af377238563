//! What an engine is made of.

use crate::bell::Bell;
use crate::between::{Between, Inbox, Outbound, ways};
use crate::events::Agenda;
use crate::fidelity::Tolerance;
use crate::map::Map;
use crate::observer::Observer;
use crate::windows::{Meeting, Windows};
use longwire_block::{Node, Port};
use longwire_link::{Lead, Links};
use longwire_packet::Pool;
use longwire_units::Nanos;
use std::sync::Arc;

/// How a worker in real time waits when nothing is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Wait {
    /// Never: looks again at once. Most accurate; takes a whole processor.
    Spin,
    /// Sleeps until shortly before the next deadline, then spins.
    #[default]
    SleepThenSpin,
    /// Sleeps until the deadline. Cheapest; late by what the kernel takes to wake it.
    Sleep,
}

/// A port with its place in the plan and its node's place among the worker's nodes.
pub struct Seat {
    /// Place in the plan.
    pub place: u16,
    /// Index into [`WorkerSetup::nodes`].
    pub node: usize,
    /// The driver's end.
    pub port: Box<dyn Port>,
}

/// What one worker is made of.
pub struct WorkerSetup {
    /// The processor to tie it to.
    pub cpu: Option<usize>,
    /// Its packet memory.
    pub pool: Pool,
    /// Its ports.
    pub ports: Vec<Seat>,
    /// Its bridges and routers.
    pub nodes: Vec<Box<dyn Node>>,
    /// Its links.
    pub links: Links,
    /// Whether every path through its links is one link long, so that links need not be served in each
    /// other's order.
    pub flat: bool,
    /// By a link's place here: whether packets go on from it to a link of another worker.
    pub crossing: Vec<bool>,
    /// What changes on its links and sources, and when.
    pub agenda: Agenda,
    /// Is shown packets as they pass.
    pub observer: Option<Box<dyn Observer>>,
}

/// What a run is made of.
pub struct Setup {
    /// The workers, in order.
    pub workers: Vec<WorkerSetup>,
    /// What all of them know.
    pub map: Map,
    /// What the run promises.
    pub tolerance: Tolerance,
    /// How workers wait in real time.
    pub wait: Wait,
    /// Which rings packets take from worker to worker.
    pub between: Between,
    /// The least delay of the links that lead to another worker's links: the longest window of simulated
    /// runs.
    pub lead: Nanos,
}

/// What one worker is started with.
pub(crate) struct Parts {
    pub index: u32,
    pub setup: WorkerSetup,
    pub map: Arc<Map>,
    pub inbox: Inbox,
    pub outbound: Outbound,
    pub bells: Arc<[Bell]>,
    pub tolerance: Tolerance,
    pub simulated: bool,
    /// In windows: how far ahead links are served that lead to other workers', and which do.
    pub ahead: Option<(Lead, Vec<bool>)>,
    pub windows: Option<Windows>,
    pub start: Nanos,
}

/// The simulated time that never comes: a run that goes on until nothing is left to happen.
pub const TO_THE_END: Nanos = Nanos(u64::MAX - 1);

impl Setup {
    pub(crate) fn into_parts(self, simulated: bool, start: Nanos) -> Vec<(Parts, Option<usize>)> {
        let count = self.workers.len();
        let map = Arc::new(self.map);
        let meeting = Arc::new(Meeting::of(count));
        let bells: Arc<[Bell]> = (0..count).map(|_| Bell::new()).collect();
        let each = self.workers.into_iter().zip(ways(count, self.between)).enumerate();
        let each = each.map(|(index, (mut setup, (outbound, inbox)))| {
            let crossing = std::mem::take(&mut setup.crossing);
            let ahead = Lead { by: self.lead, until: TO_THE_END };
            let in_windows = simulated && count > 1;
            let ahead = in_windows.then_some((ahead, crossing));
            let windows = in_windows.then(|| Windows::new(self.lead, Arc::clone(&meeting)));
            let cpu = setup.cpu;
            let parts = Parts {
                index: index as u32,
                setup,
                map: Arc::clone(&map),
                inbox,
                outbound,
                bells: Arc::clone(&bells),
                tolerance: self.tolerance,
                simulated,
                ahead,
                windows,
                start,
            };
            (parts, cpu)
        });
        each.collect()
    }
}
