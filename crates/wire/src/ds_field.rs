//! The DS field and ECN bits of an IP header: six bits of DSCP (RFC 2474, section 3) and two of ECN (RFC
//! 3168, section 5). In IPv4 this is the second byte, in IPv6 the traffic class.

use crate::checksum::update;
use crate::{ethertype, l3_offset};

/// The two bits of ECN.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ecn {
    /// Not ECN-capable, or not IP.
    NotCapable,
    /// ECN-capable, from a sender with a scalable response to marks: the L4S identifier (RFC 9331, section
    /// 2).
    Ect1,
    /// ECN-capable.
    Ect0,
    /// Congestion experienced.
    Ce,
}

/// The DSCP and ECN byte of an Ethernet frame; none if it is not IP.
#[inline]
pub fn ds_field(frame: &[u8]) -> Option<u8> {
    let (at, version) = ip(frame)?;
    Some(if version == 4 { frame[at + 1] } else { frame[at] << 4 | frame[at + 1] >> 4 })
}

/// The ECN bits of a frame.
#[inline]
pub fn ecn(frame: &[u8]) -> Ecn {
    match ds_field(frame).unwrap_or(0) & 3 {
        0 => Ecn::NotCapable,
        1 => Ecn::Ect1,
        2 => Ecn::Ect0,
        _ => Ecn::Ce,
    }
}

/// Sets CE on a frame. Returns false if it is not IP or not ECN-capable; a frame that is already marked is
/// fine.
pub fn mark_ce(frame: &mut [u8]) -> bool {
    ds_field(frame).is_some_and(|field| field & 3 != 0 && set(frame, field | 3))
}

/// Sets the DSCP of a frame to `dscp` (0 to 63). Returns false if it is not IP.
pub fn set_dscp(frame: &mut [u8], dscp: u8) -> bool {
    ds_field(frame).is_some_and(|field| set(frame, dscp << 2 | field & 3))
}

/// Writes the byte, and updates the header checksum of IPv4 (RFC 1624).
fn set(frame: &mut [u8], field: u8) -> bool {
    let Some((at, version)) = ip(frame) else { return false };
    if version == 4 {
        let old = u16::from_be_bytes([frame[at], frame[at + 1]]);
        let new = u16::from_be_bytes([frame[at], field]);
        frame[at + 1] = field;
        let checksum = u16::from_be_bytes([frame[at + 10], frame[at + 11]]);
        let [high, low] = update(checksum, old, new).to_be_bytes();
        (frame[at + 10], frame[at + 11]) = (high, low);
    } else {
        frame[at] = frame[at] & 0xf0 | field >> 4;
        frame[at + 1] = frame[at + 1] & 0x0f | field << 4;
    }
    true
}

/// Offset and version of the IP header; none without a whole fixed header of a known version.
#[inline]
fn ip(frame: &[u8]) -> Option<(usize, u8)> {
    let at = l3_offset(frame);
    let kind = frame.get(at.checked_sub(2)?..at)?;
    match (u16::from_be_bytes([kind[0], kind[1]]), frame.get(at)? >> 4) {
        (ethertype::IPV4, 4) if frame.len() >= at + 20 => Some((at, 4)),
        (ethertype::IPV6, 6) if frame.len() >= at + 40 => Some((at, 6)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checksum::Sum;

    /// An IPv4 header with a correct checksum, DSCP 46 and ECT(0).
    fn v4() -> Vec<u8> {
        let mut frame = vec![0; 34];
        frame[12] = 8;
        frame[14..34]
            .copy_from_slice(&[0x45, 0xba, 0, 20, 1, 2, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
        let sum = Sum::default().bytes(&frame[14..34]).checksum().to_be_bytes();
        frame[24..26].copy_from_slice(&sum);
        frame
    }

    fn v6() -> Vec<u8> {
        let mut frame = vec![0; 54];
        frame[12..18].copy_from_slice(&[0x86, 0xdd, 0x6b, 0xa1, 0x23, 0x45]);
        frame
    }

    #[test]
    fn reads_and_writes_both_versions() {
        let mut four = v4();
        assert_eq!((ds_field(&four), ecn(&four)), (Some(0xba), Ecn::Ect0));
        assert!(mark_ce(&mut four) && set_dscp(&mut four, 10));
        assert_eq!(ds_field(&four), Some(10 << 2 | 3));
        assert_eq!(Sum::default().bytes(&four[14..34]).checksum(), 0, "the checksum stays right");
        let mut six = v6();
        assert_eq!((ds_field(&six), ecn(&six)), (Some(0xba), Ecn::Ect0));
        assert!(mark_ce(&mut six) && set_dscp(&mut six, 63));
        assert_eq!(&six[14..18], &[0x6f, 0xf1, 0x23, 0x45], "the flow label stays");
    }

    #[test]
    fn what_is_not_capable_is_not_marked() {
        let mut four = v4();
        set(&mut four, 0xb8);
        assert!(!mark_ce(&mut four) && ecn(&four) == Ecn::NotCapable);
        let mut arp = vec![0; 60];
        arp[12..14].copy_from_slice(&[8, 6]);
        assert!(!mark_ce(&mut arp) && !set_dscp(&mut arp, 1) && ds_field(&arp).is_none());
        for len in 0..v6().len() {
            assert_eq!(ds_field(&v6()[..len]), None);
            assert!(!mark_ce(&mut v4()[..len.min(33)].to_vec()));
        }
    }
}
