//! Errors of distribution files.

use thiserror::Error;

/// Reason why a text is not a distribution. The message names the line and says how to fix it.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum DistributionError {
    /// The text is longer than any table needs to be.
    #[error("longer than {limit} bytes: give fewer samples")]
    Long {
        /// The most bytes.
        limit: usize,
    },
    /// The text holds no value.
    #[error("no value in it: give a netem table, a dummynet profile, samples, or points \"x, C(x)\"")]
    Empty,
    /// A field does not match the format.
    #[error("line {line}: \"{found}\" is not {wanted}")]
    Field {
        /// The line, from 1.
        line: usize,
        /// What was read.
        found: String,
        /// The fix.
        wanted: String,
    },
    /// A line has too many fields or too few.
    #[error("line {line} has {found} values: {wanted}")]
    Fields {
        /// The line, from 1.
        line: usize,
        /// Number found.
        found: usize,
        /// Number expected, and the format.
        wanted: &'static str,
    },
    /// A line contradicts earlier ones.
    #[error("line {line}: {what}")]
    Order {
        /// The line, from 1.
        line: usize,
        /// The fault and its fix.
        what: &'static str,
    },
    /// A table of another format has too many values.
    #[error("more than {limit} values, which is all that {format} holds")]
    Many {
        /// The most values.
        limit: usize,
        /// The format.
        format: &'static str,
    },
    /// The points do not reach the probability 1, or the loss level.
    #[error("the points end at the probability {end}: add one at {wanted}")]
    Short {
        /// The last point's.
        end: String,
        /// Where they should end.
        wanted: String,
    },
    /// A dummynet profile lacks something.
    #[error("the profile has {what}")]
    Profile {
        /// What is missing, and how to fix it.
        what: &'static str,
    },
    /// All values are equal: there is no shape to stretch to a jitter.
    #[error("all its values are the same: jitter needs values that differ")]
    Flat,
    /// A netem table instead of times or probabilities.
    #[error("a netem table has no values of its own, only deviations from a mean: give it to jitter")]
    Relative,
    /// A profile with lost packets where loss is not possible.
    #[error("its loss-level loses {lost} of the packets: set loss-level to 1 and that loss on the link")]
    Lossy {
        /// The share lost.
        lost: String,
    },
}
