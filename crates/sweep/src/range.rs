//! Ranges of values: in equal steps, by equal factors, or a number of points. They are computed with integers
//! and with operations of floating point that round alike everywhere, so that all machines get the same.

use longwire_units::{Bytes, Nanos, Rate};

/// Most values of a range.
const MOST_VALUES: u64 = 1_000_000;
/// Digits behind the point.
const DECIMALS: usize = 9;
/// Most digits in front of it.
const MOST_DIGITS: usize = 18;
/// Ten to the power of [`DECIMALS`].
const ONE: u128 = 1_000_000_000;
/// Significant digits of values with equal ratios.
const DIGITS: u32 = 4;

/// The spacing of a range's values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Spacing {
    /// Equal differences.
    Step(String),
    /// Equal ratios.
    Factor(String),
    /// This many values with equal differences.
    Points(u64),
    /// This many values with equal ratios.
    LogPoints(u64),
}

/// What the numbers of a range count.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Unit {
    /// Billionths of a unit without a meaning here: the text behind the number.
    Written(String),
    Rate,
    Time,
    Size,
}

impl Unit {
    /// The number of a text; none if it is of another unit.
    fn read(&self, text: &str) -> Option<u128> {
        let finite = |value: u64| (value != u64::MAX).then_some(u128::from(value));
        match self {
            Self::Written(unit) => number(text).filter(|(_, own)| own.trim() == unit.trim()).map(|(n, _)| n),
            Self::Rate => text.parse::<Rate>().ok().and_then(|rate| finite(rate.0)),
            Self::Time => text.parse::<Nanos>().ok().and_then(|time| finite(time.0)),
            Self::Size => text.parse::<Bytes>().ok().and_then(|size| finite(size.0)),
        }
    }

    fn write(&self, value: u128) -> String {
        let whole = u64::try_from(value).unwrap_or(u64::MAX);
        match self {
            Self::Written(unit) => {
                let text = format!("{}.{:0DECIMALS$}", value / ONE, value % ONE);
                format!("{}{unit}", text.trim_end_matches('0').trim_end_matches('.'))
            }
            Self::Rate => Rate(whole).to_string(),
            Self::Time => Nanos(whole).to_string(),
            Self::Size => Bytes(whole).to_string(),
        }
    }

    /// The unit in which all of these can be read, and their numbers.
    fn of_all(texts: &[&str]) -> Option<(Self, Vec<u128>)> {
        let written = texts.first().and_then(|text| number(text));
        let written = written.map(|(_, unit)| Self::Written(unit.to_owned()));
        let units = written.into_iter().chain([Self::Rate, Self::Time, Self::Size]);
        units.into_iter().find_map(|unit| {
            let numbers: Option<Vec<_>> = texts.iter().map(|text| unit.read(text)).collect();
            Some((unit, numbers?))
        })
    }
}

/// The values of a range from `from` to `to`, which is a value itself if a step hits it.
///
/// # Errors
/// The fault and the fix.
pub(crate) fn values(from: &str, to: &str, spacing: &Spacing) -> Result<Vec<String>, (String, String)> {
    let step = if let Spacing::Step(step) = spacing { Some(step.as_str()) } else { None };
    let texts: Vec<&str> = [from, to].into_iter().chain(step).collect();
    let (unit, numbers) = Unit::of_all(&texts).ok_or_else(|| {
        let what = format!("\"{}\" have no unit in common", texts.join("\" and \""));
        fault(what, "write numbers with the same unit, as in from = \"5 ms\", to = \"50 ms\"")
    })?;
    // A range that goes down is one that goes up, backwards.
    let (low, high) = (numbers[0].min(numbers[1]), numbers[0].max(numbers[1]));
    let down = numbers[0] > numbers[1];
    let mut all = match spacing {
        Spacing::Step(_) => by_step(numbers[0], numbers[1], numbers[2])?,
        Spacing::Factor(text) => by_factor((numbers[0], numbers[1]), text)?,
        Spacing::Points(count) => points(low, high, *count)?,
        Spacing::LogPoints(count) => log_points(low, high, *count)?,
    };
    if down && matches!(spacing, Spacing::Points(_) | Spacing::LogPoints(_)) {
        all.reverse();
    }
    all.dedup();
    Ok(all.into_iter().map(|value| unit.write(value)).collect())
}

fn by_step(from: u128, to: u128, step: u128) -> Result<Vec<u128>, (String, String)> {
    if step == 0 {
        return Err(fault("its step is 0", "write one such as \"5 ms\""));
    }
    let count = from.abs_diff(to) / step + 1;
    if count > u128::from(MOST_VALUES) {
        return Err(too_many(count));
    }
    Ok((0..count).map(|n| if from <= to { from + n * step } else { from - n * step }).collect())
}

/// The first value is `from`, and the last is `to` if a factor hits it. Values by a whole factor are exact,
/// unless a division leaves a remainder; others are rounded.
fn by_factor((from, to): (u128, u128), text: &str) -> Result<Vec<u128>, (String, String)> {
    let factor = number(text).filter(|(_, unit)| unit.is_empty()).map_or(0, |(n, _)| n);
    if factor <= ONE {
        let what = format!("its factor is \"{}\"", text.escape_debug());
        return Err(fault(what, "write a number above 1; from and to say the direction"));
    }
    above_zero(from.min(to))?;
    let (up, last, ratio) = (from <= to, to as f64, factor as f64 / ONE as f64);
    let next = |value: f64| if up { value * ratio } else { value / ratio };
    let next_exact = |value: u128| match factor / ONE {
        _ if !factor.is_multiple_of(ONE) => None,
        times if up => value.checked_mul(times),
        times => value.is_multiple_of(times).then_some(value / times),
    };
    // What was rounded must not lose the last value.
    let (most, least) = (last * (1.0 + SLACK), last * (1.0 - SLACK));
    let is_inside = |value: f64| if up { value <= most } else { value >= least };
    let (mut all, mut value, mut exact) = (vec![from], next(from as f64), next_exact(from));
    while is_inside(value) {
        if all.len() as u64 == MOST_VALUES {
            return Err(too_many(u128::from(MOST_VALUES) + 1));
        }
        let is_last = (least..=most).contains(&value);
        let inside = || exact.unwrap_or_else(|| rounded(value)).clamp(from.min(to), from.max(to));
        all.push(if is_last { to } else { inside() });
        (value, exact) = (next(value), exact.and_then(next_exact));
    }
    Ok(all)
}

/// Relative error by which a value may miss the last.
const SLACK: f64 = 1e-9;

fn points(low: u128, high: u128, count: u64) -> Result<Vec<u128>, (String, String)> {
    let last = last_of(count)?;
    Ok((0..=last).map(|n| low + (high - low) * n / last).collect())
}

fn log_points(low: u128, high: u128, count: u64) -> Result<Vec<u128>, (String, String)> {
    let last = last_of(count)?;
    above_zero(low)?;
    let ratio = root(high as f64 / low as f64, last as u64);
    let between = (1..last).map(|n| rounded(low as f64 * power(ratio, n as u64)).clamp(low, high));
    Ok(std::iter::once(low).chain(between).chain([high]).collect())
}

/// The number of the last of so many values.
fn last_of(count: u64) -> Result<u128, (String, String)> {
    match count {
        0 | 1 => Err(fault("it has fewer than 2 points", "write 2 or more")),
        2..=MOST_VALUES => Ok(u128::from(count) - 1),
        _ => Err(too_many(u128::from(count))),
    }
}

fn above_zero(least: u128) -> Result<(), (String, String)> {
    if least > 0 { Ok(()) } else { Err(fault("equal ratios never reach 0", "begin and end above 0")) }
}

/// The `n`-th root of `value`, which is 1 or more: by bisection, as the library's function may differ from
/// machine to machine.
fn root(value: f64, n: u64) -> f64 {
    let (mut low, mut high) = (1.0, value);
    for _ in 0..HALVINGS {
        let middle = low + (high - low) / 2.0;
        if power(middle, n) < value { low = middle } else { high = middle }
    }
    high
}

/// Halvings after which no number of floating point is left in between.
const HALVINGS: u32 = 200;

fn power(mut base: f64, mut exponent: u64) -> f64 {
    let mut product = 1.0;
    while exponent > 0 {
        if exponent % 2 == 1 {
            product *= base;
        }
        base *= base;
        exponent /= 2;
    }
    product
}

/// To [`DIGITS`] significant digits.
fn rounded(value: f64) -> u128 {
    let whole = value.round() as u128;
    let unit = 10u128.pow((whole.max(1).ilog10() + 1).saturating_sub(DIGITS));
    (whole + unit / 2) / unit * unit
}

/// A decimal number in billionths, and the text behind it.
fn number(text: &str) -> Option<(u128, &str)> {
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.' && c != '_').unwrap_or(text.len());
    let digits = text[..end].replace('_', "");
    let (whole, part) = digits.split_once('.').unwrap_or((&digits, ""));
    let valid = !part.contains('.') && whole.len() <= MOST_DIGITS && part.len() <= DECIMALS;
    if !valid || (whole.is_empty() && part.is_empty()) {
        return None;
    }
    format!("{whole}{part:0<DECIMALS$}").parse().ok().map(|number| (number, &text[end..]))
}

fn fault(what: impl Into<String>, fix: &str) -> (String, String) {
    (what.into(), fix.into())
}

fn too_many(count: u128) -> (String, String) {
    fault(format!("it has {count} values, and {MOST_VALUES} is the limit"), "write larger steps")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(from: &str, to: &str, spacing: &Spacing) -> Vec<String> {
        values(from, to, spacing).unwrap()
    }

    #[test]
    fn steps_keep_the_unit_that_is_written() {
        let by = |step: &str| Spacing::Step(step.into());
        assert_eq!(of("5ms", "20ms", &by("5ms")), ["5ms", "10ms", "15ms", "20ms"]);
        assert_eq!(of("0 %", "1 %", &by("0.3 %")), ["0 %", "0.3 %", "0.6 %", "0.9 %"]);
        assert_eq!(of("3", "1", &by("1")), ["3", "2", "1"]);
        assert_eq!(of("10 packets", "20 packets", &by("10 packets")), ["10 packets", "20 packets"]);
        assert_eq!(of("500us", "2 ms", &by("500us")), ["500 us", "1 ms", "1.5 ms", "2 ms"]);
        assert_eq!(of("500 kbit/s", "1 Mbit/s", &by("250kbit")), ["500 kbit/s", "750 kbit/s", "1 Mbit/s"]);
        assert_eq!(of("7ms", "7ms", &by("1ms")), ["7ms"]);
    }

    #[test]
    fn ratios_are_equal_to_four_digits() {
        let by = |factor: &str| Spacing::Factor(factor.into());
        assert_eq!(of("1mbit", "1000mbit", &by("10")), ["1mbit", "10mbit", "100mbit", "1000mbit"]);
        assert_eq!(of("8", "1", &by("2")), ["8", "4", "2", "1"]);
        assert_eq!(of("1 kB", "1 MB", &by("10")), ["1 kB", "10 kB", "100 kB", "1 MB"]);
        assert_eq!(of("1ms", "100ms", &Spacing::LogPoints(3)), ["1ms", "10ms", "100ms"]);
        assert_eq!(of("1ms", "10ms", &Spacing::LogPoints(4)), ["1ms", "2.154ms", "4.642ms", "10ms"]);
        assert_eq!(of("10ms", "1ms", &Spacing::LogPoints(3)), ["10ms", "3.162ms", "1ms"]);
        assert_eq!(of("1", "4", &Spacing::Points(4)), ["1", "2", "3", "4"]);
        assert_eq!(of("4", "1", &Spacing::Points(3)), ["4", "2.5", "1"]);
        assert_eq!(of("1 ms", "1 ms", &Spacing::LogPoints(5)), ["1 ms"]);
    }

    #[test]
    fn ratios_begin_and_end_as_written() {
        let by = |factor: &str| Spacing::Factor(factor.into());
        assert!(of("1", "65536", &by("2")).ends_with(&["16384", "32768", "65536"].map(str::to_owned)));
        assert_eq!(of("65536", "16384", &by("2")), ["65536", "32768", "16384"]);
        assert_eq!(of("12345 bit/s", "40000 bit/s", &by("2")), ["12345 bit/s", "24690 bit/s"]);
        assert_eq!(of("12345", "100", &by("10")), ["12345", "1234.5", "123.45"]);
        assert_eq!(of("1", "1.23456", &by("1.23456")), ["1", "1.23456"]);
        assert_eq!(of("1", "1.23458", &by("1.234575")), ["1", "1.23458"], "1.235 is beyond the end");
        assert_eq!(of("1.23458", "1", &Spacing::LogPoints(2)), ["1.23458", "1"]);
        assert_eq!(of("1.23451", "1.23459", &Spacing::LogPoints(3)), ["1.23451", "1.23459"]);
    }

    #[test]
    fn what_is_no_range_is_refused() {
        let error = |from: &str, to: &str, spacing: Spacing| values(from, to, &spacing).unwrap_err().0;
        assert!(error("1ms", "1mbit", Spacing::Points(2)).contains("no unit in common"));
        assert!(error("1ms", "2ms", Spacing::Step("1mbit".into())).contains("no unit in common"));
        assert!(error("unlimited", "1mbit", Spacing::Points(2)).contains("no unit in common"));
        assert!(error("", "1", Spacing::Points(2)).contains("no unit in common"));
        assert!(error("1", "2", Spacing::Step("0".into())).contains("step is 0"));
        assert!(error("0", "100000000", Spacing::Step("1".into())).contains("100000001 values"));
        for factor in ["1", "0.5", "x", "2x", ""] {
            assert!(error("1", "2", Spacing::Factor(factor.into())).contains("its factor is"), "{factor}");
        }
        assert!(error("0", "2", Spacing::Factor("2".into())).contains("never reach 0"));
        assert!(error("0", "2", Spacing::LogPoints(2)).contains("never reach 0"));
        assert!(error("1", "2", Spacing::Factor("1.000000001".into())).contains("is the limit"));
        assert!(error("1", "2", Spacing::Points(1)).contains("fewer than 2 points"));
        assert!(error("1", "2", Spacing::Points(u64::MAX)).contains("is the limit"));
    }
}
