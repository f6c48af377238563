//! Routes of a router: prefix tables of both kinds, the route caches before them, and next
//! hops.

use crate::cache::Cache;
use crate::group::RouteHops;
use crate::hops::NextHops;
use crate::next_hop::NextHop;
use crate::own::{OwnSources, To, folded};
use crate::prefix::{HopId, Prefix, TableFull, V4Table, V6Table};
use longwire_packet::BATCH;
use thiserror::Error;

/// Sizes of a router's tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FibLimits {
    /// Most prefixes of each address family. Nothing is reserved for them.
    pub prefixes: usize,
    /// Destinations of each family in the route cache, of 8 bytes (IPv4) and 24 bytes (IPv6).
    pub cached: usize,
}

impl Default for FibLimits {
    /// Two million prefixes, 16384 destinations.
    fn default() -> Self {
        Self { prefixes: 2_000_000, cached: 16384 }
    }
}

/// Reason why a route is invalid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum RouteError {
    /// Too many prefixes.
    #[error(transparent)]
    TableFull(#[from] TableFull),
    /// Too many next hops.
    #[error("there are 65535 next hops already: let routes share some")]
    TooManyHops,
    /// The port is not this router's.
    #[error("port {port} is not the router's: name one of its ports")]
    ForeignPort {
        /// Its index in the plan.
        port: u16,
    },
    /// A group's number, which is internal.
    #[error("a group's number is its router's: name the group's next hops")]
    ForeignGroup,
}

#[derive(Debug)]
pub(crate) struct Fib {
    v4: V4Table,
    v6: V6Table,
    pub hops: NextHops,
    own: OwnSources,
    cache_v4: Cache<u32>,
    cache_v6: Cache<u128>,
}

/// Cached next hops of a batch's destinations, by index.
pub(crate) struct Ahead {
    hops: [Option<HopId>; BATCH],
    /// Misses until then: if there are more, entries may have been evicted.
    misses: u64,
}

impl Fib {
    pub fn new(limits: FibLimits) -> Self {
        Self {
            v4: V4Table::new(limits.prefixes),
            v6: V6Table::new(limits.prefixes),
            hops: NextHops::new(),
            own: OwnSources::new(),
            cache_v4: Cache::new(limits.cached),
            cache_v6: Cache::new(limits.cached),
        }
    }

    pub fn insert_v4(&mut self, prefix: Prefix<u32>, way: &RouteHops) -> Result<(), RouteError> {
        let id = self.hops.take_way(way).ok_or(RouteError::TooManyHops)?;
        let before = self.v4.insert(prefix, id);
        self.settle(to_v4(prefix), before, id)
    }

    pub fn insert_v6(&mut self, prefix: Prefix<u128>, way: &RouteHops) -> Result<(), RouteError> {
        let id = self.hops.take_way(way).ok_or(RouteError::TooManyHops)?;
        let before = self.v6.insert(prefix, id);
        self.settle(to_v6(prefix), before, id)
    }

    /// Removes an IPv4 route, and returns its destination, if there was one.
    pub fn remove_v4(&mut self, prefix: Prefix<u32>) -> Option<NextHop> {
        let id = self.v4.remove(prefix)?;
        let hop = self.hops.at(id);
        self.own.note(to_v4(prefix), Some(hop), None);
        self.let_go(id);
        Some(hop)
    }

    pub fn remove_v6(&mut self, prefix: Prefix<u128>) -> Option<NextHop> {
        let id = self.v6.remove(prefix)?;
        let hop = self.hops.at(id);
        self.own.note(to_v6(prefix), Some(hop), None);
        self.let_go(id);
        Some(hop)
    }

    /// Removes an IPv4 route, and installs `own` instead if that is different. Returns whether there was one.
    pub fn withdraw_v4(&mut self, prefix: Prefix<u32>, own: Option<NextHop>) -> Result<bool, RouteError> {
        let Some(hop) = self.remove_v4(prefix) else { return Ok(false) };
        if let Some(own) = own.filter(|own| *own != hop) {
            self.insert_v4(prefix, &own.into())?;
        }
        Ok(true)
    }

    pub fn withdraw_v6(&mut self, prefix: Prefix<u128>, own: Option<NextHop>) -> Result<bool, RouteError> {
        let Some(hop) = self.remove_v6(prefix) else { return Ok(false) };
        if let Some(own) = own.filter(|own| *own != hop) {
            self.insert_v6(prefix, &own.into())?;
        }
        Ok(true)
    }

    /// The next hop's number for a destination, which is added to the cache.
    #[inline(never)]
    pub fn find_v4(&mut self, destination: u32) -> Option<HopId> {
        if let Some(hop) = self.cache_v4.find(destination) {
            return Some(hop);
        }
        let hop = self.v4.find(destination)?;
        self.cache_v4.insert(destination, hop);
        Some(hop)
    }

    /// The next hop for a destination that was looked up ahead, by index.
    #[inline]
    pub fn find_v4_ahead(&mut self, destination: u32, (ahead, at): (&Ahead, usize)) -> Option<HopId> {
        match ahead.hops[at] {
            Some(hop) if ahead.misses == self.cache_v4.misses() => {
                self.cache_v4.count_hit();
                Some(hop)
            }
            _ => self.find_v4(destination),
        }
    }

    /// The next hop for an IPv6 destination.
    #[inline]
    pub fn find_v6(&mut self, destination: u128) -> Option<HopId> {
        if let Some(hop) = self.cache_v6.find(destination) {
            return Some(hop);
        }
        let hop = self.v6.find(destination)?;
        self.cache_v6.insert(destination, hop);
        Some(hop)
    }

    /// The next hop for a destination, bypassing the cache: for rare packets.
    pub fn way_v4(&self, destination: u32) -> Option<NextHop> {
        self.v4.find(destination).map(|id| self.hops.at(id))
    }

    /// The next hop for an IPv6 destination, bypassing the cache.
    pub fn way_v6(&self, destination: u128) -> Option<NextHop> {
        self.v6.find(destination).map(|id| self.hops.at(id))
    }

    /// Whether an address may be the router's own, or a broadcast address of its networks: a quick check
    /// without false negatives.
    #[inline]
    pub fn may_be_own_v4(&self, address: u32) -> bool {
        self.own.may_be(address.into())
    }

    /// Whether an IPv6 address may be the router's own: a quick check without false negatives.
    #[inline]
    pub fn may_be_own_v6(&self, address: u128) -> bool {
        self.own.may_be(folded(address))
    }

    /// Whether an address is the router's own, or a broadcast address of its networks.
    pub fn is_own_v4(&self, address: u32) -> bool {
        self.own.may_well_be_v4(address)
            && matches!(self.way_v4(address), Some(NextHop::Local | NextHop::Broadcast))
    }

    /// Whether an IPv6 address is the router's own, or a multicast address of one of its networks.
    pub fn is_own_v6(&self, address: u128) -> bool {
        self.own.may_well_be_v6(address)
            && matches!(self.way_v6(address), Some(NextHop::Local | NextHop::Broadcast))
    }

    /// Prefetches the slots of the cache and of the trie's root.
    #[inline]
    pub fn prefetch_v4(&self, destination: u32) {
        self.cache_v4.prefetch(destination);
        self.v4.prefetch_root(destination);
    }

    /// Looks up a batch's IPv4 destinations in the cache. Prefetches the trie's slots of those that are not
    /// cached.
    #[inline]
    pub fn look_ahead_v4(&self, destinations: impl Iterator<Item = Option<u32>>) -> Ahead {
        let mut ahead = Ahead { hops: [None; BATCH], misses: self.cache_v4.misses() };
        for (destination, hop) in destinations.zip(&mut ahead.hops) {
            let Some(destination) = destination else { continue };
            *hop = self.cache_v4.peek(destination);
            if hop.is_none() {
                self.v4.prefetch_node(destination);
            }
        }
        ahead
    }

    #[inline]
    pub fn prefetch_v6(&self, destination: u128) {
        self.cache_v6.prefetch(destination);
    }

    /// Hits and misses of both route caches.
    pub fn hits_and_misses(&self) -> (u64, u64) {
        let [v4, v6] = [self.cache_v4.hits_and_misses(), self.cache_v6.hits_and_misses()];
        (v4.0 + v6.0, v4.1 + v6.1)
    }

    pub fn routes_v4(&self) -> impl Iterator<Item = (Prefix<u32>, RouteHops)> {
        self.v4.iter().map(|(prefix, id)| (prefix, self.hops.way(self.hops.at(id))))
    }

    pub fn routes_v6(&self) -> impl Iterator<Item = (Prefix<u128>, RouteHops)> {
        self.v6.iter().map(|(prefix, id)| (prefix, self.hops.way(self.hops.at(id))))
    }

    /// Memory of both tries in bytes.
    pub fn memory(&self) -> usize {
        self.v4.memory() + self.v6.memory()
    }

    fn settle(
        &mut self,
        to: To,
        before: Result<Option<HopId>, TableFull>,
        id: HopId,
    ) -> Result<(), RouteError> {
        let before = before.inspect_err(|_| self.hops.give_back(id))?;
        self.own.note(to, before.map(|id| self.hops.at(id)), Some(self.hops.at(id)));
        match before {
            None => self.forget(),
            Some(before) => self.let_go(before),
        }
        Ok(())
    }

    fn let_go(&mut self, id: HopId) {
        self.forget();
        self.hops.give_back(id);
    }

    fn forget(&mut self) {
        self.cache_v4.forget();
        self.cache_v6.forget();
    }
}

fn to_v4(prefix: Prefix<u32>) -> To {
    if prefix.bits() == 32 { To::Address(prefix.address().into()) } else { To::V4(prefix) }
}

fn to_v6(prefix: Prefix<u128>) -> To {
    if prefix.bits() == 128 { To::Address(folded(prefix.address())) } else { To::V6(prefix) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DIRECT: NextHop = NextHop::Direct { port: 1 };

    #[test]
    fn a_change_of_routes_is_seen_at_once_though_the_destination_is_cached() {
        let mut fib = Fib::new(FibLimits::default());
        let mut seen = vec![];
        let mut find = |fib: &mut Fib| {
            for _ in 0..2 {
                let hop = fib.find_v4(0x0a01_0203).map(|id| fib.hops.at(id));
                assert_eq!(hop, fib.way_v4(0x0a01_0203));
                seen.push(hop);
            }
        };
        find(&mut fib);
        fib.insert_v4("0.0.0.0/0".parse().unwrap(), &DIRECT.into()).unwrap();
        find(&mut fib);
        fib.insert_v4("10.0.0.0/8".parse().unwrap(), &NextHop::Local.into()).unwrap();
        find(&mut fib);
        fib.insert_v4("10.0.0.0/8".parse().unwrap(), &NextHop::Discard.into()).unwrap();
        find(&mut fib);
        assert_eq!(fib.remove_v4("10.0.0.0/8".parse().unwrap()), Some(NextHop::Discard));
        assert_eq!(fib.remove_v4("10.0.0.0/8".parse().unwrap()), None);
        find(&mut fib);
        let expected = [None, Some(DIRECT), Some(NextHop::Local), Some(NextHop::Discard), Some(DIRECT)];
        assert!(seen.chunks(2).zip(expected).all(|(pair, expected)| pair == [expected; 2]));
        // The first of each pair after the first pair was a miss.
        assert_eq!(fib.cache_v4.hits_and_misses(), (4, 6));
    }

    #[test]
    fn to_look_ahead_changes_nothing() {
        let mut fibs = [0; 2].map(|_| Fib::new(FibLimits { prefixes: 100, cached: 8 }));
        for fib in &mut fibs {
            fib.insert_v4("10.0.0.0/8".parse().unwrap(), &DIRECT.into()).unwrap();
            fib.insert_v4("11.0.0.0/8".parse().unwrap(), &NextHop::Local.into()).unwrap();
        }
        let [one_by_one, together] = &mut fibs;
        for batch in 0..200u32 {
            // About twelve destinations for eight entries, and some without a route.
            let destinations: Vec<u32> = (0..64)
                .map(|at| ((9 + (batch * 64 + at) * 7919 % 37 / 12) << 24) | ((batch + at * at) % 5))
                .collect();
            let ahead = together.look_ahead_v4(destinations.iter().copied().map(Some));
            for (at, &destination) in destinations.iter().enumerate() {
                let found = together.find_v4_ahead(destination, (&ahead, at));
                assert_eq!(found, one_by_one.find_v4(destination));
            }
            assert_eq!(together.cache_v4.hits_and_misses(), one_by_one.cache_v4.hits_and_misses());
        }
        let (hits, misses) = together.cache_v4.hits_and_misses();
        assert!(hits > 1000 && misses > 1000, "{hits} and {misses}");
    }

    #[test]
    fn ipv6_likewise() {
        let mut fib = Fib::new(FibLimits { prefixes: 1, cached: 8 });
        fib.insert_v6("fd00::/8".parse().unwrap(), &DIRECT.into()).unwrap();
        let full = fib.insert_v6("fe00::/8".parse().unwrap(), &NextHop::Local.into());
        assert_eq!(full, Err(TableFull { limit: 1 }.into()));
        assert_eq!(fib.find_v6(0xfd << 120 | 5).map(|id| fib.hops.at(id)), Some(DIRECT));
        assert!(fib.find_v6(0xfd << 120 | 5).is_some() && fib.find_v6(5).is_none());
        assert_eq!(fib.cache_v6.hits_and_misses(), (1, 2));
        assert_eq!(fib.routes_v6().count(), 1);
    }
}
