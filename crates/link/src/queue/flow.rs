//! Assignment of packets to flows.

use longwire_wire::l3_offset;
use longwire_wire::protocol::WITH_PORTS;

/// An odd constant with irregular bits (the golden ratio's fraction).
const MIX: u64 = 0x9e37_79b9_7f4a_7c15;
/// The more-fragments bit and the fragment offset of IPv4.
const FRAGMENT: u16 = 0x3fff;

/// A hash of addresses, protocol and ports; packets of one flow have the same one. Fragments have no ports,
/// so that all of a packet stay together, and neither have IPv6 packets with extension headers. Packets other
/// than IP are distinguished by their Ethernet header. `seed` makes the hash differ from link to link.
#[inline]
pub(super) fn flow_hash(frame: &[u8], seed: u64) -> u64 {
    let at = l3_offset(frame);
    if let Some(header) = frame.get(at..at + 20)
        && header[0] >> 4 == 4
        && frame[at - 2..at] == [8, 0]
    {
        let protocol = header[9];
        let whole = u16::from_be_bytes([header[6], header[7]]) & FRAGMENT == 0;
        let ports = if whole { ports(frame, at + usize::from(header[0] & 15) * 4, protocol) } else { 0 };
        let addresses = mix(seed, word(&header[12..20]));
        return mix(mix(addresses, ports << 8 | u64::from(protocol)), seed);
    }
    if let Some(header) = frame.get(at..at + 40)
        && header[0] >> 4 == 6
        && frame[at - 2..at] == [0x86, 0xdd]
    {
        let source = mix(mix(seed, word(&header[8..16])), word(&header[16..24]));
        let both = mix(mix(source, word(&header[24..32])), word(&header[32..40]));
        return mix(mix(both, ports(frame, at + 40, header[6]) << 8 | u64::from(header[6])), seed);
    }
    match frame.get(..16) {
        Some(header) => mix(mix(mix(seed, word(&header[..8])), word(&header[8..16])), seed),
        None => mix(seed, 0),
    }
}

/// Whether two frames surely have the same hash: they have plain IPv4 headers with the same addresses,
/// protocol and ports.
#[inline(always)]
pub(super) fn surely_one_flow(one: &[u8], other: &[u8]) -> bool {
    /// Ethernet type, version and header length; flags, fragment offset and protocol.
    const MASKS: [u32; 2] = [0xffff_ff00, (FRAGMENT as u32) << 16 | 0xff];
    let parts = |frame: &[u8; 38]| {
        let half = |at: usize| u32::from_be_bytes([frame[at], frame[at + 1], frame[at + 2], frame[at + 3]]);
        ([half(12) & MASKS[0], half(20) & MASKS[1], half(34)], word(&frame[26..34]))
    };
    let (Some(one), Some(other)) = (one.first_chunk(), other.first_chunk()) else { return false };
    let one = parts(one);
    one == parts(other) && one.0[0] == 0x0800_4500 && one.0[1] >> 16 == 0
}

/// Maps a hash to one of `slots` places: without a division, and as evenly as the hash.
#[inline]
pub(super) fn slot(hash: u64, slots: u32) -> usize {
    (((hash >> 32) * u64::from(slots)) >> 32) as usize
}

#[inline]
fn ports(frame: &[u8], at: usize, protocol: u8) -> u64 {
    match frame.get(at..at + 4) {
        Some(&[a, b, c, d]) if WITH_PORTS.contains(&protocol) => u32::from_be_bytes([a, b, c, d]).into(),
        _ => 0,
    }
}

#[inline]
fn word(bytes: &[u8]) -> u64 {
    bytes.first_chunk().map_or(0, |chunk| u64::from_le_bytes(*chunk))
}

/// The two halves of a 128-bit product, folded.
#[inline]
fn mix(hash: u64, word: u64) -> u64 {
    let product = u128::from(hash ^ word ^ MIX) * u128::from(MIX);
    (product as u64 ^ (product >> 64) as u64).wrapping_add(MIX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use longwire_block::Dice;

    /// An IPv4 frame between 10.0.0.1 and 10.0.x.y with ports.
    fn v4(flow: u16, protocol: u8, fragment: u16) -> Vec<u8> {
        let mut frame = vec![0; 60];
        frame[12] = 8;
        frame[14] = 0x45;
        frame[20..22].copy_from_slice(&fragment.to_be_bytes());
        frame[23] = protocol;
        frame[26..30].copy_from_slice(&[10, 0, 0, 1]);
        frame[30..32].copy_from_slice(&[10, 0]);
        frame[34..36].copy_from_slice(&flow.to_be_bytes());
        frame
    }

    #[test]
    fn what_makes_a_flow() {
        let hash = |frame: &[u8]| flow_hash(frame, 7);
        let one = v4(1, 6, 0);
        assert_ne!(hash(&one), hash(&v4(2, 6, 0)), "another port");
        assert_ne!(hash(&one), hash(&v4(1, 17, 0)), "another protocol");
        assert_ne!(hash(&one), flow_hash(&one, 8), "another link");
        assert_eq!(hash(&v4(1, 1, 0)), hash(&v4(2, 1, 0)), "ICMP has no ports");
        assert_eq!(hash(&v4(1, 17, 0x2000)), hash(&v4(2, 17, 7)), "fragments have none");
        let mut tagged = one.clone();
        tagged.splice(12..12, [0x81, 0, 0, 5]);
        assert_eq!(hash(&one), hash(&tagged), "a VLAN tag does not matter");
        let mut later = one.clone();
        later[18] = 77;
        assert_eq!(hash(&one), hash(&later), "nor what changes from packet to packet");
        let mut six = vec![0; 60];
        six[12..15].copy_from_slice(&[0x86, 0xdd, 0x60]);
        six[20] = 17;
        for at in [22, 53, 54, 57] {
            let mut other = six.clone();
            other[at] ^= 1;
            assert_ne!(hash(&six), hash(&other), "byte {at}");
        }
        for len in 0..60 {
            hash(&six[..len]);
            hash(&one[..len]);
        }
    }

    /// 1024 places, 65536 flows: chi-square with 1023 degrees of freedom, mean 1023, deviation 45.
    #[test]
    fn spreads_evenly() {
        let seed = Dice::named(1, "flows").draw();
        let mut counts = [0u32; 1024];
        for flow in 0..=u16::MAX {
            counts[slot(flow_hash(&v4(flow, 6, 0), seed), 1024)] += 1;
        }
        let chi: f64 = counts.iter().map(|&n| (f64::from(n) - 64.0).powi(2) / 64.0).sum();
        assert!((1023.0 - 225.0..1023.0 + 225.0).contains(&chi), "{chi}");
    }
}
