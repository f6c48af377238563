//! Metadata of a packet.

use bytemuck::{Pod, Zeroable};

/// Metadata of a packet in one cache line. Times are nanoseconds of the engine's clock.
///
/// Some fields are shared between two uses that never occur together. Such a field is private, and each use
/// has its own methods:
///
/// - a train's sizes, or a mark;
/// - the place of an open checksum, or a requested link;
/// - a queue's band, or a filter's target;
/// - the time at which a packet leaves, or its size in the queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pod, Zeroable)]
#[repr(C, align(64))]
pub struct Meta {
    /// The next packet of the list in which this one waits (a raw [`crate::Handle`]).
    pub next: u32,
    /// Bytes in the pool, from the Ethernet header on, without FCS.
    pub len: u32,
    /// Original length of the frame: more than `len` only if a capture truncated it. For a train, the length
    /// of the one large frame.
    pub wire_len: u32,
    /// Segments in the train; 1 for an ordinary packet. Set by [`Meta::set_train`] and [`Meta::set_single`].
    pub segments: u16,
    /// [`Train::gso_size`] and [`Train::header_len`]; for an ordinary packet, the lower and the upper half of
    /// [`Meta::mark`].
    sizes: [u16; 2],
    /// The place of an open checksum ([`Meta::open_checksum`]); otherwise [`Meta::requested_link`] and an
    /// unused word.
    open: [u16; 2],
    /// [`Train::gso`].
    gso: u8,
    /// State of the transport checksum, as [`Checksum`].
    pub checksum: u8,
    /// The input port, by its place in the plan.
    pub in_port: u16,
    /// The output port, by its place in the plan, or one of the node's decisions (see `block::node`).
    pub out_port: u16,
    /// The position on the path through the links (see `block::path`).
    pub path: u32,
    /// Arrival time at the current link, or at the port.
    pub arrival: u64,
    /// [`Meta::leave`]; in a queue, [`Meta::counted`].
    time: u64,
    /// The sender's place in the plan, which breaks ties between equal times.
    pub place: u32,
    /// Lines of the pool that the packet occupies; maintained by the pool.
    pub(crate) lines: u16,
    /// [`Meta::band`]; after a filter has steered the packet, the result of [`Meta::take_target`].
    chosen: u8,
    /// Flag bits: [`Meta::PHANTOM`] and so on.
    pub flags: u8,
    /// Sequence number within `place`, which breaks the remaining ties.
    pub seq: u64,
}

/// Several segments carried as one large packet (segmentation offload).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Train {
    /// Its kind, as [`Gso`].
    pub gso: u8,
    /// Number of segments, at least two.
    pub segments: u16,
    /// Payload bytes of every segment but the last.
    pub gso_size: u16,
    /// Bytes of headers that each segment repeats, Ethernet to TCP or UDP.
    pub header_len: u16,
}

const _: () = assert!(size_of::<Meta>() == 64);

impl Meta {
    /// Background traffic of a link: it occupies the queue and transmission time, and is dropped after
    /// transmission.
    pub const PHANTOM: u8 = 1;
    /// Steered to another link by a filter: see [`Meta::steer`].
    const STEERED: u8 = 2;
    /// Made by a link as a reply to the sender of a packet that it refused.
    pub const REPLY: u8 = 4;
    /// The node has assigned a band for the first link.
    pub const BANDED: u8 = 8;
    /// Made by the node or sent by its control plane: sent first between workers.
    pub const OWN: u8 = 16;
    /// The node requests a certain link: see [`Meta::requested_link`].
    const LINK_REQUESTED: u8 = 32;
    /// Packets that leave a link before its end.
    pub const DIVERTED: u8 = Self::STEERED | Self::REPLY;

    /// No band assigned by a filter.
    pub const NO_BAND: u8 = 255;

    /// Whether this is several segments in one.
    #[inline]
    pub const fn is_train(&self) -> bool {
        self.segments > 1
    }

    /// The train's metadata, if this is a train.
    #[inline]
    pub const fn train(&self) -> Option<Train> {
        let (gso, segments, [gso_size, header_len]) = (self.gso, self.segments, self.sizes);
        if self.is_train() { Some(Train { gso, segments, gso_size, header_len }) } else { None }
    }

    /// Makes it a train, which has no mark.
    pub const fn set_train(&mut self, train: Train) {
        (self.gso, self.segments) = (train.gso, train.segments);
        self.sizes = [train.gso_size, train.header_len];
    }

    /// Makes it an ordinary packet, without a mark.
    pub const fn set_single(&mut self) {
        self.set_train(Train { gso: Gso::None as u8, segments: 1, gso_size: 0, header_len: 0 });
    }

    /// Frame bytes of all segments together, each with its own headers.
    #[inline]
    pub const fn segment_bytes(&self) -> u64 {
        let [_, header_len] = self.sizes;
        self.wire_len as u64 + (self.segments as u64 - 1) * header_len as u64
    }

    /// Frame bytes of the first segment, which is the largest; for an ordinary packet, its own.
    #[inline]
    pub const fn first_bytes(&self) -> u32 {
        let [gso_size, header_len] = self.sizes;
        if self.is_train() { gso_size as u32 + header_len as u32 } else { self.wire_len }
    }

    /// Frame bytes of the last segment; for an ordinary packet, its own.
    #[inline]
    pub const fn last_bytes(&self) -> u32 {
        let [gso_size, _] = self.sizes;
        self.wire_len - (self.segments as u32 - 1) * gso_size as u32
    }

    /// The place of a checksum that must still be filled in: where its coverage begins, from the first byte
    /// of the frame, and the field's offset from there. None if `checksum` is not partial.
    #[inline]
    pub const fn open_checksum(&self) -> Option<(u16, u16)> {
        let [start, offset] = self.open;
        if self.checksum == Checksum::Partial as u8 { Some((start, offset)) } else { None }
    }

    /// Marks the checksum as open, with its place: see [`Meta::open_checksum`]. Clears a requested link.
    pub const fn set_open_checksum(&mut self, start: u16, offset: u16) {
        self.checksum = Checksum::Partial as u8;
        self.open = [start, offset];
    }

    /// Time at which the packet leaves, or should have left, its current link. Unknown while it waits in a
    /// queue.
    #[inline]
    pub const fn leave(&self) -> u64 {
        self.time
    }

    /// Sets the time at which the packet leaves.
    #[inline]
    pub const fn set_leave(&mut self, time: u64) {
        self.time = time;
    }

    /// Size of the packet in its queue, in bytes as the link's rate counts them.
    #[inline]
    pub const fn counted(&self) -> u64 {
        self.time
    }

    /// Sets the size of the packet for the queue that it enters.
    #[inline]
    pub const fn set_counted(&mut self, bytes: u64) {
        self.time = bytes;
    }

    /// The band of the queue it belongs to, or [`Meta::NO_BAND`].
    #[inline]
    pub const fn band(&self) -> u8 {
        debug_assert!(self.flags & Self::STEERED == 0, "its target is there");
        self.chosen
    }

    /// Assigns a band, or [`Meta::NO_BAND`].
    #[inline]
    pub const fn set_band(&mut self, band: u8) {
        self.chosen = band;
    }

    /// Steers the packet to the link with this index among a filter's targets.
    pub const fn steer(&mut self, target: u8) {
        self.chosen = target;
        self.flags |= Self::STEERED;
    }

    /// Takes the filter's target of a steered packet, which is no longer steered afterwards.
    pub const fn take_target(&mut self) -> Option<u8> {
        if self.flags & Self::STEERED == 0 {
            return None;
        }
        self.flags &= !Self::STEERED;
        let target = self.chosen;
        self.chosen = Self::NO_BAND;
        Some(target)
    }

    /// The mark that a program has set for later programs and rules; 0 if none. Trains have no mark: programs
    /// receive single packets.
    #[inline]
    pub const fn mark(&self) -> u32 {
        let [low, high] = self.sizes;
        if self.is_train() { 0 } else { (high as u32) << 16 | low as u32 }
    }

    /// Sets the mark. A train is not changed.
    #[inline]
    pub const fn set_mark(&mut self, mark: u32) {
        if !self.is_train() {
            self.sizes = [mark as u16, (mark >> 16) as u16];
        }
    }

    /// The requested link, by its number among those that programs may name. It applies if that link starts
    /// at the packet's current port when its path is chosen.
    #[inline]
    pub const fn requested_link(&self) -> Option<u16> {
        if self.flags & Self::LINK_REQUESTED != 0 { Some(self.open[0]) } else { None }
    }

    /// Whether any of several packets may request a link, from their flags combined with OR.
    #[inline]
    pub const fn any_requested_link(flags: u8) -> bool {
        flags & Self::LINK_REQUESTED != 0
    }

    /// Requests a link. The checksum must be complete.
    pub const fn request_link(&mut self, link: u16) {
        self.open = [link, 0];
        self.flags |= Self::LINK_REQUESTED;
    }

    /// Copies what programs have set on `from` (mark, link and queue) to this packet, which is a part of it
    /// or replaces it.
    pub const fn take_choices(&mut self, from: &Self) {
        self.set_mark(from.mark());
        if let Some(link) = from.requested_link() {
            self.request_link(link);
        }
        if from.flags & Self::BANDED != 0 {
            self.chosen = from.chosen;
            self.flags |= Self::BANDED;
        }
    }

    /// Clears the requested link, after it was granted or refused.
    pub const fn clear_requested_link(&mut self) {
        if self.flags & Self::LINK_REQUESTED != 0 {
            self.open = [0, 0];
            self.flags &= !Self::LINK_REQUESTED;
        }
    }

    /// A copy of this metadata for another packet, in no list, with these lines and bytes.
    pub(crate) const fn placed(mut self, lines: u16, len: u32) -> Self {
        (self.lines, self.len, self.next) = (lines, len, u32::MAX);
        self
    }

    /// Metadata of a new packet of `len` bytes.
    pub(crate) fn fresh(len: u32, lines: u32) -> Self {
        Self {
            next: u32::MAX,
            len,
            wire_len: len,
            segments: 1,
            lines: lines as u16,
            chosen: Self::NO_BAND,
            ..Self::zeroed()
        }
    }
}

/// Kinds of train (the numbers are those of the virtio network header).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Gso {
    /// Not a train.
    None = 0,
    /// TCP over IPv4.
    TcpV4 = 1,
    /// TCP over IPv6.
    TcpV6 = 4,
    /// UDP, each segment a datagram of its own.
    Udp = 5,
}

/// State of a packet's transport checksum.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Checksum {
    /// Unknown: the bytes contain what the sender wrote.
    Unknown = 0,
    /// The field contains only the pseudo-header's sum; the rest must be filled in before transmission on a
    /// wire.
    Partial = 1,
    /// Verified by a driver.
    Verified = 2,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_bear_marks_requested_links_and_targets() {
        let mut meta = Meta::fresh(60, 2);
        assert_eq!((meta.mark(), meta.requested_link()), (0, None));
        meta.set_mark(0x1234_5678);
        meta.request_link(7);
        assert_eq!((meta.mark(), meta.requested_link(), meta.segment_bytes()), (0x1234_5678, Some(7), 60));
        meta.clear_requested_link();
        assert_eq!((meta.requested_link(), meta.flags, meta.open), (None, 0, [0, 0]));
        meta.steer(3);
        assert_eq!((meta.take_target(), meta.take_target(), meta.band()), (Some(3), None, Meta::NO_BAND));
        let train = Train { gso: Gso::Udp as u8, segments: 2, gso_size: 1000, header_len: 54 };
        meta.set_train(train);
        meta.set_mark(5);
        assert_eq!((meta.mark(), meta.train()), (0, Some(train)));
        meta.set_single();
        assert_eq!((meta.mark(), meta.train()), (0, None));
    }
}
