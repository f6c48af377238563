//! The lower side in these tests: a pool, packets that go up, and the machine's clock.
#![allow(unreachable_pub)]

use longwire_block::{OUTBOX, Outbox};
use longwire_packet::{Handle, Pool};
use longwire_punt::{AttachmentId, Class, OfferError, Punt};
use longwire_units::Nanos;
use std::time::{Duration, Instant};

/// A bound on operations that should take milliseconds.
pub const PATIENCE: Duration = Duration::from_secs(60);

pub struct Below {
    pub punt: Punt,
    pub pool: Pool,
    out: Outbox,
    passed: Vec<Handle>,
    begin: Instant,
    /// Accepted by a level, passed to the default forwarder, dropped, sent, refused for lack of room, refused
    /// without an attached process.
    pub up: u64,
    pub passes: u64,
    pub drops: u64,
    pub sent: Vec<(u16, Vec<u8>)>,
    pub sends: u64,
    pub full: u64,
    pub gone: u64,
}

impl Below {
    pub fn new(punt: Punt) -> Self {
        let (pool, out) = (Pool::new(8 << 20).unwrap(), Outbox::default());
        let passed = Vec::with_capacity(OUTBOX);
        let begin = Instant::now();
        Self {
            punt,
            pool,
            out,
            passed,
            begin,
            up: 0,
            passes: 0,
            drops: 0,
            sent: vec![],
            sends: 0,
            full: 0,
            gone: 0,
        }
    }

    pub fn now(&self) -> Nanos {
        Nanos(self.begin.elapsed().as_nanos() as u64)
    }

    /// Offers a frame received by port 0.
    pub fn offer(&mut self, attachment: AttachmentId, frame: &[u8]) -> Result<(), OfferError> {
        self.offer_at(self.now(), attachment, frame)
    }

    pub fn offer_at(&mut self, now: Nanos, attachment: AttachmentId, frame: &[u8]) -> Result<(), OfferError> {
        let handle = self.pool.insert(frame).unwrap();
        self.pool.meta_mut(handle).arrival = now.0;
        let class = Class { fid: 5, class: 1, flow: 0x1234, network: 14, transport: 34 };
        let offered = self.punt.offer(&self.pool, handle, attachment, &class);
        match offered {
            Ok(()) => self.up += 1,
            Err(OfferError::Full) => self.full += 1,
            Err(OfferError::Absent | OfferError::Gone) => self.gone += 1,
        }
        if offered.is_err() {
            self.pool.free(handle);
        }
        offered
    }

    /// A node's work between two batches.
    pub fn turn(&mut self) {
        self.turn_at(self.now());
    }

    pub fn turn_at(&mut self, now: Nanos) {
        self.punt.flush(now);
        self.punt.collect(&mut self.pool, now, &mut self.out, &mut self.passed);
        for handle in self.passed.drain(..) {
            self.passes += 1;
            self.pool.free(handle);
        }
        for &(handle, port) in self.out.packets() {
            if port < longwire_block::REFUSED {
                self.sends += 1;
                if self.sent.len() < 1000 {
                    self.sent.push((port, self.pool.data(handle).to_vec()));
                }
            } else {
                self.drops += 1;
            }
            self.pool.free(handle);
        }
        self.out.clear();
        assert_eq!(self.pool.live(), self.punt.kept());
    }

    /// Repeats until `done`, offering what `more` does.
    pub fn until(&mut self, mut more: impl FnMut(&mut Self), mut done: impl FnMut(&Self) -> bool) {
        let begin = Instant::now();
        while !done(self) {
            assert!(
                begin.elapsed() < PATIENCE,
                "{} up, {} passed, {} sent, {} dropped",
                self.up,
                self.passes,
                self.sends,
                self.drops
            );
            more(self);
            self.turn();
            std::thread::yield_now();
        }
    }
}
