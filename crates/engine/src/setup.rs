//! What an engine is made of, and the start of a run.

use crate::bell::{Bell, waker};
use crate::between::{Between, Inbox, Outbound, ways};
use crate::events::Agenda;
use crate::fidelity::{Fidelity, Lateness, OwnLosses, Quantiles, Tolerance};
use crate::map::Map;
use crate::observer::Observer;
use crate::remote::{Command, Remote};
use crate::stats::{FlowStats, LinkReport, NodeReport, PortReport, Report, WorkerReport};
use crate::windows::{Meeting, Windows};
use crate::worker::Worker;
use longwire_block::{DropReason, Node, Port, PortError, PortStats};
use longwire_link::{Lead, Links};
use longwire_packet::Pool;
use longwire_units::Nanos;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread::JoinHandle;

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
    /// Whether every path through its links is one link long, so that links need not be served in each other's order.
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
    /// The least delay of the links that lead to another worker's links: the longest window of simulated runs.
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

/// What a worker leaves behind.
struct Ended {
    worker: Worker,
    errors: Vec<PortError>,
}

/// A run in real time.
pub struct Run {
    threads: Vec<JoinHandle<Ended>>,
    stop: Arc<AtomicBool>,
    remote: Remote,
    tolerance: Tolerance,
    started: Nanos,
}

impl Setup {
    /// Starts the workers on the machine's clock.
    pub fn start(self) -> Run {
        let (tolerance, wait) = (self.tolerance, self.wait);
        let stop = Arc::new(AtomicBool::new(false));
        let started = crate::clock::monotonic();
        let mut inboxes = Vec::new();
        let mut threads = Vec::new();
        let mut bells: Arc<[Bell]> = Arc::new([]);
        for (mut parts, cpu) in self.into_parts(false, started) {
            bells = Arc::clone(&parts.bells);
            let waker = waker(&bells, parts.index);
            parts.setup.nodes.iter_mut().for_each(|node| node.set_waker(&waker));
            let (inbox, commands) = mpsc::channel::<Command>();
            inboxes.push(inbox);
            let stop = Arc::clone(&stop);
            threads.push(std::thread::spawn(move || {
                crate::clock::settle_thread(cpu);
                let mut worker = Worker::new(parts);
                worker.run(wait, &stop, &commands);
                let errors = worker.finish();
                Ended { worker, errors }
            }));
        }
        Run { threads, stop, remote: Remote::new(inboxes, bells), tolerance, started }
    }

    /// Runs to the end on a simulated clock that begins at zero: until nothing is left to happen, or `until`. What is counted is what
    /// happened by `until`, or, if that is [`TO_THE_END`], by the last event.
    pub fn simulate(self, until: Nanos) -> Report {
        let tolerance = self.tolerance;
        let workers = self.workers.len();
        let mut threads = Vec::new();
        for (parts, _) in self.into_parts(true, Nanos::ZERO) {
            threads.push(std::thread::spawn(move || {
                let mut worker = Worker::new(parts);
                let end = if workers == 1 { worker.run_simulated(until) } else { worker.run_windows(until) };
                if let Some(end) = end {
                    worker.conclude(end);
                }
                let errors = worker.finish();
                Ended { worker, errors }
            }));
        }
        report(threads, tolerance, (Nanos::ZERO, until))
    }

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

impl Run {
    /// Asks and changes the run while it goes on.
    pub fn remote(&self) -> Remote {
        self.remote.clone()
    }

    /// When it began, on the machine's clock: events' times count from then.
    pub const fn started(&self) -> Nanos {
        self.started
    }

    /// Whether a worker has ended by itself, which it does only if it broke.
    pub fn has_ended(&self) -> bool {
        self.threads.iter().any(JoinHandle::is_finished)
    }

    /// Ends the run and reports on it.
    pub fn stop(self) -> Report {
        self.stop.store(true, Ordering::SeqCst);
        self.remote.ring();
        report(self.threads, self.tolerance, (self.started, Nanos::NEVER))
    }
}

/// Waits for the workers and adds up what they did.
fn report(threads: Vec<JoinHandle<Ended>>, tolerance: Tolerance, (started, until): (Nanos, Nanos)) -> Report {
    let mut lateness = Lateness::default();
    let mut all = Report::default();
    // All of them first: what is still in the rings then stays there.
    let ended: Vec<_> = threads.into_iter().map(JoinHandle::join).collect();
    for end in ended {
        let Ok(Ended { mut worker, errors }) = end else {
            all.errors.push("a worker broke; its packets are not accounted for".into());
            continue;
        };
        worker.empty_rings();
        let now = if worker.simulated { Nanos::NEVER } else { crate::clock::monotonic() };
        all.elapsed = all.elapsed.max(now.since(started));
        worker.add_to(&mut all, now.min(until));
        lateness.merge(&worker.books.lateness);
        all.errors.extend(errors.iter().chain(&worker.ports.faults()).map(ToString::to_string));
    }
    all.put_in_order();
    all.fidelity = Some(Fidelity::judge(&lateness, all.own_losses(), tolerance));
    all
}

impl Worker {
    /// Adds what this worker has counted up to `now`.
    pub(crate) fn add_to(&mut self, report: &mut Report, now: Nanos) {
        for link in 0..self.emulation.links.len() as u32 {
            let stats = self.emulation.links.stats(&mut self.pool, link, now.min(Nanos(u64::MAX - 1)));
            let lateness = self.emulation.links.histogram(link).map(Quantiles::of);
            let changed = self.schedules.links.made_of(link).map(Arc::clone);
            report.links.push(LinkReport {
                place: self.emulation.links.place(link),
                stats,
                lateness,
                changed,
            });
        }
        self.emulation.arm_stirred();
        for slot in &self.ports.slots {
            report.ports.push(PortReport {
                place: slot.place,
                name: slot.port.name().into(),
                driver: slot.port.describe(),
                stats: slot.stats(),
                fault: slot.fault.as_ref().map(ToString::to_string),
            });
        }
        for node in &self.nodes.all {
            if let (Some(stats), Some(&port)) = (node.stats(), node.ports().first()) {
                report.nodes.push(NodeReport { port, stats });
            }
        }
        report.workers.push(WorkerReport {
            worker: self.index,
            taken: self.books.flow.taken,
            lateness: self.books.lateness.summary(self.books.tolerance),
            pool_used: self.pool.used_bytes(),
            pool_peak: self.pool.peak_bytes(),
        });
        self.nodes.change_all(now);
        let refused = self.schedules.refused().chain(&self.nodes.changes.refused);
        report.errors.extend(refused.cloned());
        let mut flow = FlowStats::of(&self.books.flow);
        flow.kept = self.nodes.all.iter().map(|node| node.kept()).sum();
        // Frames that a port took off the wire and could not keep have come in and been dropped, too.
        flow.refused(self.ports.slots.iter().map(|slot| slot.port.stats().in_pool_full).sum());
        flow.of_ports(self.ports.slots.iter().map(|slot| slot.port.stats()));
        self.ports.slots.iter().for_each(|slot| flow.not_sent(&slot.port.stats()));
        report.flow.add(&flow);
        report.pool_used += self.pool.used_bytes();
        report.pool_peak += self.pool.peak_bytes();
        report.pool_capacity += self.pool.capacity_bytes();
    }
}

impl Report {
    /// Packets lost by Longwire's own fault.
    pub fn own_losses(&self) -> OwnLosses {
        let of_ports =
            |count: fn(&PortStats) -> u64| self.ports.iter().map(|port| count(&port.stats)).sum::<u64>();
        let in_links = |reason: DropReason| -> u64 {
            let drops = self.links.iter().flat_map(|link| &link.stats.drops);
            drops.filter(|(name, _)| *name == reason.name()).map(|(_, packets)| packets).sum()
        };
        OwnLosses {
            pool: self.flow.dropped(DropReason::PoolFull) + in_links(DropReason::PoolFull),
            port: of_ports(|port| port.in_missed + port.out_full),
            down: of_ports(|port| port.out_down),
            oversize: of_ports(|port| port.out_oversize),
            ring: self.flow.dropped(DropReason::RingFull),
        }
    }
}
