//! A custom classifier: MPLS label switching (RFC 3031, RFC 3032) beside IP forwarding.
//!
//! A labelled packet is switched by the top entry of its stack: the label is swapped, the TTL decremented,
//! and the packet leaves as [`Class::Switched`], without a route and without parsing what is below. Packets
//! without a label are classified as IP. Labels are neither pushed nor popped, which is the task of edge
//! routers, so frames keep their length.

use longwire_block::DropReason;
use longwire_packet::Meta;
use longwire_router::prefix::HopId;
use longwire_router::{Class, Classify, IpClassifier, NextHop, RouteError, Router, RouterPort};
use std::collections::BTreeMap;

/// EtherType of labelled packets.
pub const MPLS: [u8; 2] = [0x88, 0x47];
/// Labels below this are reserved (RFC 3032, 2.1).
const RESERVED: u32 = 16;
/// Labels have 20 bits.
const LABELS: u32 = 1 << 20;

/// Labels with their replacements and next hops; other packets are IP.
#[derive(Debug, Default)]
pub struct Labels {
    known: BTreeMap<u32, (u32, HopId)>,
    ip: IpClassifier,
}

/// Configures `router` to swap a label for another, and to send the packet to a next hop.
///
/// # Errors
/// If the port is not the router's, or there are too many next hops. Invalid labels never match.
pub fn swap(router: &mut Router<Labels>, label: u32, becomes: u32, hop: NextHop) -> Result<(), RouteError> {
    let hop = router.number_of(hop)?;
    if (RESERVED..LABELS).contains(&label) && (RESERVED..LABELS).contains(&becomes) {
        router.classifier_mut().known.insert(label, (becomes, hop));
    }
    Ok(())
}

impl Classify for Labels {
    fn classify(&mut self, port: &RouterPort, meta: &Meta, frame: &mut [u8]) -> Class {
        if frame.get(12..14) != Some(&MPLS[..]) {
            return self.ip.classify(port, meta, frame);
        }
        if frame[..6] != port.mac {
            return Class::Dropped(DropReason::OtherStation);
        }
        let Some(entry) = frame.get_mut(14..18) else { return Class::Dropped(DropReason::BadFrame) };
        let word = u32::from_be_bytes([entry[0], entry[1], entry[2], entry[3]]);
        // Traffic class and bottom of stack are unchanged.
        let (label, rest, hops) = (word >> 12, word & 0xf00, word & 0xff);
        if hops <= 1 {
            return Class::Dropped(DropReason::HopLimit);
        }
        let Some(&(becomes, hop)) = self.known.get(&label) else {
            return Class::Dropped(DropReason::NoRoute);
        };
        entry.copy_from_slice(&(becomes << 12 | rest | (hops - 1)).to_be_bytes());
        Class::Switched { hop }
    }
}
