//! Lists of times and values, as people write them.
//!
//! An entry is a line or, in a text given instead of a file, a part between semicolons. It has a time and the
//! value that holds from then on, separated by a comma or a space: `0 s 10 Mbit/s`, `1.5 s, 2 Mbit/s`.
//! Numbers without a unit are seconds, bit/s for a rate, seconds for a delay and fractions of one for a loss.
//! The first time is 0. A line `10 s end` ends the last value; without one it holds as long as the one before
//! it. Blank lines, lines that begin with `#`, and a header line are skipped.

use crate::{MAX_STEPS, Series, TraceError, series::too_many};
use longwire_settings::Choice;
use longwire_units::{Nanos, Probability, Rate};
use std::fmt::Display;
use std::str::FromStr;

/// Whether a link carries packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Choice)]
pub enum LinkState {
    /// It does.
    Up,
    /// Arrivals are dropped.
    Down,
}

impl FromStr for LinkState {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "up" => Ok(Self::Up),
            "down" => Ok(Self::Down),
            _ => Err(format!("\"{text:.60}\" is no state of a link; write up or down")),
        }
    }
}

/// A quantity that lists can contain, written with its unit.
pub trait Quantity: Copy + PartialEq + FromStr<Err: Display> + Send + Sync + 'static {
    /// The default unit of a number, with the space before it.
    const UNIT: &'static str;
    /// A valid list.
    const EXAMPLE: &'static str;
}

impl Quantity for Rate {
    const UNIT: &'static str = " bit/s";
    const EXAMPLE: &'static str = "0 s 10 Mbit/s; 5 s 1 Mbit/s";
}

impl Quantity for Nanos {
    const UNIT: &'static str = " s";
    const EXAMPLE: &'static str = "0 s 20 ms; 5 s 80 ms";
}

impl Quantity for Probability {
    const UNIT: &'static str = "";
    const EXAMPLE: &'static str = "0 s 0 %; 5 s 2 %";
}

impl Quantity for LinkState {
    const UNIT: &'static str = "";
    const EXAMPLE: &'static str = "0 s up; 5 s down";
}

/// Reads a list.
///
/// # Errors
/// Names the line that is not a time and a value, or whose time is not after the one before it.
pub fn parse<T: Quantity>(text: &str) -> Result<Series<T>, TraceError> {
    let (mut steps, mut end): (Vec<(Nanos, T)>, Option<Nanos>) = (Vec::new(), None);
    for (index, line) in text.lines().enumerate() {
        let line = line.trim();
        let is_heading = steps.is_empty() && !line.starts_with(is_number_start);
        if line.is_empty() || line.starts_with('#') || is_heading {
            continue;
        }
        let error = |what: String| TraceError::line(index + 1, what);
        let (time, value) = entry::<T>(line).map_err(error)?;
        let before = end.or_else(|| steps.last().map(|step| step.0));
        match before {
            Some(before) if time <= before => {
                return Err(error(format!("times must increase, but {time} comes after {before}")));
            }
            None if time != Nanos::ZERO => {
                return Err(error(format!("the first time is {time}; say what holds from 0 s on")));
            }
            _ if end.is_some() => return Err(error("nothing can come after the end".into())),
            _ if steps.len() == MAX_STEPS => return Err(too_many()),
            _ => {}
        }
        match value {
            Some(value) => steps.push((time, value)),
            None => end = Some(time),
        }
    }
    let end = end.unwrap_or_else(|| usual_end(&steps));
    Series::new(steps, end)
}

/// Whether `line` is an entry of a list of `T`.
pub(crate) fn is_entry<T: Quantity>(line: &str) -> bool {
    entry::<T>(line.trim()).is_ok()
}

/// The end of the last step if it is as long as the one before it; a single step may have any length.
fn usual_end<T>(steps: &[(Nanos, T)]) -> Nanos {
    match steps {
        [.., (before, _), (last, _)] => Nanos(last.0.saturating_add(last.0 - before.0)),
        _ => Nanos::from_secs(1),
    }
}

/// The time and the value of a line; no value for the end.
fn entry<T: Quantity>(line: &str) -> Result<(Nanos, Option<T>), String> {
    let (time, value) = divide(line).ok_or_else(|| {
        let (first, _) = T::EXAMPLE.split_once(';').unwrap_or_default();
        format!("\"{line:.60}\" is not a time and a value, as in \"{first}\"")
    })?;
    let time = with_unit(time, " s").parse().map_err(|error| format!("the time: {error}"))?;
    if value.eq_ignore_ascii_case("end") {
        return Ok((time, None));
    }
    let unit = if value == "0" && T::UNIT != " s" { "" } else { T::UNIT };
    match with_unit(value, unit).parse::<T>() {
        Ok(value) => Ok((time, Some(value))),
        Err(error) => Err(error.to_string()),
    }
}

/// Splits a line into time and value: at the comma, else behind the time's unit or number.
fn divide(line: &str) -> Option<(&str, &str)> {
    if let Some((time, value)) = line.split_once(',') {
        return Some((time.trim(), value.trim()))
            .filter(|(time, value)| !time.is_empty() && !value.is_empty());
    }
    let (number, rest) = line.split_once(char::is_whitespace)?;
    let rest = rest.trim_start();
    let is_unit = |word: &str| {
        !word.starts_with(is_number_start) && !matches!(word, "unlimited" | "up" | "down" | "end")
    };
    if !number.ends_with(|last: char| last.is_ascii_digit() || last == '.') {
        return Some((number, rest));
    }
    match rest.split_once(char::is_whitespace) {
        Some((unit, value)) if is_unit(unit) => {
            Some((&line[..line.len() - rest.len() + unit.len()], value.trim_start()))
        }
        _ => Some((number, rest)).filter(|(_, value)| !is_unit(value)),
    }
}

fn is_number_start(first: char) -> bool {
    first.is_ascii_digit() || first == '.'
}

/// Appends `unit` to the text if it ends with a digit.
fn with_unit(text: &str, unit: &str) -> String {
    let bare = text.ends_with(|last: char| last.is_ascii_digit() || last == '.');
    if bare { format!("{text}{unit}") } else { text.into() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn reads_every_way_of_writing_an_entry() {
        let second = 1_000_000_000;
        for (line, time, rate) in [
            ("0 s 10 Mbit/s", 0, 10_000_000),
            ("1.5 s, 2 Mbit/s", 3 * second / 2, 2_000_000),
            ("1.5,2000000", 3 * second / 2, 2_000_000),
            ("1.5 2000000", 3 * second / 2, 2_000_000),
            ("250ms 2Mbit/s", second / 4, 2_000_000),
            ("250 ms\t2Mbit", second / 4, 2_000_000),
            ("2 s unlimited", 2 * second, u64::MAX),
            ("2 unlimited", 2 * second, u64::MAX),
            ("10 us 0", 10_000, 0),
            ("3,0", 3 * second, 0),
            ("1e-3,1e6", second / 1000, 1_000_000),
        ] {
            assert_eq!(entry::<Rate>(line), Ok((Nanos(time), Some(Rate(rate)))), "{line}");
        }
        assert_eq!(entry::<Nanos>("1 0.02"), Ok((Nanos::from_secs(1), Some(Nanos::from_millis(20)))));
        assert_eq!(entry::<Nanos>("1 s, 20 ms"), Ok((Nanos::from_secs(1), Some(Nanos::from_millis(20)))));
        assert_eq!(entry::<Nanos>("1,0"), Ok((Nanos::from_secs(1), Some(Nanos::ZERO))));
        assert_eq!(entry::<Probability>("1,1"), Ok((Nanos::from_secs(1), Some(Probability::ONE))));
        assert_eq!(entry::<Probability>("1 s 2 %"), entry("1,0.02"));
        assert_eq!(entry::<Rate>("9 s end"), Ok((Nanos::from_secs(9), None)));
        for line in ["3 s down", "3s down", "3 down", "3,down", "3 s, down"] {
            assert_eq!(entry::<LinkState>(line), Ok((Nanos::from_secs(3), Some(LinkState::Down))), "{line}");
        }
    }

    #[test]
    fn the_last_value_holds_as_long_as_the_one_before_it_or_until_the_end() {
        let list = |text: &str| parse::<Nanos>(text).unwrap();
        assert_eq!(list("0 s 1 ms\n2 s 2 ms\n5 s 3 ms\n").length(), Nanos::from_secs(8));
        assert_eq!(list("0 s 1 ms\n2 s 2 ms\n3 s end\n").length(), Nanos::from_secs(3));
        let commented = list("time,delay\n# a note\n\n0,0.001\n2,0.002\n");
        assert_eq!(commented.steps()[1], (Nanos::from_secs(2), Nanos::from_millis(2)));
        assert_eq!(list("0 s 1 ms").steps().len(), 1);
    }

    #[test]
    fn says_which_line_is_wrong() {
        for (text, wanted) in [
            ("", "no line of the trace"),
            ("0 s\n", "line 1: \"0 s\" is not a time and a value, as in \"0 s 10 Mbit/s\""),
            ("0 s 10 Mbit/s\n\n1 s 10 Mbitt/s\n", "line 3: \"10 Mbitt/s\" has the unknown unit"),
            ("0 s 1 Mbit/s\n1 s 2 Mbit/s\n1 s 3 Mbit/s", "line 3: times must increase"),
            ("1 s 1 Mbit/s", "line 1: the first time is 1 s"),
            ("0 s 1 Mbit/s\n2 s end\n3 s 1 Mbit/s", "line 3: nothing can come after the end"),
            ("0 s 1 Mbit/s\nx", "line 2"),
            ("0 s 299 bit/s", "out of range"),
            ("0 parsecs 1 Mbit/s", "line 1: the time: "),
        ] {
            let error = parse::<Rate>(text).unwrap_err().to_string();
            assert!(error.contains(wanted), "{text:?}: {error}");
        }
        let error = parse::<LinkState>("0 s up; 1 s 7".replace(';', "\n").as_str()).unwrap_err().to_string();
        assert!(error.contains("line 2: \"7\" is no state of a link"), "{error}");
    }

    proptest! {
        #[test]
        fn hostile_text_never_panics(text in "(\\PC|[0-9., \n]|s |end|up|down|Mbit){0,60}") {
            let _ = parse::<Rate>(&text);
            let _ = parse::<Nanos>(&text);
            let _ = parse::<Probability>(&text);
            let _ = parse::<LinkState>(&text);
        }
    }
}
