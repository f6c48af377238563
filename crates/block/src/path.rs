//! Encoding of a packet's path through the links in `Meta::path`, in 32 bits.
//!
//! A [`LinkRef`] names a link by its worker and its index there. A path of one link is that reference itself,
//! so a million one-link paths cost nothing. A longer path is a cursor into the plan's table of hops.
//!
//! A flooded packet follows a tree of paths that contains each link once; it is copied where paths diverge,
//! at a [`Fork`].

use crate::FLOOD;
use std::collections::HashMap;
use std::collections::hash_map::Entry;

/// Reference to a link: worker (7 bits) and index among that worker's links (24 bits).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LinkRef(u32);

/// Most links one worker can own.
pub const MAX_LINKS: u32 = 1 << 24;
/// Most workers.
pub const MAX_WORKERS: u32 = 1 << 7;

/// `Meta::path` of a packet with no (more) links ahead.
pub const DIRECT: u32 = u32::MAX;

/// `Meta::path` of a packet without a path from its input to its destination.
pub const NOWHERE: u32 = u32::MAX - 2;

/// `Meta::path` of a packet that a node has yet to decide about, in its turn.
pub const UNDECIDED: u32 = u32::MAX - 3;

/// Marks a cursor in `Meta::path`, and a fork among hops.
const CURSOR: u32 = 1 << 31;

/// A point at which the paths of a flooded packet diverge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fork(u32);

/// One of the paths from a fork.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Branch {
    /// Its path: [`DIRECT`] if it leads to a port without links, [`NOWHERE`] if there is none.
    pub path: u32,
    /// Its port (place in the plan), or [`FLOOD`] if it forks again.
    pub port: u16,
    /// The lowest place among its ports.
    pub first: u16,
}

/// A path to a port: the port's place in the plan, and the links, or none if there is no path.
pub type PortPath<'a> = (u16, Option<&'a [LinkRef]>);

impl LinkRef {
    /// The link at `local` of `worker`.
    ///
    /// # Panics
    /// If either is out of range: the plan's checks keep them below [`MAX_WORKERS`] and [`MAX_LINKS`].
    pub fn new(worker: u32, local: u32) -> Self {
        assert!(worker < MAX_WORKERS && local < MAX_LINKS);
        Self(worker << 24 | local)
    }

    /// The first link of a worker, encoded as a path. Other one-link paths of this worker differ from it only
    /// in the index.
    #[inline]
    pub const fn first_of(worker: u32) -> u32 {
        worker << 24
    }

    /// The worker that owns it.
    #[inline]
    pub const fn worker(self) -> u32 {
        self.0 >> 24
    }

    /// Its index among the worker's links.
    #[inline]
    pub const fn local(self) -> u32 {
        self.0 & (MAX_LINKS - 1)
    }
}

/// The table of paths longer than one link, the same in every worker.
#[derive(Debug, Clone, Default)]
pub struct Paths {
    hops: Vec<u32>,
    forks: Vec<Box<[Branch]>>,
}

impl Paths {
    /// Adds a path and returns its `Meta::path`: [`DIRECT`] for no links.
    pub fn add(&mut self, links: &[LinkRef]) -> u32 {
        match links {
            [] => DIRECT,
            [only] => only.0,
            _ => self.write(links, DIRECT),
        }
    }

    /// Adds the tree of the paths from one port to others, in the order of their places. None if no two paths
    /// begin with the same link, so that copies can be made at once.
    pub fn add_tree(&mut self, ways: &[PortPath<'_>]) -> Option<Fork> {
        let groups = groups(ways);
        if groups.iter().all(|group| group.len() == 1) {
            return None;
        }
        let root = self.new_fork();
        // Iterative, because a tree may fork at every link of its longest path.
        let mut waiting = vec![(root, groups)];
        while let Some((fork, groups)) = waiting.pop() {
            let branches = groups.into_iter().map(|group| self.add_branch(&group, &mut waiting)).collect();
            self.forks[fork.0 as usize] = branches;
        }
        Some(root)
    }

    /// Adds a fork without branches.
    fn new_fork(&mut self) -> Fork {
        self.forks.push(Box::default());
        Fork(self.forks.len() as u32 - 1)
    }

    /// Adds a branch for one path or for paths that begin with the same link. For several, their fork joins
    /// those that wait for their branches.
    fn add_branch<'a>(
        &mut self,
        group: &[PortPath<'a>],
        waiting: &mut Vec<(Fork, Vec<Vec<PortPath<'a>>>)>,
    ) -> Branch {
        let (first, links) = group[0];
        let Some(links) = links else { return Branch { path: NOWHERE, port: first, first } };
        if group.len() == 1 {
            return Branch { path: self.add(links), port: first, first };
        }
        let shared =
            |at: usize| group.iter().all(|(_, way)| way.and_then(|way| way.get(at)) == links.get(at));
        let together = (1..links.len()).find(|&at| !shared(at)).unwrap_or(links.len());
        let rests: Vec<PortPath<'a>> =
            group.iter().map(|&(port, way)| (port, way.map(|way| &way[together..]))).collect();
        let fork = self.new_fork();
        waiting.push((fork, groups(&rests)));
        Branch { path: self.write(&links[..together], fork.0 | CURSOR), port: FLOOD, first }
    }

    fn write(&mut self, links: &[LinkRef], end: u32) -> u32 {
        let cursor = self.hops.len() as u32 | CURSOR;
        self.hops.extend(links.iter().map(|link| link.0));
        self.hops.push(end);
        cursor
    }

    /// Each path as it was added, without those that end in forks, by its links.
    pub fn whole(&self) -> HashMap<Vec<LinkRef>, u32> {
        let mut all = HashMap::new();
        let mut first = 0;
        for (place, hop) in self.hops.iter().enumerate().filter(|(_, hop)| **hop & CURSOR != 0) {
            if *hop == DIRECT {
                let links = self.hops[first..place].iter().map(|hop| LinkRef(*hop)).collect();
                all.entry(links).or_insert(first as u32 | CURSOR);
            }
            first = place + 1;
        }
        all
    }

    /// Every path in the table that begins with `link`, suffixes of longer ones included.
    pub fn before(&self, link: LinkRef) -> Vec<u32> {
        let places = self.hops.iter().enumerate().filter(|(_, hop)| **hop == link.0);
        places.map(|(place, _)| place as u32 | CURSOR).collect()
    }

    /// Adds a copy of a path with another first link.
    pub fn add_instead(&mut self, path: u32, link: LinkRef) -> u32 {
        let mut links = vec![link];
        let mut rest = (path & !CURSOR) as usize + 1;
        while self.hops[rest] & CURSOR == 0 {
            links.push(LinkRef(self.hops[rest]));
            rest += 1;
        }
        match self.hops[rest] {
            DIRECT => self.add(&links),
            fork => self.write(&links, fork),
        }
    }

    /// The next or current link of a packet with this `path`.
    #[inline]
    pub fn link(&self, path: u32) -> Option<LinkRef> {
        if path & CURSOR == 0 {
            return Some(LinkRef(path));
        }
        let hop = *self.hops.get((path & !CURSOR) as usize)?;
        (hop & CURSOR == 0).then_some(LinkRef(hop))
    }

    /// Whether a path is a single link, with nothing behind it.
    #[inline]
    pub const fn is_one_link(path: u32) -> bool {
        path & CURSOR == 0
    }

    /// The path after its first link; [`DIRECT`] if nothing is left.
    #[inline]
    pub fn advance(&self, path: u32) -> u32 {
        if path & CURSOR == 0 {
            return DIRECT;
        }
        match self.hops.get((path & !CURSOR) as usize + 1) {
            Some(&link) if link & CURSOR == 0 => path + 1,
            _ => DIRECT,
        }
    }

    /// The fork behind the current link of a flooded packet with this `path`.
    pub fn fork_after(&self, path: u32) -> Option<Fork> {
        let hop = *self.hops.get((path & !CURSOR) as usize + 1)?;
        (path & CURSOR != 0 && hop & CURSOR != 0 && hop != DIRECT).then_some(Fork(hop & !CURSOR))
    }

    /// The branches of a fork, in the order of their ports.
    pub fn branches(&self, fork: Fork) -> &[Branch] {
        &self.forks[fork.0 as usize]
    }
}

/// Groups paths by their first link, in order of appearance; each path without links is a group by itself.
fn groups<'a>(ways: &[PortPath<'a>]) -> Vec<Vec<PortPath<'a>>> {
    let mut groups: Vec<Vec<PortPath<'a>>> = Vec::new();
    let mut places: HashMap<LinkRef, usize> = HashMap::new();
    for &way in ways {
        match way.1.and_then(<[LinkRef]>::first).map(|link| places.entry(*link)) {
            Some(Entry::Occupied(place)) => groups[*place.get()].push(way),
            Some(Entry::Vacant(place)) => {
                place.insert(groups.len());
                groups.push(vec![way]);
            }
            None => groups.push(vec![way]),
        }
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn walks_paths_of_any_length() {
        let link = |n| LinkRef::new(n % 3, n);
        let mut paths = Paths::default();
        for length in [0, 1, 2, 5, 1, 3] {
            let wanted: Vec<_> = (10..10 + length).map(link).collect();
            let mut path = paths.add(&wanted);
            let mut walked = Vec::new();
            while let Some(link) = paths.link(path) {
                walked.push(link);
                path = paths.advance(path);
            }
            assert_eq!(walked, wanted);
            assert_eq!(path, DIRECT);
        }
    }

    #[test]
    fn keeps_worker_and_place_apart() {
        let link = LinkRef::new(5, MAX_LINKS - 1);
        assert_eq!((link.worker(), link.local()), (5, MAX_LINKS - 1));
    }

    /// Paths to 1 over link 7, to 2 over 7, 8 and 9, to 3 over 7, 8 and 10, to 4 directly, to 5 over 11; none
    /// to 6.
    #[test]
    fn a_tree_has_each_link_once() {
        let link = |n| LinkRef::new(0, n);
        let lists: Vec<Vec<LinkRef>> = [&[7][..], &[7, 8, 9], &[7, 8, 10], &[], &[11]]
            .map(|list| list.iter().map(|&n| link(n)).collect())
            .into();
        let mut ways: Vec<PortPath<'_>> =
            lists.iter().enumerate().map(|(at, list)| (at as u16 + 1, Some(&list[..]))).collect();
        ways.push((6, None));
        let mut paths = Paths::default();
        assert_eq!(paths.add_tree(&ways[3..]), None, "nothing is shared");
        let root = paths.add_tree(&ways).unwrap();
        let branches = paths.branches(root).to_vec();
        let told: Vec<_> = branches.iter().map(|branch| (branch.port, branch.first)).collect();
        assert_eq!(told, [(FLOOD, 1), (4, 4), (5, 5), (6, 6)]);
        assert_eq!((branches[1].path, paths.link(branches[2].path)), (DIRECT, Some(link(11))));
        assert_eq!(branches[3].path, NOWHERE);
        let shared = branches[0].path;
        assert_eq!((paths.link(shared), paths.link(paths.advance(shared))), (Some(link(7)), None));
        let second = paths.branches(paths.fork_after(shared).unwrap()).to_vec();
        assert_eq!(
            (second[0], second[1].port, second[1].first),
            (Branch { path: DIRECT, port: 1, first: 1 }, FLOOD, 2)
        );
        assert_eq!(paths.link(second[1].path), Some(link(8)));
        let last = paths.branches(paths.fork_after(second[1].path).unwrap());
        let ends: Vec<_> = last.iter().map(|branch| (branch.port, paths.link(branch.path))).collect();
        assert_eq!(ends, [(2, Some(link(9))), (3, Some(link(10)))]);
        assert_eq!((paths.fork_after(branches[2].path), paths.fork_after(DIRECT)), (None, None));
        // Steered from link 7 to 20: the fork behind it is the same.
        let [at] = paths.before(link(7))[..] else { panic!() };
        let instead = paths.add_instead(at, link(20));
        assert_eq!(paths.link(instead), Some(link(20)));
        assert_eq!(paths.fork_after(instead), paths.fork_after(shared));
    }

    /// A row of bridges with a port each: the tree forks behind every link, too deep for recursion.
    #[test]
    fn a_deep_tree_takes_no_stack() {
        const DEPTH: u16 = 3000;
        let links: Vec<LinkRef> = (0..u32::from(DEPTH)).map(|n| LinkRef::new(0, n)).collect();
        let depth = move || {
            let ways: Vec<PortPath<'_>> =
                (1..=DEPTH).map(|at| (at, Some(&links[..usize::from(at)]))).collect();
            let mut paths = Paths::default();
            let root = paths.add_tree(&ways).unwrap();
            let mut branches = paths.branches(root).to_vec();
            let mut ports = Vec::new();
            while let Some(on) = branches.iter().find(|branch| branch.port == FLOOD) {
                let fork = paths.fork_after(on.path).unwrap();
                ports.extend(paths.branches(fork).iter().map(|one| one.port).filter(|port| *port != FLOOD));
                branches = paths.branches(fork).to_vec();
            }
            ports
        };
        let thread = std::thread::Builder::new().stack_size(64 << 10).spawn(depth).unwrap();
        assert_eq!(thread.join().unwrap(), (1..=DEPTH).collect::<Vec<_>>());
    }

    #[test]
    fn another_link_in_place_of_the_first() {
        let link = |n| LinkRef::new(0, n);
        let mut paths = Paths::default();
        let path = paths.add(&[link(1), link(2), link(3)]);
        assert_eq!(paths.before(link(2)), [paths.advance(path)]);
        let instead = paths.add_instead(paths.advance(path), link(9));
        assert_eq!((paths.link(instead), paths.link(paths.advance(instead))), (Some(link(9)), Some(link(3))));
        assert_eq!(paths.add_instead(paths.advance(paths.advance(path)), link(9)), link(9).0);
    }
}
