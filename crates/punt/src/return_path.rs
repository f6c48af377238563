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
    /// Those of them that are down.
    pub down: &'a [u16],
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
        assign_band(meta, band);
        self.made += 1;
        self.out.count_made(1);
        self.send(handle, port);
        true
    }

    /// Sends a packet out of a port of the node. One that is down drops it.
    #[inline]
    fn send(&mut self, handle: Handle, port: u16) {
        if self.down.contains(&port) {
            self.out.refuse(self.pool, handle, DropReason::PortDown);
        } else {
            self.out.put(self.pool, handle, port);
        }
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
                assign_band(self.pool.meta_mut(handle), band);
                self.send(handle, port);
            }
            Verdict::Send { .. } => {
                self.pass(handle);
                return false;
            }
        }
        true
    }
}

/// Assigns the band of the first queue, if one was chosen. One beyond the last means the last.
fn assign_band(meta: &mut Meta, band: Option<u8>) {
    if let Some(band) = band {
        meta.set_band(band.min(Meta::NO_BAND - 1));
        meta.flags |= Meta::BANDED;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::allowance::Allowance;

    /// Without the flag the first link would forget the band.
    #[test]
    fn a_band_is_assigned_as_by_a_node() {
        let (mut pool, mut out) = (Pool::new(1 << 20).unwrap(), Outbox::default());
        let handles = [0; 3].map(|_| pool.alloc(60).unwrap());
        let mut path = ReturnPath {
            pool: &mut pool,
            out: &mut out,
            passed: &mut Vec::new(),
            rewritten: &mut Vec::new(),
            ports: &[7],
            down: &[],
            now: Nanos(5),
            made: 0,
            common: &mut SharedAllowance(Allowance::UNBOUNDED),
        };
        for (handle, band) in handles.into_iter().zip([None, Some(4), Some(255)]) {
            assert!(path.obey(handle, Verdict::Send { port: 7, band }));
        }
        assert!(path.make(7, Some(2), 60, |frame| frame.fill(1)) && path.make(7, None, 60, |_| {}));
        let banded = |&(handle, _): &(Handle, u16)| {
            let meta = pool.meta(handle);
            (meta.flags & Meta::BANDED != 0).then_some(meta.band())
        };
        let bands: Vec<_> = out.packets().iter().map(banded).collect();
        assert_eq!(bands, [None, Some(4), Some(254), Some(2), None]);
    }
}
