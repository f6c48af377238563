//! Nodes, which join links and ports: bridges and routers.

use crate::{NodeStats, Outbox, Stations};
use longwire_packet::{Batch, Pool};
use longwire_units::Nanos;
use std::any::Any;
use std::task::Waker;

/// A bridge or router, which decides where packets from its ports go. It is [`Any`], so that code that knows
/// its type can inspect and change it between two batches.
pub trait Node: Any + Send {
    /// Decides for each packet of `batch`, in order, by setting its `out_port`: a port of this node,
    /// [`FLOOD`](crate::FLOOD), [`KEPT`](crate::KEPT), [`CONSUMED`](crate::CONSUMED), or through
    /// [`refuse`](crate::refuse). All packets came in by ports of this node (`in_port`); `arrival` is the
    /// time of each and never decreases. Packets that the node makes, or kept and releases, are put into
    /// `out`, which is empty; their `in_port` is set, for packets that did not come in by a port to their own
    /// output port.
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

    /// The next time at which it needs a call of [`Node::tick`] even if no packet comes. In simulated time
    /// only calls of this node may move it: the engine asks again after each.
    fn deadline(&self) -> Nanos {
        Nanos::NEVER
    }

    /// Does the work that is due by `now`, which is the deadline or later.
    fn tick(&mut self, _pool: &mut Pool, _now: Nanos, _out: &mut Outbox) {}

    /// Passes the node a way to wake its worker, before a run on the machine's clock begins: for nodes with
    /// their own threads. Work from these threads shows in the node's deadline, which the worker reads after
    /// waking.
    fn set_waker(&mut self, _waker: &Waker) {}

    /// Its counters, if it has any.
    fn stats(&self) -> Option<NodeStats> {
        None
    }

    /// Packets that it keeps now; each segment of a train is counted.
    fn kept(&self) -> u64 {
        0
    }
}
