//! Ports, where packets enter and leave.

use longwire_packet::{Batch, Pool};
use longwire_settings::{Spec, Values};
use longwire_units::Nanos;
use serde::Serialize;
use std::any::Any;
use thiserror::Error;

/// Source of a frame's arrival time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stamp {
    /// The kernel or the card, converted to the engine's clock.
    Kernel,
    /// One clock reading per poll: a frame may have waited since the previous poll.
    Poll,
    /// The machine that sent it by a tunnel, converted to the engine's clock: when it left there.
    Sender,
    /// A capture file or a traffic source, which is exact.
    Source,
}

/// A traffic source that the driver of a port has made, for [`Port::add_source`].
pub type JoiningSource = Box<dyn Any + Send>;

/// A failure of a port.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum PortError {
    /// The interface is gone.
    #[error("port {port}: the interface is gone")]
    Vanished {
        /// Name of the port.
        port: String,
    },
    /// The interface is down.
    #[error(
        "port {port}: the interface is down; bring it up with: {}",
        elsewhere.clone().unwrap_or_else(|| Self::bring_up(interface))
    )]
    Down {
        /// Name of the port.
        port: String,
        /// Name of its interface.
        interface: String,
        /// The command that brings it up, if it is in another network namespace than Longwire.
        elsewhere: Option<String>,
    },
    /// The other end of a tunnel does not answer.
    #[error("port {port}: {why}")]
    Unanswered {
        /// Name of the port.
        port: String,
        /// The reason as far as it is known, and the fix.
        why: String,
    },
    /// It can't be opened, or failed; the text says how to fix it.
    #[error("port {port}: {what}")]
    Failed {
        /// Name of the port.
        port: String,
        /// What failed, and the fix.
        what: String,
    },
}

impl PortError {
    /// The interface of a port is down, in the network namespace in which Longwire runs.
    pub fn down(port: impl Into<String>, interface: impl Into<String>) -> Self {
        Self::Down { port: port.into(), interface: interface.into(), elsewhere: None }
    }

    /// The command that brings an interface up where it is.
    pub fn bring_up(interface: &str) -> String {
        format!("ip link set {interface} up")
    }
}

/// Counters of a port since it was opened. Each frame of a train is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct PortStats {
    /// Frames received.
    pub in_frames: u64,
    /// Bytes received.
    pub in_bytes: u64,
    /// Frames sent.
    pub out_frames: u64,
    /// Bytes sent.
    pub out_bytes: u64,
    /// Received frames dropped because the pool was full.
    pub in_pool_full: u64,
    /// Frames lost by the kernel's receive queue before Longwire saw them.
    pub in_missed: u64,
    /// Invalid received frames (too short, too long, truncated by the driver).
    pub in_bad: u64,
    /// Frames that the driver did not accept in time.
    pub out_full: u64,
    /// Frames sent to a port that was down or gone.
    pub out_down: u64,
    /// Frames sent that exceed the port's maximum size.
    pub out_oversize: u64,
    /// Of the frames received, those consumed by the port itself: no node sees them.
    pub in_consumed: u64,
    /// Of the frames sent, those that the port itself made.
    pub out_made: u64,
    /// Times at which its interface went down or away.
    pub outages: u64,
    /// How long it was down or away in all.
    #[serde(rename = "down_ns", serialize_with = "Nanos::as_integer")]
    pub down: Nanos,
}

impl PortStats {
    /// Adds both. Queues of one interface have the same outages.
    pub fn plus(&self, other: &Self) -> Self {
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
            outages: self.outages.max(other.outages),
            down: self.down.max(other.down),
        }
    }
}

/// The network under a tunnel, as one end knows it. Messages are the peer's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Underlay {
    /// Whether the peer answers.
    pub is_connected: bool,
    /// Sessions with the peer so far.
    pub sessions: u64,
    /// Packets that came after they should have left here, by more than is tolerated. The engine counts them.
    pub overdue: u64,
    /// Messages lost on the way.
    pub lost: u64,
    /// Messages that later ones overtook.
    pub reordered: u64,
    /// Messages received before, or too old to tell.
    pub replayed: u64,
    /// Messages whose authenticator is wrong.
    pub forged: u64,
    /// Messages that break the rules of the protocol.
    pub malformed: u64,
    /// Messages of no session, or of an ended one.
    pub other_session: u64,
    /// Messages of another version of the protocol.
    pub other_version: u64,
    /// How often one of the clocks was set, or stood still.
    pub clock_jumps: u64,
    /// The least round trip of late.
    pub round_trip: Option<Nanos>,
    /// The peer's clock minus the own clock, in nanoseconds.
    pub clock_offset: Option<i64>,
    /// The largest possible error of the offset.
    pub clock_error: Option<Nanos>,
}

impl Underlay {
    /// The counters of two tunnels together. What is known of one at a time is left out.
    #[must_use]
    pub fn plus(&self, other: &Self) -> Self {
        Self {
            sessions: self.sessions + other.sessions,
            overdue: self.overdue + other.overdue,
            lost: self.lost + other.lost,
            reordered: self.reordered + other.reordered,
            replayed: self.replayed + other.replayed,
            forged: self.forged + other.forged,
            malformed: self.malformed + other.malformed,
            other_session: self.other_session + other.other_session,
            other_version: self.other_version + other.other_version,
            clock_jumps: self.clock_jumps + other.clock_jumps,
            ..Self::default()
        }
    }
}

/// A port driver: frames in, frames out, never blocking.
///
/// Real drivers stamp `Meta::arrival` with the engine's clock; virtual ones with their own times. They set
/// `len`, `wire_len` and, for trains and open checksums, the fields for these; the engine sets the rest.
pub trait Port: Send {
    /// Its name in the scenario.
    fn name(&self) -> &str;

    /// Driver and mode in words, such as `af_xdp on veth3, native, copy, 2 queues`.
    fn describe(&self) -> String;

    /// Source of `Meta::arrival`.
    fn stamp(&self) -> Stamp;

    /// Receives frames into `pool` and appends them to `batch`, in order, while it has room. Frames that
    /// can't be stored are counted. Captures and sources return what arrived up to and including `now`; real
    /// ports may also return frames that arrive during the call, stamped slightly later.
    ///
    /// # Errors
    /// The port is gone or down. Later calls may succeed, if it has come back.
    fn receive(&mut self, pool: &mut Pool, now: Nanos, batch: &mut Batch) -> Result<(), PortError>;

    /// Sends the packets in order, frees them, and counts each one that could not be sent. Never blocks.
    ///
    /// # Errors
    /// The port is gone or down; the packets are freed and counted all the same.
    fn transmit(&mut self, pool: &mut Pool, batch: &Batch) -> Result<(), PortError>;

    /// Arrival time of the next frame of a capture or a source. [`Nanos::NEVER`] when there is none left;
    /// none for real ports, which can't know. In simulated time only calls of this port may move it: the
    /// engine asks again after each.
    fn next_arrival(&mut self) -> Option<Nanos> {
        None
    }

    /// Switches one of its traffic sources to another model from `now` on, or to other values of
    /// [`FLOW`](crate::flow::FLOW). `now` is no earlier than any frame that it returned; frames due before
    /// should have been received. Returns false if there is no such source.
    fn change_source(&mut self, _now: Nanos, _source: &str, _spec: &'static Spec, _values: &Values) -> bool {
        false
    }

    /// Adds a traffic source, which begins at `now`; that is no earlier than any frame that it returned. What
    /// the port does not take stays in `source`.
    fn add_source(&mut self, _now: Nanos, _source: &mut Option<JoiningSource>) {}

    /// Ends one of its traffic sources, if it has one of this name.
    fn remove_source(&mut self, _source: &str) {}

    /// A file descriptor that becomes readable when frames wait, for sleeping workers.
    fn readable_fd(&self) -> Option<i32> {
        None
    }

    /// Its counters.
    fn stats(&self) -> PortStats;

    /// The network between it and its peer; none if it is no tunnel.
    fn underlay(&self) -> Option<Underlay> {
        None
    }

    /// Flushes buffered output (captures). Called when a run ends.
    ///
    /// # Errors
    /// The output that could not be written, and the reason.
    fn finish(&mut self) -> Result<(), PortError> {
        Ok(())
    }
}
