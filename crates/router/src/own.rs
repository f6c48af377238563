//! Source addresses that no packet from outside may have: the router's own, and broadcast addresses of its
//! networks (RFC 1812, 5.3.7).
//!
//! For nearly all packets one bit decides: addresses are hashed to 4096 bits, and only those with a set bit
//! are looked up. Packets are checked on arrival, before any program: address translators may well write the
//! router's own address. Whole networks of the router, such as those of a loopback interface, set all bits:
//! then each source is compared with the few networks.

use crate::next_hop::NextHop;
use crate::prefix::{Address, Prefix};

/// Bits, as a power of two.
const BITS: u32 = 12;
const WORDS: usize = (1 << BITS) / 64;

/// Up to this many networks of the router, per address family, are compared with a source one by one; with
/// more, each source is looked up.
const LISTED: usize = 8;

/// The destination of a route: an address, in the form that is hashed, or a network.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum To {
    Address(u64),
    V4(Prefix<u32>),
    V6(Prefix<u128>),
}

/// Bits of the router's own addresses, with the number of routes that set each.
#[derive(Debug)]
pub(crate) struct OwnSources {
    /// The filter for every packet: all bits are set while whole networks are the router's.
    bits: [u64; WORDS],
    /// Bits of the addresses alone.
    marked: [u64; WORDS],
    counts: Box<[u32]>,
    /// The networks: from addresses of a loopback interface with a prefix, and from routes.
    v4: Vec<Prefix<u32>>,
    v6: Vec<Prefix<u128>>,
}

impl OwnSources {
    pub fn new() -> Self {
        let (bits, marked) = ([0; WORDS], [0; WORDS]);
        Self { bits, marked, counts: vec![0; 1 << BITS].into(), v4: Vec::new(), v6: Vec::new() }
    }

    /// Records the change of a route from `before` to `after`.
    pub fn note(&mut self, to: To, before: Option<NextHop>, after: Option<NextHop>) {
        let is_own = |hop: Option<NextHop>| matches!(hop, Some(NextHop::Local | NextHop::Broadcast));
        let comes = is_own(after);
        if is_own(before) == comes {
            return;
        }
        match to {
            To::Address(address) => self.mark(place(address), comes),
            To::V4(net) if comes => self.v4.push(net),
            To::V4(net) => self.v4.retain(|own| *own != net),
            To::V6(net) if comes => self.v6.push(net),
            To::V6(net) => self.v6.retain(|own| *own != net),
        }
        let is_wide = !(self.v4.is_empty() && self.v6.is_empty());
        self.bits = if is_wide { [u64::MAX; WORDS] } else { self.marked };
    }

    fn mark(&mut self, place: usize, comes: bool) {
        let (count, bit) = (&mut self.counts[place], 1 << (place % 64));
        if comes {
            *count += 1;
            self.marked[place / 64] |= bit;
        } else {
            *count -= 1;
            if *count == 0 {
                self.marked[place / 64] &= !bit;
            }
        }
    }

    /// Whether an address may be one of these; no false negatives.
    #[inline]
    pub fn may_be(&self, address: u64) -> bool {
        is_set(&self.bits, address)
    }

    /// Whether an IPv4 address may be one of these, after a closer look, which excludes all addresses outside
    /// the networks.
    pub fn may_well_be_v4(&self, address: u32) -> bool {
        is_set(&self.marked, address.into()) || holds(&self.v4, address)
    }

    /// Whether an IPv6 address may be one of these, after a closer look.
    pub fn may_well_be_v6(&self, address: u128) -> bool {
        is_set(&self.marked, folded(address)) || holds(&self.v6, address)
    }
}

#[inline]
const fn is_set(bits: &[u64; WORDS], address: u64) -> bool {
    let place = place(address);
    bits[place / 64] >> (place % 64) & 1 == 1
}

fn holds<A: Address>(nets: &[Prefix<A>], address: A) -> bool {
    nets.len() > LISTED || nets.iter().any(|net| net.holds(address))
}

/// The form of an IPv6 address that is hashed.
#[inline]
pub(crate) const fn folded(address: u128) -> u64 {
    address as u64 ^ ((address >> 64) as u64).rotate_left(29)
}

/// Fibonacci hashing (Knuth, vol. 3, 6.4): consecutive addresses are far apart.
#[inline]
const fn place(address: u64) -> usize {
    (address.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (u64::BITS - BITS)) as usize
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
            [0, 1, 255]
                .iter()
                .for_each(|last| own.note(To::Address(0x0a00_0000 | net << 8 | last), None, LOCAL));
        }
        let suspects = (0..100_000_u64).filter(|n| own.may_be(0xc000_0000 + n)).count();
        // At most 48 bits of 4096 are set: 1.2 %.
        assert!((300..=1_172).contains(&suspects), "{suspects}");
    }

    fn net(net: u32) -> To {
        To::V4(Prefix::new(net << 8, 24).unwrap())
    }

    #[test]
    fn of_several_reasons_the_last_counts() {
        let mut own = OwnSources::new();
        own.note(To::Address(7), None, LOCAL);
        own.note(To::Address(7), LOCAL, Some(NextHop::Broadcast));
        own.note(net(3), DIRECT, LOCAL);
        assert!((0..99).all(|address| own.may_be(address)), "a network of them");
        own.note(To::Address(7), Some(NextHop::Broadcast), DIRECT);
        own.note(To::Address(8), None, LOCAL);
        own.note(net(3), LOCAL, None);
        assert!(!own.may_be(7) && own.may_be(8));
    }

    #[test]
    fn a_network_leaves_what_is_not_in_it_alone() {
        let mut own = OwnSources::new();
        own.note(To::Address(7), None, LOCAL);
        own.note(net(3), None, LOCAL);
        own.note(To::V6(Prefix::new(0xfd << 120, 64).unwrap()), None, LOCAL);
        for (address, may_be) in [(7, true), (0x300, true), (0x3ff, true), (0x400, false), (0x2ff, false)] {
            assert_eq!(own.may_well_be_v4(address), may_be, "{address:x}");
        }
        assert!(own.may_well_be_v6(0xfd << 120 | 5) && !own.may_well_be_v6(0xfd << 120 | 5 << 64));
        // With more networks than are listed, every address may be one.
        (10..10 + LISTED as u32).for_each(|number| own.note(net(number), None, LOCAL));
        assert!(own.may_well_be_v4(0x400) && !own.may_well_be_v6(0xfd << 120 | 5 << 64));
        own.note(net(3), LOCAL, DIRECT);
        assert!(!own.may_well_be_v4(0x400) && !own.may_well_be_v4(0x300) && own.may_well_be_v4(0xa00));
    }

    proptest! {
        #[test]
        fn what_is_own_is_never_missed(changes in prop::collection::vec((0..200_u32, any::<bool>(),
            any::<bool>()), 0..300)) {
            let (mut own, mut known) = (OwnSources::new(), std::collections::BTreeSet::new());
            for (number, comes, wide) in changes {
                // Some are networks of 256 addresses, among the first few thousand.
                let number = if wide { number % 12 } else { number * 16 };
                let to = if wide { net(number) } else { To::Address(number.into()) };
                let changed = if comes { known.insert((wide, number)) } else { known.remove(&(wide,
                    number)) };
                let was_there = comes != changed;
                own.note(to, was_there.then_some(NextHop::Local), comes.then_some(NextHop::Local));
                for address in (0..3200_u32).step_by(8) {
                    let is_own = known.contains(&(false, address)) || known.contains(&(true, address >> 8));
                    prop_assert!(!is_own || own.may_be(address.into()) && own.may_well_be_v4(address), "{}",
                        address);
                }
                let is_wide = known.iter().any(|(wide, _)| *wide);
                let bits: u32 = own.bits.iter().map(|word| word.count_ones()).sum();
                let is_right = if is_wide { bits == 1 << BITS } else { bits as usize <= known.len() };
                prop_assert!(is_right, "{} bits", bits);
            }
        }
    }
}
