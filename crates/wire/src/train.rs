//! Trains: several segments carried as one large packet, checked on arrival and split where necessary.

use crate::checksum::{Sum, UDP_OFFSET, pseudo_v4, pseudo_v6};
use crate::ethernet::{Ethernet, ethertype};
use crate::ipv4::Ipv4;
use crate::ipv6::Ipv6;
use crate::malformed::Malformed;
use crate::transport::{Tcp, Udp, protocol, tcp_flags};
use longwire_packet::{Gso, Handle, Meta, Pool, Train};
use thiserror::Error;

const TCP_CHECKSUM: usize = 16;
const UDP_CHECKSUM: usize = UDP_OFFSET as usize;

/// An invalid train.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum TrainError {
    /// The kind of train is unknown.
    #[error("gso type {0} is not TCP over IPv4 (1), TCP over IPv6 (4) or UDP (5); switch other offloads off")]
    Kind(u8),
    /// A header is malformed.
    #[error(transparent)]
    Header(#[from] Malformed),
    /// The headers do not match the kind of train.
    #[error("a train of gso type {kind} has {field} {value:#x}")]
    Protocol {
        /// The kind of train.
        kind: u8,
        /// The field that contradicts it.
        field: &'static str,
        /// The value found.
        value: u16,
    },
    /// A length in a header differs from the frame's.
    #[error("{field} says {says}, but the frame has {has}")]
    Length {
        /// Which length.
        field: &'static str,
        /// The length in the header.
        says: usize,
        /// What the frame has.
        has: usize,
    },
    /// The packet is an IP fragment or has a routing header, which trains can't have.
    #[error("a train can't {0}")]
    Unfit(&'static str),
    /// No payload bytes per segment, or too many segments.
    #[error(
        "gso_size {gso_size} makes no train of {payload} payload bytes; it must give 1 to 65535 segments"
    )]
    Size {
        /// Payload bytes of each segment.
        gso_size: u16,
        /// Payload bytes of the train.
        payload: usize,
    },
    /// The frame was truncated by a capture.
    #[error("a train of {wire_len} bytes was cut short to {len}; capture whole frames")]
    Cut {
        /// Its original length.
        wire_len: u32,
        /// Bytes there are.
        len: usize,
    },
}

/// The header offsets of a train, and the kinds of header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Layout {
    l3: usize,
    l4: usize,
    payload: usize,
    is_v6: bool,
    is_tcp: bool,
}

/// Checks an incoming train. The sender's `claim` gives its kind and the payload bytes of a segment
/// ([`Train::gso`] and [`Train::gso_size`]). Everything else is read from its headers: their length, the
/// number of segments, and the place of an open checksum. A train of one segment becomes an ordinary packet,
/// as does a packet that claims not to be a train.
///
/// # Errors
/// Headers that are malformed, contradict the claim, or can't be split. The frame should be counted as bad.
#[inline]
pub fn validate_train(meta: &mut Meta, frame: &[u8], claim: (u8, u16)) -> Result<(), TrainError> {
    meta.set_single();
    if claim.0 == Gso::None as u8 { Ok(()) } else { validate_claim(meta, frame, claim) }
}

#[inline(never)]
fn validate_claim(meta: &mut Meta, frame: &[u8], (gso, gso_size): (u8, u16)) -> Result<(), TrainError> {
    if meta.wire_len as usize != frame.len() {
        return Err(TrainError::Cut { wire_len: meta.wire_len, len: frame.len() });
    }
    let layout = Layout::of(gso, frame)?;
    let payload = frame.len() - layout.payload;
    let size = TrainError::Size { gso_size, payload };
    if gso_size == 0 {
        return Err(size);
    }
    let segments = payload.div_ceil(usize::from(gso_size));
    let segments = u16::try_from(segments).map_err(|_| size)?;
    let too_long = |_| TrainError::Unfit("have so many extension headers");
    let header_len = u16::try_from(layout.payload).map_err(too_long)?;
    if meta.open_checksum().is_some() {
        meta.set_open_checksum(layout.l4 as u16, layout.checksum() as u16);
    }
    if segments > 1 {
        meta.set_train(Train { gso, segments, gso_size, header_len });
    }
    Ok(())
}

impl Layout {
    fn of(kind: u8, frame: &[u8]) -> Result<Self, TrainError> {
        let (wants_v4, wants_v6, is_tcp) = match kind {
            _ if kind == Gso::TcpV4 as u8 => (true, false, true),
            _ if kind == Gso::TcpV6 as u8 => (false, true, true),
            _ if kind == Gso::Udp as u8 => (true, true, false),
            _ => return Err(TrainError::Kind(kind)),
        };
        let ethernet = Ethernet::check(frame)?;
        let packet = ethernet.payload();
        let (offset, found, is_v6) = match ethernet.ethertype() {
            ethertype::IPV4 if wants_v4 => ipv4(packet).map(|(offset, found)| (offset, found, false))?,
            ethertype::IPV6 if wants_v6 => ipv6(packet).map(|(offset, found)| (offset, found, true))?,
            value => return Err(TrainError::Protocol { kind, field: "EtherType", value }),
        };
        let wanted = if is_tcp { protocol::TCP } else { protocol::UDP };
        if found != wanted {
            return Err(TrainError::Protocol { kind, field: "transport protocol", value: u16::from(found) });
        }
        let l3 = frame.len() - packet.len();
        let rest = &packet[offset..];
        let header_len = if is_tcp {
            Tcp::check(rest)?.header_len()
        } else {
            let says = usize::from(Udp::check(rest)?.length());
            same_length("UDP length", says, rest.len())?;
            8
        };
        Ok(Self { l3, l4: l3 + offset, payload: l3 + offset + header_len, is_v6, is_tcp })
    }

    /// Offset of the checksum from the transport header.
    fn checksum(&self) -> usize {
        if self.is_tcp { TCP_CHECKSUM } else { UDP_CHECKSUM }
    }
}

fn same_length(field: &'static str, says: usize, has: usize) -> Result<(), TrainError> {
    if says == has { Ok(()) } else { Err(TrainError::Length { field, says, has }) }
}

/// Offset and protocol of the transport header.
fn ipv4(packet: &[u8]) -> Result<(usize, u8), TrainError> {
    let ip = Ipv4::check(packet)?;
    same_length("IPv4 total length", usize::from(ip.total_len()), packet.len())?;
    if ip.is_fragment() {
        return Err(TrainError::Unfit("be an IP fragment"));
    }
    Ok((ip.header_len(), ip.protocol()))
}

/// Offset and protocol of the transport header.
fn ipv6(packet: &[u8]) -> Result<(usize, u8), TrainError> {
    let ip = Ipv6::check(packet)?;
    same_length("IPv6 payload length", usize::from(ip.payload_len()), packet.len() - 40)?;
    let found = ip.transport().ok_or(TrainError::Unfit("lack a transport header"))?;
    if found.is_fragment {
        return Err(TrainError::Unfit("be an IP fragment"));
    }
    // The checksum would cover an address in the routing header (RFC 8200, 8.1).
    if found.is_routed {
        return Err(TrainError::Unfit("have a routing header"));
    }
    Ok((found.offset, found.protocol))
}

/// Makes a packet of the segments `first..first + count` of a train: an ordinary packet if `count` is one,
/// else a shorter train. The train is not changed. None if the pool is full.
///
/// The headers are those that the sender would have written for these segments alone, as with Linux's
/// segmentation offload: lengths, IPv4 identification and header checksum, TCP sequence number, FIN and PSH
/// only on the train's last segment, CWR only on its first. The transport checksum is partial, with the new
/// pseudo-header's sum in its place, even if the train's own was complete: a driver completes it or passes it
/// on.
///
/// # Panics
/// If the packet was not accepted by [`validate_train`], or has no such segments.
pub fn segment(pool: &mut Pool, train: Handle, first: u16, count: u16) -> Option<Handle> {
    let meta = *pool.meta(train);
    let end = u32::from(first) + u32::from(count);
    let whole = meta.train().filter(|train| count > 0 && end <= u32::from(train.segments));
    let whole = whole.expect("no such segments");
    let layout = Layout::of(whole.gso, pool.data(train)).expect("a train is checked when it comes in");
    let gso_size = usize::from(whole.gso_size);
    let from = layout.payload + usize::from(first) * gso_size;
    let to = (layout.payload + end as usize * gso_size).min(meta.len as usize);

    let made = pool.alloc(layout.payload + to - from)?;
    pool.copy(train, 0..layout.payload, made, 0);
    pool.copy(train, from..to, made, layout.payload);
    let (facts, frame) = pool.parts_mut(made);
    inherit(facts, &meta, &layout, count);
    layout.correct_ip(frame, first);
    if layout.is_tcp {
        let skipped = u32::from(first) * u32::from(whole.gso_size);
        correct_tcp(&mut frame[layout.l4..], skipped, end == u32::from(meta.segments));
    }
    layout.open_checksum(frame);
    Some(made)
}

/// Sets the metadata of the new packet, `facts`, from that of the train.
fn inherit(facts: &mut Meta, train: &Meta, layout: &Layout, count: u16) {
    (facts.in_port, facts.out_port, facts.path) = (train.in_port, train.out_port, train.path);
    (facts.arrival, facts.place, facts.seq) = (train.arrival, train.place, train.seq);
    facts.set_leave(train.leave());
    facts.set_band(train.band());
    facts.set_open_checksum(layout.l4 as u16, layout.checksum() as u16);
    if let (Some(whole), true) = (train.train(), count > 1) {
        facts.set_train(Train { segments: count, ..whole });
    }
}

impl Layout {
    /// Corrects the IP header of a packet that begins with segment `first`.
    fn correct_ip(&self, frame: &mut [u8], first: u16) {
        let len = frame.len() - self.l3;
        let header = &mut frame[self.l3..self.l4];
        if self.is_v6 {
            put16(header, 4, (len - 40) as u16);
            return;
        }
        put16(header, 2, len as u16);
        put16(header, 4, u16::from_be_bytes(bytes_at(header, 4)).wrapping_add(first));
        put16(header, 10, 0);
        put16(header, 10, Sum::ZERO.bytes(header).checksum());
    }

    /// Writes the pseudo-header's sum into the checksum field, and the length into a UDP header.
    fn open_checksum(&self, frame: &mut [u8]) {
        let (head, transport) = frame.split_at_mut(self.l4);
        let ip = &head[self.l3..];
        let len = transport.len();
        let protocol = if self.is_tcp { protocol::TCP } else { protocol::UDP };
        let sum = if self.is_v6 {
            let address = |at| u128::from_be_bytes(bytes_at(ip, at));
            pseudo_v6(address(8), address(24), protocol, len as u32)
        } else {
            let address = |at| u32::from_be_bytes(bytes_at(ip, at));
            pseudo_v4(address(12), address(16), protocol, len as u16)
        };
        if !self.is_tcp {
            put16(transport, 4, len as u16);
        }
        put16(transport, self.checksum(), sum.folded());
    }
}

/// Corrects a TCP header that lies `skipped` payload bytes after the train's first.
fn correct_tcp(header: &mut [u8], skipped: u32, is_last: bool) {
    let sequence = u32::from_be_bytes(bytes_at(header, 4));
    header[4..8].copy_from_slice(&sequence.wrapping_add(skipped).to_be_bytes());
    if !is_last {
        header[13] &= !(tcp_flags::FIN | tcp_flags::PSH);
    }
    if skipped > 0 {
        header[13] &= !tcp_flags::CWR;
    }
}

fn bytes_at<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    std::array::from_fn(|index| bytes[at + index])
}

fn put16(bytes: &mut [u8], at: usize, value: u16) {
    bytes[at..at + 2].copy_from_slice(&value.to_be_bytes());
}
