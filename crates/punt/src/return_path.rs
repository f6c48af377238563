//! The return path: execution of verdicts.

use crate::allowance::SharedAllowance;
use crate::layout::{MAX_FRAME, Verdict};
use longwire_block::{DropReason, Outbox};
use longwire_packet::{FirstLine, Handle, Meta, Pool};
use longwire_units::Nanos;

/// Destinations of a node's packets that come back.
pub(crate) struct ReturnPath<'a> {
    pub pool: &'a mut Pool,
    pub out: &'a mut Outbox,
    /// Packets for the default forwarder.
    pub passed: &'a mut Vec<Handle>,
    /// Those of them whose first bytes were changed above, in order, with the original bytes.
    pub rewritten: &'a mut Vec<(Handle, FirstLine)>,
    /// The node's ports, ascending.
    pub ports: &'a [u16],
    pub now: Nanos,
    /// Number of new packets.
    pub made: u64,
    /// Remaining worker time of the level whose packets come back.
    pub common: &'a mut SharedAllowance,
}

impl ReturnPath<'_> {
    /// Whether another packet may come back: the default forwarder may generate a packet for each one passed
    /// to it.
    #[inline]
    pub fn has_room(&self) -> bool {
        2 * (self.passed.len() + 1) < self.out.room()
    }

    /// Passes a packet to the default forwarder, now.
    #[inline]
    pub fn pass(&mut self, handle: Handle) {
        self.pool.meta_mut(handle).arrival = self.now.0;
        self.passed.push(handle);
    }

    /// Whether a verdict passes a packet to the default forwarder: also one that names no port of the node.
    #[inline]
    pub fn passes(&self, verdict: Verdict) -> bool {
        match verdict {
            Verdict::Drop => false,
            Verdict::Pass => true,
            Verdict::Send { port, .. } => self.ports.binary_search(&port).is_err(),
        }
    }

    /// Saves the first bytes of a packet before they are overwritten, if it is passed.
    #[inline]
    pub fn note(&mut self, handle: Handle, verdict: Verdict) {
        if self.passes(verdict) {
            self.rewritten.push((handle, *self.pool.first_line(handle)));
        }
    }

    /// Creates a packet that leaves by `port`, written by `fill`. False without memory.
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

    /// Whether a frame of `len` bytes may be sent out of `port`.
    pub fn may_make(&self, port: u16, len: usize) -> bool {
        const SHORTEST: usize = 14;
        (SHORTEST..=MAX_FRAME).contains(&len) && self.ports.binary_search(&port).is_ok()
    }

    /// Executes a verdict on a packet. False if it is invalid; then the default forwarder takes it.
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
