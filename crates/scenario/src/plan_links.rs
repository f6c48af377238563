//! Links, routes over them, and media of a checked plan.

use crate::plan_nodes::End;
use longwire_block::change::Blocks;
use longwire_block::{Dice, Spec, Value, Values};
use longwire_link::transmit::Transmit;
use longwire_units::{Nanos, Rate};

/// The blocks of a link.
#[derive(Debug, Clone)]
pub struct Profile {
    /// Blocks that the file names, at most one per key; others have their defaults.
    pub blocks: Vec<(&'static Spec, Values)>,
    /// Whether links record a histogram of lateness.
    pub histogram: bool,
    /// Delays.
    pub delays: Delays,
}

/// Delays of packets on a link.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Delays {
    /// Least time from transmission to departure.
    pub least: Nanos,
    /// Shortest time from transmission to departure of any packet, also if delays vary, where `least` is 0.
    /// 0 of a trace.
    pub shortest: Nanos,
    /// Mean delay: for jitter the configured one, or more where the cut at 0 adds to it; the time average for
    /// a trace.
    pub mean: Nanos,
    /// Longest time a packet is held, plus that of its copies times their probability.
    pub held: Nanos,
    /// Whether the delay comes before the queue: then it holds arrivals, not departures.
    pub before_queue: bool,
}

impl Profile {
    /// The block of `key`, if the file names one.
    pub(crate) fn block(&self, key: &str) -> Option<&(&'static Spec, Values)> {
        block(&self.blocks, key)
    }

    /// The first parameter of the block of `key`, if the file names one.
    pub fn value(&self, key: &str) -> Option<Value> {
        self.block(key).map(|(_, values)| values.at(0))
    }

    /// The rate: the initial one, or the mean of a trace.
    pub fn rate(&self) -> Rate {
        self.sender().map_or(Rate::UNLIMITED, |sender| sender.rate())
    }

    /// The transmitter, if the file names one.
    pub fn sender(&self) -> Option<Transmit> {
        let (spec, values) = self.block("rate")?;
        Transmit::build(spec, values, || Dice::named(0, ""))
    }
}

/// The block of `key`, if there is one.
pub(crate) fn block<'b>(
    blocks: &'b [(&'static Spec, Values)],
    key: &str,
) -> Option<&'b (&'static Spec, Values)> {
    blocks.iter().find(|(spec, _)| spec.key == key)
}

/// A simplex link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link {
    /// Its name; those of a duplex link's halves end in `.forward` and `.backward`.
    pub name: Box<str>,
    /// Index of its blocks in [`Plan::profiles`](crate::Plan::profiles).
    pub profile: u32,
    /// Its start.
    pub from: End,
    /// Its end.
    pub to: End,
    /// The direction of the profiles to which it is set while it runs.
    pub direction: Direction,
}

/// A link to which another's filter steers packets. Both have the same ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Steer {
    /// Place of the link with the filter.
    pub link: u32,
    /// Index among that filter's targets.
    pub number: u8,
    /// Place of the chosen link.
    pub target: u32,
}

/// A link that a router's program may choose instead of another. Both have the same ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LinkRequest {
    /// Place of the link they would take.
    pub link: u32,
    /// The chosen link's number for programs.
    pub number: u16,
    /// Place of the chosen link.
    pub target: u32,
}

/// A shared medium: each link is a station.
#[derive(Debug, Clone)]
pub struct Medium {
    /// Its name.
    pub name: Box<str>,
    /// Its kind: one of [`longwire_link::MEDIA`].
    pub spec: &'static Spec,
    /// Its settings.
    pub values: Values,
    /// Places of its links, ascending.
    pub links: Vec<u32>,
}

impl Medium {
    /// Its settings in the form of blocks, for edits.
    pub fn blocks(&self) -> Blocks {
        vec![(self.spec, self.values.clone())]
    }
}

/// A direction of a link with a profile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// To the user: down.
    Forward,
    /// From the user: up.
    Backward,
}

impl Direction {
    /// The suffix of a profile's name that selects this direction.
    pub const fn suffix(self) -> &'static str {
        match self {
            Self::Forward => ".forward",
            Self::Backward => ".backward",
        }
    }

    /// A profile's name without the suffix that selects a direction, and that direction.
    pub fn split(name: &str) -> (&str, Option<Self>) {
        let selected = |way: Self| Some((name.strip_suffix(way.suffix())?, Some(way)));
        selected(Self::Forward).or_else(|| selected(Self::Backward)).unwrap_or((name, None))
    }
}

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
