//! Packets whose programs have moved their ends, and which may need more room.

use super::ruling::Ruling;
use crate::state::{Core, Fate};
use longwire_block::{DropReason, Outbox};
use longwire_packet::{Checksum, Handle, Pool};

/// Writes a changed packet back into its slot, or into another packet if it has grown beyond that. Returns
/// the packet that holds it; without memory its fate is decided.
pub(super) fn put_back(
    core: &mut Core,
    pool: &mut Pool,
    handle: Handle,
    frame: &[u8],
    ruling: &mut Ruling,
    out: &mut Outbox,
) -> Handle {
    let old = *pool.meta(handle);
    let mut own = handle;
    if !pool.resize(handle, frame.len()) {
        out.because_of(&old);
        let Some(longer) = core.make(pool, old.in_port, frame.len(), out) else {
            ruling.fate = Some(Fate::Dropped(DropReason::PoolFull));
            return handle;
        };
        let meta = pool.meta_mut(longer);
        (meta.place, meta.seq) = (old.place, old.seq);
        meta.take_choices(&old);
        if ruling.instead.replace(longer).is_some() {
            core.settle(pool, handle, Fate::Consumed, out);
        }
        own = longer;
    }
    let (meta, place) = pool.parts_mut(own);
    place.copy_from_slice(frame);
    // Bytes that a capture cut off are still missing.
    meta.wire_len = meta.len + (old.wire_len - old.len);
    meta.checksum = Checksum::Unknown as u8;
    own
}
