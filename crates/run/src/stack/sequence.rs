//! The sequence numbers of packets that only acknowledge.
//!
//! smoltcp goes back to the oldest unanswered byte when its retransmission timer expires, and gives its
//! acknowledgements that number. An end that has already received what follows refuses such a packet, as it
//! must (RFC 9293, section 3.10.7.4), and with it what the packet acknowledges. If the acknowledgements of
//! both ends were lost at once, both go back, each refuses the other's, and nothing moves ever again.
//! RFC 9293 wants SND.NXT there, the highest number that was sent; so does a reset. That is put in here.

use std::collections::HashMap;

use smoltcp::wire::{IpProtocol, Ipv4Packet, TcpPacket, TcpSeqNumber};

/// The highest sequence number that each connection of an end has sent.
///
/// Connections are known by the ports at both sides, of which one is always the service's: there are never
/// more than dynamic ports.
#[derive(Default)]
pub struct Sequences(HashMap<(u16, u16), TcpSeqNumber>);

impl Sequences {
    /// Corrects the sequence number of an IPv4 packet that is about to be sent, if it carries nothing.
    pub fn correct(&mut self, packet: &mut [u8]) {
        let Ok(mut packet) = Ipv4Packet::new_checked(packet) else { return };
        let (from, to) = (packet.src_addr(), packet.dst_addr());
        if packet.next_header() != IpProtocol::Tcp {
            return;
        }
        let Ok(mut segment) = TcpPacket::new_checked(packet.payload_mut()) else { return };
        let connection = (segment.src_port(), segment.dst_port());
        let end = segment.seq_number() + segment.segment_len();
        if segment.syn() {
            self.0.insert(connection, end);
            return;
        }
        let Some(highest) = self.0.get_mut(&connection) else { return };
        if segment.segment_len() > 0 {
            // They have no greatest: they go round.
            if end > *highest {
                *highest = end;
            }
        } else if segment.seq_number() < *highest {
            segment.set_seq_number(*highest);
            segment.fill_checksum(&from.into(), &to.into());
        }
    }
}
