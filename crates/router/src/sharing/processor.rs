//! A processor that is a thread: packets' copies arrive through a ring, meet their programs, and return
//! through another.

use super::Meter;
use crate::classify::Class;
use crate::forwarder::{Bench, Errand, Forwarders};
use longwire_block::DropReason;
use longwire_sched::GrantedPacket;
use rtrb::{Consumer, Producer, RingBuffer};
use std::collections::VecDeque;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering, fence};
use std::sync::{Arc, OnceLock};
use std::task::Waker;
use std::thread::{JoinHandle, Thread};
use std::time::Duration;

/// A packet on its way to a processor and back. The boxes circulate.
pub(super) struct Job {
    /// The packet, and its class before its programs.
    pub packet: Option<(GrantedPacket, Class)>,
    pub errand: Errand,
    /// The time of its programs.
    pub cycles: u64,
}

/// State shared by the worker and all processors of a router.
#[derive(Debug)]
pub(super) struct Common {
    pub meter: Meter,
    /// Wakes the worker, once that runs.
    pub waker: OnceLock<Waker>,
    stop: AtomicBool,
    /// Whether processors must stay between two packets.
    closed: AtomicBool,
    /// By processor: whether it is working on a packet.
    busy: Box<[Flag]>,
}

/// A flag on its own cache line.
#[derive(Debug, Default)]
#[repr(align(64))]
struct Flag(AtomicBool);

/// Keeps the gate closed while it exists.
struct Gate<'a>(&'a AtomicBool);

impl<'a> Gate<'a> {
    fn close(closed: &'a AtomicBool) -> Self {
        closed.store(true, Ordering::SeqCst);
        // Orders closing the gate before reading the processors' flags; they do the opposite.
        fence(Ordering::SeqCst);
        Self(closed)
    }
}

impl Drop for Gate<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}

impl Common {
    pub fn new(meter: Meter, processors: usize) -> Self {
        Self {
            meter,
            waker: OnceLock::new(),
            stop: AtomicBool::new(false),
            closed: AtomicBool::new(false),
            busy: (0..processors).map(|_| Flag::default()).collect(),
        }
    }

    /// Calls `act` while every processor is between two packets: waits for at most the rest of one packet
    /// each.
    pub fn between_packets<T>(&self, act: impl FnOnce() -> T) -> T {
        let _gate = Gate::close(&self.closed);
        for Flag(busy) in &self.busy {
            while busy.load(Ordering::Acquire) {
                std::thread::yield_now();
            }
        }
        act()
    }

    /// Begins a packet on a processor. It waits for nothing but the gate.
    fn enter(&self, processor: usize) {
        let Flag(busy) = &self.busy[processor];
        loop {
            busy.store(true, Ordering::SeqCst);
            fence(Ordering::SeqCst);
            if !self.closed.load(Ordering::Acquire) {
                return;
            }
            busy.store(false, Ordering::Release);
            while self.closed.load(Ordering::Acquire) {
                std::thread::yield_now();
            }
        }
    }

    fn leave(&self, processor: usize) {
        let Flag(busy) = &self.busy[processor];
        busy.store(false, Ordering::Release);
    }
}

/// The worker's end of a processor.
pub(super) struct Processor {
    /// Boxes that are not in use. They rotate, so that none keeps replaced programs.
    jobs: VecDeque<Box<Job>>,
    all: usize,
    requests: Producer<Box<Job>>,
    verdicts: Consumer<Box<Job>>,
    asleep: Arc<AtomicBool>,
    common: Arc<Common>,
    thread: Option<JoinHandle<()>>,
}

impl Processor {
    /// Starts the processor with this number, from 0, with a ring of `depth` slots.
    ///
    /// # Errors
    /// If the thread can't be started.
    pub fn start(
        number: usize,
        depth: usize,
        table: &Arc<Forwarders>,
        common: &Arc<Common>,
    ) -> io::Result<Self> {
        // The processor holds another one.
        let all = depth + 1;
        let (requests, taken) = RingBuffer::new(all);
        let (given, verdicts) = RingBuffer::new(all);
        let asleep = Arc::new(AtomicBool::new(false));
        let mut runner = Runner {
            number,
            requests: taken,
            verdicts: given,
            asleep: Arc::clone(&asleep),
            common: Arc::clone(common),
            bench: Bench::beside(common.meter),
        };
        let thread = std::thread::Builder::new().name(format!("longwire-cpu{number}"));
        let thread = thread.spawn(move || runner.run())?;
        let job = |_| Box::new(Job { packet: None, errand: Errand::new(table), cycles: 0 });
        let jobs = (0..all).map(job).collect();
        Ok(Self { jobs, all, requests, verdicts, asleep, common: Arc::clone(common), thread: Some(thread) })
    }

    /// Packets on their way to it and back.
    pub fn load(&self) -> usize {
        self.all - self.jobs.len()
    }

    /// Whether it can accept no more.
    pub fn is_full(&self) -> bool {
        self.jobs.is_empty()
    }

    /// Whether a packet has come back.
    pub fn is_done(&self) -> bool {
        !self.verdicts.is_empty()
    }

    /// A box for a packet, unless it is full.
    pub fn job(&mut self) -> Option<Box<Job>> {
        self.jobs.pop_front()
    }

    /// Takes a box back.
    pub fn put(&mut self, job: Box<Job>) {
        self.jobs.push_back(job);
    }

    /// Passes it a packet, and wakes it.
    pub fn give(&mut self, job: Box<Job>) {
        let given = self.requests.push(job);
        debug_assert!(given.is_ok(), "the ring has a place for every box");
        // Orders the packet before reading the flag; the thread does the opposite before it sleeps.
        fence(Ordering::SeqCst);
        if self.asleep.load(Ordering::Relaxed) && self.asleep.swap(false, Ordering::SeqCst) {
            self.unpark();
        }
    }

    /// The next returned packet. Its box must be put back.
    pub fn take(&mut self) -> Option<Box<Job>> {
        self.verdicts.pop().ok()
    }

    fn unpark(&self) {
        if let Some(thread) = &self.thread {
            Thread::unpark(thread.thread());
        }
    }
}

impl Drop for Processor {
    /// Stops it, and the router's other processors, after the current packet.
    fn drop(&mut self) {
        self.common.stop.store(true, Ordering::SeqCst);
        self.unpark();
        if let Some(thread) = self.thread.take() {
            // A panic of the thread ends there.
            let _ = thread.join();
        }
    }
}

impl std::fmt::Debug for Processor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Processor").field("load", &self.load()).finish_non_exhaustive()
    }
}

/// Polls before a processor sleeps: about 20 µs.
const LOOKS: u32 = 500;
/// The longest sleep: a bound on what a missed wake-up would cost.
const LONGEST_SLEEP: Duration = Duration::from_millis(100);

/// The thread's end.
struct Runner {
    number: usize,
    requests: Consumer<Box<Job>>,
    verdicts: Producer<Box<Job>>,
    asleep: Arc<AtomicBool>,
    common: Arc<Common>,
    bench: Bench,
}

impl Runner {
    fn run(&mut self) {
        let common = Arc::clone(&self.common);
        let mut looks = 0;
        while !common.stop.load(Ordering::Acquire) {
            if let Ok(job) = self.requests.pop() {
                looks = 0;
                self.serve(job);
            } else if looks < LOOKS {
                looks += 1;
                std::hint::spin_loop();
            } else {
                looks = 0;
                self.sleep();
            }
        }
    }

    /// Processes a packet, even if it panics.
    fn serve(&mut self, mut job: Box<Job>) {
        self.common.enter(self.number);
        let number = self.number as u32 + 1;
        let (bench, cycles) = (&mut self.bench, self.common.meter.cycles);
        let worked = catch_unwind(AssertUnwindSafe(|| {
            let before = cycles();
            job.errand.run(bench, number);
            cycles().wrapping_sub(before)
        }));
        self.common.leave(self.number);
        match worked {
            Ok(cycles) => {
                job.cycles = cycles;
                job.errand.note_cost(&mut self.bench, cycles);
            }
            Err(_) => job.errand.fault = Some(DropReason::Aborted),
        }
        let replaced = job.errand.replaced.take();
        let given = self.verdicts.push(job);
        debug_assert!(given.is_ok(), "the ring has a place for every box");
        drop(replaced);
        if let Some(waker) = self.common.waker.get() {
            waker.wake_by_ref();
        }
    }

    fn sleep(&self) {
        self.asleep.store(true, Ordering::SeqCst);
        // Orders the flag before reading the ring; the sender does the opposite.
        fence(Ordering::SeqCst);
        if self.requests.is_empty() && !self.common.stop.load(Ordering::Acquire) {
            std::thread::park_timeout(LONGEST_SLEEP);
        }
        self.asleep.store(false, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::forwarder::{Admission, Programs};

    /// Polls for minutes, if needed.
    fn wait_for(what: &str, is_so: impl Fn() -> bool) {
        let mut looks = 0;
        while !is_so() {
            looks += 1;
            assert!(looks < 500_000_000, "{what}");
            std::thread::yield_now();
        }
    }

    #[test]
    fn a_processor_without_packets_sleeps_and_is_woken_by_one() {
        let programs = Programs::new(Forwarders::none(Admission::default(), &[1], 1));
        let meter = Meter { cycles: || 0, per_microsecond: 1, now: || longwire_units::Nanos::ZERO };
        let common = Arc::new(Common::new(meter, 1));
        let mut processor = Processor::start(0, 1, &programs.table, &common).unwrap();
        for round in 0..20 {
            wait_for("it sleeps", || processor.asleep.load(Ordering::SeqCst));
            assert_eq!((processor.load(), processor.is_full(), processor.is_done()), (0, false, false));
            let [one, two] = [processor.job().unwrap(), processor.job().unwrap()];
            assert!(processor.job().is_none() && processor.is_full());
            processor.give(one);
            processor.give(two);
            for left in [1, 0] {
                wait_for("it is done", || processor.is_done());
                let job = processor.take().unwrap();
                processor.put(job);
                assert_eq!(processor.load(), left, "round {round}");
            }
        }
    }
}
