//! The longest packet that a link carries.

use crate::foresight::Foresight;
use crate::judge::Judge;
use longwire_block::{DropReason, Offer, Stateless, Verdict};
use longwire_settings::Settings;
use longwire_units::Nanos;
use longwire_wire::l3_offset;

const ETHERNET_HEADER: u32 = 14;

/// Whether the IP packet is longer than `mtu`. Only possible candidates are parsed.
#[inline]
fn exceeds(offer: &Offer<'_>, mtu: u32) -> bool {
    offer.bytes > mtu + ETHERNET_HEADER && exceeds_with_tags(offer, mtu)
}

#[cold]
fn exceeds_with_tags(offer: &Offer<'_>, mtu: u32) -> bool {
    offer.bytes > mtu + (l3_offset(offer.frame()) as u32).max(ETHERNET_HEADER)
}

/// Drops packets longer than the link's MTU.
///
/// The length is the IP packet's: the frame's without Ethernet header and up to two VLAN tags. Segments of a
/// train are judged individually.
#[derive(Debug, Settings)]
#[settings(key = "mtu", kind = "drop", source = "RFC 791, section 3.2 (without fragmentation)", live)]
pub struct Mtu {
    /// longest IP packet in bytes, 68 to 65535
    #[setting(min = 68, max = 65_535)]
    mtu: u32,
}

impl Stateless for Mtu {}

impl Judge for Mtu {
    /// Drops packets that are too long.
    #[inline(always)]
    fn judge(&mut self, offer: &mut Offer<'_>) -> Verdict {
        if exceeds(offer, self.mtu) { Verdict::Drop(DropReason::Mtu) } else { Verdict::Pass }
    }

    #[inline(always)]
    fn foresee(&mut self, _: Nanos) -> Option<Foresight> {
        Some(Foresight::of_length(self.mtu + ETHERNET_HEADER))
    }
}

/// Drops packets longer than the link's MTU and answers with ICMP, as a router would.
#[derive(Debug, Settings)]
#[settings(key = "mtu", kind = "too-big", source = "RFC 1191; RFC 8201", live)]
pub struct TooBig {
    /// longest IP packet in bytes, 68 to 65535
    #[setting(min = 68, max = 65_535)]
    mtu: u32,
}

impl Stateless for TooBig {}

impl Judge for TooBig {
    /// Drops packets that are too long, with a reply to IPv6 packets and to IPv4 packets with DF set.
    #[inline(always)]
    fn judge(&mut self, offer: &mut Offer<'_>) -> Verdict {
        if !exceeds(offer, self.mtu) {
            return Verdict::Pass;
        }
        offer.effects().too_big = Some(self.mtu);
        Verdict::Drop(DropReason::Mtu)
    }

    #[inline(always)]
    fn foresee(&mut self, _: Nanos) -> Option<Foresight> {
        Some(Foresight::of_length(self.mtu + ETHERNET_HEADER))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use longwire_block::{Block, Dice};

    #[test]
    fn the_limit_itself_passes() {
        let mut mtu = Mtu::build(Settings::read(&[("mtu", "1500")]).unwrap(), Dice::named(0, ""));
        for (bytes, verdict) in
            [(60, Verdict::Pass), (1514, Verdict::Pass), (1515, Verdict::Drop(DropReason::Mtu))]
        {
            assert_eq!(mtu.judge(&mut Offer::new(Nanos::ZERO, bytes, &[])), verdict);
        }
    }

    #[test]
    fn tags_are_no_part_of_the_packet() {
        let given = [("mtu", "1500")];
        let (drop, answer) = (Mtu::read(&given).unwrap(), TooBig::read(&given).unwrap());
        let (mut drop, mut answer) =
            (Mtu::build(drop, Dice::named(0, "")), TooBig::build(answer, Dice::named(0, "")));
        let frame = |types: &[u8]| [&[2; 12], types, &[0; 40]].concat();
        let tables = [
            (frame(&[8, 0]), 1514),
            (frame(&[0x81, 0, 0, 5, 8, 0]), 1518),
            (frame(&[0x88, 0xa8, 0, 5, 0x81, 0, 0, 6, 8, 0]), 1522),
        ];
        for (frame, longest) in tables {
            for (bytes, verdict) in [(longest, Verdict::Pass), (longest + 1, Verdict::Drop(DropReason::Mtu))]
            {
                assert_eq!(drop.judge(&mut Offer::new(Nanos::ZERO, bytes, &frame)), verdict, "{bytes}");
                assert_eq!(answer.judge(&mut Offer::new(Nanos::ZERO, bytes, &frame)), verdict, "{bytes}");
            }
        }
    }
}
