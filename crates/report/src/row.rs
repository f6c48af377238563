//! A row: one quantity with its expected and measured value.

use crate::own_name;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::fmt;

/// Reserved names of a row, which extra fields can't use.
const OWN_FIELDS: [&str; 7] = ["name", "expected", "measured", "unit", "error_percent", "pass", "notes"];

/// A value in a row. Whole numbers stay whole in the JSON.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Scalar {
    /// A whole number.
    Whole(i64),
    /// A finite number with a fraction.
    Real(f64),
    /// A word, where the quantity is not a number: the name of a driver, `unlimited`.
    Text(String),
}

impl Scalar {
    /// The number, if it is one.
    pub fn as_f64(&self) -> Option<f64> {
        match self {
            Self::Whole(value) => Some(*value as f64),
            Self::Real(value) => Some(*value),
            Self::Text(_) => None,
        }
    }
}

impl fmt::Display for Scalar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Whole(value) => value.fmt(f),
            Self::Real(value) => value.fmt(f),
            Self::Text(text) => text.fmt(f),
        }
    }
}

impl From<f64> for Scalar {
    /// JSON has no infinities and no NaN: they are written as words.
    fn from(value: f64) -> Self {
        if value.is_finite() { Self::Real(value) } else { Self::Text(value.to_string()) }
    }
}

macro_rules! whole {
    ($($type:ty),+) => {$(
        impl From<$type> for Scalar {
            /// Numbers beyond 2⁶³ lose their last digits.
            fn from(value: $type) -> Self {
                i64::try_from(value).map_or(Self::Real(value as f64), Self::Whole)
            }
        }
    )+};
}
whole!(i64, u64, usize);

impl From<i32> for Scalar {
    fn from(value: i32) -> Self {
        Self::Whole(i64::from(value))
    }
}

impl From<u32> for Scalar {
    fn from(value: u32) -> Self {
        Self::Whole(i64::from(value))
    }
}

impl From<&str> for Scalar {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for Scalar {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

/// One quantity of a result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// Name of the quantity.
    pub name: String,
    /// The configured or theoretical value; none if there is none.
    pub expected: Option<Scalar>,
    /// The measured value; none if it could not be measured, which a note explains.
    pub measured: Option<Scalar>,
    /// Unit of both: `bit/s`, `ns`, `s`, `bytes`, `packets`, `%`, or empty.
    pub unit: String,
    /// (measured − expected) / expected · 100; none unless both are numbers and the expected one is not 0.
    pub error_percent: Option<f64>,
    /// Whether the value is acceptable; none if it was not judged.
    pub pass: Option<bool>,
    /// Notes for the reader about this row.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// Further fields of this row, at the same level as the others.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl Row {
    /// A row without values that is not judged.
    pub fn new(name: impl Into<String>, unit: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            expected: None,
            measured: None,
            unit: unit.into(),
            error_percent: None,
            pass: None,
            notes: Vec::new(),
            extra: Map::new(),
        }
    }

    /// Sets the configured or theoretical value.
    pub fn expected(mut self, value: impl Into<Scalar>) -> Self {
        self.expected = Some(value.into());
        self.compare()
    }

    /// Sets the measured value.
    pub fn measured(mut self, value: impl Into<Scalar>) -> Self {
        self.measured = Some(value.into());
        self.compare()
    }

    /// Passes if the error is at most `percent` either way. Call it after both values are set; without an
    /// error it fails.
    pub fn within_percent(self, percent: f64) -> Self {
        let pass = self.error_percent.is_some_and(|error| error.abs() <= percent);
        self.judged(pass)
    }

    /// Passes if measured and expected differ by at most `tolerance`, in the row's unit. Without two numbers
    /// it fails.
    pub fn within(self, tolerance: f64) -> Self {
        self.judge(|expected, measured| (measured - expected).abs() <= tolerance)
    }

    /// Passes if measured is the expected value or more. Without two numbers it fails.
    pub fn at_least(self) -> Self {
        self.judge(|expected, measured| measured >= expected)
    }

    /// Passes if measured is the expected value or less. Without two numbers it fails.
    pub fn at_most(self) -> Self {
        self.judge(|expected, measured| measured <= expected)
    }

    fn judge(self, is_acceptable: impl FnOnce(f64, f64) -> bool) -> Self {
        let pass = self.numbers().is_some_and(|(expected, measured)| is_acceptable(expected, measured));
        self.judged(pass)
    }

    /// Sets whether the value is acceptable.
    pub fn judged(mut self, pass: bool) -> Self {
        self.pass = Some(pass);
        self
    }

    /// Adds a note for the reader.
    pub fn note(mut self, note: impl Into<String>) -> Self {
        self.notes.push(note.into());
        self
    }

    /// Adds a field. A reserved name gets a trailing underscore, so that no key appears twice.
    pub fn extra(mut self, name: impl Into<String>, value: impl Into<Value>) -> Self {
        self.extra.insert(own_name(name.into(), &OWN_FIELDS), value.into());
        self
    }

    fn numbers(&self) -> Option<(f64, f64)> {
        Some((self.expected.as_ref()?.as_f64()?, self.measured.as_ref()?.as_f64()?))
    }

    fn compare(mut self) -> Self {
        let error = self.numbers().map(|(expected, measured)| (measured - expected) / expected * 100.0);
        self.error_percent = error.filter(|percent| percent.is_finite());
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_is_relative_to_what_was_expected() {
        let error = |expected: i64, measured: i64| {
            Row::new("x", "").expected(expected).measured(measured).error_percent
        };
        assert_eq!(error(200, 210), Some(5.0));
        assert_eq!(error(200, 190), Some(-5.0));
        assert_eq!(error(0, 1), None, "nothing is a percentage of zero");
        assert_eq!(error(0, 0), None);
        assert_eq!(Row::new("x", "").expected("unlimited").measured(3).error_percent, None);
        assert_eq!(Row::new("x", "").measured(5).expected(4).error_percent, Some(25.0), "in either order");
    }

    #[test]
    fn judgements() {
        let row = |expected: i64, measured: i64| Row::new("x", "").expected(expected).measured(measured);
        assert_eq!(row(100, 101).within_percent(1.0).pass, Some(true));
        assert_eq!(row(100, 98).within_percent(1.0).pass, Some(false));
        assert_eq!(row(0, 0).within_percent(1.0).pass, Some(false), "use `within` about zero");
        assert_eq!(row(0, 1).within(1.0).pass, Some(true));
        assert_eq!(row(100, 100).at_least().pass, Some(true));
        assert_eq!(row(100, 99).at_least().pass, Some(false));
        assert_eq!(row(100, 99).at_most().pass, Some(true));
        assert_eq!(Row::new("x", "").expected(3).at_most().pass, Some(false), "not measured");
    }

    #[test]
    fn numbers_that_json_lacks_become_words() {
        assert_eq!(Scalar::from(f64::INFINITY), Scalar::Text("inf".into()));
        assert_eq!(Scalar::from(u64::MAX), Scalar::Real(u64::MAX as f64));
        assert_eq!(serde_json::to_string(&Scalar::from(7u64)).unwrap(), "7");
    }

    #[test]
    fn extra_fields_never_hide_own_ones() {
        let row = Row::new("x", "ns").measured(1).extra("unit", "parsec").extra("p99", 4);
        let value = serde_json::to_value(&row).unwrap();
        assert_eq!(
            (&value["unit"], &value["unit_"], &value["p99"]),
            (&"ns".into(), &"parsec".into(), &4.into())
        );
    }
}
