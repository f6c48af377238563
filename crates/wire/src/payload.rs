//! Where the headers of a frame end.

use crate::{Ethernet, Ipv4, Ipv6, Tcp, ethertype, l3_offset, protocol};

/// Length of a UDP header, and of the part that all ICMP messages share.
const SHORT_HEADER: usize = 8;

/// The offset of the payload behind the Ethernet, IP and TCP, UDP or ICMP headers of a frame, as far as they
/// can be read; at most the frame's length. IPv6 extension headers are treated as headers.
pub fn payload_offset(frame: &[u8]) -> usize {
    let network = l3_offset(frame);
    let Ok(ethernet) = Ethernet::check(frame) else { return network };
    let (kind, transport) = match ethernet.ethertype() {
        ethertype::IPV4 => match Ipv4::check(ethernet.payload()) {
            Ok(ip) if ip.is_later_fragment() => return network + ip.header_len(),
            Ok(ip) => (ip.protocol(), network + ip.header_len()),
            Err(_) => return network,
        },
        ethertype::IPV6 => {
            let Ok(ip) = Ipv6::check(ethernet.payload()) else { return network };
            let Some(transport) = ip.transport() else { return network + ip.headers_len() };
            (transport.protocol, network + transport.offset)
        }
        _ => return network,
    };
    let after = frame.get(transport..).unwrap_or_default();
    let header = match kind {
        protocol::TCP => Tcp::check(after).map_or(0, |tcp| tcp.header_len()),
        protocol::UDP | protocol::ICMP | protocol::ICMPV6 => SHORT_HEADER,
        _ => 0,
    };
    (transport + header).min(frame.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_end_where_the_payload_begins() {
        let mut udp = vec![0; 60];
        udp[12] = 8;
        udp[14..24].copy_from_slice(&[0x45, 0, 0, 46, 0, 0, 0, 0, 64, protocol::UDP]);
        assert_eq!(payload_offset(&udp), 14 + 20 + 8);
        let mut tcp = udp.clone();
        tcp[23] = protocol::TCP;
        tcp[46] = 0x60;
        assert_eq!(payload_offset(&tcp), 14 + 20 + 24);
        // The second fragment has no transport header.
        tcp[21] = 1;
        assert_eq!(payload_offset(&tcp), 34);
        // Nor have later fragments of IPv6, and what is encrypted can't be read.
        let mut six = vec![0; 100];
        six[12..15].copy_from_slice(&[0x86, 0xdd, 0x60]);
        (six[19], six[20]) = (46, protocol::FRAGMENT);
        six[54..58].copy_from_slice(&[protocol::UDP, 0, 0, 8]);
        assert_eq!(payload_offset(&six), 14 + 40 + 8);
        (0..100).for_each(|len| assert!(payload_offset(&six[..len]) <= len));
        six[20] = protocol::ENCRYPTED;
        assert_eq!(payload_offset(&six), 14 + 40);
        let mut arp = vec![0; 42];
        arp[12..14].copy_from_slice(&[8, 6]);
        assert_eq!(payload_offset(&arp), 14);
        for len in 0..60 {
            assert!(payload_offset(&udp[..len]) <= len);
        }
    }
}
