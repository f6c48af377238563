//! The connection between an attachment and its process: two rings, a bell, and status from each side.

use crate::cut::CutReason;
use crate::layout::{ASLEEP, ENDED, NOW, RingSizes};
use crate::ring::{Reader, Writer};
use crate::shared::{Memory, ring};
use longwire_units::Nanos;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering, fence};
use std::thread::Thread;

/// Status shared by the worker and the thread that watches the other side.
#[derive(Debug, Default)]
pub(crate) struct Status {
    /// For the worker: a [`CutReason`] plus one, or zero.
    gone: AtomicU8,
    /// For the other side: the reason why the worker has cut it off.
    cut: AtomicU8,
    /// For the worker: whether throttled; how often that began; and the processor time used, in nanoseconds.
    is_throttled: AtomicBool,
    throttled: AtomicU64,
    processor_ns: AtomicU64,
}

impl Status {
    pub fn leave(&self, why: CutReason) {
        self.gone.store(why as u8 + 1, Ordering::Release);
    }

    #[inline]
    pub fn left(&self) -> Option<CutReason> {
        CutReason::from_number(self.gone.load(Ordering::Relaxed))
    }

    /// Adds processor time, and sets whether it exceeds the guarantee.
    pub fn note_processor(&self, had: Nanos, is_beyond: bool) {
        self.processor_ns.fetch_add(had.0, Ordering::Relaxed);
        let was_beyond = self.is_throttled.swap(is_beyond, Ordering::Relaxed);
        self.throttled.fetch_add(u64::from(is_beyond && !was_beyond), Ordering::Relaxed);
    }

    #[inline]
    pub fn is_throttled(&self) -> bool {
        self.is_throttled.load(Ordering::Relaxed)
    }

    /// Number of throttlings, and the processor time used.
    pub fn processor(&self) -> (u64, u64) {
        (self.throttled.load(Ordering::Relaxed), self.processor_ns.load(Ordering::Relaxed))
    }

    pub fn cut(&self) -> Option<CutReason> {
        CutReason::from_number(self.cut.load(Ordering::Acquire))
    }
}

/// How the attached process is woken.
#[derive(Debug)]
pub(crate) enum Bell {
    /// A process, by a byte.
    Socket(Arc<UnixStream>),
    /// A thread of this process.
    Thread(Thread),
}

/// The worker's end of the connection.
#[derive(Debug)]
pub(crate) struct Wire {
    pub up: Writer,
    pub down: Reader,
    pub bell: Bell,
    pub status: Arc<Status>,
    /// Whether frames go up whole.
    pub whole: bool,
}

impl Wire {
    pub fn new(memory: Arc<Memory>, sizes: RingSizes, bell: Bell, status: Arc<Status>, whole: bool) -> Self {
        let up = Writer::new(Arc::clone(&memory), sizes.up_place());
        Self { up, down: Reader::new(memory, sizes.down_place()), bell, status, whole }
    }

    /// Publishes written lines and the time; returns whether the other side must be woken.
    #[inline]
    pub fn publish(&mut self, now: Nanos) -> bool {
        self.up.memory().words()[NOW].store(now.0, Ordering::Relaxed);
        if !self.up.publish() {
            return false;
        }
        // Orders publishing before the check whether it sleeps; a process going to sleep does the opposite.
        fence(Ordering::SeqCst);
        self.is_asleep()
    }

    #[inline]
    pub fn is_asleep(&self) -> bool {
        self.up.memory().words()[ASLEEP].load(Ordering::Relaxed) != 0
    }

    #[cold]
    pub fn wake(&self) {
        match &self.bell {
            Bell::Socket(socket) => ring(socket),
            Bell::Thread(thread) => thread.unpark(),
        }
    }

    /// Ends the connection and records why.
    #[cold]
    pub fn end(&self, why: CutReason) {
        self.status.cut.store(why as u8 + 1, Ordering::Release);
        self.up.memory().words()[ENDED].store(u64::from(why as u8 + 1), Ordering::Release);
        self.wake();
    }
}

/// A process or service that attaches, with its guarantee.
#[derive(Debug)]
pub(crate) struct Attach {
    pub attachment: usize,
    pub wire: Wire,
    /// Packets a second.
    pub promised: u64,
    /// Its share of the rest, relative to others.
    pub share: u32,
}
