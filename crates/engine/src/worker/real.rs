//! The loop on the machine's clock.

use super::Worker;
use crate::clock::wait_readable;
use crate::pause::{Pause, PauseMonitor};
use crate::ports::{GONE_PORT, PortSlot};
use crate::remote::Command;
use crate::setup::Wait;
use longwire_block::PortError;
use longwire_clock::monotonic;
use longwire_units::Nanos;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};

/// A sleep ends this long before the deadline; the rest is spent spinning. Waking up takes 40 to 90 µs on an
/// idle machine, and more on a shared one.
const WAKE_EARLY: Nanos = Nanos::from_micros(200);
/// Idle time before a worker sleeps.
const SPIN_ON: Nanos = Nanos::from_micros(100);
/// The longest sleep. Commands and stops ring the bell, but one just before the sleep may be missed.
const LONGEST_SLEEP: Nanos = Nanos::from_millis(10);
/// The longest sleep if packets can arrive without a file descriptor to wake up by.
const SHORT_SLEEP: Nanos = Nanos::from_micros(50);

impl Worker {
    /// Runs until `stop` is set.
    pub(crate) fn run(&mut self, wait: Wait, stop: &Arc<AtomicBool>, commands: &mpsc::Receiver<Command>) {
        let mut sleeper = Sleeper::new(self, wait);
        self.walk.stop = Some(Arc::clone(stop));
        // Times of the last poll, of the last clock reading, and of the last event.
        let mut before = monotonic();
        let (mut seen, mut busy_at) = (before, before);
        self.intake.begin = before.0;
        self.emulation.arm_background();
        self.change_sources(before);
        let mut watch = PauseMonitor::new();
        // Possible waiting time of polled frames before this poll.
        let mut gap = Nanos::ZERO;
        while !stop.load(Ordering::Relaxed) {
            let now = monotonic();
            let handled = self.step(now, gap.max(now.since(before)));
            gap = Nanos::ZERO;
            let asked = self.obey(commands, now);
            self.send_all_over();
            if handled > 0 {
                busy_at = now;
            }
            let after = monotonic();
            // The time for commands is the worker's own.
            if let Some(pause) = watch.look(seen + asked, after, handled) {
                self.counters.lateness.record_pause(pause);
            }
            (before, seen) = (now, after);
            if handled == 0 && after.since(busy_at) >= sleeper.patience {
                if let Some((meant, woken)) = sleeper.sleep(self, after) {
                    let waited = watch.waited_since();
                    // An arriving frame wakes the worker, so the frame's wait is the worker's wait for a
                    // processor.
                    gap = waited.unwrap_or(woken.since(after));
                    if let Some(pause) = Pause::of_waking(meant, woken, waited.unwrap_or_default()) {
                        self.counters.lateness.record_pause(pause);
                    }
                    (before, seen) = (woken, woken);
                }
            } else if handled == 0 {
                std::hint::spin_loop();
            }
        }
    }
}

/// State that a worker needs to sleep.
struct Sleeper {
    wait: Wait,
    patience: Nanos,
    /// One for each port (negative, which is ignored, if it has none), then the bell.
    fds: Vec<libc::pollfd>,
    longest: Nanos,
    /// How often the worker had been rewired.
    rewired: usize,
}

impl Sleeper {
    fn new(worker: &Worker, wait: Wait) -> Self {
        let ports: Vec<_> = worker.ports.slots.iter().map(|slot| slot.port.readable_fd()).collect();
        // Ports that lead to other nodes, or were removed, receive nothing from outside; nor does one whose
        // interface is gone, and which has a descriptor again when that is back.
        let silent = |slot: &PortSlot| {
            let is_inner = worker.map.inner_ports.far_side(slot.place).is_some();
            let is_gone = matches!(slot.fault, Some(PortError::Vanished { .. }));
            is_inner || is_gone || slot.place == GONE_PORT
        };
        let silent = worker.ports.slots.iter().map(silent);
        let all_wake = ports.iter().zip(silent).all(|(fd, silent)| fd.is_some() || silent);
        let bell = worker.peers.bells[worker.index as usize].fd();
        let fds = ports.into_iter().map(|fd| fd.unwrap_or(-1)).chain([bell]);
        Self {
            wait,
            patience: if wait == Wait::Spin { Nanos::NEVER } else { SPIN_ON },
            fds: fds.map(|fd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 }).collect(),
            longest: if all_wake { LONGEST_SLEEP } else { SHORT_SLEEP },
            rewired: worker.rewired,
        }
    }

    /// Sleeps until a port is readable or shortly before the next deadline. Returns the planned end, or the
    /// actual one if something woke the worker earlier, and when it woke; none if there was no time to sleep.
    fn sleep(&mut self, worker: &mut Worker, now: Nanos) -> Option<(Nanos, Nanos)> {
        let early = if self.wait == Wait::Sleep { Nanos::ZERO } else { WAKE_EARLY };
        let nodes = worker.nodes.next();
        let due =
            worker.emulation.wheel.bound().min(worker.next_arrival()).min(worker.schedules.links.next());
        let due = due.min(worker.schedules.sources.next()).min(nodes).min(worker.ports.next_tick());
        let time = due.since(now).since(early).min(self.longest);
        if time == Nanos::ZERO {
            return None;
        }
        if self.rewired != worker.rewired {
            *self = Self::new(worker, self.wait);
        }
        // The descriptor of a port that is down or gone may stay readable: it is polled again after the
        // sleep.
        for (slot, entry) in worker.ports.slots.iter().zip(&mut self.fds) {
            let usable = slot.fault.is_none();
            entry.fd = if usable { slot.port.readable_fd().unwrap_or(-1) } else { -1 };
        }
        let bell = &worker.peers.bells[worker.index as usize];
        bell.doze();
        // Catches events from before the bell was armed: packets of other workers, and finished work of
        // nodes' threads.
        let came = !worker.peers.inbox.is_empty() || worker.nodes.next() < nodes;
        let called = came || wait_readable(&mut self.fds, time);
        bell.rise();
        let woken = monotonic();
        Some((if called { woken } else { now + time }, woken))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Map, PortLocation, PortSetup, Setup, WorkerSetup};
    use longwire_block::Stamp;
    use longwire_block::path::Paths;
    use longwire_link::Links;
    use longwire_link::classify::Classifier;
    use longwire_packet::Pool;
    use longwire_port::driver::memory::MemoryPort;

    /// A rewiring while an interface is gone: the worker does not wake every 50 µs for the rest of the run.
    #[test]
    fn a_port_whose_interface_is_gone_does_not_shorten_sleeps() {
        let mut own = WorkerSetup::new(Pool::new(1 << 20).unwrap(), Links::with_capacity(0, 1, Nanos(1)));
        let (port, _far) = MemoryPort::pair("it", Stamp::Kernel, 16, 1 << 12);
        own.ports.push(PortSetup { place: 0, node: 0, port: Box::new(port) });
        let port_locations = vec![PortLocation::single(0, 0)];
        let map = Map::new(Classifier::new(&[], &[], &[]), Paths::default(), port_locations);
        let mut worker = Worker::of(Setup::new(vec![own], map)).remove(0);
        let longest = |worker: &Worker| Sleeper::new(worker, Wait::Sleep).longest;
        assert_eq!(longest(&worker), SHORT_SLEEP, "nothing else wakes it");
        worker.ports.slots[0].fault = Some(PortError::Vanished { port: "it".into() });
        assert_eq!(longest(&worker), LONGEST_SLEEP);
    }
}
