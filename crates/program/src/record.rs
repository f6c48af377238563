//! Records of programs in rings: pending ones, and the helpers.

use crate::Helper;
use crate::machine::Machine;
use crate::map::Map;
use crate::map::ring::{End, MAX_RECORD};
use crate::memory::{Fault, Region};
use crate::reserved::ReservedRecord;

/// Errors that helpers return, as in errno(3).
const E2BIG: i64 = 7;
const EAGAIN: i64 = 11;
const EFAULT: i64 = 14;
const EINVAL: i64 = 22;
const ENOSPC: i64 = 28;
const EOPNOTSUPP: i64 = 95;
/// BPF_RB_NO_WAKEUP and BPF_RB_FORCE_WAKEUP: the reader polls.
const WAKING: u64 = 3;
/// BPF_F_INDEX_MASK: index of the ring of a perf_event_array, and BPF_F_CURRENT_CPU.
const INDEX: u64 = u32::MAX as u64;
/// BPF_F_CTXLEN_MASK, shifted down: number of packet bytes that follow.
const MAX_CONTEXT: u64 = 0xf_ffff;

impl Machine<'_> {
    /// `bpf_ringbuf_reserve`.
    pub(crate) fn reserve(&mut self, handle: u64, length: u64, flags: u64) -> Result<u64, Fault> {
        let (index, map) = self.usable_map(handle, Helper::RingReserve)?;
        if !self.stack.records.has_room() {
            return Err(Fault::Records);
        }
        let length = u32::try_from(length).ok().filter(|&length| length <= MAX_RECORD && flags == 0);
        let place = length.and_then(|length| map.reserve(0, length).map(|place| (place, length)));
        let Some((place, length)) = place else { return Ok(0) };
        let address = Region::Map(index).address(place);
        self.stack.records.add(ReservedRecord { address, length });
        Ok(address)
    }

    /// `bpf_ringbuf_submit` and `bpf_ringbuf_discard`.
    pub(crate) fn end_record(&mut self, address: u64, end: End) -> Result<u64, Fault> {
        let record = self.stack.records.remove(address).ok_or(Fault::Argument(1))?;
        self.finish(record, end);
        Ok(0)
    }

    /// `bpf_ringbuf_output`.
    pub(crate) fn ring_output(&self, handle: u64, from: u64, length: u64, flags: u64) -> Result<u64, Fault> {
        let (_, map) = self.usable_map(handle, Helper::RingOutput)?;
        if flags & !WAKING != 0 {
            return Ok(-EINVAL as u64);
        }
        let length = u32::try_from(length).map_err(|_| Fault::Argument(3))?;
        Ok(if self.output(map, 0, (from, length), 0)? { 0 } else { -EAGAIN as u64 })
    }

    /// `bpf_perf_event_output`. Errors are detected in the kernel's order.
    pub(crate) fn perf_output(&self, handle: u64, flags: u64, from: u64, length: u64) -> Result<u64, Fault> {
        let (_, map) = self.usable_map(handle, Helper::PerfOutput)?;
        let (packet, index, worker) = (flags >> 32, flags & INDEX, u64::from(self.context.worker));
        let index = if index == INDEX { worker } else { index };
        let wrong = if packet > MAX_CONTEXT {
            EINVAL
        } else if packet > self.packet.range().len() as u64 {
            EFAULT
        } else if index >= map.spec().max_entries.into() {
            E2BIG
        } else if index != worker {
            EOPNOTSUPP
        } else {
            0
        };
        if wrong != 0 {
            return Ok(-wrong as u64);
        }
        let length = u32::try_from(length).map_err(|_| Fault::Argument(5))?;
        let done = self.output(map, self.context.worker, (from, length), packet as u32)?;
        Ok(if done { 0 } else { -ENOSPC as u64 })
    }

    /// Writes a record of these bytes and the packet's first `packet` bytes. False if there is no room.
    fn output(&self, map: &Map, worker: u32, (from, length): (u64, u32), packet: u32) -> Result<bool, Fault> {
        let all = length.saturating_add(packet);
        let Some(place) = map.reserve(worker, all) else { return Ok(false) };
        let copied = self.copy_into(map, place, from, length);
        if copied.is_ok() {
            map.values().write((place + length) as usize, &self.packet.bytes()[..packet as usize]);
        }
        map.finish(
            place,
            all,
            if copied.is_ok() { End::Submitted(self.context.now) } else { End::Discarded },
        );
        copied.map(|()| true)
    }

    fn copy_into(&self, map: &Map, place: u32, from: u64, length: u32) -> Result<(), Fault> {
        let mut piece = [0; 64];
        for at in (0..length).step_by(64) {
            let piece = &mut piece[..(length - at).min(64) as usize];
            self.read(from + u64::from(at), piece)?;
            map.values().write((place + at) as usize, piece);
        }
        Ok(())
    }

    fn finish(&self, ReservedRecord { address, length }: ReservedRecord, end: End) {
        if let Some((Region::Map(map), place)) = Region::of(address)
            && let Some(map) = self.maps.at(u32::from(map))
        {
            map.finish(place, length, end);
        }
    }

    /// Discards records that a program has left behind, which no verified program does, so that the reader is
    /// not blocked.
    pub fn abandon_records(&mut self) {
        while let Some(record) = self.stack.records.pop() {
            self.finish(record, End::Discarded);
        }
    }

    /// Whether a program has left records behind.
    #[inline]
    pub fn has_records(&self) -> bool {
        !self.stack.records.is_empty()
    }
}
