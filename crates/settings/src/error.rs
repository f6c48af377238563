//! Errors of settings.

use longwire_units::UnitError;
use thiserror::Error;

/// An invalid parameter of a block.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum SpecError {
    /// Unknown parameter.
    #[error("{key} ({kind}) has no parameter \"{name}\"; it has {known}")]
    Unknown {
        /// The link's key.
        key: &'static str,
        /// The block.
        kind: &'static str,
        /// The given name.
        name: String,
        /// The existing parameters.
        known: String,
    },
    /// A required parameter was not given.
    #[error("{key} ({kind}) needs \"{name}\": {help}")]
    Missing {
        /// The link's key.
        key: &'static str,
        /// The block.
        kind: &'static str,
        /// The parameter.
        name: &'static str,
        /// What it sets.
        help: &'static str,
    },
    /// The value can't be read.
    #[error("{name}: {source}")]
    Unit {
        /// The parameter.
        name: &'static str,
        /// The reason.
        source: UnitError,
    },
    /// The text does not follow its grammar.
    #[error("{name}: {what}")]
    Text {
        /// The parameter.
        name: &'static str,
        /// The fault and its fix.
        what: String,
    },
    /// The value is outside the parameter's range.
    #[error("{name}: \"{text}\" is out of range; write {wanted}")]
    Outside {
        /// The parameter.
        name: &'static str,
        /// The given value.
        text: String,
        /// The range.
        wanted: String,
    },
    /// The value is not one of the parameter's words, or can't be read.
    #[error("{name}: \"{text}\" is not {wanted}")]
    Range {
        /// The parameter.
        name: &'static str,
        /// The given value.
        text: String,
        /// The fix.
        wanted: String,
    },
}
