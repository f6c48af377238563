//! Next hops of routes, each stored once.

use crate::adjacency::Adjacency;
use crate::group::{Group, RouteHops, Shares};
use crate::next_hop::{GroupId, NextHop};
use crate::prefix::HopId;
use std::collections::BTreeMap;

/// Next hops by number, with their reference counts.
#[derive(Debug)]
pub(crate) struct NextHops {
    hops: Vec<NextHop>,
    /// Adjacencies of gateways.
    adjacencies: Vec<Adjacency>,
    users: Vec<u32>,
    numbers: BTreeMap<NextHop, HopId>,
    free: Vec<HopId>,
    groups: Groups,
}

/// Groups of next hops by number, each stored once.
#[derive(Debug, Default)]
struct Groups {
    list: Vec<(Option<Group>, Shares)>,
    numbers: BTreeMap<Group, GroupId>,
    free: Vec<GroupId>,
}

impl NextHops {
    pub fn new() -> Self {
        // Number 0 is unused.
        Self {
            hops: vec![NextHop::Discard],
            adjacencies: vec![Adjacency::NONE],
            users: vec![0],
            numbers: BTreeMap::new(),
            free: vec![],
            groups: Groups::default(),
        }
    }

    /// Takes a reference to a destination's number; none if there are already 65535.
    pub fn take_way(&mut self, way: &RouteHops) -> Option<HopId> {
        match way {
            RouteHops::One(hop) => self.take(*hop),
            RouteHops::Several(group) => {
                let id = self.groups.take(group)?;
                let taken = self.take(NextHop::Group(id));
                // Its number was new, or the next hop's would have been known.
                if taken.is_none() {
                    self.groups.give_back(id);
                }
                taken
            }
        }
    }

    /// The destination of a next hop's route.
    pub fn way(&self, hop: NextHop) -> RouteHops {
        let several = match hop {
            NextHop::Group(id) => self.groups.list[usize::from(id.0)].0.clone(),
            _ => None,
        };
        several.map_or(RouteHops::One(hop), RouteHops::Several)
    }

    /// The next hop of a flow with this hash, among several.
    pub fn member(&self, hop: NextHop, hash: u32) -> NextHop {
        match hop {
            NextHop::Group(id) => self.groups.list[usize::from(id.0)].1.of(hash),
            hop => hop,
        }
    }

    /// Takes a reference to a next hop's number; none if there are already 65535.
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
                self.adjacencies.push(Adjacency::NONE);
                self.users.push(0);
                id
            }
        };
        (self.hops[id.index()], self.users[id.index()]) = (hop, 1);
        self.adjacencies[id.index()] = Adjacency::NONE;
        self.numbers.insert(hop, id);
        Some(id)
    }

    /// Releases a reference to a next hop.
    pub fn give_back(&mut self, id: HopId) {
        let users = &mut self.users[id.index()];
        *users -= 1;
        if *users == 0 {
            let hop = self.hops[id.index()];
            self.numbers.remove(&hop);
            self.free.push(id);
            if let NextHop::Group(group) = hop {
                self.groups.give_back(group);
            }
        }
    }

    /// The next hop with this number.
    #[inline]
    pub fn at(&self, id: HopId) -> NextHop {
        self.hops[id.index()]
    }

    /// The adjacency of the gateway with this number.
    #[inline]
    pub fn adjacency(&self, id: HopId) -> &Adjacency {
        &self.adjacencies[id.index()]
    }

    /// Stores the adjacency of the gateway with this number.
    pub fn note_adjacency(&mut self, id: HopId, adjacency: Adjacency) {
        self.adjacencies[id.index()] = adjacency;
    }
}

impl Groups {
    /// The number of a group, which is released when nothing refers to it.
    fn take(&mut self, group: &Group) -> Option<GroupId> {
        if let Some(&id) = self.numbers.get(group) {
            return Some(id);
        }
        let ready = (Some(group.clone()), Shares::new(group));
        let id = match self.free.pop() {
            Some(id) => {
                self.list[usize::from(id.0)] = ready;
                id
            }
            None => {
                let id = GroupId(u16::try_from(self.list.len()).ok()?);
                self.list.push(ready);
                id
            }
        };
        self.numbers.insert(group.clone(), id);
        Some(id)
    }

    fn give_back(&mut self, id: GroupId) {
        let slot = &mut self.list[usize::from(id.0)];
        if let Some(group) = slot.0.take() {
            self.numbers.remove(&group);
        }
        slot.1 = Shares::default();
        self.free.push(id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::group::Member;
    use std::net::IpAddr;

    #[test]
    fn groups_are_shared_and_numbers_used_again() {
        let group = |ports: std::ops::Range<u16>| {
            RouteHops::among(ports.map(|port| Member { hop: NextHop::Direct { port }, weight: 1 })).unwrap()
        };
        let mut hops = NextHops::new();
        let (one, other) = (group(1..3), group(2..5));
        let first = hops.take_way(&one).unwrap();
        let hop = hops.at(first);
        assert_eq!((hops.take_way(&one), hops.way(hop)), (Some(first), one.clone()));
        assert_eq!(hops.member(hop, 0), NextHop::Direct { port: 1 });
        assert_ne!(hops.take_way(&other), Some(first));
        hops.give_back(first);
        assert_eq!(hops.member(hop, u32::MAX), NextHop::Direct { port: 2 }, "a route is left");
        hops.give_back(first);
        let again = hops.take_way(&group(7..9)).unwrap();
        assert_eq!((again, hops.at(again)), (first, hop), "both numbers were free");
        assert_eq!(hops.member(hop, 0), NextHop::Direct { port: 7 });
        assert_eq!(hops.way(NextHop::Local), RouteHops::One(NextHop::Local));
    }

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
}
