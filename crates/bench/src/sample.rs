//! Repeated measurements of one quantity.

use longwire_report::Row;

/// Measurements of one quantity, repeated because machines are shared and noisy.
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
    /// The median, of an even number the mean of the middle two; zero if empty.
    pub fn median(&self) -> f64 {
        let at = |rank: usize| self.0.get(rank).copied().unwrap_or(0.0);
        let runs = self.0.len();
        f64::midpoint(at(runs.saturating_sub(1) / 2), at(runs / 2))
    }

    /// The smallest; zero if empty.
    pub fn least(&self) -> f64 {
        self.0.first().copied().unwrap_or(0.0)
    }

    /// The largest; zero if empty.
    pub fn most(&self) -> f64 {
        self.0.last().copied().unwrap_or(0.0)
    }

    /// The measurements in ascending order.
    pub fn values(&self) -> &[f64] {
        &self.0
    }

    /// The mean; zero if empty.
    pub fn mean(&self) -> f64 {
        self.0.iter().sum::<f64>() / self.0.len().max(1) as f64
    }

    /// The quantile of this share (0 to 1); zero if empty.
    pub fn quantile(&self, share: f64) -> f64 {
        let rank = (self.0.len() as f64 * share).ceil() as usize;
        self.0.get(rank.saturating_sub(1)).copied().unwrap_or(0.0)
    }

    /// A row of the best run with median and spread; it passes if the best reaches `target`.
    pub fn at_least(&self, name: &str, unit: &str, target: f64) -> Row {
        let row = Row::new(name, unit).expected(target).measured(self.most()).at_least();
        self.spread(row.extra("best", self.most()))
    }

    /// A row of the best run, where less is better; it passes if the best is at most `target`.
    pub fn at_most(&self, name: &str, unit: &str, target: f64) -> Row {
        let row = Row::new(name, unit).expected(target).measured(self.least()).at_most();
        self.spread(row.extra("best", self.least()))
    }

    /// A row of the median, for comparisons, whose best run means nothing; it passes if the median reaches
    /// `target`.
    pub fn median_at_least(&self, name: &str, unit: &str, target: f64) -> Row {
        self.spread(Row::new(name, unit).expected(target).measured(self.median()).at_least())
    }

    /// A row of the median, for comparisons where less is better; it passes if the median is at most
    /// `target`.
    pub fn median_at_most(&self, name: &str, unit: &str, target: f64) -> Row {
        self.spread(Row::new(name, unit).expected(target).measured(self.median()).at_most())
    }

    /// A row of the median that is not judged.
    pub fn shown(&self, name: &str, unit: &str) -> Row {
        self.spread(Row::new(name, unit).measured(self.median()))
    }

    /// The row with median and spread. A row of no measurements has no value, and fails if it is judged.
    fn spread(&self, row: Row) -> Row {
        if self.0.is_empty() {
            let pass = row.pass.map(|_| false);
            return Row { measured: None, error_percent: None, pass, ..row }.note("nothing was measured");
        }
        let target = row.expected.clone();
        let row = row
            .extra("median", self.median())
            .extra("least", self.least())
            .extra("most", self.most())
            .extra("runs", self.0.len());
        let row = if target.is_some() { row.extra("target", target.and_then(|v| v.as_f64())) } else { row };
        if self.0.len() < 2 {
            return row;
        }
        let [median, least, most] =
            [self.median(), self.least(), self.most()].map(|value| brief(value, &row.unit));
        let runs = self.0.len();
        row.note(format!("median {median}, {least} to {most} in {runs} runs"))
    }
}

/// A number for a note.
fn brief(value: f64, unit: &str) -> String {
    match unit {
        "pps" => format!("{:.3} Mpps", value / 1e6),
        "bit/s" => format!("{:.3} Gbit/s", value / 1e9),
        "ns" if value.abs() >= 1e3 => format!("{:.2} µs", value / 1e3),
        _ => format!("{value:.1} {unit}"),
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
        assert_eq!(Sample::from_iter([4.0, 1.0, 3.0, 2.0]).median(), 2.5, "between the middle two");
        assert_eq!((sample.mean(), Sample::default().mean()), (2.0, 0.0));
        assert_eq!([0.0, 0.3, 0.5, 0.67, 1.0].map(|share| sample.quantile(share)), [1.0, 1.0, 2.0, 3.0, 3.0]);
        assert_eq!(Sample::default().quantile(0.95), 0.0);
    }

    #[test]
    fn the_best_run_counts_but_of_ratios_the_median() {
        let sample: Sample = [3.0, 1.0, 2.0].into_iter().collect();
        assert_eq!(sample.at_least("x", "", 3.0).pass, Some(true));
        assert_eq!(sample.at_most("x", "", 1.0).pass, Some(true));
        assert_eq!(sample.median_at_least("x", "", 3.0).pass, Some(false));
        assert_eq!(Sample::from_iter([80.0, 100.0]).median_at_least("x", "", 95.0).pass, Some(false));
        assert_eq!(
            [1.0, 2.0].map(|most| sample.median_at_most("x", "", most).pass),
            [Some(false), Some(true)]
        );
        assert_eq!(sample.shown("x", "ns").pass, None);
        assert_eq!(sample.shown("x", "ns").notes, ["median 2.0 ns, 1.0 ns to 3.0 ns in 3 runs"]);
        let best = |row: Row| row.extra.get("best").and_then(|best| best.as_f64());
        assert_eq!(best(sample.at_least("x", "", 3.0)), Some(3.0));
        assert_eq!(best(sample.at_most("x", "", 3.0)), Some(1.0));
        let medians = [sample.shown("x", ""), sample.median_at_most("x", "", 3.0)];
        assert_eq!(medians.map(best), [None; 2], "a median is no best run");
    }

    #[test]
    fn nothing_measured_reaches_no_target() {
        let none = Sample::default();
        for row in [none.at_most("x", "ns", 1e3), none.median_at_most("x", "ns", 1e3)] {
            assert_eq!((row.pass, row.measured), (Some(false), None));
        }
        assert_eq!((none.shown("x", "ns").pass, none.shown("x", "ns").measured), (None, None));
    }
}
