//! What a derived struct is: a row, and the values read for it with their types.

use crate::value::{Limit, Millionths, Value};
use crate::values::Values;
use crate::{Spec, SpecError};
use longwire_units::{Bytes, Nanos, Probability, Rate};
use std::any::Any;
use std::slice;
use std::sync::Arc;

/// Settings that are declared together, such as those of a block. Made by `#[derive(Settings)]`.
///
/// The struct says `#[settings(key = "…", kind = "…", source = "…")]`, and its doc comment is the summary. A field's doc comment is what it
/// means; its type says what values it takes, and `#[setting(…)]` the rest:
///
/// - `default = "…"`: what it is when it is not given; without this it has to be given;
/// - `min = …`, `max = …`: the range of a number, a size or a time, in the field's own type; times begin at zero if not otherwise said;
/// - `grammar = …`: how an `Arc<T>` is read from a text, a [`Grammar`](crate::Grammar);
/// - `like = …`: that it is the same as a [`Param`](crate::Param) that others have, too, with its name; what is said besides comes in its place;
/// - `skip`: that it is no setting, but something that is found out later, and of its type's default until then;
/// - `name = "…"`: its name, where the field's own, with hyphens, won't do.
pub trait Settings: Sized {
    /// The row.
    const SPEC: Spec;

    /// What values that were read for the row say.
    ///
    /// # Panics
    /// If they were read for another.
    fn of(values: &Values) -> Self;

    /// What they are when nothing is given.
    ///
    /// # Panics
    /// If there is one that has to be given.
    fn defaults() -> Self {
        Self::read(&[]).unwrap_or_else(|error| panic!("{error}"))
    }

    /// Reads `given` pairs of name and text, filling in defaults; files are looked for in the current folder.
    ///
    /// # Errors
    /// As [`Values::read`].
    fn read(given: &[(&str, &str)]) -> Result<Self, SpecError> {
        Values::read(&Self::SPEC, given).map(|values| Self::of(&values))
    }
}

/// One of several words. Made by `#[derive(Choice)]` for an enum: the words are the variants' names, with hyphens.
pub trait Choice: Copy + Sized + 'static {
    /// The words.
    const WORDS: &'static [&'static str];
    /// What they stand for, in the same order.
    const ALL: &'static [Self];
}

/// A type that a setting can have.
pub trait Setting: Sized {
    /// What a value is as this type; none if it is of another.
    fn of(value: &Value) -> Option<Self>;
}

/// The next value, as its type.
///
/// # Panics
/// If there is none, or it is of another type: values were read for another row.
pub fn take<T: Setting>(values: &mut slice::Iter<'_, Value>) -> T {
    let value = values.next();
    match value.and_then(T::of) {
        Some(setting) => setting,
        None => panic!("{value:?} was read for another row"),
    }
}

macro_rules! setting {
    ($($type:ty: $pattern:pat => $found:expr;)+) => {
        $(impl Setting for $type {
            fn of(value: &Value) -> Option<Self> {
                match *value {
                    $pattern => $found,
                    _ => None,
                }
            }
        })+
    };
}

setting! {
    Rate: Value::Rate(rate) => Some(rate);
    Nanos: Value::Time(time) => Some(time);
    Probability: Value::Probability(probability) => Some(probability);
    u64: Value::Integer(number) => Some(number);
    u32: Value::Integer(number) => number.try_into().ok();
    u16: Value::Integer(number) => number.try_into().ok();
    usize: Value::Integer(number) => number.try_into().ok();
    Bytes: Value::Bytes(bytes) => Some(bytes);
    Millionths: Value::Decimal(millionths) => Some(Self(millionths));
    bool: Value::Choice(word) => Some(word == 1);
}

impl Setting for Limit {
    fn of(value: &Value) -> Option<Self> {
        match *value {
            Value::Packets(packets) => Some(Self::Packets(packets)),
            Value::Bytes(bytes) => Some(Self::Bytes(bytes)),
            Value::Waiting(time) => Some(Self::Waiting(time)),
            _ => None,
        }
    }
}

impl Choice for bool {
    const WORDS: &'static [&'static str] = &["no", "yes"];
    const ALL: &'static [Self] = &[false, true];
}

impl<T: Any + Send + Sync> Setting for Arc<T> {
    fn of(value: &Value) -> Option<Self> {
        match value {
            Value::Parsed(parsed) => Arc::clone(&parsed.value).downcast().ok(),
            _ => None,
        }
    }
}
