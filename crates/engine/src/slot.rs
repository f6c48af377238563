//! A port and what its worker knows of it.

use crate::setup::Seat;
use longwire_block::{Port, PortError, PortStats};
use longwire_packet::{BATCH, Batch, Handle};
use longwire_units::Nanos;

/// Packets that a port is to send, with what is booked about each when it has.
pub(crate) struct Outgoing {
    pub batch: Batch,
    leaves: [u64; BATCH],
    links: [u32; BATCH],
    /// Segments of trains, but for one each.
    more_segments: u64,
}

impl Outgoing {
    pub fn new() -> Self {
        Self { batch: Batch::new(), leaves: [0; BATCH], links: [0; BATCH], more_segments: 0 }
    }

    /// Adds a packet of so many segments that is to leave at `leave`, and that was in this one of the worker's links last. Whether there is no
    /// room for another.
    #[inline(always)]
    pub fn push(&mut self, handle: Handle, segments: u16, leave: Nanos, link: u32) -> bool {
        let at = self.batch.len() % BATCH;
        (self.leaves[at], self.links[at]) = (leave.0, link);
        self.more_segments += u64::from(segments) - 1;
        self.batch.push(handle);
        self.batch.is_full()
    }

    /// When the packets are to leave, and the links that they were in last.
    pub fn departures(&self) -> (&[u64], &[u32]) {
        let count = self.batch.len();
        (&self.leaves[..count], &self.links[..count])
    }

    /// Packets, segments of a train one each.
    pub fn segments(&self) -> u64 {
        self.batch.len() as u64 + self.more_segments
    }

    pub fn clear(&mut self) {
        self.batch.clear();
        self.more_segments = 0;
    }
}

/// A port at its worker.
pub(crate) struct PortSlot {
    /// Its place in the plan.
    pub place: u16,
    /// Place of its node among the worker's nodes.
    pub node: usize,
    pub port: Box<dyn Port>,
    /// What it is to send.
    pub out: Outgoing,
    /// Why it could not be used last time.
    pub fault: Option<PortError>,
    /// The number of its next packet.
    pub seq: u64,
    /// What has come in and gone out without the driver: from and to other nodes.
    pub crossed: PortStats,
}

impl PortSlot {
    pub fn new(Seat { place, node, port }: Seat) -> Self {
        let (out, crossed) = (Outgoing::new(), PortStats::default());
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
