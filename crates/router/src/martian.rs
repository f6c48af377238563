//! Packets from outside with a source address of the router (RFC 1812, 5.3.7).

use crate::classify::{Class, ETHERNET};
use crate::ports::{RouterPort, is_link_local};
use crate::state::Core;
use longwire_block::DropReason;
use longwire_wire::ethertype;

impl Core {
    /// Checks whether a packet from `port` has a source address of the router: then it is a martian, whatever
    /// its class was. Returns whether it is dropped, for this or another reason.
    #[inline]
    pub fn refuse_source(&self, class: &mut Class, port: &RouterPort, frame: &[u8]) -> bool {
        let is_well_v4 = matches!(class, Class::V4 { .. })
            && !source_v4(frame).is_some_and(|source| self.fib.may_be_own_v4(source));
        !is_well_v4 && self.refuse_suspect(class, port, frame)
    }

    #[inline(never)]
    fn refuse_suspect(&self, class: &mut Class, port: &RouterPort, frame: &[u8]) -> bool {
        let suspect = match class {
            Class::V4 { .. } => true,
            Class::V6 { .. } => source_v6(frame).is_some_and(|source| self.fib.may_be_own_v6(source)),
            Class::Exceptional(_) => true,
            Class::Switched { .. } | Class::Dropped(_) => false,
        };
        if suspect && self.has_own_source(port, frame) {
            *class = Class::Dropped(DropReason::Martian);
        }
        matches!(class, Class::Dropped(_))
    }

    fn has_own_source(&self, port: &RouterPort, frame: &[u8]) -> bool {
        let kind = frame.get(12..ETHERNET).map(|kind| u16::from_be_bytes([kind[0], kind[1]]));
        match kind {
            Some(ethertype::IPV4) => source_v4(frame).is_some_and(|source| self.fib.is_own_v4(source)),
            Some(ethertype::IPV6) => source_v6(frame).is_some_and(|source| {
                self.fib.is_own_v6(source) || (is_link_local(source) && port.has_v6(source))
            }),
            _ => false,
        }
    }
}

#[inline]
fn source_v4(frame: &[u8]) -> Option<u32> {
    frame.get(ETHERNET + 12..)?.first_chunk().map(|bytes| u32::from_be_bytes(*bytes))
}

#[inline]
fn source_v6(frame: &[u8]) -> Option<u128> {
    frame.get(ETHERNET + 8..)?.first_chunk().map(|bytes| u128::from_be_bytes(*bytes))
}
