//! The slow path: a thread that runs services, each with rings of its own, and shares its processor among them.

use crate::layout::{ASLEEP, Facts, MAX_FRAME, Opening, Sizes, Verdict, down};
use crate::punt::{Level, Punt, SeatId};
use crate::ring::{LINE, Reader, Writer};
use crate::seat::Cut;
use crate::service::{Made, Punted, Service};
use crate::share::Share;
use crate::shared::Memory;
use crate::wire::{Attach, Bell, Status, Wire};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering, fence};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How the thread waits for packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Waiting {
    /// It looks all the time: quickest, and takes a core.
    Polling,
    /// It sleeps after a while, and is woken.
    Woken,
}

/// How long it looks before it sleeps.
const LOOK: Duration = Duration::from_micros(50);
/// The longest sleep: a bound on what a missed wake-up would cost.
const LONGEST_SLEEP: Duration = Duration::from_millis(100);
/// Packets of one service in a row.
const TURN: usize = 16;

/// The thread. Dropping it ends and joins it.
#[derive(Debug)]
pub struct Slow {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Slow {
    /// Starts it with a service in each of these seats of `punt`. `share` shares the thread among them in this order, by nanoseconds.
    ///
    /// # Errors
    /// There is no memory for the rings, or the thread can't be started.
    pub fn start(
        punt: &mut Punt,
        services: Vec<(SeatId, Box<dyn Service>)>,
        share: Box<dyn Share>,
        waiting: Waiting,
    ) -> io::Result<Self> {
        let (seats, mut way) = punt.open(Level::Slow, 0);
        let stop = Arc::new(AtomicBool::new(false));
        let mut desks = Vec::new();
        let mut wires = Vec::new();
        for (SeatId(_, seat), service) in services {
            let Some((name, limits)) = seats.get(seat) else { continue };
            let lines = limits.ring_bytes / LINE as u32;
            let sizes = Sizes::at_least(lines, lines);
            let memory = Arc::new(Memory::create(sizes.words())?);
            let status = Arc::new(Status::default());
            desks.push(Desk {
                service,
                up: Reader::new(Arc::clone(&memory), sizes.up_place()),
                down: Writer::new(Arc::clone(&memory), sizes.down_place()),
                status: Arc::clone(&status),
                memory: Arc::clone(&memory),
                is_over: false,
            });
            wires.push((seat, name.clone(), memory, sizes, status));
        }
        let mut worker = Worker {
            desks,
            share,
            stop: Arc::clone(&stop),
            waiting,
            frame: vec![0; MAX_FRAME],
            made: Made::default(),
        };
        let thread = std::thread::Builder::new().name("longwire-slow".into()).spawn(move || worker.run())?;
        for (seat, _, memory, sizes, status) in wires {
            let bell = Bell::Thread(thread.thread().clone());
            let wire = Wire::new(memory, sizes, bell, status, true);
            way.push(Attach { seat, wire, promised: 0, share: 0 })
                .map_err(|_| io::Error::other("too many services"))?;
        }
        Ok(Self { stop, thread: Some(thread) })
    }
}

impl Drop for Slow {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            // Services' panics are caught; there is nobody to be told of another.
            let _ = thread.join();
        }
    }
}

/// One service and its rings.
struct Desk {
    service: Box<dyn Service>,
    up: Reader,
    down: Writer,
    status: Arc<Status>,
    memory: Arc<Memory>,
    is_over: bool,
}

struct Worker {
    desks: Vec<Desk>,
    share: Box<dyn Share>,
    stop: Arc<AtomicBool>,
    waiting: Waiting,
    frame: Vec<u8>,
    made: Made,
}

impl Worker {
    fn run(&mut self) {
        let mut idle_since = None;
        while !self.stop.load(Ordering::Acquire) {
            let ready = self.ready();
            match self.share.pick(ready) {
                Some(which) => {
                    idle_since = None;
                    let begin = Instant::now();
                    let Self { desks, frame, made, stop, .. } = self;
                    desks[which].turn(frame, made, stop);
                    let spent = begin.elapsed().as_nanos();
                    self.share.charge(u64::try_from(spent).unwrap_or(u64::MAX));
                }
                None => {
                    let since = *idle_since.get_or_insert_with(Instant::now);
                    if self.waiting == Waiting::Woken && since.elapsed() >= LOOK {
                        self.sleep();
                        idle_since = None;
                    } else {
                        std::hint::spin_loop();
                    }
                }
            }
        }
    }

    /// Which services have packets, as bits.
    fn ready(&mut self) -> u64 {
        (0..).zip(&mut self.desks).fold(0, |ready, (index, desk)| ready | u64::from(desk.is_ready()) << index)
    }

    fn sleep(&mut self) {
        self.desks.iter().for_each(|desk| desk.set_asleep(1));
        // Orders the flags before the look at the rings; who writes into one does the opposite.
        fence(Ordering::SeqCst);
        if self.ready() == 0 && !self.stop.load(Ordering::Acquire) {
            std::thread::park_timeout(LONGEST_SLEEP);
        }
        self.desks.iter().for_each(|desk| desk.set_asleep(0));
    }
}

impl Desk {
    fn is_ready(&mut self) -> bool {
        self.is_over |= self.status.cut().is_some();
        !self.is_over && self.up.available().is_ok_and(|lines| lines > 0)
    }

    fn set_asleep(&self, flag: u64) {
        self.memory.words()[ASLEEP].store(flag, Ordering::Relaxed);
    }

    /// Sees to a few packets.
    fn turn(&mut self, frame: &mut [u8], made: &mut Made, stop: &AtomicBool) {
        for _ in 0..TURN {
            match self.up.available() {
                Ok(lines) if lines > 0 => self.serve(frame, made, stop),
                _ => break,
            }
            if self.is_over {
                return;
            }
        }
        self.up.release();
        self.down.publish();
    }

    fn serve(&mut self, frame: &mut [u8], made: &mut Made, stop: &AtomicBool) {
        let line = self.up.line(0);
        let opening = Opening::read(line[0]);
        let facts = Facts::read(&line);
        // Longwire wrote it itself.
        let frame = &mut frame[..opening.bytes as usize];
        self.up.bytes(1, frame);
        self.up.advance(opening.lines.into());
        let mut packet = Punted::new(facts, frame);
        let service = &mut self.service;
        let verdict = catch_unwind(AssertUnwindSafe(|| service.handle(&mut packet, made)));
        let Ok(verdict) = verdict else {
            self.status.leave(Cut::Panicked);
            self.is_over = true;
            return;
        };
        let changed: &[u8] = if packet.is_changed() { packet.bytes() } else { &[] };
        self.put(down::VERDICT, facts.token, verdict, changed, stop);
        if !made.is_empty() {
            for (port, frame) in made.take().filter(|(_, frame)| frame.len() <= MAX_FRAME) {
                self.put(down::NEW, 0, Verdict::Send { port, band: None }, &frame, stop);
            }
        }
    }

    /// Writes a record, when there is room for it.
    fn put(&mut self, kind: u16, token: u64, verdict: Verdict, bytes: &[u8], stop: &AtomicBool) {
        let opening = Opening::new(kind, bytes.len());
        while !self.down.has_room(opening.lines.into()).unwrap_or(false) {
            self.up.release();
            self.down.publish();
            if stop.load(Ordering::Acquire) || self.status.cut().is_some() {
                self.is_over = true;
                return;
            }
            std::thread::yield_now();
        }
        self.down.line(0, &[opening.word(), token, verdict.word(), 0, 0, 0, 0, 0]);
        self.down.bytes(1, bytes);
        self.down.advance(opening.lines.into());
    }
}
