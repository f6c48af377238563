//! The longest packet that a link carries.

use crate::judge::Judge;
use longwire_block::{Block, Dice, DropReason, Offer, Param, ParamKind, Spec, Values, Verdict};

/// Drops packets whose IP length (frame without its 14 bytes of Ethernet header; VLAN tags count as payload)
/// exceeds the MTU. Segments of a train are judged one by one.
#[derive(Debug)]
pub struct Mtu {
    longest_frame: u32,
}

const ETHERNET_HEADER: u32 = 14;

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
        let mut block = Self { longest_frame: 0 };
        block.change(values);
        block
    }

    fn change(&mut self, values: &Values) {
        self.longest_frame = values.integer(0) as u32 + ETHERNET_HEADER;
    }
}

impl Judge for Mtu {
    /// Drops what is too long.
    #[inline]
    fn judge(&mut self, offer: &mut Offer<'_>) -> Verdict {
        if offer.bytes > self.longest_frame { Verdict::Drop(DropReason::Mtu) } else { Verdict::Pass }
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
        if offer.bytes <= self.mtu + ETHERNET_HEADER {
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
}
