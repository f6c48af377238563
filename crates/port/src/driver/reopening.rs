//! A port that outlives its interface: when the interface is gone, the port waits for another with the same
//! name and continues with it.

use crate::interface::namespace;
use longwire_block::{Port, PortError, PortStats, Stamp};
use longwire_drivers::Netns;
use longwire_packet::{Batch, Pool};
use longwire_units::Nanos;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

/// Interval between checks whether the interface is back.
const EVERY: Nanos = Nanos::from_millis(500);

type Open = dyn Fn() -> Option<Box<dyn Port>> + Send + Sync;

/// Works with any driver of interfaces. Opening takes milliseconds of system calls, so a separate thread does
/// it while the worker continues.
pub struct Reopening {
    name: String,
    /// Where its interface is.
    netns: Netns,
    stamp: Stamp,
    port: Option<Box<dyn Port>>,
    open: Arc<Open>,
    /// The processors of the thread that created it: the worker may be pinned.
    processors: Option<CpuSet>,
    attempt: Option<JoinHandle<Option<Box<dyn Port>>>>,
    next_attempt: Nanos,
    /// Number of times that it was reopened.
    times: u64,
    /// Counters of closed ports, and of the time without one.
    before: PortStats,
}

impl Reopening {
    /// Wraps an open port. `again` reopens it, or returns none if that is not possible yet; it is called on a
    /// separate thread.
    pub fn new(
        port: Box<dyn Port>,
        open: impl Fn() -> Option<Box<dyn Port>> + Send + Sync + 'static,
    ) -> Self {
        Self {
            name: port.name().into(),
            netns: Netns::Own,
            stamp: port.stamp(),
            port: Some(port),
            open: Arc::new(open),
            processors: sched_getaffinity(None).ok(),
            attempt: None,
            next_attempt: Nanos::ZERO,
            times: 0,
            before: PortStats::default(),
        }
    }

    /// Wraps the open queues of a port. `again` reopens all of them, in order, in their interface's
    /// namespace, when one finds the interface gone; the others take theirs when they find that too.
    pub fn queues<P: Port + 'static>(
        netns: &Netns,
        first: Vec<P>,
        open_all: impl Fn() -> Option<Vec<P>> + Send + Sync + 'static,
    ) -> Vec<Self> {
        let shelf = Arc::new(Mutex::new(first.iter().map(|_| None).collect::<Vec<Option<P>>>()));
        let open_all = Arc::new(open_all);
        let queues = first.into_iter().enumerate().map(|(queue, port)| {
            let (netns, of_port) = (netns.clone(), netns.clone());
            let (shelf, open_all) = (Arc::clone(&shelf), Arc::clone(&open_all));
            let again = move || {
                let mut shelf = shelf.lock().unwrap_or_else(PoisonError::into_inner);
                if shelf.get(queue)?.is_none() {
                    // Queues that nobody has taken are closed first: they would block the new ones.
                    shelf.iter_mut().for_each(|port| *port = None);
                    // By name, because the namespace may have been recreated too. The thread exists only for
                    // this.
                    namespace::enter(&netns).ok()?;
                    *shelf = open_all()?.into_iter().map(Some).collect();
                }
                Some(Box::new(shelf.get_mut(queue)?.take()?) as Box<dyn Port>)
            };
            let mut port = Self::new(Box::new(port), again);
            port.netns = of_port;
            port
        });
        queues.collect()
    }

    fn vanished(&self) -> PortError {
        PortError::Vanished { port: self.name.clone() }
    }

    /// Closes the port, which frees its interface's name and its claim.
    #[cold]
    fn close(&mut self, now: Nanos) {
        if let Some(port) = self.port.take() {
            self.before = self.before.plus(&port.stats());
            self.next_attempt = now + EVERY;
        }
    }

    /// Checks from time to time whether the interface is back.
    #[cold]
    fn look(&mut self, now: Nanos) {
        match self.attempt.take() {
            Some(attempt) if attempt.is_finished() => {
                self.port = attempt.join().ok().flatten();
                self.times += u64::from(self.port.is_some());
            }
            Some(attempt) => self.attempt = Some(attempt),
            None if now >= self.next_attempt => {
                self.next_attempt = now + EVERY;
                let (open, processors) = (Arc::clone(&self.open), self.processors);
                self.attempt = Some(std::thread::spawn(move || {
                    // Without them it holds up the worker for a moment.
                    let _ = processors.map(|processors| sched_setaffinity(None, &processors));
                    open()
                }));
            }
            None => {}
        }
    }
}

impl Drop for Reopening {
    /// A port that is being opened is closed before the run ends: it may have to restore settings of its
    /// interface.
    fn drop(&mut self) {
        drop(self.attempt.take().map(JoinHandle::join));
    }
}

impl Port for Reopening {
    fn name(&self) -> &str {
        &self.name
    }

    fn describe(&self) -> String {
        let own = self.port.as_ref().map_or("gone".into(), |port| port.describe());
        match self.times {
            0 => own,
            1 => format!("{own}, opened again once"),
            times => format!("{own}, opened again {times} times"),
        }
    }

    fn stamp(&self) -> Stamp {
        self.stamp
    }

    fn receive(&mut self, pool: &mut Pool, now: Nanos, batch: &mut Batch) -> Result<(), PortError> {
        let Some(port) = &mut self.port else {
            self.look(now);
            return Err(self.vanished());
        };
        let result = port.receive(pool, now, batch);
        if let Err(PortError::Vanished { .. }) = result {
            self.close(now);
        }
        result.map_err(|error| in_namespace(error, &self.netns))
    }

    fn transmit(&mut self, pool: &mut Pool, batch: &Batch) -> Result<(), PortError> {
        if let Some(port) = &mut self.port {
            return port.transmit(pool, batch).map_err(|error| in_namespace(error, &self.netns));
        }
        for &handle in batch.as_slice() {
            self.before.out_down += u64::from(pool.meta(handle).segments);
            pool.free(handle);
        }
        Err(self.vanished())
    }

    fn readable_fd(&self) -> Option<i32> {
        self.port.as_ref().and_then(|port| port.readable_fd())
    }

    fn stats(&self) -> PortStats {
        self.port.as_ref().map_or(self.before, |port| self.before.plus(&port.stats()))
    }
}

/// The error of a port whose interface is in `netns`, where alone its command works.
#[cold]
fn in_namespace(error: PortError, netns: &Netns) -> PortError {
    match error {
        PortError::Down { port, interface, .. } if *netns != Netns::Own => {
            let elsewhere = Some(netns.command(&PortError::bring_up(&interface)));
            PortError::Down { port, interface, elsewhere }
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::driver::InterfaceState;
    use crate::driver::memory::{FarEnd, MemoryPort};
    use std::time::{Duration, Instant};

    fn pair() -> (Box<dyn Port>, FarEnd) {
        let (port, end) = MemoryPort::pair("p", Stamp::Kernel, 16, 1 << 16);
        (Box::new(port), end)
    }

    fn send(port: &mut Reopening, pool: &mut Pool) -> Result<(), PortError> {
        let mut batch = Batch::new();
        batch.push(pool.insert(&[7; 60]).unwrap());
        port.transmit(pool, &batch)
    }

    /// Both queues find their interface gone; the first reopens both, and the other takes its own.
    #[test]
    fn queues_are_opened_again_together() {
        let mut pool = Pool::new(1 << 20).unwrap();
        let ends = Arc::new(Mutex::new(Vec::new()));
        let there = Arc::clone(&ends);
        let open_all = move || {
            let (ports, ends): (Vec<_>, Vec<_>) =
                (0..2).map(|_| MemoryPort::pair("p", Stamp::Kernel, 16, 1 << 16)).unzip();
            there.lock().unwrap().push(ends);
            Some(ports)
        };
        let mut queues = Reopening::queues(&Netns::Own, open_all().unwrap(), open_all);
        ends.lock().unwrap()[0].iter_mut().for_each(|end| end.set_state(InterfaceState::Gone));
        let mut at = 1;
        let end = Instant::now() + Duration::from_secs(20);
        let mut come_back = |queue: &mut Reopening, pool: &mut Pool| {
            assert!(queue.receive(pool, Nanos(at), &mut Batch::new()).is_err());
            while queue.receive(pool, Nanos(at), &mut Batch::new()).is_err() {
                assert!(Instant::now() < end, "it does not come back");
                at += EVERY.0;
                std::thread::yield_now();
            }
        };
        for queue in &mut queues {
            come_back(queue, &mut pool);
        }
        for queue in &mut queues {
            send(queue, &mut pool).unwrap();
        }
        let mut ends = ends.lock().unwrap();
        assert_eq!(ends.len(), 2, "both were opened again at once");
        assert!(ends[1].iter_mut().all(|end| end.take().is_some()));
    }

    #[test]
    fn the_command_for_an_interface_that_is_down_names_its_namespace() {
        let mut pool = Pool::new(1 << 20).unwrap();
        let (port, mut end) = MemoryPort::pair("p", Stamp::Kernel, 16, 1 << 16);
        end.set_state(InterfaceState::Down);
        let mut queues = Reopening::queues(&Netns::Named("lab".into()), vec![port], || None);
        let received = queues[0].receive(&mut pool, Nanos(1), &mut Batch::new());
        for result in [received, send(&mut queues[0], &mut pool)] {
            let text = result.unwrap_err().to_string();
            assert_eq!(text, "port p: the interface is down; bring it up with: ip -n lab link set p up");
        }
    }

    /// One frame before the interface goes, two while it is gone, one after it is back.
    #[test]
    fn it_goes_on_when_the_interface_is_back() {
        let mut pool = Pool::new(1 << 20).unwrap();
        let ((first, mut gone), (second, mut back)) = (pair(), pair());
        let shelf = Arc::new(Mutex::new(None));
        let there = Arc::clone(&shelf);
        let mut port = Reopening::new(first, move || there.lock().unwrap().take());
        let receive =
            |port: &mut Reopening, pool: &mut Pool, at| port.receive(pool, Nanos(at), &mut Batch::new());
        send(&mut port, &mut pool).unwrap();
        assert_eq!(gone.take().map(|frame| frame.bytes), Some(vec![7; 60]));
        gone.set_state(InterfaceState::Gone);
        assert!(matches!(receive(&mut port, &mut pool, 1), Err(PortError::Vanished { .. })));
        assert!(matches!(send(&mut port, &mut pool), Err(PortError::Vanished { .. })));
        // There is no interface yet: this attempt fails.
        let mut at = 1 + EVERY.0;
        assert!(receive(&mut port, &mut pool, at).is_err());
        assert!(send(&mut port, &mut pool).is_err());
        assert_eq!((port.stats().out_frames, port.stats().out_down, port.readable_fd()), (1, 2, None));
        *shelf.lock().unwrap() = Some(second);
        let end = Instant::now() + Duration::from_secs(20);
        while receive(&mut port, &mut pool, at).is_err() {
            assert!(Instant::now() < end, "it does not come back");
            at += EVERY.0;
            std::thread::yield_now();
        }
        send(&mut port, &mut pool).unwrap();
        assert!(back.take().is_some());
        assert_eq!((port.stats().out_frames, port.stats().out_down, pool.live()), (2, 2, 0));
        assert!(port.describe().ends_with(", opened again once"), "{}", port.describe());
    }

    /// A worker is pinned to a processor; a thread that opens its port again is not.
    #[test]
    fn a_worker_s_processor_is_not_that_of_the_opening_thread() {
        let all = sched_getaffinity(None).unwrap();
        let (found, opening) = (Arc::new(Mutex::new(None)), pair());
        let finds = Arc::clone(&found);
        let ((first, mut gone), again) = (pair(), Mutex::new(Some(opening.0)));
        let mut port = Reopening::new(first, move || {
            *finds.lock().unwrap() = sched_getaffinity(None).ok();
            again.lock().unwrap().take()
        });
        gone.set_state(InterfaceState::Gone);
        let worker = std::thread::spawn(move || {
            let mut pinned = CpuSet::new();
            pinned.set((0..CpuSet::MAX_CPU).find(|&cpu| all.is_set(cpu)).unwrap());
            sched_setaffinity(None, &pinned).unwrap();
            let (mut pool, end) = (Pool::new(1 << 20).unwrap(), Instant::now() + Duration::from_secs(20));
            for at in (1..).map(|turn| Nanos(turn * EVERY.0)) {
                if port.receive(&mut pool, at, &mut Batch::new()).is_ok() {
                    return;
                }
                assert!(Instant::now() < end, "it does not come back");
                std::thread::yield_now();
            }
        });
        worker.join().unwrap();
        assert_eq!(*found.lock().unwrap(), Some(all));
    }
}
