//! ARP for IPv4 over Ethernet (RFC 826).

use crate::ethernet::ethertype;
use crate::malformed::{Malformed, be16, be32, part, split};

const LEN: usize = 28;

/// An ARP message: `operation` is 1 to request the target's Ethernet address, 2 to announce the sender's.
pub fn arp_message(operation: u16, sender: ([u8; 6], u32), target: ([u8; 6], u32)) -> [u8; LEN] {
    let mut message = [0; LEN];
    message[..6].copy_from_slice(&[0, 1, 8, 0, 6, 4]);
    message[6..8].copy_from_slice(&operation.to_be_bytes());
    message[8..14].copy_from_slice(&sender.0);
    message[14..18].copy_from_slice(&sender.1.to_be_bytes());
    message[18..24].copy_from_slice(&target.0);
    message[24..].copy_from_slice(&target.1.to_be_bytes());
    message
}

/// A checked ARP message.
#[derive(Debug, Clone, Copy)]
pub struct Arp<'a>(&'a [u8; LEN]);

impl<'a> Arp<'a> {
    /// Reads what follows an Ethernet header.
    ///
    /// # Errors
    /// Shorter than 28 bytes, or not about IPv4 over Ethernet.
    pub fn check(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let (message, _) = split::<LEN>(bytes, "ARP")?;
        let (hardware, protocol) = (be16::<0, _>(message), be16::<2, _>(message));
        let sizes = be16::<4, _>(message);
        let wrong = |field, value: u16, wanted| {
            Err(Malformed::Field { header: "ARP", field, value: u32::from(value), wanted })
        };
        match (hardware, protocol, sizes) {
            (1, ethertype::IPV4, 0x0604) => Ok(Self(message)),
            (1, ethertype::IPV4, _) => wrong("address lengths", sizes, "1540 (6 and 4)"),
            (1, _, _) => wrong("protocol type", protocol, "2048 (IPv4)"),
            _ => wrong("hardware type", hardware, "1 (Ethernet)"),
        }
    }

    /// The operation: 1 request, 2 reply.
    pub fn operation(&self) -> u16 {
        be16::<6, _>(self.0)
    }

    /// The sender's Ethernet and IPv4 address.
    pub fn sender(&self) -> ([u8; 6], u32) {
        (part::<8, 6, _>(self.0), be32::<14, _>(self.0))
    }

    /// The target's Ethernet (zero in a request) and IPv4 address.
    pub fn target(&self) -> ([u8; 6], u32) {
        (part::<18, 6, _>(self.0), be32::<24, _>(self.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const REQUEST: [u8; LEN] = [
        0, 1, 8, 0, 6, 4, 0, 1, 2, 0, 0, 0, 0, 1, 10, 0, 0, 1, 0, 0, 0, 0, 0, 0, 10, 0, 0, 2, //
    ];

    #[test]
    fn reads_a_request() {
        let arp = Arp::check(&REQUEST).unwrap();
        assert_eq!(arp.operation(), 1);
        assert_eq!(arp.sender(), ([2, 0, 0, 0, 0, 1], 0x0a00_0001));
        assert_eq!(arp.target(), ([0; 6], 0x0a00_0002));
        assert_eq!(arp_message(1, arp.sender(), arp.target()), REQUEST);
    }

    #[test]
    fn refuses_what_it_can_not_read() {
        assert!(Arp::check(&REQUEST[..27]).unwrap_err().to_string().contains("needs 28 bytes"));
        for (at, field) in [(1, "hardware type"), (2, "protocol type"), (4, "address lengths")] {
            let mut message = REQUEST;
            message[at] = 0x77;
            assert!(Arp::check(&message).unwrap_err().to_string().contains(field));
        }
    }
}
