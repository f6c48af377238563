//! What a change says, whoever makes it and whatever carries it out: new values for blocks, ramps to them,
//! repetitions.
//!
//! A scenario's events, people at the control socket and the engine's workers mean the same by it.

use crate::{Spec, Value, Values};
use longwire_units::{Bytes, Nanos, Probability, Rate};

/// What a link is made of: a block a key at most. A traffic source is made of one alone.
pub type Blocks = Vec<(&'static Spec, Values)>;

/// New values for one block of a link; parameters that are not named keep theirs.
#[derive(Debug, Clone)]
pub struct Edit {
    /// The block's row.
    pub spec: &'static Spec,
    /// Parameters by their place in the row, with their new values.
    pub given: Vec<(usize, Value)>,
    /// The block made of `given` and defaults, for a link that has none of this kind; none if a parameter
    /// without a default is not given.
    pub fresh: Option<Values>,
}

/// A change that takes its time: from the values that hold when it begins to the new ones, in equal steps of
/// time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ramp {
    /// How long it takes; the new values hold from its end on.
    pub over: Nanos,
    /// How far apart the steps are; more than zero.
    pub step: Nanos,
}

impl Ramp {
    /// A ramp in steps of 100 ms, or in 50 steps if these are shorter.
    pub fn new(over: Nanos) -> Self {
        Self { over, step: Nanos((over.0 / 50).clamp(1, 100_000_000)) }
    }

    /// How many steps it has, the last one to the new values included.
    pub fn steps(self) -> u64 {
        self.over.0.div_ceil(self.step.0.max(1)).max(1)
    }
}

/// A change that comes again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Repeat {
    /// How far apart; more than zero.
    pub every: Nanos,
    /// How many times in all; none for as long as the run goes on.
    pub times: Option<u64>,
}

impl Edit {
    /// The block that this makes of a link's `blocks`; none if it has none of this kind and too little is
    /// given.
    pub fn apply(&self, blocks: &Blocks) -> Option<(&'static Spec, Values)> {
        let Some(kept) = self.of_same_kind(blocks) else { return Some((self.spec, self.fresh.clone()?)) };
        let values =
            self.given.iter().fold(kept.clone(), |values, (at, value)| values.replaced(*at, value.clone()));
        Some((self.spec, values))
    }

    /// The values of the block that is changed and not replaced.
    pub fn of_same_kind<'b>(&self, blocks: &'b Blocks) -> Option<&'b Values> {
        blocks.iter().find(|(spec, _)| spec.is(self.spec)).map(|(_, values)| values)
    }

    /// Whether `blocks` have a block of another kind for this key.
    pub fn replaces(&self, blocks: &Blocks) -> bool {
        blocks.iter().any(|(spec, _)| spec.key == self.spec.key && !spec.is(self.spec))
    }

    /// The values that a ramp of the link's `blocks` to this begins with; none if it can't be one, because
    /// the block is of another kind or a value has no way in between. A loss or the like that a link has not
    /// is one of 0 %.
    pub fn begins(&self, blocks: &Blocks) -> Option<Vec<Value>> {
        if self.replaces(blocks) {
            return None;
        }
        let kept = self.of_same_kind(blocks);
        let begin = |(at, to): &(usize, Value)| {
            let from = match (kept, to) {
                (Some(values), _) => values.at(*at),
                (None, Value::Probability(_)) => Value::Probability(Probability::ZERO),
                _ => return None,
            };
            between(&from, to, Nanos::ZERO, Nanos(1)).map(|_| from)
        };
        self.given.iter().map(begin).collect()
    }
}

/// The value `done` of `over` on the straight way between two, rounded towards the first; none if there is
/// none between them.
pub fn between(from: &Value, to: &Value, done: Nanos, over: Nanos) -> Option<Value> {
    let way = |from: u64, to: u64| {
        let moved = (i128::from(to) - i128::from(from)) * i128::from(done.0) / i128::from(over.0.max(1));
        (i128::from(from) + moved) as u64
    };
    Some(match (from, to) {
        (Value::Rate(Rate::UNLIMITED), _) | (_, Value::Rate(Rate::UNLIMITED)) => return None,
        // No link sends slower than the least rate, but for an outage.
        (Value::Rate(from), Value::Rate(to)) => match way(from.0, to.0) {
            0 => Value::Rate(Rate::STALLED),
            rate => Value::Rate(Rate(rate).max(Rate::MIN)),
        },
        (Value::Time(from), Value::Time(to)) => Value::Time(Nanos(way(from.0, to.0))),
        (Value::Probability(from), Value::Probability(to)) => {
            Value::Probability(Probability::from_bits(way(from.bits(), to.bits())))
        }
        (Value::Integer(from), Value::Integer(to)) => Value::Integer(way(*from, *to)),
        (Value::Decimal(from), Value::Decimal(to)) => Value::Decimal(way(*from, *to)),
        (Value::Bytes(from), Value::Bytes(to)) => Value::Bytes(Bytes(way(from.0, to.0))),
        _ => return None,
    })
}

/// Sets a block of a link. A row without parameters stands for having none of its key.
pub fn set_block(blocks: &mut Blocks, spec: &'static Spec, values: Values) {
    if spec.params.is_empty() {
        return blocks.retain(|(other, _)| other.key != spec.key);
    }
    match blocks.iter_mut().find(|(other, _)| other.key == spec.key) {
        Some(block) => *block = (spec, values),
        None => blocks.push((spec, values)),
    }
}
