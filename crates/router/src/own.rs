//! Sources that no packet from outside has: the router's own addresses, and those that mean everybody in its networks (RFC 1812, 5.3.7).
//!
//! Nearly all packets are answered by one bit: addresses are hashed to 4096 of them, and only those whose bit is set are looked up. It is asked
//! about what has come in, before any program has seen it: programs that translate addresses may well write the router's own.

use crate::classify::{Class, ETHERNET, is_link_local};
use crate::hops::NextHop;
use crate::ports::RouterPort;
use crate::state::Core;
use longwire_block::DropReason;
use longwire_wire::ethertype;

/// Bits, as a power of two.
const BITS: u32 = 12;
const WORDS: usize = (1 << BITS) / 64;

/// Bits of the addresses that routes say are the router's, with how many have set each.
#[derive(Debug)]
pub(crate) struct OwnSources {
    bits: [u64; WORDS],
    counts: Box<[u32]>,
    /// Routes of more than one address: while there are any, every bit is set.
    wide: u32,
}

impl OwnSources {
    pub fn new() -> Self {
        Self { bits: [0; WORDS], counts: vec![0; 1 << BITS].into(), wide: 0 }
    }

    /// Notes that the route to an address, or to a network if there is none, leads to `after` instead of `before`.
    pub fn note(&mut self, address: Option<u64>, before: Option<NextHop>, after: Option<NextHop>) {
        let is_own = |hop: Option<NextHop>| matches!(hop, Some(NextHop::Local | NextHop::Broadcast));
        match (is_own(before), is_own(after), address) {
            (false, true, Some(address)) => {
                let place = place(address);
                self.counts[place] += 1;
                self.bits[place / 64] |= 1 << (place % 64);
            }
            (true, false, Some(address)) => {
                let place = place(address);
                self.counts[place] -= 1;
                if self.counts[place] == 0 && self.wide == 0 {
                    self.bits[place / 64] &= !(1 << (place % 64));
                }
            }
            (false, true, None) => {
                self.wide += 1;
                self.bits.fill(u64::MAX);
            }
            (true, false, None) => {
                self.wide -= 1;
                if self.wide == 0 {
                    self.recount();
                }
            }
            (true, true, _) | (false, false, _) => {}
        }
    }

    /// Whether an address may be one of these; if not, it is none.
    #[inline]
    pub fn may_be(&self, address: u64) -> bool {
        let place = place(address);
        self.bits[place / 64] >> (place % 64) & 1 == 1
    }

    fn recount(&mut self) {
        for (word, counts) in self.bits.iter_mut().zip(self.counts.chunks(64)) {
            *word = counts.iter().rev().fold(0, |word, count| word << 1 | u64::from(*count > 0));
        }
    }
}

/// An IPv6 address as the filter takes it.
#[inline]
pub(crate) const fn folded(address: u128) -> u64 {
    address as u64 ^ ((address >> 64) as u64).rotate_left(29)
}

/// Fibonacci hashing (Knuth, vol. 3, 6.4): addresses that follow one another lie far apart.
#[inline]
const fn place(address: u64) -> usize {
    (address.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (u64::BITS - BITS)) as usize
}

impl Core {
    /// Looks whether a packet that has come in by `port` claims to be the router's: then it is a martian, and not what it looked like.
    #[inline]
    pub fn check_source(&self, class: &mut Class, port: &RouterPort, frame: &[u8]) {
        let suspect = match class {
            Class::V4 { .. } => source_v4(frame).is_some_and(|source| self.fib.may_be_own_v4(source)),
            Class::V6 { .. } => source_v6(frame).is_some_and(|source| self.fib.may_be_own_v6(source)),
            Class::Exceptional(_) => true,
            Class::Switched { .. } | Class::Dropped(_) => false,
        };
        if suspect && self.has_own_source(port, frame) {
            *class = Class::Dropped(DropReason::Martian);
        }
    }

    #[cold]
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const LOCAL: Option<NextHop> = Some(NextHop::Local);
    const DIRECT: Option<NextHop> = Some(NextHop::Direct { port: 1 });

    #[test]
    fn a_few_addresses_leave_nearly_all_others_alone() {
        let mut own = OwnSources::new();
        // Sixteen ports: address, network and broadcast of each.
        for net in 0..16 {
            [0, 1, 255].iter().for_each(|last| own.note(Some(0x0a00_0000 | net << 8 | last), None, LOCAL));
        }
        let suspects = (0..100_000_u64).filter(|n| own.may_be(0xc000_0000 + n)).count();
        // At most 48 bits of 4096 are set: 1.2 %.
        assert!((300..=1_172).contains(&suspects), "{suspects}");
    }

    #[test]
    fn of_several_reasons_the_last_counts() {
        let mut own = OwnSources::new();
        own.note(Some(7), None, LOCAL);
        own.note(Some(7), LOCAL, Some(NextHop::Broadcast));
        own.note(None, DIRECT, LOCAL);
        assert!((0..99).all(|address| own.may_be(address)), "a network of them");
        own.note(Some(7), Some(NextHop::Broadcast), DIRECT);
        own.note(Some(8), None, LOCAL);
        own.note(None, LOCAL, None);
        assert!(!own.may_be(7) && own.may_be(8));
    }

    proptest! {
        #[test]
        fn what_is_own_is_never_missed(changes in prop::collection::vec((0..200_u64, any::<bool>(), any::<bool>()), 0..300)) {
            let (mut own, mut known) = (OwnSources::new(), std::collections::BTreeMap::new());
            for (address, there, wide) in changes {
                // Some are networks; those have addresses above all others here.
                let key = if wide { 1000 + address % 4 } else { address };
                let after = there.then_some(NextHop::Local);
                let before = if there { known.insert(key, NextHop::Local) } else { known.remove(&key) };
                own.note((!wide).then_some(address), before, after);
                prop_assert!(known.keys().filter(|key| **key < 1000).all(|address| own.may_be(*address)));
                if known.keys().next_back().is_some_and(|last| *last >= 1000) {
                    prop_assert!((0..500).all(|address| own.may_be(address)));
                } else {
                    let bits: u32 = own.bits.iter().map(|word| word.count_ones()).sum();
                    prop_assert!(bits as usize <= known.len());
                }
            }
        }
    }
}
