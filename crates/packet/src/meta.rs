//! What is known of a packet besides its bytes.

use bytemuck::{Pod, Zeroable};

/// One cache line of facts about a packet. Times are nanoseconds of the engine's clock.
///
/// A *train* is several segments carried as one large packet (segmentation offload): `segments` > 1, and every
/// segment but the last carries `gso_size` payload bytes behind `header_len` bytes of headers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pod, Zeroable)]
#[repr(C, align(64))]
pub struct Meta {
    /// The next packet where this one waits in a list (a raw [`crate::Handle`]).
    pub next: u32,
    /// Bytes held, from the Ethernet header on, without FCS.
    pub len: u32,
    /// Bytes the frame really had: more than `len` only if a capture cut it short. For a train, the one large frame's.
    pub wire_len: u32,
    /// Segments in the train; 1 for an ordinary packet.
    pub segments: u16,
    /// Payload bytes of every segment but the last, if a train.
    pub gso_size: u16,
    /// Bytes of headers that each segment repeats (Ethernet to TCP or UDP), if a train.
    pub header_len: u16,
    /// Where checksumming starts, from the first byte of the frame, if `checksum` is partial.
    pub csum_start: u16,
    /// Where the checksum goes, from `csum_start`, if `checksum` is partial.
    pub csum_offset: u16,
    /// Kind of train, as [`Gso`].
    pub gso: u8,
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
    /// When it leaves, or should have left, the link it is in. While it queues: the bytes it counts there.
    pub leave: u64,
    /// Place in the plan of what sent it here: breaks ties between equal times.
    pub place: u32,
    /// Lines of the pool it occupies; kept by the pool.
    pub(crate) lines: u16,
    /// The band of the queue it belongs to, or [`Meta::NO_BAND`]. Once a filter has steered it: which of its targets it is to take.
    pub band: u8,
    /// What is special about it, as bits: [`Meta::PHANTOM`] and so on.
    pub flags: u8,
    /// Number within `place`: breaks the remaining ties.
    pub seq: u64,
}

const _: () = assert!(size_of::<Meta>() == 64);

impl Meta {
    /// Background traffic of a link: takes its place in the queue and its time to be sent, and ends there.
    pub const PHANTOM: u8 = 1;
    /// A filter sends it to another link.
    pub const STEERED: u8 = 2;
    /// Made by a link for the sender of a packet that it did not take.
    pub const REPLY: u8 = 4;
    /// Its node has given it a band, for the first link.
    pub const BANDED: u8 = 8;
    /// Its node has made it itself, or its node's control plane has sent it: between workers it goes first.
    pub const OWN: u8 = 16;
    /// What leaves a link otherwise than at its end.
    pub const ASIDE: u8 = Self::STEERED | Self::REPLY;

    /// No filter has given it a band.
    pub const NO_BAND: u8 = 255;

    /// Whether this is several segments in one.
    #[inline]
    pub const fn is_train(&self) -> bool {
        self.segments > 1
    }

    /// Frame bytes that the segments have together once each carries its own headers.
    #[inline]
    pub const fn segment_bytes(&self) -> u64 {
        self.wire_len as u64 + (self.segments as u64 - 1) * self.header_len as u64
    }

    /// A packet of `len` bytes of which nothing else is known yet.
    pub(crate) fn fresh(len: u32, lines: u32) -> Self {
        Self {
            next: u32::MAX,
            len,
            wire_len: len,
            segments: 1,
            lines: lines as u16,
            band: Self::NO_BAND,
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
