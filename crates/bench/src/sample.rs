//! Several measurements of one thing.

use longwire_report::Row;

/// Measurements of the same quantity, repeated because machines are shared and noisy.
#[derive(Debug, Clone, Default)]
pub struct Sample(Vec<f64>);

impl FromIterator<f64> for Sample {
    fn from_iter<I: IntoIterator<Item = f64>>(values: I) -> Self {
        let mut values: Vec<_> = values.into_iter().collect();
        values.sort_by(f64::total_cmp);
        Self(values)
    }
}

impl Sample {
    /// The middle one; zero of none.
    pub fn median(&self) -> f64 {
        self.0.get(self.0.len() / 2).copied().unwrap_or(0.0)
    }

    /// The smallest; zero of none.
    pub fn least(&self) -> f64 {
        self.0.first().copied().unwrap_or(0.0)
    }

    /// The largest; zero of none.
    pub fn most(&self) -> f64 {
        self.0.last().copied().unwrap_or(0.0)
    }

    /// A row of the best run with median and spread beside it; it passes if the best reaches `target`.
    pub fn at_least(&self, name: &str, unit: &str, target: f64) -> Row {
        self.spread(Row::new(name, unit).expected(target).measured(self.most()).at_least())
    }

    /// A row of the best run, where less is better; it passes if the best is no more than `target`.
    pub fn at_most(&self, name: &str, unit: &str, target: f64) -> Row {
        self.spread(Row::new(name, unit).expected(target).measured(self.least()).at_most())
    }

    fn spread(&self, row: Row) -> Row {
        row.extra("median", self.median()).extra("least", self.least()).extra("most", self.most())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_its_values() {
        let sample: Sample = [3.0, 1.0, 2.0].into_iter().collect();
        assert_eq!((sample.least(), sample.median(), sample.most()), (1.0, 2.0, 3.0));
        assert_eq!(Sample::default().median(), 0.0);
    }
}
