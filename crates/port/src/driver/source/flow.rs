//! Flows and their frames.
//!
//! The payload begins with 18 bytes in network order: a mark derived from the flow's number (2), that number
//! (2), the packet's sequence number (6) and its due time (8); zeros follow. So a frame fits in 60 bytes, the
//! minimum of Ethernet.

use longwire_random::process::Model;
use longwire_units::Nanos;
use longwire_wire::checksum::{Sum, pseudo_v4, pseudo_v6};
use std::net::{IpAddr, SocketAddr};
use thiserror::Error;

/// Bytes of the addresses of Ethernet, and of its whole header.
const ADDRESSES: usize = 12;
const ETHERNET: usize = 14;
const UDP: usize = 8;
const TAG: usize = 18;
const MARK: u16 = 0x4c57;
const UDP_PROTOCOL: u8 = 17;

/// The longest frame: the longest IPv4 packet.
const MAX_FRAME: usize = ETHERNET + 65_535;

/// A flow of UDP datagrams.
#[derive(Debug, Clone, PartialEq)]
pub struct Flow {
    /// The name by which it is changed; see [`Port::change_source`](longwire_block::Port::change_source).
    pub name: String,
    /// Its number among the flows of the run, from 0.
    pub id: u16,
    /// Destination address of its frames.
    pub destination_mac: [u8; 6],
    /// Source address of its frames.
    pub source_mac: [u8; 6],
    /// Source address and port.
    pub source: SocketAddr,
    /// Destination address and port, of the same family.
    pub destination: SocketAddr,
    /// Times of its packets, from the start, and their lengths: bytes of a frame from its Ethernet header on,
    /// without FCS, from 60 (IPv4) or 80 (IPv6) to 65 549. Shorter packets of a replay are sent with the
    /// minimum length.
    pub model: Model,
    /// Start time on the engine's clock.
    pub start: Nanos,
    /// End time: no packet is sent at this time or later.
    pub until: Nanos,
    /// Most packets.
    pub count: u64,
    /// Whether it sends from the start, and not only after a change.
    pub up: bool,
}

/// An invalid flow.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum FlowError {
    /// Source and destination are of different families.
    #[error(
        "flow {id}: source {source_address} and destination {destination} must both be IPv4 or both IPv6"
    )]
    Family {
        /// The flow.
        id: u16,
        /// Its source.
        source_address: IpAddr,
        /// Its destination.
        destination: IpAddr,
    },
    /// The frame's length is out of range.
    #[error(
        "flow {id}: its frames have {bytes} bytes; there must be {min} to {max} (Ethernet to payload, \
         without FCS)"
    )]
    FrameBytes {
        /// The flow.
        id: u16,
        /// The request.
        bytes: usize,
        /// The least.
        min: usize,
        /// The most.
        max: usize,
    },
    /// Its number is not below the number of flows.
    #[error("flow {id}: its number must be below the number of flows, {count}")]
    Id {
        /// The flow.
        id: u16,
        /// Number of flows of the run.
        count: u16,
    },
}

/// A flow's frame up to its tag, without lengths, sequence number, time and checksums.
pub(super) struct Template {
    head: Box<[u8]>,
    udp: usize,
    /// Checksums of the words that never change: in the IPv4 header, and under the UDP checksum.
    ip_sum: Option<Sum>,
    udp_sum: Sum,
}

/// A frame of a flow, as received.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FlowFrame {
    /// Unchanged.
    Intact { flow: u16, sequence: u64, time: Nanos },
    /// Some of its bits have changed, but its flow is certain.
    Corrupt { flow: u16 },
}

impl Template {
    pub(super) fn new(flow: &Flow) -> Result<Self, FlowError> {
        let (source_address, destination) = (flow.source.ip(), flow.destination.ip());
        let mixed = FlowError::Family { id: flow.id, source_address, destination };
        let (ip, pseudo) = ip(source_address, destination).ok_or(mixed)?;
        let udp = ADDRESSES + ip.len();
        let min = udp + UDP + TAG;
        let size = flow.model.largest() as usize;
        let replays = matches!(flow.model, Model::Replay { .. });
        if size > MAX_FRAME || (size < min && !replays) {
            return Err(FlowError::FrameBytes { id: flow.id, bytes: size, min, max: MAX_FRAME });
        }
        let mut head = vec![0; min];
        head[..6].copy_from_slice(&flow.destination_mac);
        head[6..ADDRESSES].copy_from_slice(&flow.source_mac);
        head[ADDRESSES..udp].copy_from_slice(&ip);
        head[udp..udp + 2].copy_from_slice(&flow.source.port().to_be_bytes());
        head[udp + 2..udp + 4].copy_from_slice(&flow.destination.port().to_be_bytes());
        head[udp + UDP..udp + UDP + 2].copy_from_slice(&mark(flow.id).to_be_bytes());
        head[udp + UDP + 2..udp + UDP + 4].copy_from_slice(&flow.id.to_be_bytes());
        let ip_sum = flow.source.is_ipv4().then(|| Sum::ZERO.bytes(&head[ETHERNET..udp]));
        Ok(Self { ip_sum, udp_sum: pseudo.bytes(&head[udp..]), head: head.into(), udp })
    }

    /// Length of a frame for a requested `size` in bytes.
    pub(super) fn len(&self, size: u32) -> usize {
        (size as usize).clamp(self.head.len(), MAX_FRAME)
    }

    /// Writes the packet with this sequence number, due at `time`, into `frame` of [`Template::len`] bytes.
    pub(super) fn write(&self, frame: &mut [u8], sequence: u64, time: Nanos) {
        let datagram = (frame.len() - self.udp) as u16;
        let (head, payload) = frame.split_at_mut(self.head.len());
        head.copy_from_slice(&self.head);
        payload.fill(0);
        match self.ip_sum {
            Some(sum) => {
                let total = datagram + 20;
                head[ETHERNET + 2..ETHERNET + 4].copy_from_slice(&total.to_be_bytes());
                let checksum = sum.short(total).checksum();
                head[ETHERNET + 10..ETHERNET + 12].copy_from_slice(&checksum.to_be_bytes());
            }
            None => head[ETHERNET + 4..ETHERNET + 6].copy_from_slice(&datagram.to_be_bytes()),
        }
        head[self.udp + 4..self.udp + 6].copy_from_slice(&datagram.to_be_bytes());
        let tag = self.udp + UDP;
        head[tag + 4..tag + 10].copy_from_slice(&sequence.to_be_bytes()[2..]);
        head[tag + 10..tag + 18].copy_from_slice(&time.0.to_be_bytes());
        // The length is in the pseudo-header and in the UDP header. A sum of 0 is sent as all ones: 0 means
        // no checksum (RFC 768), which IPv6 forbids (RFC 8200, section 8.1).
        let sum = self.udp_sum.short(datagram).short(datagram);
        let checksum = match sum.bytes(&head[tag + 4..tag + 18]).checksum() {
            0 => 0xffff,
            checksum => checksum,
        };
        head[self.udp + 6..self.udp + 8].copy_from_slice(&checksum.to_be_bytes());
    }
}

impl FlowFrame {
    /// Parses a frame of `wire_len` bytes, if it belongs to a flow. A truncated frame is judged by what is
    /// there.
    pub(super) fn read(frame: &[u8], wire_len: u32) -> Option<Self> {
        [ETHERNET + 20, ETHERNET + 40].into_iter().find_map(|udp| {
            let tag = frame.get(udp + UDP..udp + UDP + TAG)?;
            let flow = number(&tag[2..4]) as u16;
            if number(&tag[..2]) != u64::from(mark(flow)) {
                return None;
            }
            let (sequence, time) = (number(&tag[4..10]), Nanos(number(&tag[10..])));
            Some(match is_whole(frame, udp, wire_len as usize) {
                true => Self::Intact { flow, sequence, time },
                false => Self::Corrupt { flow },
            })
        })
    }
}

/// The mark of a flow's frames: a bit of the flow's number changes several bits of it, so that errors in
/// either are detected.
fn mark(flow: u16) -> u16 {
    MARK ^ flow.wrapping_mul(0x9e37)
}

fn number(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0, |n, &byte| n << 8 | u64::from(byte))
}

/// Whether a frame with its UDP header at `udp` is unchanged: header checksum, lengths, UDP checksum, and
/// zeros after the tag. Other fields of its IP header may change on the way.
fn is_whole(frame: &[u8], udp: usize, wire_len: usize) -> bool {
    let ip = &frame[ETHERNET..udp];
    let word = |at: usize| number(&frame[at..at + 2]) as usize;
    let datagram = word(udp + 4);
    let pseudo = if udp == ETHERNET + 20 {
        let goes = frame[12..15] == [0x08, 0x00, 0x45] && ip[9] == UDP_PROTOCOL;
        if !goes || Sum::ZERO.bytes(ip).checksum() != 0 || word(ETHERNET + 2) != datagram + 20 {
            return false;
        }
        pseudo_v4(number(&ip[12..16]) as u32, number(&ip[16..20]) as u32, UDP_PROTOCOL, datagram as u16)
    } else {
        let goes = frame[12..14] == [0x86, 0xdd] && ip[0] >> 4 == 6 && ip[6] == UDP_PROTOCOL;
        if !goes || word(ETHERNET + 4) != datagram {
            return false;
        }
        let address = |at: usize| ip[at..at + 16].iter().fold(0, |n, &byte| n << 8 | u128::from(byte));
        pseudo_v6(address(8), address(24), UDP_PROTOCOL, datagram as u32)
    };
    let (head, rest) = frame[udp..].split_at(UDP + TAG);
    udp + datagram == wire_len && pseudo.bytes(head).checksum() == 0 && is_zero(rest)
}

/// Whether all bytes are zero. Blocks are looked at whole, so that the compiler uses wide registers.
fn is_zero(bytes: &[u8]) -> bool {
    let (blocks, rest) = bytes.as_chunks::<64>();
    let any = |bytes: &[u8]| bytes.iter().fold(0, |any, byte| any | byte);
    blocks.iter().all(|block| any(block) == 0) && any(rest) == 0
}

/// EtherType and IP header without length and checksum, and the sum over the pseudo-header without length.
/// None if the addresses are of different families.
fn ip(source: IpAddr, destination: IpAddr) -> Option<(Vec<u8>, Sum)> {
    match (source, destination) {
        (IpAddr::V4(source), IpAddr::V4(destination)) => {
            // Do not fragment; 64 hops.
            let fixed = [0x08, 0x00, 0x45, 0, 0, 0, 0, 0, 0x40, 0, 64, UDP_PROTOCOL, 0, 0];
            let header = [&fixed[..], &source.octets(), &destination.octets()].concat();
            Some((header, pseudo_v4(source.to_bits(), destination.to_bits(), UDP_PROTOCOL, 0)))
        }
        (IpAddr::V6(source), IpAddr::V6(destination)) => {
            let fixed = [0x86, 0xdd, 0x60, 0, 0, 0, 0, 0, UDP_PROTOCOL, 64];
            let header = [&fixed[..], &source.octets(), &destination.octets()].concat();
            Some((header, pseudo_v6(source.to_bits(), destination.to_bits(), UDP_PROTOCOL, 0)))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use longwire_random::process::{Interval, Packets, Speed};
    use proptest::prelude::*;
    use std::sync::Arc;

    fn flow(source: &str, destination: &str, size: u32) -> Flow {
        Flow {
            name: "x".into(),
            id: 7,
            destination_mac: [2, 0, 0, 0, 0, 2],
            source_mac: [2, 0, 0, 0, 0, 1],
            source: source.parse().unwrap(),
            destination: destination.parse().unwrap(),
            model: Model::Cbr { every: Interval::of(Nanos(1)).unwrap(), size },
            start: Nanos::ZERO,
            until: Nanos::NEVER,
            count: 1,
            up: true,
        }
    }

    /// The sum of 16-bit words of RFC 1071.
    fn words(bytes: &[u8]) -> u64 {
        bytes.chunks(2).map(|pair| u64::from(pair[0]) << 8 | u64::from(*pair.get(1).unwrap_or(&0))).sum()
    }

    fn fold(sum: u64) -> u64 {
        if sum > 0xffff { fold((sum & 0xffff) + (sum >> 16)) } else { sum }
    }

    #[test]
    fn frames_are_right_to_the_last_checksum() {
        for (source, destination, bytes) in [
            ("10.0.0.1:5000", "10.0.0.2:6000", 60),
            ("10.0.0.1:5000", "10.0.0.2:6000", 1511),
            ("[fd00::1]:5000", "[fd00::2]:6000", 80),
            ("[fd00::1]:5000", "[fd00::2]:6000", 1513),
        ] {
            let template = Template::new(&flow(source, destination, bytes)).unwrap();
            let bytes = template.len(bytes);
            let mut frame = vec![0xee; bytes];
            template.write(&mut frame, 0x0001_0203_0405, Nanos(0x1122_3344_5566_7788));
            let time = Nanos(0x1122_3344_5566_7788);
            let wanted = FlowFrame::Intact { flow: 7, sequence: 0x0001_0203_0405, time };
            assert_eq!(FlowFrame::read(&frame, bytes as u32), Some(wanted));
            let (pseudo, udp) = if source.starts_with('[') {
                assert_eq!(usize::from(u16::from_be_bytes([frame[18], frame[19]])), bytes - 54);
                (words(&frame[22..54]), 54)
            } else {
                assert_eq!(fold(words(&frame[14..34])), 0xffff);
                assert_eq!(usize::from(u16::from_be_bytes([frame[16], frame[17]])), bytes - 14);
                (words(&frame[26..34]), 34)
            };
            let length = u64::from(u16::from_be_bytes([frame[udp + 4], frame[udp + 5]]));
            assert_eq!(length as usize, bytes - udp);
            assert_eq!(fold(pseudo + 17 + length + words(&frame[udp..])), 0xffff);
        }
    }

    #[test]
    fn refuses_what_cannot_be() {
        let error = |source, destination, bytes| {
            Template::new(&flow(source, destination, bytes)).err().map(|error| error.to_string()).unwrap()
        };
        assert!(error("10.0.0.1:1", "[fd00::2]:2", 100).contains("both be IPv4 or both IPv6"));
        assert!(error("10.0.0.1:1", "10.0.0.2:2", 59).contains("60 to 65549"));
        assert!(error("[fd00::1]:1", "[fd00::2]:2", 79).contains("80 to 65549"));
        assert!(error("10.0.0.1:1", "10.0.0.2:2", 65_550).contains("65550 bytes"));
        let packets = Arc::new(Packets::new(vec![(Nanos(0), 1), (Nanos(1), 2000)]));
        let replay = Model::Replay { packets, speed: Speed::default() };
        let template =
            Template::new(&Flow { model: replay, ..flow("[fd00::1]:1", "[fd00::2]:2", 60) }).unwrap();
        assert_eq!((template.len(1), template.len(80), template.len(2000)), (80, 80, 2000));
    }

    /// For any bit from the EtherType on, the frame is attributed to its own flow or to none.
    #[test]
    fn a_frame_with_a_wrong_bit_is_never_whole() {
        for (source, destination, bytes) in
            [("10.0.0.1:5000", "10.0.0.2:6000", 200), ("[fd00::1]:5000", "[fd00::2]:6000", 200)]
        {
            let template = Template::new(&flow(source, destination, bytes)).unwrap();
            let mut frame = vec![0; 200];
            template.write(&mut frame, 5, Nanos(6));
            let mut unknown = 0;
            for bit in 12 * 8..frame.len() * 8 {
                // No checksum covers the traffic class, flow label and hop limit of IPv6.
                let free = source.starts_with('[') && ((116..144).contains(&bit) || bit / 8 == 21);
                frame[bit / 8] ^= 0x80 >> (bit % 8);
                match FlowFrame::read(&frame, 200) {
                    None => unknown += 1,
                    Some(FlowFrame::Corrupt { flow: 7 }) => {}
                    other => {
                        assert!(free && matches!(other, Some(FlowFrame::Intact { .. })), "{bit}: {other:?}");
                    }
                }
                frame[bit / 8] ^= 0x80 >> (bit % 8);
            }
            assert_eq!(unknown, 32, "the mark and the flow's number");
        }
    }

    proptest! {
        #[test]
        fn reading_never_panics(frame in proptest::collection::vec(any::<u8>(), 0..100), wire_len: u32) {
            FlowFrame::read(&frame, wire_len);
        }
    }
}
