//! What stands where links meet ports: bridges, and later routers.

use crate::DropReason;
use longwire_packet::{Batch, Meta, Pool};

/// Highest number of ports: their places in the plan are below this.
pub const MAX_PORTS: usize = 0xff00;

/// `Meta::out_port` of a packet that goes to every port of its node but the one it came from.
pub const FLOOD: u16 = 0xffff;

/// The lowest `Meta::out_port` that says the packet is dropped: the [`DropReason`]'s number is added.
pub const REFUSED: u16 = 0xff00;

/// A bridge or router: decides where packets that came in by ports go.
pub trait Node: Send {
    /// Decides for each packet of `batch`, in order, by setting its `out_port`: a port of this node, [`FLOOD`], or
    /// through [`refuse`]. All packets came in by ports of this node (`in_port`); `arrival` is the time of each and
    /// never decreases.
    fn forward(&mut self, pool: &mut Pool, batch: &Batch);

    /// The ports of this node by place in the plan, ascending: where a flooded packet goes.
    fn ports(&self) -> &[u16];
}

/// Marks a packet as dropped by its node.
#[inline]
pub fn refuse(meta: &mut Meta, reason: DropReason) {
    meta.out_port = REFUSED + reason as u16;
}

/// Why a node dropped the packet, if it did.
#[inline]
pub fn refusal(meta: &Meta) -> Option<DropReason> {
    match meta.out_port.checked_sub(REFUSED) {
        Some(index) => DropReason::from_index(index as usize),
        None => None,
    }
}

const _: () = assert!(REFUSED as usize + DropReason::COUNT < FLOOD as usize);
