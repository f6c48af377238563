//! Ethernet headers with up to two VLAN tags (IEEE 802.3, 802.1Q, 802.1ad).

use crate::malformed::{Malformed, be16, part, split};

/// EtherTypes that Longwire looks at.
pub mod ethertype {
    /// IPv4.
    pub const IPV4: u16 = 0x0800;
    /// ARP.
    pub const ARP: u16 = 0x0806;
    /// An 802.1Q tag.
    pub const VLAN: u16 = 0x8100;
    /// IPv6.
    pub const IPV6: u16 = 0x86dd;
    /// An 802.1ad service tag.
    pub const SERVICE_VLAN: u16 = 0x88a8;
}

const HEADER: usize = 14;
const TAG: usize = 4;

/// The offset of what follows the Ethernet header and up to two VLAN tags; the frame's length if it ends
/// earlier.
#[inline]
pub fn l3_offset(frame: &[u8]) -> usize {
    let mut offset = HEADER;
    for _ in 0..2 {
        match frame.get(offset - 2..offset) {
            Some(&[high, low]) if is_tag(u16::from_be_bytes([high, low])) => offset += TAG,
            _ => break,
        }
    }
    offset.min(frame.len())
}

#[inline]
fn is_tag(ethertype: u16) -> bool {
    matches!(ethertype, ethertype::VLAN | ethertype::SERVICE_VLAN)
}

/// A checked Ethernet header.
#[derive(Debug, Clone, Copy)]
pub struct Ethernet<'a> {
    header: &'a [u8; HEADER],
    ethertype: u16,
    payload: &'a [u8],
}

impl<'a> Ethernet<'a> {
    /// Reads the header of `frame`, which begins with the destination address.
    ///
    /// # Errors
    /// The frame ends before the header or one of its first two tags does.
    #[inline]
    pub fn check(frame: &'a [u8]) -> Result<Self, Malformed> {
        let (header, mut payload) = split::<HEADER>(frame, "Ethernet")?;
        let mut ethertype = be16::<12, _>(header);
        for _ in 0..2 {
            if !is_tag(ethertype) {
                break;
            }
            let (bytes, rest) = split::<TAG>(payload, "VLAN")?;
            ethertype = be16::<2, _>(bytes);
            payload = rest;
        }
        Ok(Self { header, ethertype, payload })
    }

    /// The destination address.
    pub fn destination(&self) -> [u8; 6] {
        part::<0, 6, _>(self.header)
    }

    /// The source address.
    pub fn source(&self) -> [u8; 6] {
        part::<6, 6, _>(self.header)
    }

    /// The EtherType behind the tags; below 1536 it is an 802.3 length.
    pub fn ethertype(&self) -> u16 {
        self.ethertype
    }

    /// What follows the header and its tags, padding included.
    pub fn payload(&self) -> &'a [u8] {
        self.payload
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(ethertypes: &[u16]) -> Vec<u8> {
        let mut frame = vec![1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12];
        for (tag, ethertype) in ethertypes.iter().enumerate() {
            if tag > 0 {
                frame.extend([0, tag as u8]);
            }
            frame.extend(ethertype.to_be_bytes());
        }
        frame.push(0xaa);
        frame
    }

    #[test]
    fn finds_what_follows_the_tags() {
        let table = [
            (&[0x0800][..], 14, 0x0800),
            (&[0x8100, 0x86dd][..], 18, 0x86dd),
            (&[0x88a8, 0x8100, 0x0800][..], 22, 0x0800),
            // A third tag is not parsed.
            (&[0x88a8, 0x8100, 0x8100, 0x0800][..], 22, 0x8100),
        ];
        for (ethertypes, offset, ethertype) in table {
            let frame = frame(ethertypes);
            let view = Ethernet::check(&frame).unwrap();
            assert_eq!(l3_offset(&frame), offset);
            assert_eq!(view.ethertype(), ethertype);
            assert_eq!(view.payload(), &frame[offset..]);
            assert_eq!((view.destination(), view.source()), ([1, 2, 3, 4, 5, 6], [7, 8, 9, 10, 11, 12]));
        }
    }

    #[test]
    fn short_frames_are_refused() {
        let whole = frame(&[0x88a8, 0x8100, 0x0800]);
        for len in 0..22 {
            assert!(Ethernet::check(&whole[..len]).is_err());
            assert_eq!(l3_offset(&whole[..len]), len);
        }
    }
}
