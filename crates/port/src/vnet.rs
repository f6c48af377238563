//! Code shared by drivers with the virtio network header: storing a received frame with its metadata, and
//! limits of transmitted frames.

use longwire_block::PortStats;
use longwire_packet::{Batch, Gso, Handle, MAX_FRAME, Meta, Pool};
use longwire_wire::{Ethernet, Ipv4, Ipv6, ethertype, protocol, virtio};

/// Bytes of the header before each frame.
pub(crate) const LEN: usize = virtio::LEN;

/// Bytes of an Ethernet header, and of a VLAN tag in it.
pub(crate) const ETHERNET: usize = 14;
pub(crate) const TAG: usize = 4;
/// Bytes of the two addresses, after which a tag belongs.
const ADDRESSES: usize = 12;

/// Offsets in the header (VIRTIO 1.2, 5.1.6).
const FLAGS: usize = 0;
const KIND: usize = 1;
const HEADER_LEN: usize = 2;
const GSO_SIZE: usize = 4;
const CSUM_START: usize = 6;
const NEEDS_CHECKSUM: u8 = 1;

/// A frame as received by a driver.
pub(crate) struct RawFrame<'a> {
    /// The virtio header, if the driver has one.
    pub(crate) header: Option<[u8; LEN]>,
    /// The frame's bytes without the tag below.
    pub(crate) bytes: &'a [u8],
    /// The VLAN tag that the kernel removed (TPID and TCI), to be reinserted.
    pub(crate) tag: Option<[u8; TAG]>,
    /// Without a header: whether the checksum is partial.
    pub(crate) open_checksum: bool,
    /// When it arrived, in nanoseconds.
    pub(crate) arrival: u64,
}

impl RawFrame<'_> {
    /// Takes the frame into the pool and the batch, which must have room, or counts why not.
    #[inline]
    pub(crate) fn keep(mut self, pool: &mut Pool, stats: &mut PortStats, batch: &mut Batch) {
        let tag = if self.tag.is_some() { TAG } else { 0 };
        let len = self.bytes.len() + tag;
        if self.bytes.len() < ETHERNET || len > MAX_FRAME {
            stats.in_bad += 1;
            return;
        }
        let Some(handle) = pool.alloc(len) else {
            stats.in_pool_full += self.segments();
            return;
        };
        let (meta, frame) = pool.parts_mut(handle);
        match self.tag {
            None => frame.copy_from_slice(self.bytes),
            Some(tag) => {
                let (addresses, rest) = self.bytes.split_at(ADDRESSES);
                frame[..ADDRESSES].copy_from_slice(addresses);
                frame[ADDRESSES..ADDRESSES + TAG].copy_from_slice(&tag);
                frame[ADDRESSES + TAG..].copy_from_slice(rest);
                self.shift_checksum(TAG as u16);
            }
        }
        meta.arrival = self.arrival;
        match self.header {
            Some(header) => return take(&header, handle, pool, stats, batch),
            None if self.open_checksum => locate_checksum(meta, frame),
            None => {}
        }
        stats.in_frames += u64::from(meta.segments);
        stats.in_bytes += meta.segment_bytes();
        batch.push(handle);
    }

    /// Shifts the start of the checksum, because a tag is inserted before it.
    fn shift_checksum(&mut self, by: u16) {
        if let Some(header) = &mut self.header
            && header[FLAGS] & NEEDS_CHECKSUM != 0
        {
            let start = word(header, CSUM_START).saturating_add(by);
            header[CSUM_START..CSUM_START + 2].copy_from_slice(&start.to_le_bytes());
        }
    }

    /// Number of segments according to the header, for counting a frame that is not kept.
    fn segments(&self) -> u64 {
        self.header.map_or(1, |header| segments(&header, self.bytes.len()))
    }
}

/// Adds a frame in the pool, at least an Ethernet header long, to the batch with its header's metadata. If
/// the header is invalid, the frame is counted and freed.
#[inline]
pub(crate) fn take(
    header: &[u8; LEN],
    handle: Handle,
    pool: &mut Pool,
    stats: &mut PortStats,
    batch: &mut Batch,
) {
    let (meta, frame) = pool.parts_mut(handle);
    if virtio::read(header, meta, frame).is_err() {
        stats.in_bad += segments(header, frame.len());
        pool.free(handle);
        return;
    }
    stats.in_frames += u64::from(meta.segments);
    stats.in_bytes += meta.segment_bytes();
    batch.push(handle);
}

/// Number of segments of a frame of `len` bytes according to the header.
fn segments(header: &[u8; LEN], len: usize) -> u64 {
    if header[KIND] == Gso::None as u8 {
        return 1;
    }
    let payload = len.saturating_sub(usize::from(word(header, HEADER_LEN)));
    payload.div_ceil(usize::from(word(header, GSO_SIZE)).max(1)).max(1) as u64
}

fn word(header: &[u8; LEN], at: usize) -> u16 {
    u16::from_le_bytes([header[at], header[at + 1]])
}

/// Finds where the partial checksum of a frame without a header belongs.
fn locate_checksum(meta: &mut Meta, frame: &[u8]) {
    let Ok(ethernet) = Ethernet::check(frame) else { return };
    let packet = ethernet.payload();
    let found = match ethernet.ethertype() {
        ethertype::IPV4 => Ipv4::check(packet).ok().map(|ip| (ip.header_len(), ip.protocol())),
        ethertype::IPV6 => {
            Ipv6::check(packet).ok().and_then(|ip| ip.transport()).map(|t| (t.offset, t.protocol))
        }
        _ => None,
    };
    let (offset, checksum) = match found {
        Some((offset, protocol::TCP)) => (offset, 16),
        Some((offset, protocol::UDP)) => (offset, 6),
        _ => return,
    };
    let start = frame.len() - packet.len() + offset;
    if start + checksum + 2 <= frame.len() {
        meta.set_open_checksum(start as u16, checksum as u16);
    }
}

/// Whether an interface with this MTU carries the frame, or each segment of a train. As in the kernel, one
/// VLAN tag does not count.
#[inline]
pub(crate) fn fits(mtu: u32, meta: &Meta, frame: &[u8]) -> bool {
    let longest = if meta.is_train() { meta.first_bytes() } else { meta.len };
    let limit = mtu.saturating_add(ETHERNET as u32);
    longest <= limit || (longest <= limit + TAG as u32 && frame[ADDRESSES..].starts_with(&[0x81, 0x00]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn keep(found: RawFrame<'_>) -> (Pool, Batch, PortStats) {
        let (mut pool, mut batch, mut stats) =
            (Pool::new(1 << 20).unwrap(), Batch::new(), PortStats::default());
        found.keep(&mut pool, &mut stats, &mut batch);
        (pool, batch, stats)
    }

    fn plain(bytes: &[u8]) -> RawFrame<'_> {
        RawFrame { header: None, bytes, tag: None, open_checksum: false, arrival: 7 }
    }

    #[test]
    fn frames_that_are_none_are_counted() {
        let long = vec![0; MAX_FRAME + 1];
        for bytes in [&[][..], &[0; 13], &long] {
            let (pool, batch, stats) = keep(plain(bytes));
            assert_eq!((stats.in_bad, stats.in_frames, batch.len(), pool.live()), (1, 0, 0, 0));
        }
        let bytes = [0; 60];
        let wrong = [NEEDS_CHECKSUM, 0, 0, 0, 0, 0, 60, 0, 0, 0];
        let (pool, _, stats) = keep(RawFrame { header: Some(wrong), ..plain(&bytes) });
        assert_eq!((stats.in_bad, pool.live()), (1, 0));
    }

    #[test]
    fn a_tag_taken_out_is_put_back_and_the_checksum_moves() {
        let bytes: Vec<u8> = (0..60).collect();
        let header = [NEEDS_CHECKSUM, 0, 0, 0, 0, 0, 34, 0, 16, 0];
        let tag = Some([0x81, 0, 0x20, 5]);
        let (pool, batch, stats) = keep(RawFrame { header: Some(header), tag, ..plain(&bytes) });
        let handle = batch.as_slice()[0];
        let wanted: Vec<u8> = (0..12).chain([0x81, 0, 0x20, 5]).chain(12..60).collect();
        assert_eq!(pool.data(handle), wanted);
        let meta = pool.meta(handle);
        assert_eq!((meta.open_checksum(), meta.arrival), (Some((38, 16)), 7));
        assert_eq!((stats.in_frames, stats.in_bytes), (1, 64));
    }

    #[test]
    fn a_full_pool_counts_every_segment() {
        let (mut pool, mut batch, mut stats) =
            (Pool::new(1 << 20).unwrap(), Batch::new(), PortStats::default());
        while pool.alloc(1054).is_some() {}
        let bytes = [0; 1054];
        let header = [NEEDS_CHECKSUM, 1, 54, 0, 100, 0, 34, 0, 16, 0];
        RawFrame { header: Some(header), ..plain(&bytes) }.keep(&mut pool, &mut stats, &mut batch);
        assert_eq!((stats.in_pool_full, batch.len()), (10, 0));
    }

    #[test]
    fn one_tag_does_not_count_against_the_mtu() {
        let mut pool = Pool::new(1 << 20).unwrap();
        for (len, tagged, fit) in
            [(1514, false, true), (1515, false, false), (1518, true, true), (1519, true, false)]
        {
            let mut bytes = vec![0; len];
            if tagged {
                bytes[12] = 0x81;
            }
            let handle = pool.insert(&bytes).unwrap();
            assert_eq!(fits(1500, pool.meta(handle), pool.data(handle)), fit, "{len}");
        }
    }

    proptest! {
        /// Every frame is kept or counted, once for each segment, and nothing is left in the pool.
        #[test]
        fn every_frame_is_kept_or_counted(
            header in proptest::option::of(any::<[u8; LEN]>()),
            kind in prop_oneof![Just(0u8), Just(1), Just(4), Just(5), any::<u8>()],
            flags in 0u8..4,
            start in prop::collection::vec(any::<u8>(), 0..40),
            ethertype in prop_oneof![Just([8u8, 0]), Just([0x86, 0xdd]), Just([0x81, 0]), any::<[u8; 2]>()],
            rest in prop::collection::vec(any::<u8>(), 0..200),
            tag in proptest::option::of(any::<[u8; TAG]>()),
            open_checksum in any::<bool>(),
        ) {
            let mut bytes = start;
            if bytes.len() >= 12 {
                bytes.truncate(12);
                bytes.extend(ethertype);
                bytes.extend(&rest);
            }
            let header = header.map(|mut header| {
                (header[FLAGS], header[KIND]) = (flags, kind);
                header
            });
            let found = RawFrame { header, bytes: &bytes, tag, open_checksum, arrival: 7 };
            let (pool, batch, stats) = keep(found);
            prop_assert_eq!(pool.live(), batch.len() as u64);
            prop_assert_eq!(batch.is_empty(), stats.in_frames == 0);
            prop_assert!(stats.in_frames + stats.in_bad >= 1);
            for &handle in batch.as_slice() {
                prop_assert_eq!(pool.meta(handle).len as usize,
                    bytes.len() + if tag.is_some() { TAG } else { 0 });
            }
        }
    }
}
