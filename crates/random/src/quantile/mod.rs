//! Distributions as tables of quantiles: one draw, one lookup, one linear interpolation.
//!
//! The method of the Osaka paper ("Realizing a Network Emulator System with Intel IXP1200 Network Processor",
//! II-C.1): a table of (x, C(x)) with evenly spaced C, in which x is looked up with y = C(x) for a uniform y.
//! All in integers. A table is made once and shared.

mod draws;
mod error;
mod named;
mod read;
mod table;

pub use draws::Draws;
pub use error::DistributionError;
pub use read::MAX_LENGTH;

use longwire_block::Grammar;
use longwire_units::{Nanos, Probability};
use std::path::Path;
use std::sync::Arc;
use table::{FRACTION, MAX_CELLS, Table, knots_of_means};

/// Fractional bits of a [`Shape`]'s knots, in deviations.
const SHAPE_BITS: u32 = 22;
/// Fractional bits of a [`Times`]' knots, in nanoseconds.
const TIME_BITS: u32 = 8;
/// Fractional bits of a [`Chances`]' knots, which are probabilities.
const CHANCE_BITS: u32 = 62;

/// A parameter that is a [`Shape`].
pub const SHAPE: Grammar = Grammar {
    wanted: "a distribution: uniform, normal, pareto, pareto-normal, exponential, log-normal, gamma, or a \
        file of one",
    read: |text, base| Ok(Shape::parse(text, base)?),
    examples: &[
        "uniform",
        "normal",
        "pareto",
        "pareto-normal",
        "exponential",
        "log-normal",
        "gamma",
        "1; 2; 4",
    ],
    form: None,
};

/// A parameter that is [`Times`].
pub const TIMES: Grammar = Grammar {
    wanted: "a distribution of times: a file of samples, of points \"x, C(x)\", or a dummynet profile",
    form: None,
    read: |text, base| Ok(Times::parse(text, base)?),
    examples: &["10 ms; 12 ms; 30 ms", "10, 0; 12, 0.5; 30, 1", "loss-level 0.8; prob delay; 0 10; 1 30"],
};

/// A parameter that is [`Chances`].
pub const CHANCES: Grammar = Grammar {
    wanted: "a distribution of probabilities: a file of samples, or of points \"x, C(x)\"",
    form: None,
    read: |text, base| Ok(Chances::parse(text, base)?),
    examples: &["0 %; 2 %", "0, 0; 0.01, 0.9; 0.5, 1"],
};

/// Deviations from the mean, in standard deviations, which jitter multiplies.
///
/// The built-in shapes have an exact mean of 0; [`Shape::named`] describes what their tails lose. netem's
/// tables have the mean and deviation of their file (its unit, 1/8192, is kept exactly).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shape(Table<i32>);

/// A distribution of times, with a share of packets that never arrive (zero except for a dummynet profile).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Times {
    table: Table<i64>,
    lost: Probability,
}

/// A distribution of probabilities.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chances(Table<i64>);

impl Shape {
    /// The names that [`Shape::named`] knows.
    pub const NAMES: [&str; 7] = named::NAMES;

    /// A built-in shape; none if the name is unknown. Each is made at its first use.
    ///
    /// All have 4096 cells, within which the quantile function is a straight line. The last cell (and the
    /// first, for `normal`) represents the whole tail beyond 1 − 1/4096: its mean is correct, its spread is
    /// smaller than the tail's, and no value lies beyond its end.
    ///
    /// | name | definition, before the shift to mean 0 | deviation | from, to |
    /// |---|---|---|---|
    /// | `uniform` | from −1 to 1, as netem's jitter without a distribution | 0.5774 | −1.0, 1.0 |
    /// | `normal` | mean 0, deviation 1 | 1.0000 | −3.9914, 3.9914 |
    /// | `pareto` | as netem's: ⁴⁄₃·(x − 1.5), x Pareto of shape 3 from 1 on, and 4 at most | 0.8209 | −0.6337, 4.0328 |
    /// | `pareto-normal` | as netem's: ¼ of `normal` and ¾ of `pareto` at the same probability | 0.8350 | −1.4731, 4.0224 |
    /// | `exponential` | mean 1 | 0.9999 | −1.0, 9.1557 |
    /// | `log-normal` | eᶻ, z normal (σ = 1), divided by its deviation √(e² − e) | 0.9955 | −0.7629, 23.712 |
    /// | `gamma` | shape 2 (the sum of two exponentials), divided by its deviation √2 | 0.9999 | −1.4142, 7.6271 |
    ///
    /// netem's own `pareto` and `paretonormal` have means of −0.033 and −0.025, which are subtracted here.
    pub fn named(name: &str) -> Option<Arc<Self>> {
        named::shape(name)
    }

    /// Parses a shape: a built-in name, a text with line ends or `;`, or the name of a file in the folder
    /// `base`. Times are shifted and scaled to mean 0 and deviation 1.
    ///
    /// # Errors
    /// Says what is wrong, where, and how to fix it.
    pub fn parse(text: &str, base: &Path) -> Result<Arc<Self>, String> {
        if let Some(shape) = Self::named(text.trim()) {
            return Ok(shape);
        }
        let shape = read::from_text_or_file(text, base, &Self::NAMES, Self::read)?;
        Ok(Arc::new(shape))
    }

    /// Parses the content of a file. Samples, points and profiles are times, in ms by default.
    ///
    /// # Errors
    /// Names the line and the fix.
    pub fn read(text: &str) -> Result<Self, DistributionError> {
        match read::times(text)? {
            read::TimesFile::Shape(shape) => Ok(shape),
            read::TimesFile::Times(times) => times.shape(),
        }
    }

    /// Distance from the mean at the probability `draw`/2⁶⁴, in ns, where one deviation is `deviation` ns.
    /// Monotonic in `draw`.
    #[inline]
    pub fn offset(&self, draw: u64, deviation: Nanos) -> i64 {
        const HALF: i128 = 1 << (SHAPE_BITS + FRACTION - 1);
        let product = i128::from(self.0.at(draw)) * i128::from(deviation.0);
        ((product + HALF) >> (SHAPE_BITS + FRACTION)) as i64
    }

    /// The mean, in deviations: for reports.
    pub fn mean(&self) -> f64 {
        self.0.doubled_sum() as f64 / (2 * self.0.cells()) as f64 / f64::from(1 << SHAPE_BITS)
    }

    /// The standard deviation, in units of [`Shape::offset`]'s `deviation`: for reports.
    pub fn deviation(&self) -> f64 {
        let cells = self.0.cells() as f64;
        let squares = self.0.tripled_squares(0) as f64 / 3.0 / cells / f64::from(1 << SHAPE_BITS).powi(2);
        (squares - self.mean() * self.mean()).sqrt()
    }

    /// A shape of knots in 2⁻²²nds of a deviation, in ascending order.
    fn of_knots(knots: Vec<i64>) -> Self {
        const MOST: i64 = (1 << 30) - 1;
        Self(Table::new(knots.into_iter().map(|knot| knot.clamp(-MOST, MOST) as i32).collect()))
    }
}

impl Times {
    /// The longest time of a table.
    pub const MAX: Nanos = Nanos::from_secs(100);

    /// Parses times: a text with line ends or `;`, or the name of a file in the folder `base`.
    ///
    /// # Errors
    /// Says what is wrong, where, and how to fix it.
    pub fn parse(text: &str, base: &Path) -> Result<Arc<Self>, String> {
        if Shape::NAMES.contains(&text.trim()) {
            let name = text.trim();
            return Err(format!(
                "\"{name}\" is a shape without times of its own; use it as the distribution of jitter"
            ));
        }
        read::from_text_or_file(text, base, &[], Self::read).map(Arc::new)
    }

    /// Parses the content of a file: samples, points or a dummynet profile, in ms by default.
    ///
    /// # Errors
    /// Names the line and the fix.
    pub fn read(text: &str) -> Result<Self, DistributionError> {
        match read::times(text)? {
            read::TimesFile::Shape(_) => Err(DistributionError::Relative),
            read::TimesFile::Times(times) => Ok(times),
        }
    }

    /// The time at the probability `draw`/2⁶⁴, to the nearest ns. Monotonic in `draw`.
    #[inline]
    pub fn at(&self, draw: u64) -> Nanos {
        const HALF: i128 = 1 << (TIME_BITS + FRACTION - 1);
        Nanos(((self.table.at(draw) + HALF) >> (TIME_BITS + FRACTION)) as u64)
    }

    /// The share of lost packets: for a dummynet profile, 1 minus its loss level. The times are those of the
    /// other packets.
    pub fn lost_share(&self) -> Probability {
        self.lost
    }

    /// The mean, in ns: for reports.
    pub fn mean(&self) -> f64 {
        self.table.doubled_sum() as f64 / (2 * self.table.cells()) as f64 / f64::from(1 << TIME_BITS)
    }

    /// The least and the greatest time.
    pub fn ends(&self) -> (Nanos, Nanos) {
        let (low, high) = self.table.ends();
        let half = 1 << (TIME_BITS - 1);
        (Nanos(((low + half) >> TIME_BITS) as u64), Nanos(((high + half) >> TIME_BITS) as u64))
    }

    /// The distribution shifted and scaled to mean 0 and deviation 1.
    ///
    /// # Errors
    /// If all times are equal, or packets are lost.
    pub fn shape(&self) -> Result<Shape, DistributionError> {
        if self.lost != Probability::ZERO {
            return Err(DistributionError::Lossy { lost: self.lost.to_string() });
        }
        let cells = self.table.cells();
        let mean = (self.table.doubled_sum() / (2 * cells as i128)) as i64;
        let variance = self.table.tripled_squares(mean) / (3 * cells as i128);
        let deviation = (variance as u128).isqrt() as i128;
        if deviation == 0 {
            return Err(DistributionError::Flat);
        }
        let one = 1i128 << SHAPE_BITS;
        let knots = self.table.knots().map(|knot| (i128::from(knot - mean) * one / deviation) as i64);
        let mut knots: Vec<_> = knots.collect();
        named::center(&mut knots);
        Ok(Shape::of_knots(knots))
    }
}

impl Chances {
    /// Parses probabilities: a text with line ends or `;`, or the name of a file in the folder `base`.
    ///
    /// # Errors
    /// Says what is wrong, where, and how to fix it.
    pub fn parse(text: &str, base: &Path) -> Result<Arc<Self>, String> {
        read::from_text_or_file(text, base, &[], Self::read).map(Arc::new)
    }

    /// Parses the content of a file: samples or points, each as `1.5 %` or `0.015`.
    ///
    /// # Errors
    /// Names the line and the fix.
    pub fn read(text: &str) -> Result<Self, DistributionError> {
        read::chances(text)
    }

    /// The value at the probability `draw`/2⁶⁴. Monotonic in `draw`.
    #[inline]
    pub fn at(&self, draw: u64) -> Probability {
        // One fractional bit more than the knots.
        Probability::from_bits((self.0.at(draw) >> (FRACTION - 1)) as u64)
    }
}

/// What tests ask about distributions.
#[cfg(test)]
mod facts {
    use super::*;

    impl Shape {
        /// The least and the greatest value, in deviations.
        pub(super) fn ends(&self) -> (f64, f64) {
            let (low, high) = self.0.ends();
            let one = f64::from(1 << SHAPE_BITS);
            (low as f64 / one, high as f64 / one)
        }
    }

    impl Chances {
        /// The mean, as a fraction.
        pub(super) fn mean(&self) -> f64 {
            self.0.doubled_sum() as f64 / (2 * self.0.cells()) as f64 / (1u64 << CHANCE_BITS) as f64
        }
    }
}
