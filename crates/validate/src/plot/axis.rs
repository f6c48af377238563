//! Position of values along an axis, and its labels.

/// An axis of a figure.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Axis {
    low: f64,
    high: f64,
    log: bool,
}

/// Minimum number of labels on a linear axis.
const TICKS: f64 = 5.0;

impl Axis {
    /// An axis with room for all values; `from_zero` makes it begin at 0.
    pub(super) fn over(values: impl Iterator<Item = f64>, log: bool, from_zero: bool) -> Self {
        let (low, high) = values
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| (low.min(value), high.max(value)));
        let (low, high) = if low <= high { (low, high) } else { (1.0, 2.0) };
        if log {
            let (low, high) = (low * 0.9, high * 1.1);
            return Self { low, high, log };
        }
        // Includes zero if it is near.
        let low = if from_zero || (low > 0.0 && low < high / 2.0) { low.min(0.0) } else { low };
        let high = if from_zero { high.max(0.0) } else { high };
        let room = if high > low { (high - low) * 0.05 } else { high.abs().max(1.0) * 0.05 };
        let low = if low == 0.0 { 0.0 } else { low - room };
        Self { low, high: high + room, log }
    }

    /// Position of a value, from 0 to 1.
    pub(super) fn place(&self, value: f64) -> f64 {
        if self.log {
            return (value / self.low).ln() / (self.high / self.low).ln();
        }
        (value - self.low) / (self.high - self.low)
    }

    /// Position of zero, or the beginning of the axis if zero is not on it.
    pub(super) fn floor(&self) -> f64 {
        if self.log { 0.0 } else { self.place(0.0).clamp(0.0, 1.0) }
    }

    /// Labelled values, with their labels.
    pub(super) fn ticks(&self) -> Vec<(f64, String)> {
        let values = if self.log { self.log_ticks() } else { self.linear_ticks() };
        values.into_iter().map(|value| (value, named(value))).collect()
    }

    /// Multiples of 1, 2 or 5 times a power of ten.
    fn linear_ticks(&self) -> Vec<f64> {
        let rough = (self.high - self.low) / TICKS;
        let power = 10f64.powf(rough.log10().floor());
        let step =
            [1.0, 2.0, 5.0, 10.0].map(|factor| factor * power).into_iter().rfind(|step| *step <= rough);
        let step = step.unwrap_or(power);
        let first = (self.low / step).ceil() as i64;
        let last = (self.high / step).floor() as i64;
        (first..=last).map(|n| n as f64 * step).collect()
    }

    /// Powers of ten, and 2 and 5 times them where the axis is short.
    fn log_ticks(&self) -> Vec<f64> {
        let (first, last) = (self.low.log10().floor() as i32, self.high.log10().ceil() as i32);
        let factors: &[f64] = if last - first > 4 { &[1.0] } else { &[1.0, 2.0, 5.0] };
        let all = (first..=last).flat_map(|power| factors.iter().map(move |f| f * 10f64.powi(power)));
        all.filter(|value| (self.low..=self.high).contains(value)).collect()
    }
}

/// Label of a value: `0`, `0.05`, `250`, `20k`, `3M`.
fn named(value: f64) -> String {
    let (value, suffix) = match value.abs() {
        size if size >= 1e9 => (value / 1e9, "G"),
        size if size >= 1e6 => (value / 1e6, "M"),
        size if size >= 1e4 => (value / 1e3, "k"),
        _ => (value, ""),
    };
    let text = format!("{value:.6}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if value != 0.0 && (text == "0" || text == "-0") {
        return format!("{value:e}");
    }
    format!("{}{suffix}", if text == "-0" { "0" } else { text })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(axis: Axis) -> Vec<String> {
        axis.ticks().into_iter().map(|(_, name)| name).collect()
    }

    #[test]
    fn linear_axes_are_named_in_round_steps() {
        assert_eq!(names(Axis::over([1.0, 10.0].into_iter(), false, false)), ["0", "2", "4", "6", "8", "10"]);
        assert_eq!(names(Axis::over([70.0, 90.0].into_iter(), false, true)).first().unwrap(), "0", "bars");
        let near = Axis::over([100.0, 101.0].into_iter(), false, false);
        assert_eq!(names(near), ["100", "100.2", "100.4", "100.6", "100.8", "101"]);
        assert_eq!(names(Axis::over([5.0].into_iter(), false, false)).len(), 5, "one value has an axis, too");
        assert!(!names(Axis::over([].into_iter(), false, false)).is_empty());
    }

    #[test]
    fn logarithmic_axes_are_named_at_decades() {
        let axis = Axis::over([128e3, 10e6].into_iter(), true, false);
        assert_eq!(names(axis), ["200k", "500k", "1M", "2M", "5M", "10M"]);
        assert!((axis.place(128e3 * 0.9)).abs() < 1e-9 && (axis.place(11e6) - 1.0).abs() < 1e-9);
        assert_eq!(names(Axis::over([1e-3, 1e4].into_iter(), true, false)).len(), 8);
    }

    #[test]
    fn values_have_short_names() {
        for (value, name) in [(0.0, "0"), (-0.5, "-0.5"), (20_000.0, "20k"), (3e6, "3M"), (1e-9, "1e-9")] {
            assert_eq!(named(value), name);
        }
    }
}
