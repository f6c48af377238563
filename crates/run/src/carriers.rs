//! The carrier as programs in a router's namespace see it: the interface beside a port of the router's own
//! has a carrier while links join that port, both ways, that are up.

use longwire_block::path::LinkRef;
use longwire_engine::Remote;
use longwire_mirror::Carriers;
use longwire_scenario::{End, Plan};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// How often links are looked at. One that is down for less may not be noticed.
const LOOK: Duration = Duration::from_millis(20);

/// An interface beside a port of a router's own.
#[derive(Debug)]
pub struct Wire {
    /// Places in the plan of the links that leave the port, and of those that lead to it.
    out: Vec<usize>,
    back: Vec<usize>,
    /// The interface's index in its namespace.
    index: u32,
    has_carrier: bool,
}

impl Wire {
    /// That with this index beside the port at `place`; none if the port has no wire of its own.
    pub fn of(plan: &Plan, place: u16, index: u32) -> Option<Self> {
        plan.ports[usize::from(place)].attachment.far()?;
        let that = |end: fn(&longwire_scenario::Link) -> End| {
            let links = plan.links.iter().enumerate();
            links.filter(|(_, link)| end(link) == End::Port(place)).map(|(at, _)| at).collect::<Vec<_>>()
        };
        let (out, back) = (that(|link| link.from), that(|link| link.to));
        (!out.is_empty() && !back.is_empty()).then_some(Self { out, back, index, has_carrier: true })
    }

    /// Whether it should have a carrier, of links that are `up` by their places.
    fn is_up(&self, up: impl Fn(usize) -> bool) -> bool {
        [&self.out, &self.back].into_iter().all(|links| links.iter().any(|&link| up(link)))
    }
}

/// How often carriers were given or taken, and how often the kernel refused.
#[derive(Debug, Default)]
pub struct CarrierCounts {
    /// Done.
    pub changes: AtomicU64,
    /// Refused.
    pub refused: AtomicU64,
}

/// The interfaces of a namespace.
#[derive(Debug)]
pub struct Wires {
    /// Where their carriers are changed.
    pub carriers: Carriers,
    /// The interfaces.
    pub wires: Vec<Wire>,
    /// Where that is counted.
    pub counts: Arc<CarrierCounts>,
}

impl Wires {
    fn follow(&mut self, up: impl Fn(usize) -> bool) {
        for wire in &mut self.wires {
            let on = wire.is_up(&up);
            if on == wire.has_carrier {
                continue;
            }
            wire.has_carrier = on;
            let done = self.carriers.set(wire.index, on);
            let counter = if done.is_ok() { &self.counts.changes } else { &self.counts.refused };
            counter.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// A thread that follows links. Dropping it ends that.
#[derive(Debug)]
pub struct CarrierWatch {
    end: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl CarrierWatch {
    /// Follows the links of `all`, which the engine finds at `links` by their places in the plan. None if
    /// there is nothing to follow, or no thread to be had.
    pub fn start(mut all: Vec<Wires>, links: &[LinkRef], remote: Remote) -> Option<Self> {
        let wires = all.iter().flat_map(|wires| &wires.wires);
        let mut places: Vec<usize> =
            wires.flat_map(|wire| wire.out.iter().chain(&wire.back)).copied().collect();
        places.sort_unstable();
        places.dedup();
        if places.is_empty() {
            return None;
        }
        let links: Vec<LinkRef> = places.iter().map(|&place| links[place]).collect();
        let (end, ended) = channel::<()>();
        let follow = move || {
            loop {
                // A worker that does not answer may do so later.
                if let Ok(up) = remote.are_up(&links) {
                    let is_up = |place: usize| places.binary_search(&place).is_ok_and(|at| up[at]);
                    all.iter_mut().for_each(|wires| wires.follow(is_up));
                }
                if ended.recv_timeout(LOOK) != Err(RecvTimeoutError::Timeout) {
                    return;
                }
            }
        };
        let thread = std::thread::Builder::new().name("carriers".into()).spawn(follow).ok()?;
        Some(Self { end: Some(end), thread: Some(thread) })
    }
}

impl Drop for CarrierWatch {
    fn drop(&mut self) {
        self.end = None;
        if let Some(thread) = self.thread.take() {
            // What it ends with is nobody's business any more.
            let _ = thread.join();
        }
    }
}
