//! What can be wrong with a file of a distribution.

use thiserror::Error;

/// Why a text is no distribution; names the line and the fix.
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
    /// A field is not what the format wants there.
    #[error("line {line}: \"{found}\" is not {wanted}")]
    Field {
        /// The line, from 1.
        line: usize,
        /// What was read.
        found: String,
        /// What would do.
        wanted: String,
    },
    /// A line has too many fields or too few.
    #[error("line {line} has {found} values: {wanted}")]
    Fields {
        /// The line, from 1.
        line: usize,
        /// How many it has.
        found: usize,
        /// How many it should have, and in which format.
        wanted: &'static str,
    },
    /// A line contradicts those before it.
    #[error("line {line}: {what}")]
    Order {
        /// The line, from 1.
        line: usize,
        /// What is wrong, and the fix.
        what: &'static str,
    },
    /// A table of another format than was read has too many values.
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
    /// Something that a dummynet profile must have is not there.
    #[error("the profile has {what}")]
    Profile {
        /// What is missing, and the fix.
        what: &'static str,
    },
    /// All values are the same: there is no shape to be stretched to a jitter.
    #[error("all its values are the same: jitter needs values that differ")]
    Flat,
    /// A netem table was given where times or probabilities were asked for.
    #[error("a netem table has no values of its own, only deviations from a mean: give it to jitter")]
    Relative,
    /// Probabilities or times of a profile of which some packets are lost, where that can't be done.
    #[error("its loss-level loses {lost} of the packets: set loss-level to 1 and that loss on the link")]
    Lossy {
        /// The share lost.
        lost: String,
    },
}
