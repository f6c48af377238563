//! Routes over links.

/// A list of links in 32 bits: a single link is its own route, others are in [`Routes`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Route(u32);

const LISTED: u32 = 1 << 31;

impl Route {
    /// No route: packets are dropped.
    pub const NONE: Self = Self(u32::MAX);

    /// Most links a plan can have.
    pub const MAX_LINKS: usize = 1 << 24;

    /// Whether there is a route.
    pub fn exists(self) -> bool {
        self != Self::NONE
    }
}

/// Routes of several links, or of none.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Routes {
    links: Vec<u32>,
    ends: Vec<u32>,
}

impl Routes {
    /// Adds a list of link places.
    pub(crate) fn add(&mut self, links: &[u32]) -> Route {
        if let [only] = links {
            return Route(*only);
        }
        self.links.extend_from_slice(links);
        self.ends.push(self.links.len() as u32);
        Route((self.ends.len() - 1) as u32 | LISTED)
    }

    /// The links of a route in order; empty if packets cross unimpaired or there is no route (see
    /// [`Route::exists`]).
    pub fn links<'a>(&'a self, route: &'a Route) -> &'a [u32] {
        if route.0 & LISTED == 0 {
            return std::slice::from_ref(&route.0);
        }
        let index = (route.0 & !LISTED) as usize;
        let Some(&end) = self.ends.get(index) else { return &[] };
        let start = if index == 0 { 0 } else { self.ends[index - 1] };
        &self.links[start as usize..end as usize]
    }

    /// Links in the table, over all routes.
    pub fn listed(&self) -> usize {
        self.links.len()
    }
}
