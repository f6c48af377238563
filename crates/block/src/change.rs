//! Changes: new values for blocks, ramps to them, and repetitions.
//!
//! Scenario events, the control socket and the engine's workers all use these types.

use crate::{Spec, Value, Values};
use longwire_units::{Bytes, Nanos, Probability, Rate};

/// The blocks of a link, at most one per key. A traffic source has exactly one.
pub type Blocks = Vec<(&'static Spec, Values)>;

/// New values for one block of a link; parameters that are not given keep their values.
#[derive(Debug, Clone)]
pub struct Edit {
    /// The block's row.
    pub spec: &'static Spec,
    /// New values with the index of their parameter in the row.
    pub given: Vec<(usize, Value)>,
    /// The block made of `given` and defaults, for a link without a block of this kind; none if a parameter
    /// without a default is not given.
    pub fresh: Option<Values>,
}

/// A gradual change: from the values at its beginning to the new ones, in equal steps of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ramp {
    /// Duration; the new values hold from its end on.
    pub over: Nanos,
    /// Time between steps; more than zero.
    pub step: Nanos,
}

impl Ramp {
    /// A ramp in steps of 100 ms, or in 50 steps if these are shorter.
    pub fn new(over: Nanos) -> Self {
        Self { over, step: Nanos((over.0 / 50).clamp(1, 100_000_000)) }
    }

    /// Number of steps, the last one to the new values included.
    pub fn steps(self) -> u64 {
        self.over.0.div_ceil(self.step.0.max(1)).max(1)
    }
}

/// Repetition of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Repeat {
    /// Period; more than zero.
    pub every: Nanos,
    /// Total number of times; none for as long as the run lasts.
    pub times: Option<u64>,
}

impl Edit {
    /// The block that this edit makes of a link's `blocks`; none if the link has no block of this kind and
    /// too little is given.
    pub fn apply(&self, blocks: &Blocks) -> Option<(&'static Spec, Values)> {
        let Some(kept) = self.of_same_kind(blocks) else { return Some((self.spec, self.fresh.clone()?)) };
        let values =
            self.given.iter().fold(kept.clone(), |values, (at, value)| values.replaced(*at, value.clone()));
        Some((self.spec, values))
    }

    /// The changed settings, as they are set: `rate 1 Mbit/s, rate.burst 3 kB`; `loss none` if a block goes.
    pub fn describe(&self) -> String {
        let setting = |(at, value): &(usize, Value)| {
            let param = &self.spec.params[*at];
            // There may be no rules.
            let text = Some(value.print(param.kind)).filter(|text| !text.is_empty());
            let text = text.unwrap_or_else(|| "none".into());
            match at {
                0 => format!("{} {text}", self.spec.key),
                _ => format!("{}.{} {text}", self.spec.key, param.name),
            }
        };
        let removed = self.spec.params.is_empty().then(|| format!("{} none", self.spec.key));
        self.given.iter().map(setting).chain(removed).collect::<Vec<_>>().join(", ")
    }

    /// The values of the block that the edit changes rather than replaces.
    pub fn of_same_kind<'b>(&self, blocks: &'b Blocks) -> Option<&'b Values> {
        blocks.iter().find(|(spec, _)| spec.is(self.spec)).map(|(_, values)| values)
    }

    /// Whether `blocks` have a block of another kind for this key.
    pub fn replaces(&self, blocks: &Blocks) -> bool {
        blocks.iter().any(|(spec, _)| spec.key == self.spec.key && !spec.is(self.spec))
    }

    /// The initial values of a ramp of the link's `blocks` to this edit. None if a ramp is impossible: the
    /// block is of another kind, or a value can't be interpolated. A missing loss block or the like is
    /// treated as 0 %.
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

/// The value after `done` of `over` by linear interpolation, rounded towards `from`; none if there is nothing
/// in between.
pub fn between(from: &Value, to: &Value, done: Nanos, over: Nanos) -> Option<Value> {
    let way = |from: u64, to: u64| {
        let moved = (i128::from(to) - i128::from(from)) * i128::from(done.0) / i128::from(over.0.max(1));
        (i128::from(from) + moved) as u64
    };
    Some(match (from, to) {
        (Value::Rate(Rate::UNLIMITED), _) | (_, Value::Rate(Rate::UNLIMITED)) => return None,
        // No link sends below the minimum rate, except in an outage.
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

/// Sets a block of a link. A row without parameters removes the block of its key.
pub fn set_block(blocks: &mut Blocks, spec: &'static Spec, values: Values) {
    if spec.params.is_empty() {
        return blocks.retain(|(other, _)| other.key != spec.key);
    }
    match blocks.iter_mut().find(|(other, _)| other.key == spec.key) {
        Some(block) => *block = (spec, values),
        None => blocks.push((spec, values)),
    }
}
