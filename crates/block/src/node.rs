//! What stands where links meet ports: bridges and routers.

use crate::{NodeStats, Outbox, Stations};
use longwire_packet::{Batch, Pool};
use longwire_units::Nanos;
use std::any::Any;
use std::task::Waker;

/// A bridge or router: decides where packets that came in by ports go. It is [`Any`], so that who knows its type can ask and
/// change it between two batches.
pub trait Node: Any + Send {
    /// Decides for each packet of `batch`, in order, by setting its `out_port`: a port of this node,
    /// [`FLOOD`](crate::FLOOD), [`KEPT`](crate::KEPT), [`CONSUMED`](crate::CONSUMED), or through
    /// [`refuse`](crate::refuse). All packets came in by ports of this node (`in_port`); `arrival` is the time of
    /// each and never decreases. What the node makes, or lets go that it kept, it puts into `out`, which is empty:
    /// packets with `in_port` set, which is their own out port for what did not come in by one.
    fn forward(&mut self, pool: &mut Pool, batch: &Batch, out: &mut Outbox);

    /// The ports of this node by place in the plan, ascending: where a flooded packet goes.
    fn ports(&self) -> &[u16];

    /// The table by which alone it decides about frames between two stations that stand in it: such a frame goes to the destination's port, if that
    /// is not its own, and its source is heard. It takes trains. None if more than that decides.
    fn stations(&mut self) -> Option<&mut Stations> {
        None
    }

    /// Whether it takes several segments in one packet. If not, they are taken apart before it is given them.
    fn takes_trains(&self) -> bool {
        true
    }

    /// When it next wants to be told the time though no packet comes.
    fn deadline(&self) -> Nanos {
        Nanos::NEVER
    }

    /// Does what is due by `now`, which is the deadline or later.
    fn tick(&mut self, pool: &mut Pool, now: Nanos, out: &mut Outbox) {
        let _ = (pool, now, out);
    }

    /// Tells it, before a run on the machine's clock begins, how to wake the worker that it is on: for nodes with threads of their own. What these
    /// have for the node shows in its deadline, which the worker looks at once it is awake.
    fn set_waker(&mut self, waker: &Waker) {
        let _ = waker;
    }

    /// What it has done, if it counts that.
    fn stats(&self) -> Option<NodeStats> {
        None
    }

    /// Packets that it keeps now; segments of a train count one each.
    fn kept(&self) -> u64 {
        0
    }
}
