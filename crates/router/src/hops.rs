//! Next hops: what routes lead to, each written down once.

use crate::prefix::HopId;
use std::collections::BTreeMap;
use std::net::IpAddr;

/// Where a packet goes that a route matches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum NextHop {
    /// To this neighbour behind a port.
    Gateway {
        /// The port's place in the plan.
        port: u16,
        /// The neighbour's address, as [`neighbour_key`] writes it.
        gateway: u128,
    },
    /// To the destination itself, which is a neighbour behind a port.
    Direct {
        /// The port's place in the plan.
        port: u16,
    },
    /// To the router itself.
    Local,
    /// To all hosts of a network at one of the router's ports.
    Broadcast,
    /// Nowhere, and nobody is told.
    Discard,
}

impl NextHop {
    /// The neighbour `gateway` behind `port`.
    pub fn via(port: u16, gateway: IpAddr) -> Self {
        Self::Gateway { port, gateway: neighbour_key(gateway) }
    }
}

/// An address of either kind as one number: IPv4 addresses as their IPv6 form ::ffff:0:0/96 (RFC 4291, 2.5.5.2).
pub fn neighbour_key(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => v4_key(address.into()),
        IpAddr::V6(address) => address.into(),
    }
}

/// An IPv4 address as a number of 128 bits.
#[inline]
pub(crate) const fn v4_key(address: u32) -> u128 {
    0xffff << 32 | address as u128
}

/// The IPv4 address that a number of 128 bits stands for, if it does.
#[inline]
pub(crate) const fn key_v4(key: u128) -> Option<u32> {
    if key >> 32 == 0xffff { Some(key as u32) } else { None }
}

/// Next hops by number, with how many routes lead to each.
#[derive(Debug)]
pub(crate) struct NextHops {
    hops: Vec<NextHop>,
    users: Vec<u32>,
    numbers: BTreeMap<NextHop, HopId>,
    free: Vec<HopId>,
}

impl NextHops {
    pub fn new() -> Self {
        // Number 0 is nobody's.
        Self { hops: vec![NextHop::Discard], users: vec![0], numbers: BTreeMap::new(), free: vec![] }
    }

    /// The number of a next hop for one more route; none if there are 65535 others.
    pub fn take(&mut self, hop: NextHop) -> Option<HopId> {
        if let Some(&id) = self.numbers.get(&hop) {
            self.users[id.index()] += 1;
            return Some(id);
        }
        let id = match self.free.pop() {
            Some(id) => id,
            None => {
                let id = HopId::from_raw(u16::try_from(self.hops.len()).ok()?)?;
                self.hops.push(hop);
                self.users.push(0);
                id
            }
        };
        (self.hops[id.index()], self.users[id.index()]) = (hop, 1);
        self.numbers.insert(hop, id);
        Some(id)
    }

    /// One route less leads to a next hop.
    pub fn give_back(&mut self, id: HopId) {
        let users = &mut self.users[id.index()];
        *users -= 1;
        if *users == 0 {
            self.numbers.remove(&self.hops[id.index()]);
            self.free.push(id);
        }
    }

    /// What a number stands for.
    #[inline]
    pub fn at(&self, id: HopId) -> NextHop {
        self.hops[id.index()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn next_hops_are_shared_and_numbers_used_again() {
        let mut hops = NextHops::new();
        let gateway = NextHop::via(3, IpAddr::from([10, 0, 0, 1]));
        let one = hops.take(gateway).unwrap();
        assert_eq!((hops.take(gateway), hops.at(one)), (Some(one), gateway));
        let other = hops.take(NextHop::Direct { port: 3 }).unwrap();
        assert_ne!(one, other);
        hops.give_back(one);
        assert_eq!(hops.take(gateway), Some(one));
        hops.give_back(one);
        hops.give_back(one);
        assert_eq!(hops.take(NextHop::Local), Some(one), "its number was free");
    }

    #[test]
    fn there_are_65535() {
        let mut hops = NextHops::new();
        assert!((0..=u16::MAX - 1).all(|port| hops.take(NextHop::Direct { port }).is_some()));
        assert_eq!(hops.take(NextHop::Local), None);
        assert!(hops.take(NextHop::Direct { port: 5 }).is_some());
    }

    #[test]
    fn keys_are_addresses_of_both_kinds() {
        let key = neighbour_key(IpAddr::from([10, 0, 0, 1]));
        assert_eq!((key, key_v4(key)), (v4_key(0x0a00_0001), Some(0x0a00_0001)));
        assert_eq!(key_v4(neighbour_key(IpAddr::from([0xfd00, 0, 0, 0, 0, 0, 0, 1]))), None);
    }
}
