//! Invariants for arbitrary bytes as a virtio header and its frame; also the fuzz target `virtio`.

use longwire_packet::{Handle, Pool};
use longwire_wire::{finish_checksum, segment, virtio};

/// Reads `bytes` as a ten-byte virtio header and its frame. An accepted header can be written again, and an
/// accepted train can be split into segments whose checksums can be completed.
pub fn run(pool: &mut Pool, bytes: &[u8]) {
    let (header, frame) = bytes.split_at(bytes.len().min(virtio::LEN));
    let Some(packet) = pool.insert(frame) else { return };
    let (meta, frame) = pool.parts_mut(packet);
    if virtio::read(header, meta, frame).is_ok() {
        let mut again = *meta;
        virtio::read(&virtio::write(meta), &mut again, frame).expect("what was read can be written");
        // A verified checksum is not passed on as such.
        assert_eq!((meta.train(), meta.open_checksum()), (again.train(), again.open_checksum()));
        split(pool, packet);
        let (meta, frame) = pool.parts_mut(packet);
        finish_checksum(meta, frame).expect("its place was checked");
    }
    pool.free(packet);
    assert_eq!(pool.live(), 0);
}

/// Splits a train into its first few segments, its last, and those between.
fn split(pool: &mut Pool, train: Handle) {
    let meta = *pool.meta(train);
    let Some(facts) = meta.train() else { return };
    let payload = meta.len - u32::from(facts.header_len);
    assert_eq!(payload.div_ceil(u32::from(facts.gso_size)), u32::from(meta.segments));
    for (first, count) in [(0, 1), (1, 1), (meta.segments - 1, 1), (0, meta.segments - 1), (0, meta.segments)]
    {
        let part = segment(pool, train, first, count).expect("the pool has room");
        let (meta, frame) = pool.parts_mut(part);
        assert_eq!((meta.segments, meta.len as usize), (count, frame.len()));
        finish_checksum(meta, frame).expect("its place was checked");
        pool.free(part);
    }
}
