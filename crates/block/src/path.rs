//! How a packet's way through the links is written in `Meta::path`, in 32 bits.
//!
//! A [`LinkRef`] names a link by the worker that owns it and its place there. A path of one link is that reference
//! itself, so that a million one-link paths cost nothing; a longer one is a cursor into the plan's table of hops.

/// A link as the engine finds it: worker (7 bits) and place among that worker's links (24 bits).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LinkRef(u32);

/// Most links one worker can own.
pub const MAX_LINKS: u32 = 1 << 24;
/// Most workers.
pub const MAX_WORKERS: u32 = 1 << 7;

/// `Meta::path` of a packet that has no (more) links ahead.
pub const DIRECT: u32 = u32::MAX;

/// `Meta::path` of a packet that no way leads from where it came in to where it wants to go.
pub const NOWHERE: u32 = u32::MAX - 2;

/// `Meta::path` of a packet that a node has yet to decide about, in its turn.
pub const UNDECIDED: u32 = u32::MAX - 3;

const CURSOR: u32 = 1 << 31;

impl LinkRef {
    /// The link at `local` of `worker`.
    ///
    /// # Panics
    /// If either is out of range: the plan's checks keep them below [`MAX_WORKERS`] and [`MAX_LINKS`].
    pub fn new(worker: u32, local: u32) -> Self {
        assert!(worker < MAX_WORKERS && local < MAX_LINKS);
        Self(worker << 24 | local)
    }

    /// The worker that owns it.
    #[inline]
    pub const fn worker(self) -> u32 {
        self.0 >> 24
    }

    /// Its place among the worker's links.
    #[inline]
    pub const fn local(self) -> u32 {
        self.0 & (MAX_LINKS - 1)
    }
}

/// The table of paths longer than one link. Every worker has the same.
#[derive(Debug, Clone, Default)]
pub struct Paths {
    hops: Vec<u32>,
}

impl Paths {
    /// Writes a path down and returns what `Meta::path` has to hold: [`DIRECT`] for no link.
    pub fn add(&mut self, links: &[LinkRef]) -> u32 {
        match links {
            [] => DIRECT,
            [only] => only.0,
            _ => {
                let cursor = self.hops.len() as u32 | CURSOR;
                self.hops.extend(links.iter().map(|link| link.0));
                self.hops.push(DIRECT);
                cursor
            }
        }
    }

    /// The link that a packet with this `path` is to enter, or is in.
    #[inline]
    pub fn link(&self, path: u32) -> Option<LinkRef> {
        if path & CURSOR == 0 {
            return Some(LinkRef(path));
        }
        match self.hops.get((path & !CURSOR) as usize) {
            Some(&DIRECT) | None => None,
            Some(&link) => Some(LinkRef(link)),
        }
    }

    /// The path that is left after its first link.
    #[inline]
    pub fn advance(&self, path: u32) -> u32 {
        if path & CURSOR == 0 {
            return DIRECT;
        }
        match self.hops.get((path & !CURSOR) as usize + 1) {
            Some(&DIRECT) | None => DIRECT,
            Some(_) => path + 1,
        }
    }
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
}
