//! Links and media of a checked plan.

use crate::plan_nodes::End;
use longwire_block::change::Blocks;
use longwire_block::{Dice, Spec, Value, Values};
use longwire_link::transmit::Transmit;
use longwire_units::{Nanos, Rate};

/// The blocks of a link.
#[derive(Debug, Clone)]
pub struct Profile {
    /// Blocks that the file names, one a key at most; the others have their defaults.
    pub blocks: Vec<(&'static Spec, Values)>,
    /// Whether such a link keeps a histogram of lateness.
    pub histogram: bool,
    /// How long packets travel.
    pub delays: Delays,
}

/// How long packets travel on a link.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Delays {
    /// The least time from being sent to leaving.
    pub least: Nanos,
    /// The mean delay: of jitter the configured one, of a trace that of its entries over their time.
    pub mean: Nanos,
    /// How long the link holds a packet that travels longest, and its copies, on average over how often there
    /// are any.
    pub held: Nanos,
    /// Whether it does so before the queue: as many packets as come, not as many as are sent.
    pub before_queue: bool,
}

impl Profile {
    /// The first parameter of the block for `key`, if the file names one.
    pub fn value(&self, key: &str) -> Option<Value> {
        self.blocks.iter().find(|(spec, _)| spec.key == key).map(|(_, values)| values.at(0))
    }

    /// How fast such a link sends: at the first, and of a trace in the mean.
    pub fn rate(&self) -> Rate {
        self.sender().map_or(Rate::UNLIMITED, |sender| sender.rate())
    }

    /// What it sends with, if the file names something.
    pub fn sender(&self) -> Option<Transmit> {
        let (spec, values) = self.blocks.iter().find(|(spec, _)| spec.key == "rate")?;
        Transmit::build(spec, values, || Dice::named(0, ""))
    }
}

/// A simplex link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link {
    /// Its name; those of a duplex link's halves end in `.forward` and `.backward`.
    pub name: Box<str>,
    /// Index of what it is made of.
    pub profile: u32,
    /// Its start.
    pub from: End,
    /// Its end.
    pub to: End,
}

/// A link that packets take instead of another when a filter there says so. Both begin and end at the same
/// places.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Steer {
    /// Place of the link with the filter.
    pub link: u32,
    /// Which of its filter's targets it is.
    pub number: u8,
    /// Place of the link that they take instead.
    pub target: u32,
}

/// A link that packets take instead of another when a router's program says so. Both begin and end at the
/// same places.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LinkRequest {
    /// Place of the link that they would take.
    pub link: u32,
    /// The other's number among those that programs may name.
    pub number: u16,
    /// Place of the link that they take instead.
    pub target: u32,
}

/// What several links share: each is a station of it.
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
    /// What it is made of, as its changes take it.
    pub fn blocks(&self) -> Blocks {
        vec![(self.spec, self.values.clone())]
    }
}
