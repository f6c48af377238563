//! A run, from its start to its report.

use crate::bell::{Bell, waker};
use crate::fidelity::{Fidelity, Lateness, Tolerance};
use crate::remote::{Command, Remote};
use crate::rewiring::Rewiring;
use crate::setup::Setup;
use crate::stats::Report;
use crate::windows::Presence;
use crate::worker::Worker;
use longwire_block::Port;
use longwire_units::Nanos;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread::JoinHandle;

/// A run in real time.
pub struct Run {
    threads: Vec<JoinHandle<Worker>>,
    stop: Arc<AtomicBool>,
    remote: Remote,
    tolerance: Tolerance,
    started: Nanos,
}

impl Setup {
    /// Starts the workers on the machine's clock.
    pub fn start(self) -> Run {
        self.start_at(longwire_clock::monotonic())
    }

    /// Starts the workers on the machine's clock. Times of events count from `started`, which the caller has
    /// just read and needed before any frame arrives.
    pub fn start_at(self, started: Nanos) -> Run {
        let (tolerance, wait) = (self.tolerance, self.wait);
        let stop = Arc::new(AtomicBool::new(false));
        let mut inboxes = Vec::new();
        let mut threads = Vec::new();
        let mut bells: Arc<[Bell]> = Arc::new([]);
        for mut parts in self.into_parts(false, started) {
            bells = Arc::clone(&parts.peers.bells);
            let waker = waker(&bells, parts.index);
            parts.setup.nodes.iter_mut().for_each(|node| node.set_waker(&waker));
            let (inbox, commands) = mpsc::channel::<Command>();
            inboxes.push(inbox);
            let stop = Arc::clone(&stop);
            threads.push(std::thread::spawn(move || {
                crate::clock::settle_thread(parts.setup.cpu);
                let mut worker = Worker::new(parts);
                worker.run(wait, &stop, &commands);
                worker.finish(longwire_clock::monotonic());
                worker
            }));
        }
        Run { threads, stop, remote: Remote::new(inboxes, bells), tolerance, started }
    }

    /// Runs on a simulated clock that begins at zero, until no event is left or until `until`. The counters
    /// include what happened by then, or, if it is [`TO_THE_END`](crate::TO_THE_END), by the last event.
    pub fn simulate(self, until: Nanos) -> Report {
        self.simulate_rewired(until, Vec::new())
    }

    /// Runs on a simulated clock as [`Setup::simulate`] does, with these rewirings at their times, in order.
    ///
    /// # Panics
    /// If there are any, and several workers.
    pub fn simulate_rewired(self, until: Nanos, rewirings: Vec<(Nanos, Rewiring)>) -> Report {
        assert!(rewirings.is_empty() || self.workers.len() == 1, "one worker is rewired");
        let steps = rewirings.into_iter().filter_map(|(time, rewiring)| {
            let step = rewiring.rounds().into_iter().flatten().next()?;
            Some((time, step))
        });
        let mut steps: VecDeque<_> = steps.collect();
        let tolerance = self.tolerance;
        let workers = self.workers.len();
        let mut threads = Vec::new();
        for parts in self.into_parts(true, Nanos::ZERO) {
            let rewirings = std::mem::take(&mut steps);
            let presence = Presence(parts.windows.as_ref().map(|windows| Arc::clone(&windows.barrier)));
            threads.push(std::thread::spawn(move || {
                let _presence = presence;
                let mut worker = Worker { rewirings, ..Worker::new(parts) };
                let end = if workers == 1 { worker.run_simulated(until) } else { worker.run_windows(until) };
                if let Some(end) = end {
                    worker.conclude(end);
                }
                worker.finish(worker.end(until));
                worker
            }));
        }
        report(threads, tolerance, (Nanos::ZERO, until))
    }
}

impl Run {
    /// A handle for queries and changes during the run.
    pub fn remote(&self) -> Remote {
        self.remote.clone()
    }

    /// Start time on the machine's clock; times of events count from it.
    pub const fn started(&self) -> Nanos {
        self.started
    }

    /// Whether a worker has ended by itself, which means that it panicked.
    pub fn has_ended(&self) -> bool {
        self.threads.iter().any(JoinHandle::is_finished)
    }

    /// Ends the run and returns its report.
    pub fn stop(self) -> Report {
        self.stop.store(true, Ordering::SeqCst);
        self.remote.ring();
        report(self.threads, self.tolerance, (self.started, Nanos::NEVER))
    }
}

/// Joins the workers and adds up their counters.
fn report(
    threads: Vec<JoinHandle<Worker>>,
    tolerance: Tolerance,
    (started, until): (Nanos, Nanos),
) -> Report {
    let mut lateness = Lateness::default();
    let mut all = Report::default();
    // All are joined first: nobody takes packets out of the rings any more.
    let ended: Vec<_> = threads.into_iter().map(JoinHandle::join).collect();
    let mut ports = Vec::new();
    for end in ended {
        let Ok(mut worker) = end else {
            all.errors.push("a worker panicked; its packets are not accounted for".into());
            continue;
        };
        worker.empty_rings();
        let now = if worker.simulated { until } else { longwire_clock::monotonic() };
        all.elapsed = all.elapsed.max(worker.end(now).since(started));
        worker.add_to(&mut all, now);
        lateness.merge(&worker.counters.lateness);
        let faults = worker.ports.slots.iter().filter_map(|slot| slot.fault.as_ref());
        all.errors.extend(worker.ports.left.iter().chain(faults).map(ToString::to_string));
        if !worker.simulated {
            ports.extend(worker.ports.slots.drain(..).map(|slot| slot.port));
        }
    }
    close(ports);
    all.put_in_order();
    all.fidelity = Some(Fidelity::judge(&lateness, all.own_losses(), all.tunnels(), tolerance));
    all
}

/// Closes ports in parallel: removing an interface with its port takes the kernel 10 ms and more.
fn close(ports: Vec<Box<dyn Port>>) {
    const AT_ONCE: usize = 16;
    let mut ports = ports.into_iter();
    while ports.len() > 1 {
        std::thread::scope(|scope| {
            for port in ports.by_ref().take(AT_ONCE) {
                // If no thread can be started, dropping the closure closes the port.
                let _ = std::thread::Builder::new().spawn_scoped(scope, move || drop(port));
            }
        });
    }
}
