//! The longest packet that a link carries.

use crate::judge::Judge;
use longwire_block::{Block, Dice, DropReason, Offer, Param, ParamKind, Spec, Values, Verdict};
use longwire_wire::l3_offset;

/// Drops packets whose IP length (the frame's without Ethernet header and up to two VLAN tags) exceeds the MTU. Segments of a train are
/// judged one by one.
#[derive(Debug)]
pub struct Mtu {
    mtu: u32,
}

const ETHERNET_HEADER: u32 = 14;

/// Whether the IP packet is longer than `mtu`. Only frames that may be need to be looked at.
#[inline]
fn exceeds(offer: &Offer<'_>, mtu: u32) -> bool {
    offer.bytes > mtu + ETHERNET_HEADER && exceeds_with_tags(offer, mtu)
}

#[cold]
fn exceeds_with_tags(offer: &Offer<'_>, mtu: u32) -> bool {
    offer.bytes > mtu + (l3_offset(offer.frame()) as u32).max(ETHERNET_HEADER)
}

impl Block for Mtu {
    const SPEC: Spec = Spec {
        key: "mtu",
        kind: "drop",
        summary: "Drops packets longer than the link's MTU.",
        source: "RFC 791, section 3.2 (without fragmentation)",
        params: &[Param {
            name: "mtu",
            kind: ParamKind::Integer { min: 68, max: 65_535 },
            default: None,
            help: "longest IP packet in bytes, 68 to 65535",
        }],
    };

    fn build(values: &Values, _: Dice) -> Self {
        let mut block = Self { mtu: 0 };
        block.change(values);
        block
    }

    fn change(&mut self, values: &Values) {
        self.mtu = values.integer(0) as u32;
    }
}

impl Judge for Mtu {
    /// Drops what is too long.
    #[inline]
    fn judge(&mut self, offer: &mut Offer<'_>) -> Verdict {
        if exceeds(offer, self.mtu) { Verdict::Drop(DropReason::Mtu) } else { Verdict::Pass }
    }
}

/// The same, and tells the sender, as a router would.
#[derive(Debug)]
pub struct TooBig {
    mtu: u32,
}

impl Block for TooBig {
    const SPEC: Spec = Spec {
        key: "mtu",
        kind: "too-big",
        summary: "Drops packets longer than the link's MTU and tells their sender, so that it can send shorter ones.",
        source: "RFC 1191; RFC 8201",
        params: Mtu::SPEC.params,
    };

    fn build(values: &Values, _: Dice) -> Self {
        Self { mtu: values.integer(0) as u32 }
    }

    fn change(&mut self, values: &Values) {
        self.mtu = values.integer(0) as u32;
    }
}

impl Judge for TooBig {
    /// Drops what is too long, with an answer to IPv6 packets and IPv4 packets that must not be fragmented.
    #[inline]
    fn judge(&mut self, offer: &mut Offer<'_>) -> Verdict {
        if !exceeds(offer, self.mtu) {
            return Verdict::Pass;
        }
        offer.effects().too_big = Some(self.mtu);
        Verdict::Drop(DropReason::Mtu)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use longwire_units::Nanos;

    #[test]
    fn the_limit_itself_passes() {
        let mut mtu = Mtu::build(&Values::read(&Mtu::SPEC, &[("mtu", "1500")]).unwrap(), Dice::named(0, ""));
        for (bytes, verdict) in
            [(60, Verdict::Pass), (1514, Verdict::Pass), (1515, Verdict::Drop(DropReason::Mtu))]
        {
            assert_eq!(mtu.judge(&mut Offer::new(Nanos::ZERO, bytes, &[])), verdict);
        }
    }

    #[test]
    fn tags_are_no_part_of_the_packet() {
        let values = Values::read(&Mtu::SPEC, &[("mtu", "1500")]).unwrap();
        let (mut drop, mut answer) =
            (Mtu::build(&values, Dice::named(0, "")), TooBig::build(&values, Dice::named(0, "")));
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
