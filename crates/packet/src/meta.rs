//! What is known of a packet besides its bytes.

use bytemuck::{Pod, Zeroable};

/// One cache line of facts about a packet. Times are nanoseconds of the engine's clock.
///
/// A line has no room for what only some packets have. Where two things share a place, no packet has both at
/// a time, the place is private, and each has methods of its own: a train's sizes and a mark; the place of an
/// open checksum and a wish; a queue's band and a filter's target; the time at which a packet leaves and what
/// it counts in a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pod, Zeroable)]
#[repr(C, align(64))]
pub struct Meta {
    /// The next packet where this one waits in a list (a raw [`crate::Handle`]).
    pub next: u32,
    /// Bytes held, from the Ethernet header on, without FCS.
    pub len: u32,
    /// Bytes the frame really had: more than `len` only if a capture cut it short. For a train, the one large
    /// frame's.
    pub wire_len: u32,
    /// Segments in the train; 1 for an ordinary packet. Set by [`Meta::set_train`] and [`Meta::set_single`].
    pub segments: u16,
    /// [`Train::gso_size`] and [`Train::header_len`]; of an ordinary packet the lower and the upper half of
    /// [`Meta::mark`].
    sizes: [u16; 2],
    /// The place of an open checksum: see [`Meta::open_checksum`]. Of another packet, what [`Meta::wish`]
    /// gives, and nothing.
    open: [u16; 2],
    /// [`Train::gso`].
    gso: u8,
    /// State of the transport checksum, as [`Checksum`].
    pub checksum: u8,
    /// Place in the plan of the port it came in by.
    pub in_port: u16,
    /// Place in the plan of the port it is bound for, or one of the node's decisions (see `block::node`).
    pub out_port: u16,
    /// Where it stands on its way through the links (see `block::path`).
    pub path: u32,
    /// When it arrived at the link it is in, or at the port.
    pub arrival: u64,
    /// [`Meta::leave`]; while it waits in a queue, [`Meta::counted`].
    time: u64,
    /// Place in the plan of what sent it here: breaks ties between equal times.
    pub place: u32,
    /// Lines of the pool it occupies; kept by the pool.
    pub(crate) lines: u16,
    /// [`Meta::band`]; once a filter has steered it, what [`Meta::take_target`] gives.
    chosen: u8,
    /// What is special about it, as bits: [`Meta::PHANTOM`] and so on.
    pub flags: u8,
    /// Number within `place`: breaks the remaining ties.
    pub seq: u64,
}

/// Several segments carried as one large packet (segmentation offload).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Train {
    /// Its kind, as [`Gso`].
    pub gso: u8,
    /// How many segments, at least two.
    pub segments: u16,
    /// Payload bytes of every segment but the last.
    pub gso_size: u16,
    /// Bytes of headers that each segment repeats, Ethernet to TCP or UDP.
    pub header_len: u16,
}

const _: () = assert!(size_of::<Meta>() == 64);

impl Meta {
    /// Background traffic of a link: takes its place in the queue and its time to be sent, and ends there.
    pub const PHANTOM: u8 = 1;
    /// A filter sends it to another link: see [`Meta::steer`].
    const STEERED: u8 = 2;
    /// Made by a link for the sender of a packet that it did not take.
    pub const REPLY: u8 = 4;
    /// Its node has given it a band, for the first link.
    pub const BANDED: u8 = 8;
    /// Its node has made it itself, or its node's control plane has sent it: between workers it goes first.
    pub const OWN: u8 = 16;
    /// Its node wishes it to take a certain link: see [`Meta::wish`].
    const WISHING: u8 = 32;
    /// What leaves a link otherwise than at its end.
    pub const ASIDE: u8 = Self::STEERED | Self::REPLY;

    /// No filter has given it a band.
    pub const NO_BAND: u8 = 255;

    /// Whether this is several segments in one.
    #[inline]
    pub const fn is_train(&self) -> bool {
        self.segments > 1
    }

    /// What is known of it if it is a train.
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

    /// Frame bytes that the segments have together once each carries its own headers.
    #[inline]
    pub const fn segment_bytes(&self) -> u64 {
        let [_, header_len] = self.sizes;
        self.wire_len as u64 + (self.segments as u64 - 1) * header_len as u64
    }

    /// Frame bytes of the first segment, which no other exceeds; of an ordinary packet, its own.
    #[inline]
    pub const fn first_bytes(&self) -> u32 {
        let [gso_size, header_len] = self.sizes;
        if self.is_train() { gso_size as u32 + header_len as u32 } else { self.wire_len }
    }

    /// Frame bytes of the last segment; of an ordinary packet, its own.
    #[inline]
    pub const fn last_bytes(&self) -> u32 {
        let [gso_size, _] = self.sizes;
        self.wire_len - (self.segments as u32 - 1) * gso_size as u32
    }

    /// Where the checksum that is to be filled in begins to count, from the first byte of the frame, and
    /// where it goes, from there. None if `checksum` is not partial.
    #[inline]
    pub const fn open_checksum(&self) -> Option<(u16, u16)> {
        let [start, offset] = self.open;
        if self.checksum == Checksum::Partial as u8 { Some((start, offset)) } else { None }
    }

    /// Says that the checksum is to be filled in, and where: see [`Meta::open_checksum`]. It has no wish.
    pub const fn set_open_checksum(&mut self, start: u16, offset: u16) {
        self.checksum = Checksum::Partial as u8;
        self.open = [start, offset];
    }

    /// When it leaves, or should have left, the link it is in. Not known while it waits in a queue.
    #[inline]
    pub const fn leave(&self) -> u64 {
        self.time
    }

    /// Says when it leaves.
    #[inline]
    pub const fn set_leave(&mut self, time: u64) {
        self.time = time;
    }

    /// The bytes that it counts in the queue in which it waits, as the link's rate counts them.
    #[inline]
    pub const fn counted(&self) -> u64 {
        self.time
    }

    /// Says what it counts in the queue in which it is to wait.
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

    /// Gives it a band, or [`Meta::NO_BAND`].
    #[inline]
    pub const fn set_band(&mut self, band: u8) {
        self.chosen = band;
    }

    /// A filter sends it to the link that is this one of its targets.
    pub const fn steer(&mut self, target: u8) {
        self.chosen = target;
        self.flags |= Self::STEERED;
    }

    /// Which of a filter's targets it is to take, if it was steered, which it is no longer then.
    pub const fn take_target(&mut self) -> Option<u8> {
        if self.flags & Self::STEERED == 0 {
            return None;
        }
        self.flags &= !Self::STEERED;
        let target = self.chosen;
        self.chosen = Self::NO_BAND;
        Some(target)
    }

    /// The number that programs have given the packet, for those behind them and for rules; 0 if none has. A
    /// train has none: programs get single packets.
    #[inline]
    pub const fn mark(&self) -> u32 {
        let [low, high] = self.sizes;
        if self.is_train() { 0 } else { (high as u32) << 16 | low as u32 }
    }

    /// Gives it another mark. A train stays as it is.
    #[inline]
    pub const fn set_mark(&mut self, mark: u32) {
        if !self.is_train() {
            self.sizes = [mark as u16, (mark >> 16) as u16];
        }
    }

    /// The link that it is to take, by its number among those that programs may name, if that begins where it
    /// is when its path is chosen.
    #[inline]
    pub const fn wish(&self) -> Option<u16> {
        if self.flags & Self::WISHING != 0 { Some(self.open[0]) } else { None }
    }

    /// Whether one of several packets may have a wish, whose flags these are, or-ed together.
    #[inline]
    pub const fn any_wishes(flags: u8) -> bool {
        flags & Self::WISHING != 0
    }

    /// Says which link it is to take. Its checksum must be complete.
    pub const fn set_wish(&mut self, link: u16) {
        self.open = [link, 0];
        self.flags |= Self::WISHING;
    }

    /// Takes over what programs have chosen for another packet, of which this one is a part, or in whose
    /// place it comes: mark, link and queue.
    pub const fn take_choices(&mut self, from: &Self) {
        self.set_mark(from.mark());
        if let Some(link) = from.wish() {
            self.set_wish(link);
        }
        if from.flags & Self::BANDED != 0 {
            self.chosen = from.chosen;
            self.flags |= Self::BANDED;
        }
    }

    /// Takes the wish from it: it was granted, or can't be.
    pub const fn clear_wish(&mut self) {
        if self.flags & Self::WISHING != 0 {
            self.open = [0, 0];
            self.flags &= !Self::WISHING;
        }
    }

    /// The same of a packet elsewhere, in no list, with so many lines and bytes.
    pub(crate) const fn placed(mut self, lines: u16, len: u32) -> Self {
        (self.lines, self.len, self.next) = (lines, len, u32::MAX);
        self
    }

    /// A packet of `len` bytes of which nothing else is known yet.
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

/// What is known of a packet's transport checksum.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Checksum {
    /// Nothing: it stands in the bytes as the sender wrote it.
    Unknown = 0,
    /// Only the pseudo-header's sum is in its place; the rest must be filled in before a wire sees it.
    Partial = 1,
    /// A driver has found it right.
    Verified = 2,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_bear_marks_wishes_and_targets() {
        let mut meta = Meta::fresh(60, 2);
        assert_eq!((meta.mark(), meta.wish()), (0, None));
        meta.set_mark(0x1234_5678);
        meta.set_wish(7);
        assert_eq!((meta.mark(), meta.wish(), meta.segment_bytes()), (0x1234_5678, Some(7), 60));
        meta.clear_wish();
        assert_eq!((meta.wish(), meta.flags, meta.open), (None, 0, [0, 0]));
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
