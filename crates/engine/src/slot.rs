//! A port and what its worker knows of it.

use crate::setup::Seat;
use longwire_block::{Port, PortError, PortStats};
use longwire_packet::Batch;

/// A port at its worker.
pub(crate) struct PortSlot {
    /// Its place in the plan.
    pub place: u16,
    /// Place of its node among the worker's nodes.
    pub node: usize,
    pub port: Box<dyn Port>,
    /// What it is to send.
    pub out: Batch,
    /// Why it could not be used last time.
    pub fault: Option<PortError>,
    /// The number of its next packet.
    pub seq: u64,
    /// What has come in and gone out without the driver: from and to other nodes.
    pub crossed: PortStats,
}

impl PortSlot {
    pub fn new(Seat { place, node, port }: Seat) -> Self {
        let (out, crossed) = (Batch::new(), PortStats::default());
        Self { place, node, port, out, fault: None, seq: 0, crossed }
    }

    /// What the port has counted, and what crossed.
    pub fn stats(&self) -> PortStats {
        let own = self.port.stats();
        let PortStats { in_frames, in_bytes, out_frames, out_bytes, .. } = self.crossed;
        PortStats {
            in_frames: own.in_frames + in_frames,
            in_bytes: own.in_bytes + in_bytes,
            out_frames: own.out_frames + out_frames,
            out_bytes: own.out_bytes + out_bytes,
            ..own
        }
    }
}
