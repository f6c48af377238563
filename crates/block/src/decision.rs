//! Decisions of nodes about packets, as stored in `Meta::out_port`.

use crate::DropReason;
use longwire_packet::Meta;

/// Limit on the number of ports: their places in the plan are below this.
pub const MAX_PORTS: usize = 0xff00;

/// `Meta::out_port` of a packet for every port of its node except its input port.
pub const FLOOD: u16 = 0xffff;

/// `Meta::out_port` of a packet that its node keeps: it comes out of the [`Outbox`](crate::Outbox) later.
pub const KEPT: u16 = 0xfffe;

/// `Meta::out_port` of a packet addressed to the node itself.
pub const CONSUMED: u16 = 0xfffd;

/// The lowest `Meta::out_port` that means a drop: the number of the [`DropReason`] is added.
pub const REFUSED: u16 = 0xff00;

/// Marks a packet as dropped by its node.
#[inline]
pub fn refuse(meta: &mut Meta, reason: DropReason) {
    meta.out_port = REFUSED + reason as u16;
}

/// The reason for which a node dropped the packet, if it did.
#[inline]
pub fn refusal(meta: &Meta) -> Option<DropReason> {
    meta.out_port.checked_sub(REFUSED).and_then(|index| DropReason::from_index(index.into()))
}

const _: () = assert!(REFUSED as usize + DropReason::COUNT < CONSUMED as usize);
