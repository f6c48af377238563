//! Packets as frames of a wire: trains split into segments, checksums completed.

use longwire_packet::{Handle, Meta, Pool};
use longwire_wire::{finish_checksum, segment};

/// Passes each frame of the packet, whose checksum may be completed by this, to `show`; the packet stays in
/// the pool. Returns how many segments found no room in the pool.
pub(super) fn each_frame(pool: &mut Pool, handle: Handle, mut show: impl FnMut(&Meta, &[u8])) -> u64 {
    let segments = pool.meta(handle).segments;
    if segments <= 1 {
        return u64::from(!finish_and_show(pool, handle, &mut show));
    }
    let mut missing = 0;
    for index in 0..segments {
        match segment(pool, handle, index, 1) {
            Some(one) => {
                missing += u64::from(!finish_and_show(pool, one, &mut show));
                pool.free(one);
            }
            None => missing += 1,
        }
    }
    missing
}

/// False if the checksum is not inside the frame, which drivers reject on receipt.
fn finish_and_show(pool: &mut Pool, handle: Handle, show: &mut impl FnMut(&Meta, &[u8])) -> bool {
    let (meta, data) = pool.parts_mut(handle);
    let finished = finish_checksum(meta, data).is_ok();
    if finished {
        show(meta, data);
    }
    finished
}
