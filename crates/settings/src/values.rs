//! Values of all settings of a block, as they are read and replaced.

use crate::{Fallback, Param, Spec, SpecError, Value};
use std::path::Path;

/// A block's parameters with their values, in the order of its [`Spec`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Values(Vec<Value>);

impl Values {
    /// Reads `given` pairs of parameter and text, filling in defaults.
    ///
    /// # Errors
    /// Names the parameter that is unknown, missing or unreadable, and says how to fix it.
    pub fn read(spec: &Spec, given: &[(&str, &str)]) -> Result<Self, SpecError> {
        Self::read_in(spec, given, Path::new("."))
    }

    /// Reads as [`Values::read`] does; file names are relative to the folder `base`.
    ///
    /// # Errors
    /// As [`Values::read`].
    pub fn read_in(spec: &Spec, given: &[(&str, &str)], base: &Path) -> Result<Self, SpecError> {
        Self::known(spec, given)?;
        let value = |param: &Param| match (text_of(given, param), param.default) {
            (Some(text), _) | (None, Fallback::Value(text)) => param.read_in(text, base),
            (None, Fallback::Computed(_)) => Ok(Value::Absent),
            (None, Fallback::Required) => {
                Err(SpecError::Missing { key: spec.key, kind: spec.kind, name: param.name, help: param.help })
            }
        };
        spec.params.iter().map(value).collect::<Result<_, _>>().map(Self)
    }

    fn known(spec: &Spec, given: &[(&str, &str)]) -> Result<(), SpecError> {
        let Some((name, _)) = given.iter().find(|(name, _)| spec.place(name).is_none()) else {
            return Ok(());
        };
        let known = spec.params.iter().map(|param| param.name).collect::<Vec<_>>().join(", ");
        Err(SpecError::Unknown { key: spec.key, kind: spec.kind, name: (*name).into(), known })
    }

    /// These values with the `given` ones replaced; all others are kept.
    ///
    /// # Errors
    /// As [`Values::read`].
    pub fn with(&self, spec: &Spec, given: &[(&str, &str)]) -> Result<Self, SpecError> {
        Self::known(spec, given)?;
        let value = |(param, kept): (&Param, &Value)| match text_of(given, param) {
            Some(text) => param.read(text),
            None => Ok(kept.clone()),
        };
        spec.params.iter().zip(&self.0).map(value).collect::<Result<_, _>>().map(Self)
    }

    /// Values that need no parsing, in the order of their [`Spec`].
    pub fn made(values: Vec<Value>) -> Self {
        Self(values)
    }

    /// These values with the one at `index` replaced, for a step of a ramp.
    ///
    /// # Panics
    /// If the spec has no such parameter.
    pub fn replaced(&self, index: usize, value: Value) -> Self {
        let mut values = self.clone();
        values.0[index] = value;
        values
    }

    /// The value of the parameter at `index` in the spec.
    ///
    /// # Panics
    /// If the spec has no such parameter.
    pub fn at(&self, index: usize) -> Value {
        self.0[index].clone()
    }

    /// The values, in the spec's order.
    pub fn as_slice(&self) -> &[Value] {
        &self.0
    }
}

/// The text given for a parameter; the last one wins.
fn text_of<'t>(given: &[(&str, &'t str)], param: &Param) -> Option<&'t str> {
    given.iter().rev().find(|(name, _)| *name == param.name).map(|(_, text)| *text)
}
