//! Nodes, which join links and ports: bridges and routers.

use crate::{DropReason, NodeStats, Outbox, Stations};
use longwire_packet::{Batch, Meta, Pool};
use longwire_units::Nanos;
use std::any::Any;
use std::task::Waker;

/// Limit on the number of ports: their places in the plan are below this.
pub const MAX_PORTS: usize = 0xff00;

/// `Meta::out_port` of a packet for every port of its node except its input port.
pub const FLOOD: u16 = 0xffff;

/// `Meta::out_port` of a packet that its node keeps and later returns through the [`Outbox`].
pub const KEPT: u16 = 0xfffe;

/// `Meta::out_port` of a packet addressed to the node itself.
pub const CONSUMED: u16 = 0xfffd;

/// The lowest `Meta::out_port` that means a drop: the number of the [`DropReason`] is added.
pub const REFUSED: u16 = 0xff00;

/// A bridge or router, which decides where packets from its ports go. It is [`Any`], so that code that knows
/// its type can inspect and change it between two batches.
pub trait Node: Any + Send {
    /// Decides for each packet of `batch`, in order, by setting its `out_port`: a port of this node,
    /// [`FLOOD`], [`KEPT`], [`CONSUMED`], or through [`refuse`].
    ///
    /// All packets came in by ports of this node (`in_port`); `arrival` is the time of each and never
    /// decreases. Packets that the node makes or releases go into `out`, which is empty at the call. Their
    /// `in_port` is set; for a packet that did not come in by a port it is its output port.
    fn forward(&mut self, pool: &mut Pool, batch: &Batch, out: &mut Outbox);

    /// The ports of this node by place in the plan, ascending: the targets of a flooded packet.
    fn ports(&self) -> &[u16];

    /// The forwarding table, if it alone decides about frames between two of its stations: such a frame goes
    /// to the destination's port unless that is its input port, and its source is refreshed. The node must
    /// accept trains. None if the decision needs more.
    fn stations(&mut self) -> Option<&mut Stations> {
        None
    }

    /// Whether it accepts trains. If not, they are split into segments first.
    fn takes_trains(&self) -> bool {
        true
    }

    /// The next time at which it needs a call of [`Node::tick`] even if no packet comes.
    fn deadline(&self) -> Nanos {
        Nanos::NEVER
    }

    /// Does the work that is due by `now`, which is the deadline or later.
    fn tick(&mut self, pool: &mut Pool, now: Nanos, out: &mut Outbox) {
        let _ = (pool, now, out);
    }

    /// Passes the node a way to wake its worker, before a run on the machine's clock begins: for nodes with
    /// their own threads. Work from these threads shows in the node's deadline, which the worker reads after
    /// waking.
    fn set_waker(&mut self, waker: &Waker) {
        let _ = waker;
    }

    /// Its counters, if it has any.
    fn stats(&self) -> Option<NodeStats> {
        None
    }

    /// Packets that it keeps now; each segment of a train is counted.
    fn kept(&self) -> u64 {
        0
    }
}

/// Marks a packet as dropped by its node.
#[inline]
pub fn refuse(meta: &mut Meta, reason: DropReason) {
    meta.out_port = REFUSED + reason as u16;
}

/// The reason for which a node dropped the packet, if it did.
#[inline]
pub fn refusal(meta: &Meta) -> Option<DropReason> {
    match meta.out_port.checked_sub(REFUSED) {
        Some(index) => DropReason::from_index(index as usize),
        None => None,
    }
}

const _: () = assert!(REFUSED as usize + DropReason::COUNT < CONSUMED as usize);
