//! The way back: what comes of a verdict.

use crate::allowance::Common;
use crate::layout::{MAX_FRAME, Verdict};
use longwire_block::{DropReason, Outbox};
use longwire_packet::{FirstLine, Handle, Meta, Pool};
use longwire_units::Nanos;

/// Where a node's packets go that come back.
pub(crate) struct Way<'a> {
    pub pool: &'a mut Pool,
    pub out: &'a mut Outbox,
    /// Those that the default forwarder is to take.
    pub passed: &'a mut Vec<Handle>,
    /// Those of them whose first bytes were written above, in their order, with what these were before.
    pub rewritten: &'a mut Vec<(Handle, FirstLine)>,
    /// The node's ports, ascending.
    pub ports: &'a [u16],
    pub now: Nanos,
    /// Packets made.
    pub made: u64,
    /// What is left of the worker's time for the level whose packets come back.
    pub common: &'a mut Common,
}

impl Way<'_> {
    /// Whether one more may come back: the forwarder may make another packet because of each that is passed.
    #[inline]
    pub fn has_room(&self) -> bool {
        2 * (self.passed.len() + 1) < self.out.room()
    }

    /// Gives a packet to the default forwarder, now.
    #[inline]
    pub fn pass(&mut self, handle: Handle) {
        self.pool.meta_mut(handle).arrival = self.now.0;
        self.passed.push(handle);
    }

    /// Notes the first bytes of a packet that are about to be written, if it is passed.
    #[inline]
    pub fn note(&mut self, handle: Handle, verdict: Verdict) {
        if verdict == Verdict::Pass {
            self.rewritten.push((handle, *self.pool.first_line(handle)));
        }
    }

    /// Makes a packet that goes out of `port`, and lets `fill` write it. False if there is no memory for it.
    pub fn make(&mut self, port: u16, band: Option<u8>, len: usize, fill: impl FnOnce(&mut [u8])) -> bool {
        let Some(handle) = self.pool.alloc(len) else { return false };
        fill(self.pool.data_mut(handle));
        let meta = self.pool.meta_mut(handle);
        meta.in_port = port;
        meta.set_band(band.unwrap_or(Meta::NO_BAND));
        self.made += 1;
        self.out.count_made(1);
        self.out.put(self.pool, handle, port);
        true
    }

    /// Whether a frame of so many bytes may be sent out of `port`.
    pub fn may_make(&self, port: u16, len: usize) -> bool {
        const SHORTEST: usize = 14;
        (SHORTEST..=MAX_FRAME).contains(&len) && self.ports.binary_search(&port).is_ok()
    }

    /// Does what a verdict says with a packet. False if it says what can't be; then the default forwarder
    /// takes it.
    #[inline]
    pub fn obey(&mut self, handle: Handle, verdict: Verdict) -> bool {
        match verdict {
            Verdict::Drop => self.out.refuse(self.pool, handle, DropReason::Service),
            Verdict::Pass => self.pass(handle),
            Verdict::Send { port, band } if self.ports.binary_search(&port).is_ok() => {
                if let Some(band) = band {
                    self.pool.meta_mut(handle).set_band(band);
                }
                self.out.put(self.pool, handle, port);
            }
            Verdict::Send { .. } => {
                self.pass(handle);
                return false;
            }
        }
        true
    }
}
