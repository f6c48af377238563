//! Events of packets in links, for the pool's probe: drops and marks. Arrivals and departures are the
//! engine's to report.

use longwire_block::DropReason;
use longwire_packet::{Handle, Meta, PacketEvent, Pool};
use longwire_units::Nanos;

/// Reports the drop of a whole packet at `now`. Background traffic is not reported.
#[inline]
pub(crate) fn report_drop(pool: &mut Pool, handle: Handle, now: Nanos, reason: DropReason) {
    if pool.is_probed() {
        let meta = pool.meta(handle);
        let part = (meta.segments, meta.segment_bytes());
        report_lost(pool, handle, now, (reason, part));
    }
}

/// Reports the drop of a copy, or of some segments of a train, with their frame bytes.
#[cold]
#[inline(never)]
pub(crate) fn report_lost(
    pool: &mut Pool,
    handle: Handle,
    now: Nanos,
    (reason, (segments, bytes)): (DropReason, (u16, u64)),
) {
    if pool.meta(handle).flags & Meta::PHANTOM == 0 {
        let (time, bytes) = (now.0, u32::try_from(bytes).unwrap_or(u32::MAX));
        pool.report(handle, PacketEvent::Dropped { time, reason: reason as u8, segments, bytes });
    }
}

/// Reports that CE was set on a packet at `now`.
#[inline]
pub(crate) fn report_mark(pool: &mut Pool, handle: Handle, now: Nanos) {
    if pool.is_probed() {
        pool.report(handle, PacketEvent::Marked { time: now.0 });
    }
}
