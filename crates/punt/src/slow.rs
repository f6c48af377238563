//! The slow path: a thread that runs services, each with its own rings, and schedules them.

use crate::cut::CutReason;
use crate::layout::{ASLEEP, Facts, MAX_FRAME, NOW, Opening, RingSizes, Verdict, down};
use crate::level::AttachmentId;
use crate::limits::Limits;
use crate::punt::AttachSender;
use crate::ring::{LINE, Reader, Writer};
use crate::service::{PuntedPacket, Service, ServiceOutput};
use crate::shared::Memory;
use crate::turns::{MOST, Turns};
use crate::wire::{Attach, Bell, Status, Wire};
use longwire_units::Nanos;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering, fence};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How the thread waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WaitMode {
    /// Polls all the time: fastest, but takes a core.
    Polling,
    /// Sleeps after a while, and is woken.
    Woken,
}

/// Polling time before a sleep.
const LOOK: Duration = Duration::from_micros(50);
/// Longest sleep: bounds the cost of a missed wake-up.
const LONGEST_SLEEP: Duration = Duration::from_millis(100);
/// Most consecutive packets of one service.
const TURN: usize = 16;

/// The thread that runs services. Dropping it ends and joins the thread.
#[derive(Debug)]
pub struct ServiceThread {
    stop: Arc<AtomicBool>,
    attach: AttachSender,
    messages: Sender<ThreadMessage>,
    thread: Option<JoinHandle<()>>,
}

enum ThreadMessage {
    Service(usize, Box<RunningService>),
    Weights(Vec<(usize, u64)>),
}

impl ServiceThread {
    /// Starts a thread without services. `turns` schedules them by time in nanoseconds.
    ///
    /// # Errors
    /// The thread can't be started.
    pub fn start(attach: AttachSender, turns: Turns, waiting: WaitMode) -> io::Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let (messages, told) = channel();
        let mut worker = Worker {
            services: Vec::new(),
            turns,
            told,
            stop: Arc::clone(&stop),
            waiting,
            begin: Instant::now(),
            frame: vec![0; MAX_FRAME],
            made: ServiceOutput::default(),
        };
        let thread = std::thread::Builder::new().name("longwire-slow".into()).spawn(move || worker.run())?;
        Ok(Self { stop, attach, messages, thread: Some(thread) })
    }

    /// Attaches a service to the node. It stays until the node removes the attachment.
    ///
    /// # Errors
    /// There is no memory for its rings, or the node accepts no attachment.
    pub fn attach(&mut self, id: AttachmentId, limits: &Limits, service: Box<dyn Service>) -> io::Result<()> {
        let AttachmentId(_, number) = id;
        let Some(thread) = &self.thread else { return Ok(()) };
        let lines = limits.ring_bytes / LINE as u32;
        let sizes = RingSizes::at_least(lines, lines);
        let memory = Arc::new(Memory::create(sizes.words())?);
        let status = Arc::new(Status::default());
        let service = RunningService {
            service,
            up: Reader::new(Arc::clone(&memory), sizes.up_place()),
            down: Writer::new(Arc::clone(&memory), sizes.down_place()),
            status: Arc::clone(&status),
            memory: Arc::clone(&memory),
            is_over: false,
        };
        let gone = |_| io::Error::other("the slow path has ended");
        self.messages.send(ThreadMessage::Service(number, Box::new(service))).map_err(gone)?;
        thread.thread().unpark();
        let wire = Wire::new(memory, sizes, Bell::Thread(thread.thread().clone()), status, true);
        let attach = Attach { attachment: number, wire, promised: 0, share: 0 };
        let full = |_| io::Error::other("too many processes or services are attaching");
        self.attach.0.push(attach).map_err(full)
    }

    /// Sets the services' weights.
    pub fn weigh(&self, weights: &[(AttachmentId, u64)]) {
        let weights = weights.iter().map(|&(AttachmentId(_, number), weight)| (number, weight)).collect();
        // The thread only ends with this object.
        let _ = self.messages.send(ThreadMessage::Weights(weights));
    }
}

impl Drop for ServiceThread {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            // Panics of services are caught; any other can't be reported.
            let _ = thread.join();
        }
    }
}

/// One service and its rings.
struct RunningService {
    service: Box<dyn Service>,
    up: Reader,
    down: Writer,
    status: Arc<Status>,
    memory: Arc<Memory>,
    is_over: bool,
}

struct Worker {
    /// By the attachments' numbers.
    services: Vec<Option<Box<RunningService>>>,
    turns: Turns,
    told: Receiver<ThreadMessage>,
    begin: Instant,
    stop: Arc<AtomicBool>,
    waiting: WaitMode,
    frame: Vec<u8>,
    made: ServiceOutput,
}

impl Worker {
    fn run(&mut self) {
        let (mut idle_since, mut spent) = (None, 0);
        while !self.stop.load(Ordering::Acquire) {
            self.listen();
            let ready = self.ready();
            self.turns.enter(ready, Nanos(nanoseconds(self.begin)), |_| None);
            // Services enter first, so that the scheduler sees no pause between two turns.
            self.turns.charge(std::mem::take(&mut spent));
            match self.turns.pick(ready) {
                Some(which) => {
                    idle_since = None;
                    let begin = Instant::now();
                    let Self { services, frame, made, stop, .. } = self;
                    if let Some(service) = &mut services[which] {
                        service.turn(frame, made, stop);
                    }
                    spent = nanoseconds(begin);
                }
                None => {
                    let since = *idle_since.get_or_insert_with(Instant::now);
                    if self.waiting == WaitMode::Woken && since.elapsed() >= LOOK {
                        self.sleep();
                        idle_since = None;
                    } else {
                        std::hint::spin_loop();
                    }
                }
            }
        }
    }

    /// Services with packets, as bits.
    fn ready(&mut self) -> u64 {
        let mut ready = 0;
        for (index, attachment) in self.services.iter_mut().enumerate() {
            let Some(service) = attachment else { continue };
            if service.is_over() {
                *attachment = None;
            } else {
                ready |= u64::from(service.is_ready()) << index;
            }
        }
        ready
    }

    /// Accepts new services and weights.
    fn listen(&mut self) {
        while let Ok(note) = self.told.try_recv() {
            match note {
                ThreadMessage::Service(number, service) if number < MOST => {
                    self.services.resize_with(self.services.len().max(number + 1), || None);
                    self.services[number] = Some(service);
                }
                ThreadMessage::Service(..) => {}
                ThreadMessage::Weights(weights) => self.turns.weigh(&weights),
            }
        }
    }

    fn sleep(&mut self) {
        self.services.iter().flatten().for_each(|service| service.set_asleep(1));
        // Orders the flags before the check of the rings; the writer does the opposite.
        fence(Ordering::SeqCst);
        if self.ready() == 0 && !self.stop.load(Ordering::Acquire) {
            std::thread::park_timeout(LONGEST_SLEEP);
        }
        self.services.iter().flatten().for_each(|service| service.set_asleep(0));
    }
}

fn nanoseconds(since: Instant) -> u64 {
    u64::try_from(since.elapsed().as_nanos()).unwrap_or(u64::MAX)
}

impl RunningService {
    /// Whether the node or the service has ended.
    fn is_over(&self) -> bool {
        self.is_over || self.status.cut().is_some()
    }

    fn is_ready(&mut self) -> bool {
        self.up.available().is_ok_and(|lines| lines > 0)
    }

    fn set_asleep(&self, flag: u64) {
        self.memory.words()[ASLEEP].store(flag, Ordering::Relaxed);
    }

    /// Handles a few packets.
    fn turn(&mut self, frame: &mut [u8], made: &mut ServiceOutput, stop: &AtomicBool) {
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

    fn serve(&mut self, frame: &mut [u8], made: &mut ServiceOutput, stop: &AtomicBool) {
        let line = self.up.line(0);
        let opening = Opening::read(line[0]);
        let facts = Facts::read(&line);
        // Written by Longwire itself, so it is valid.
        let frame = &mut frame[..opening.bytes as usize];
        self.up.bytes(1, frame);
        self.up.advance(opening.lines.into());
        if facts.is_hopeless(Nanos(self.memory.words()[NOW].load(Ordering::Relaxed))) {
            self.put(down::RETURN, facts.token, Verdict::Drop, &[], stop);
            return;
        }
        let mut packet = PuntedPacket::new(facts, frame);
        let service = &mut self.service;
        let verdict = catch_unwind(AssertUnwindSafe(|| service.handle(&mut packet, made)));
        let Ok(verdict) = verdict else {
            // They would be sent as the next service's.
            made.take().for_each(drop);
            self.status.leave(CutReason::Panicked);
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

    /// Writes a record once there is room.
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
