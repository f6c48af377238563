//! Where packets come in and go out.

use longwire_packet::{Batch, Pool};
use longwire_settings::{Spec, Values};
use longwire_units::Nanos;
use serde::Serialize;
use thiserror::Error;

/// Who says when a frame arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stamp {
    /// The kernel or the card, mapped to the engine's clock.
    Kernel,
    /// One clock reading per poll: a frame may have waited since the poll before.
    Poll,
    /// A capture file or a traffic source: exact.
    Source,
}

/// A port that can't be used, or no longer.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum PortError {
    /// The interface is gone.
    #[error("port {port}: the interface is gone")]
    Vanished {
        /// Name of the port.
        port: String,
    },
    /// The interface is down.
    #[error("port {port}: the interface is down; bring it up with: ip link set {interface} up")]
    Down {
        /// Name of the port.
        port: String,
        /// Name of its interface.
        interface: String,
    },
    /// It can't be opened, or failed; the text says what to do.
    #[error("port {port}: {what}")]
    Failed {
        /// Name of the port.
        port: String,
        /// What failed, and the fix.
        what: String,
    },
}

/// What a port has counted since it was opened. Frames of a train count one each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct PortStats {
    /// Frames taken in.
    pub in_frames: u64,
    /// Their bytes.
    pub in_bytes: u64,
    /// Frames sent.
    pub out_frames: u64,
    /// Their bytes.
    pub out_bytes: u64,
    /// Frames that came in and could not be kept because the pool was full.
    pub in_pool_full: u64,
    /// Frames that the kernel's receive queue lost before Longwire saw them.
    pub in_missed: u64,
    /// Frames that came in and were no valid frame (too short, too long, cut off by the driver).
    pub in_bad: u64,
    /// Frames to send that the driver would not take in time.
    pub out_full: u64,
    /// Frames to send that met a port that was down or gone.
    pub out_down: u64,
    /// Frames to send above what the port can carry.
    pub out_oversize: u64,
    /// Of the frames taken in, those that the port kept for itself: no node sees them.
    pub in_consumed: u64,
    /// Of the frames sent, those that the port made itself.
    pub out_made: u64,
}

impl PortStats {
    /// The sums of both.
    pub const fn plus(&self, other: &Self) -> Self {
        Self {
            in_frames: self.in_frames + other.in_frames,
            in_bytes: self.in_bytes + other.in_bytes,
            out_frames: self.out_frames + other.out_frames,
            out_bytes: self.out_bytes + other.out_bytes,
            in_pool_full: self.in_pool_full + other.in_pool_full,
            in_missed: self.in_missed + other.in_missed,
            in_bad: self.in_bad + other.in_bad,
            out_full: self.out_full + other.out_full,
            out_down: self.out_down + other.out_down,
            out_oversize: self.out_oversize + other.out_oversize,
            in_consumed: self.in_consumed + other.in_consumed,
            out_made: self.out_made + other.out_made,
        }
    }
}

/// A driver's end of a port: frames in, frames out, never waiting.
///
/// Real drivers stamp `Meta::arrival` with the engine's clock; `virtual` ones with times of their own. They
/// set `len`, `wire_len` and, for trains and unfinished checksums, the fields for these; the engine sets the
/// rest.
pub trait Port: Send {
    /// Its name in the scenario.
    fn name(&self) -> &str;

    /// Driver and mode in words, as `af_xdp on veth3, native, copy, 2 queues`.
    fn describe(&self) -> String;

    /// Where `Meta::arrival` comes from.
    fn stamp(&self) -> Stamp;

    /// Takes frames into `pool` and appends them to `batch`, in order, as long as there is room in it. Frames
    /// that can't be kept are counted. Captures and sources give what arrived up to and including `now`; real
    /// ports may also give what comes while they are asked, stamped a little later.
    ///
    /// # Errors
    /// The port is gone or down; it may be asked again later, and may then have come back.
    fn receive(&mut self, pool: &mut Pool, now: Nanos, batch: &mut Batch) -> Result<(), PortError>;

    /// Sends the packets in order, frees them, and counts each one that could not be sent. Blocks never.
    ///
    /// # Errors
    /// The port is gone or down; the packets are freed and counted all the same.
    fn transmit(&mut self, pool: &mut Pool, batch: &Batch) -> Result<(), PortError>;

    /// When the next frame comes in: for a capture or a source. [`Nanos::NEVER`] when there is none left.
    /// Real ports can't know and answer none.
    fn next_arrival(&mut self) -> Option<Nanos> {
        None
    }

    /// Sets one of the traffic sources that it is to another model from `now` on, or to other values of
    /// [`FLOW`](crate::flow::FLOW). `now` is no earlier than any frame that it gave; frames due before should
    /// have been taken. Whether there is such a source.
    fn change_source(&mut self, now: Nanos, source: &str, spec: &'static Spec, values: &Values) -> bool {
        let _ = (now, source, spec, values);
        false
    }

    /// A file descriptor that becomes readable when frames wait, for sleeping.
    fn readable_fd(&self) -> Option<i32> {
        None
    }

    /// What it has counted.
    fn stats(&self) -> PortStats;

    /// Writes out what is buffered (captures). Called when a run ends.
    ///
    /// # Errors
    /// What could not be written, and why.
    fn finish(&mut self) -> Result<(), PortError> {
        Ok(())
    }
}
