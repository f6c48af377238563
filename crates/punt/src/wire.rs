//! What joins a seat to who sits in it: two rings, a bell, and a note from each side why it ended.

use crate::cut::Cut;
use crate::layout::{ASLEEP, ENDED, NOW, Sizes};
use crate::ring::{Reader, Writer};
use crate::shared::{Memory, ring};
use longwire_units::Nanos;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering, fence};
use std::thread::Thread;

/// What the worker and who watches the other side tell each other.
#[derive(Debug, Default)]
pub(crate) struct Status {
    /// Told to the worker: a [`Cut`] plus one, or zero.
    gone: AtomicU8,
    /// Told by the worker.
    cut: AtomicU8,
    /// Told to the worker: no packets are to go up for now; how often that began; and the processor time
    /// used, in nanoseconds.
    is_throttled: AtomicBool,
    throttled: AtomicU64,
    processor_ns: AtomicU64,
}

impl Status {
    pub fn leave(&self, why: Cut) {
        self.gone.store(why as u8 + 1, Ordering::Release);
    }

    #[inline]
    pub fn left(&self) -> Option<Cut> {
        Cut::from_number(self.gone.load(Ordering::Relaxed))
    }

    /// Notes that so much more processor time was used, and whether that is too much.
    pub fn note_processor(&self, had: Nanos, is_beyond: bool) {
        self.processor_ns.fetch_add(had.0, Ordering::Relaxed);
        let was_beyond = self.is_throttled.swap(is_beyond, Ordering::Relaxed);
        self.throttled.fetch_add(u64::from(is_beyond && !was_beyond), Ordering::Relaxed);
    }

    #[inline]
    pub fn is_throttled(&self) -> bool {
        self.is_throttled.load(Ordering::Relaxed)
    }

    /// How often packets were kept from going up, and the processor time used.
    pub fn processor(&self) -> (u64, u64) {
        (self.throttled.load(Ordering::Relaxed), self.processor_ns.load(Ordering::Relaxed))
    }

    pub fn cut(&self) -> Option<Cut> {
        Cut::from_number(self.cut.load(Ordering::Acquire))
    }
}

/// How who sits in a seat is woken.
#[derive(Debug)]
pub(crate) enum Bell {
    /// A process, by a byte.
    Socket(Arc<UnixStream>),
    /// A thread of this process.
    Thread(Thread),
}

/// The worker's end.
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
    pub fn new(memory: Arc<Memory>, sizes: Sizes, bell: Bell, status: Arc<Status>, whole: bool) -> Self {
        let up = Writer::new(Arc::clone(&memory), sizes.up_place());
        Self { up, down: Reader::new(memory, sizes.down_place()), bell, status, whole }
    }

    /// Lets the other side see what was written, and what time it is; whether it is to be woken.
    #[inline]
    pub fn publish(&mut self, now: Nanos) -> bool {
        self.up.memory().words()[NOW].store(now.0, Ordering::Relaxed);
        if !self.up.publish() {
            return false;
        }
        // Orders what was published before the look at whether it sleeps; who goes to sleep does the
        // opposite.
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

    /// Says why the worker is done with it.
    #[cold]
    pub fn end(&self, why: Cut) {
        self.status.cut.store(why as u8 + 1, Ordering::Release);
        self.up.memory().words()[ENDED].store(u64::from(why as u8 + 1), Ordering::Release);
        self.wake();
    }
}

/// Who comes to sit in a seat, and what was promised.
#[derive(Debug)]
pub(crate) struct Attach {
    pub seat: usize,
    pub wire: Wire,
    /// Packets a second.
    pub promised: u64,
    /// Its share of what is promised to nobody, beside others'.
    pub share: u32,
}
