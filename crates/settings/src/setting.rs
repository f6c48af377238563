//! Traits of derived structs: the row, and conversion of values to typed fields.

use crate::value::{Limit, Millionths, Value};
use crate::values::Values;
use crate::{Choice, Spec, SpecError};
use longwire_units::{Bytes, Nanos, Probability, Rate};
use std::any::Any;
use std::slice;
use std::sync::Arc;

/// Settings declared together, such as those of a block. Implemented by `#[derive(Settings)]`.
///
/// The struct has `#[settings(key = "…", kind = "…", source = "…")]`, and its doc comment is the summary. A
/// field's doc comment is its help; its type defines the accepted values, and `#[setting(…)]` the rest:
///
/// - `default = "…"`: the default; without one the setting is required;
/// - `default_is = "…"`: in words, what holds if an `Option<T>` is not given;
/// - `min = …`, `max = …`: the range of a number, a size or a time, in the field's own type; the default
///   minimum of times is zero;
/// - `grammar = …`: the parser of an `Arc<T>`, a [`Grammar`](crate::Grammar);
/// - `live`: it can change at run time; in `#[settings(…)]`, all of them can;
/// - `like = …`: copies a shared [`Param`](crate::Param), including its name; other attributes override it;
/// - `skip`: not a setting, but a value that is determined later and has its type's default until then;
/// - `name = "…"`: the name, where the field's own, with hyphens, is unsuitable.
pub trait Settings: Sized {
    /// The row.
    const SPEC: Spec;

    /// Converts values that were read for the row.
    ///
    /// # Panics
    /// If they were read for another row.
    fn of(values: &Values) -> Self;

    /// The settings when nothing is given.
    ///
    /// # Panics
    /// If one is required.
    fn defaults() -> Self {
        Self::read(&[]).unwrap_or_else(|error| panic!("{error}"))
    }

    /// Reads `given` pairs of name and text, filling in defaults; file names are relative to the current
    /// folder.
    ///
    /// # Errors
    /// As [`Values::read`].
    fn read(given: &[(&str, &str)]) -> Result<Self, SpecError> {
        Values::read(&Self::SPEC, given).map(|values| Self::of(&values))
    }
}

/// A type of settings.
pub trait Setting: Sized {
    /// Converts a value to this type; none if it has another.
    fn of(value: &Value) -> Option<Self>;
}

/// Takes the next value as its type.
///
/// # Panics
/// If there is none, or it has another type, because values were read for another row.
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
    u8: Value::Integer(number) => number.try_into().ok();
    usize: Value::Integer(number) => number.try_into().ok();
    Bytes: Value::Bytes(bytes) => Some(bytes);
    Millionths: Value::Decimal(millionths) => Some(Self(millionths));
}

impl<T: Choice> Setting for T {
    fn of(value: &Value) -> Option<Self> {
        match *value {
            Value::Choice(word) => Self::ALL.get(word).copied(),
            _ => None,
        }
    }
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

impl<T: Setting> Setting for Option<T> {
    fn of(value: &Value) -> Option<Self> {
        match value {
            Value::Absent => Some(None),
            given => T::of(given).map(Some),
        }
    }
}

impl<T: Any + Send + Sync> Setting for Arc<T> {
    fn of(value: &Value) -> Option<Self> {
        match value {
            Value::Parsed(parsed) => Arc::clone(&parsed.value).downcast().ok(),
            _ => None,
        }
    }
}
