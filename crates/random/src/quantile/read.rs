//! Parser for distribution files; the format is detected by content.
//!
//! | first line that is not a comment | format |
//! |---|---|
//! | begins with a word | a dummynet profile: `ipfw pipe … profile FILE`; or, before numbers and none of its words, a header, which is skipped |
//! | more than two numbers, or a negative number anywhere | a netem table: `.dist` |
//! | two numbers | points of a distribution: x, C(x) |
//! | one number | samples |
//!
//! `#` begins a comment. Fields are separated by commas, or by white space if there is none; a unit may be
//! separated from its number. Points may be in parentheses.

use super::table::Curve;
use super::{
    CHANCE_BITS, Chances, DistributionError, MAX_CELLS, SHAPE_BITS, Shape, TIME_BITS, Table, Times,
    knots_of_means,
};
use longwire_settings::plain_file;
use longwire_units::{Nanos, Probability};
use std::path::Path;

/// The longest file, in bytes.
pub const MAX_LENGTH: usize = 4 << 20;

/// Cells of a table made from points that are not evenly spaced.
const POINT_CELLS: usize = 4096;
/// Samples of a dummynet profile (`ED_MAX_SAMPLES_NO`), and as many points.
const PROFILE_MOST: usize = 1024;
/// Units that may be separated from their number.
const UNITS: [&str; 11] = ["ns", "us", "µs", "μs", "ms", "s", "min", "h", "%", "‰", "ppm"];
/// Fractional bits of a netem table.
const NETEM_BITS: u32 = 13;

/// Content of a file of times.
pub(super) enum TimesFile {
    Shape(Shape),
    Times(Times),
}

/// Parses `text` itself if it has line ends or semicolons (treated as line ends), else the file of that name.
pub(super) fn from_text_or_file<T>(
    text: &str,
    base: &Path,
    names: &[&str],
    read: fn(&str) -> Result<T, DistributionError>,
) -> Result<T, String> {
    if text.contains(['\n', ';']) {
        return read(&text.replace(';', "\n")).map_err(|error| error.to_string());
    }
    let path = base.join(text);
    let name = path.display();
    let known = if names.is_empty() { String::new() } else { format!(", nor one of {}", names.join(", ")) };
    let content = plain_file::text_of(&path, MAX_LENGTH as u64)
        .map_err(|why| format!("{name} is no file that can be read{known}: {why}"))?;
    read(&content).map_err(|error| format!("{name}: {error}"))
}

/// A distribution of times, or a netem table.
pub(super) fn times(text: &str) -> Result<TimesFile, DistributionError> {
    let lines = lines(text)?;
    let found = match format(&lines)? {
        Format::Netem => return netem(&lines).map(TimesFile::Shape),
        Format::Profile => profile(&lines)?,
        Format::Points => Times::of_table(points(&lines, time)?),
        Format::Samples => Times::of_table(samples(&lines, time)?),
    };
    Ok(TimesFile::Times(found))
}

/// A distribution of probabilities.
pub(super) fn chances(text: &str) -> Result<Chances, DistributionError> {
    let lines = lines(text)?;
    match format(&lines)? {
        Format::Netem => Err(DistributionError::Relative),
        Format::Profile => {
            Err(field(&lines[0], 0, "a probability (a dummynet profile has times, not probabilities)"))
        }
        Format::Points => points(&lines, chance).map(Chances),
        Format::Samples => samples(&lines, chance).map(Chances),
    }
}

impl Times {
    fn of_table(table: Table<i64>) -> Self {
        Self { table, lost: Probability::ZERO }
    }
}

/// A line that holds something.
struct Line<'a> {
    number: usize,
    fields: Vec<&'a str>,
}

enum Format {
    Netem,
    Profile,
    Points,
    Samples,
}

fn lines(text: &str) -> Result<Vec<Line<'_>>, DistributionError> {
    if text.len() > MAX_LENGTH {
        return Err(DistributionError::Long { limit: MAX_LENGTH });
    }
    let bare = |line: &str| line.find('#').unwrap_or(line.len());
    let lines = text.lines().map(|line| line[..bare(line)].trim()).enumerate();
    let held = lines.filter(|(_, line)| !line.is_empty());
    let mut held: Vec<_> =
        held.map(|(index, line)| Line { number: index + 1, fields: fields(line) }).collect();
    if is_heading(&held) {
        held.remove(0);
    }
    Ok(held)
}

/// Whether the first line has column names, and is not a line of a dummynet profile.
fn is_heading(lines: &[Line]) -> bool {
    let [first, second, ..] = lines else { return false };
    let words = first.fields.join(" ").to_ascii_lowercase();
    let in_profile = ["prob delay", "delay prob"].contains(&&*words)
        || ["name ", "bw ", "loss-level ", "samples "].iter().any(|word| words.starts_with(word));
    starts_word(first.fields[0]) && !starts_word(second.fields[0]) && !in_profile
}

fn starts_word(field: &str) -> bool {
    field.starts_with(|first: char| first.is_alphabetic() || first == '"')
}

/// The fields of a non-empty line: at least one.
fn fields(line: &str) -> Vec<&str> {
    let bracketed = line.strip_prefix('(').and_then(|line| line.strip_suffix(')'));
    let bare = bracketed.filter(|inner| !inner.trim().is_empty()).unwrap_or(line);
    if bare.contains(',') {
        return bare.split(',').map(str::trim).collect();
    }
    let mut fields: Vec<&str> = Vec::new();
    let mut from = 0;
    for word in bare.split_whitespace() {
        let at = from + bare[from..].find(word).unwrap_or(0);
        from = at + word.len();
        let unit = UNITS.contains(&word);
        match fields.last_mut() {
            Some(last) if unit && last.ends_with(|c: char| c.is_ascii_digit() || c == '.') => {
                let start = at - (bare[..at].len() - bare[..at].trim_end().len()) - last.len();
                *last = &bare[start..from];
            }
            _ => fields.push(word),
        }
    }
    fields
}

fn format(lines: &[Line]) -> Result<Format, DistributionError> {
    let first = lines.first().ok_or(DistributionError::Empty)?;
    if starts_word(first.fields[0]) {
        return Ok(Format::Profile);
    }
    let negative = || lines.iter().flat_map(|line| &line.fields).any(|field| field.starts_with('-'));
    Ok(match first.fields.len() {
        1 if !negative() => Format::Samples,
        2 if !negative() => Format::Points,
        _ => Format::Netem,
    })
}

/// Parses a netem table: `tc qdisc … netem … distribution FILE`. 16-bit integers, at most 16384 of them, with
/// 8192 for one deviation. netem picks one of them for each packet; here they are sorted and interpolated.
/// The mean is that of the numbers.
fn netem(lines: &[Line]) -> Result<Shape, DistributionError> {
    let mut values = Vec::new();
    for line in lines {
        for (index, text) in line.fields.iter().enumerate() {
            let wanted = "a whole number from -32768 to 32767, as in a netem table";
            let value: i16 = text.parse().map_err(|_| field(line, index, wanted))?;
            // The knots come out doubled.
            values.push(i64::from(value) << (SHAPE_BITS - NETEM_BITS - 1));
        }
    }
    if values.len() > MAX_CELLS {
        return Err(DistributionError::Many { limit: MAX_CELLS, format: "a netem table" });
    }
    values.sort_unstable();
    Ok(Shape::of_knots(knots_of_means(&values)))
}

/// Parses samples, one per line: each is the mean of a cell; of more than 16384, several share one.
fn samples(lines: &[Line], read: Reader) -> Result<Table<i64>, DistributionError> {
    let one = |line| {
        count(line, 1, "a file of samples has one in each line")?;
        read(line, 0)
    };
    let mut values: Vec<_> = lines.iter().map(one).collect::<Result<_, _>>()?;
    values.sort_unstable();
    if values.len() > MAX_CELLS {
        let count = values.len() as u128;
        let edge = |index: usize| {
            Probability::from_bits((u128::from(Probability::ONE.bits()) * index as u128 / count) as u64)
        };
        let steps = values.iter().enumerate().flat_map(|(i, &x)| [(edge(i), x), (edge(i + 1), x)]);
        values = Curve { points: steps.collect() }.means(MAX_CELLS);
    }
    Ok(Table::new(knots_of_means(&values).into()))
}

fn count(line: &Line, wanted: usize, why: &'static str) -> Result<(), DistributionError> {
    match line.fields.len() {
        found if found == wanted => Ok(()),
        found => Err(DistributionError::Fields { line: line.number, found, wanted: why }),
    }
}

/// Parses points x, C(x), one per line, both ascending, the last C being 1. A first C above 0 is the
/// probability of the first x. Evenly spaced C, as in the Osaka paper, are used directly; others are
/// resampled to 4096 cells, which preserves the mean to 1/50 ns and moves C(x) by at most 1/4096.
fn points(lines: &[Line], read: Reader) -> Result<Table<i64>, DistributionError> {
    let mut points: Vec<(Probability, i64)> = Vec::with_capacity(lines.len() + 1);
    for line in lines {
        count(line, 2, "a file of points has x and C(x) in each line")?;
        let (x, c) = (read(line, 0)?, share(line, 1)?);
        let order = |what| DistributionError::Order { line: line.number, what };
        match points.last() {
            Some(last) if x < last.1 => return Err(order("x falls: sort the points by x")),
            Some(last) if c < last.0 => {
                return Err(order("C(x) falls: it must be the probability of x or less"));
            }
            Some(_) => {}
            None if c > Probability::ZERO => points.push((Probability::ZERO, x)),
            None => {}
        }
        points.push((c, x));
    }
    table_of(points, Probability::ONE)
}

/// The table of these points, truncated at the probability `top`.
fn table_of(mut points: Vec<(Probability, i64)>, top: Probability) -> Result<Table<i64>, DistributionError> {
    match points.last() {
        Some(last) if last.0 >= top => {}
        last => {
            let end = last.map_or(Probability::ZERO, |last| last.0).to_string();
            return Err(DistributionError::Short { end, wanted: top.to_string() });
        }
    }
    let beyond = points.partition_point(|point| point.0 <= top);
    if let Some(next) = points.get(beyond).copied() {
        let (from, low) = points[beyond - 1];
        let part = u128::from(top.bits() - from.bits());
        let width = u128::from(next.0.bits() - from.bits());
        let rise = (next.1 - low) as u128 * part / width;
        points.truncate(beyond);
        points.push((top, low + rise as i64));
    }
    let curve = Curve { points };
    let knots = match curve.even() {
        // A point has half the unit of a knot.
        Some(even) => even.into_iter().map(|x| 2 * x).collect(),
        None => knots_of_means(&curve.means(POINT_CELLS)),
    };
    Ok(Table::new(knots.into()))
}

/// Parses a dummynet profile (FreeBSD's `ipfw`): keywords and values, then `prob delay` or `delay prob` and
/// points in any order, delays in ms. dummynet picks one of `samples` values on the curve; here the whole
/// curve is used. `name` and `bw` are ignored.
fn profile(lines: &[Line]) -> Result<Times, DistributionError> {
    let mut points: Vec<(Probability, i64)> = Vec::new();
    let (mut level, mut delay_first) = (Probability::ONE, None);
    for line in lines {
        count(line, 2, "a dummynet profile has two in each line, a word and its value, or a point")?;
        match (line.fields[0].to_ascii_lowercase().as_str(), delay_first) {
            ("name" | "bw", _) => {}
            ("samples", _) if matches!(line.fields[1].parse::<usize>(), Ok(2..=PROFILE_MOST)) => {}
            ("samples", _) => return Err(field(line, 1, "a whole number from 2 to 1024")),
            ("loss-level", _) => level = share(line, 1)?,
            ("prob", _) if line.fields[1].eq_ignore_ascii_case("delay") => delay_first = Some(false),
            ("delay", _) if line.fields[1].eq_ignore_ascii_case("prob") => delay_first = Some(true),
            (_, None) => {
                let wanted = "name, bw, loss-level, samples, \"prob delay\" or \"delay prob\"";
                return Err(field(line, 0, wanted));
            }
            (_, Some(true)) => points.push((share(line, 1)?, time(line, 0)?)),
            (_, Some(false)) => points.push((share(line, 0)?, time(line, 1)?)),
        }
        if points.len() > PROFILE_MOST {
            return Err(DistributionError::Many { limit: PROFILE_MOST, format: "a dummynet profile" });
        }
    }
    let missing = |what| DistributionError::Profile { what };
    if points.len() < 2 {
        return Err(missing("fewer than two points: add them after a line \"prob delay\" or \"delay prob\""));
    }
    if level == Probability::ZERO {
        return Err(missing(
            "a loss-level of 0, which loses every packet: set the link's state to down instead",
        ));
    }
    points.sort_unstable();
    if points.windows(2).any(|pair| pair[1].1 < pair[0].1) {
        return Err(missing(
            "a point of higher probability and lower delay than another: no curve goes through both",
        ));
    }
    if points[0].0 > Probability::ZERO {
        points.insert(0, (Probability::ZERO, points[0].1));
    }
    let lost = Probability::from_bits(Probability::ONE.bits() - level.bits());
    Ok(Times { lost, ..Times::of_table(table_of(points, level)?) })
}

/// Reads the field with that index, in half the unit of the knots.
type Reader = fn(&Line, usize) -> Result<i64, DistributionError>;

/// A time, by default in ms.
fn time(line: &Line, index: usize) -> Result<i64, DistributionError> {
    let text = line.fields[index];
    let bare = text.ends_with(|c: char| c.is_ascii_digit() || c == '.');
    let time: Result<Nanos, _> = if bare { format!("{text} ms").parse() } else { text.parse() };
    match time {
        Ok(time) if time <= Times::MAX => Ok((time.0 as i64) << (TIME_BITS - 1)),
        _ => Err(field(line, index, "a time from 0 to 100 s, such as \"12.5\" (ms) or \"300 us\"")),
    }
}

/// A probability as a value.
fn chance(line: &Line, index: usize) -> Result<i64, DistributionError> {
    share(line, index).map(|share| (share.bits() >> (64 - CHANCE_BITS)) as i64)
}

/// A probability in the unit of points.
fn share(line: &Line, index: usize) -> Result<Probability, DistributionError> {
    let wanted = "a probability from 0 to 1, such as \"0.015\" or \"1.5 %\"";
    line.fields[index].parse().map_err(|_| field(line, index, wanted))
}

fn field(line: &Line, index: usize, wanted: &str) -> DistributionError {
    // Hostile fields can be as long as the file.
    let found = line.fields[index].chars().take(40).collect();
    DistributionError::Field { line: line.number, found, wanted: wanted.into() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MS: u64 = 1_000_000;

    fn at(times: &Times, probability: f64) -> f64 {
        times.at((probability * 2f64.powi(64)) as u64).0 as f64 / MS as f64
    }

    #[test]
    fn samples_are_sorted_into_quantiles() {
        let times = Times::read("# round trips\n30\n10 ms\n0.02 s # twenty\n\n40000us\n").unwrap();
        assert_eq!(times.ends(), (Nanos(10 * MS), Nanos(40 * MS)));
        assert_eq!(times.mean(), 25e6);
        // The knots are 10, 15, 25, 35, 40.
        for (p, wanted) in [(0.0, 10.0), (0.25, 15.0), (0.375, 20.0), (0.5, 25.0), (0.875, 37.5)] {
            assert!((at(&times, p) - wanted).abs() < 1e-5, "{p}: {}", at(&times, p));
        }
        assert_eq!(Times::read("5").unwrap().at(1 << 40), Nanos(5 * MS));
    }

    /// Headers as written by spreadsheets. Times have only their own unit, whatever the header says.
    #[test]
    fn headings_are_left_out() {
        for heading in ["rtt_ms", "rtt (ms)", "delay", "\"Round trip, ms\"", "# a comment\nprobe"] {
            let times = Times::read(&format!("{heading}\n10\n20 ms\n")).unwrap();
            assert_eq!(times, Times::read("10\n20\n").unwrap(), "{heading}");
        }
        let points = Times::read("delay,C(x)\n10,0\n20,1\n");
        assert!(points.is_ok_and(|points| points == Times::read("10,0\n20,1\n").unwrap()));
        assert_eq!(Chances::read("loss\n0\n0.5\n").unwrap().mean(), 0.25);
        assert!(Times::read("rtt_ms\n").is_err() && Times::read("rtt\nalso\n10\n").is_err());
    }

    #[test]
    fn brackets_that_hold_nothing_are_no_number() {
        for text in ["()\n1\n", "rtt\n()\n1\n", "1\n()\n", "()"] {
            let error = Times::read(text).unwrap_err().to_string();
            assert!(error.contains("\"()\""), "{text:?}: {error}");
        }
        assert!(Times::read("rtt\n( )\n1\n").is_err());
    }

    #[test]
    fn many_samples_keep_their_mean() {
        let many: Vec<_> = (0..50_000u64).map(|n| n * n % 99_991).collect();
        let text: String = many.iter().map(|n| format!("{n} us\n")).collect();
        let times = Times::read(&text).unwrap();
        let mean = many.iter().sum::<u64>() as f64 * 1000.0 / many.len() as f64;
        assert!((times.mean() - mean).abs() < 0.01, "{} {mean}", times.mean());
        let mut sorted = many;
        sorted.sort_unstable();
        for percent in 1..100 {
            let wanted = sorted[percent * 500] as f64 / 1000.0;
            let got = at(&times, percent as f64 / 100.0);
            // Neighbouring cells of 1/16384 are about 6 us apart.
            assert!((got - wanted).abs() < 0.013, "{percent} %: {got}, not {wanted}");
        }
    }

    #[test]
    fn the_papers_table_is_kept_as_it_is() {
        let text = "# x ms, C(x)\n(10, 0)\n(12, 0.25)\n(20, 0.5)\n(20, 0.75)\n(100, 1)\n";
        let times = Times::read(text).unwrap();
        for (p, wanted) in [(0.0, 10.0), (0.125, 11.0), (0.25, 12.0), (0.5, 20.0), (0.6, 20.0), (0.875, 60.0)]
        {
            assert!((at(&times, p) - wanted).abs() < 1e-6, "{p}: {}", at(&times, p));
        }
        let same = Times::read("10 ms 0\n12 ms 25 %\n20 ms\t50 %\n20 ms 75%\n0.1 s 100 %\n").unwrap();
        assert_eq!(times, same);
    }

    #[test]
    fn uneven_points_keep_their_mean() {
        // A tenth at exactly 10 ms, then up to 20 at one half, then a jump to 50 and up to 60.
        let times = Times::read("10 0.1\n20 0.5\n50 0.5\n60 1").unwrap();
        assert!((times.mean() / 1e6 - (0.1 * 10.0 + 0.4 * 15.0 + 0.5 * 55.0)).abs() < 1e-8);
        for (p, wanted) in [(0.05, 10.0), (0.3, 15.0), (0.49, 19.75), (0.51, 50.2), (0.75, 55.0)] {
            assert!((at(&times, p) - wanted).abs() < 0.003, "{p}: {}", at(&times, p));
        }
    }

    #[test]
    fn dummynet_profiles_tell_the_loss_too() {
        let text = "name test\nbw 1Mbit/s\nsamples 200\nloss-level 0.8\nprob delay\n1 1500\n0 200 # least\n\
                    0.5 200\n0.5 300\n0.8 900\n";
        let times = Times::read(text).unwrap();
        assert!((times.lost_share().as_f64() - 0.2).abs() < 1e-15);
        // Of the packets that arrive, 5 in 8 take 200 ms, the others 300 to 900.
        assert!((times.mean() / 1e6 - (0.625 * 200.0 + 0.375 * 600.0)).abs() < 1e-6);
        for (p, wanted) in [(0.0, 200.0), (0.6, 200.0), (0.8125, 600.0), (0.9999, 900.0)] {
            assert!((at(&times, p) - wanted).abs() < 0.3, "{p}: {}", at(&times, p));
        }
        assert!(matches!(times.shape(), Err(DistributionError::Lossy { .. })));
        // The other order, without the loss.
        let times = Times::read("delay prob\n0 0\n100 1\n").unwrap();
        assert_eq!((times.lost_share(), times.mean()), (Probability::ZERO, 50e6));
    }

    #[test]
    fn netem_tables_come_back_as_they_were() {
        let written = [-8192, -100, -4096, 0, 8191, 32767, -32768, 1];
        let text = format!("# a table\n {} \n{}\n", join(&written[..4]), join(&written[4..]));
        let shape = Shape::read(&text).unwrap();
        assert_eq!(shape.ends(), (-4.0, 32767.0 / 8192.0));
        let mean = f64::from(written.iter().sum::<i32>()) / 8.0 / 8192.0;
        assert!((shape.mean() - mean).abs() < 1e-12);
        // One number per line, and the table read back from the middle of each cell.
        let single = Shape::read(&join(&written).replace(' ', "\n")).unwrap();
        assert_eq!(single, shape);
        let numbers: Vec<i32> = (-2000i32..2000).map(|n| n * n.abs() / 200).collect();
        let shape = Shape::read(&join(&numbers)).unwrap();
        let again: Vec<i32> = (0..4000u64)
            .map(|n| shape.offset((2 * n + 1) * (u64::MAX / 8000), Nanos(8192 * 1000)) as i32)
            .collect();
        for (number, again) in numbers.iter().zip(again).take(3999).skip(1) {
            // The middle of a cell is (before + 2·own + after)/4; consecutive steps differ by at most one.
            assert!((number * 1000 - again).abs() <= 510, "{number} {again}");
        }
        assert_eq!(Times::read(&text), Err(DistributionError::Relative));
    }

    fn join(numbers: &[i32]) -> String {
        numbers.iter().map(|number| format!("{number} ")).collect()
    }

    #[test]
    fn times_become_a_shape() {
        let shape = Shape::read("10\n20\n30\n").unwrap();
        assert_eq!(shape.mean(), 0.0);
        assert!((shape.deviation() - 1.0).abs() < 1e-5);
        // The knots are −10, −5, 5, 10 from the mean, the variance (175/3 + 25/3 + 175/3)/3 = 125/3.
        let ends = 10.0 / (125.0f64 / 3.0).sqrt();
        assert!((shape.ends().0 + ends).abs() < 1e-5 && (shape.ends().1 - ends).abs() < 1e-5);
        assert_eq!(Shape::read("10\n10\n"), Err(DistributionError::Flat));
    }

    #[test]
    fn probabilities() {
        let chances = Chances::read("0 %\n1 %\n0.02\n").unwrap();
        assert!((chances.mean() - 0.01).abs() < 1e-15);
        let chances = Chances::read("0, 0\n0.5, 0.5\n1, 1\n").unwrap();
        assert!((chances.at(1 << 62).as_f64() - 0.25).abs() < 1e-9);
        assert!(chances.at(u64::MAX) <= Probability::ONE && chances.at(u64::MAX).as_f64() > 0.999_999);
        assert_eq!(Chances::read("1").unwrap().at(7), Probability::ONE);
        assert_eq!(Chances::read("-1 2 3"), Err(DistributionError::Relative));
    }

    #[test]
    fn names_the_line_and_the_fix() {
        let table = [
            ("", "no value"),
            ("# nothing\n\n", "no value"),
            ("1\n2\nthree\n", "line 3: \"three\" is not a time"),
            ("1\n101 s\n", "line 2: \"101 s\" is not a time from 0 to 100 s"),
            ("1\n2 3\n", "line 2 has 2 values"),
            ("1 0\n2 0.5 3\n", "line 2 has 3 values"),
            ("1 0\n2 1.5\n", "line 2: \"1.5\" is not a probability"),
            ("2 0\n1 1\n", "line 2: x falls"),
            ("1 0.5\n2 0.25\n3 1\n", "line 2: C(x) falls"),
            ("1 0\n2 0.5\n", "end at the probability 50 %: add one at 100 %"),
            ("1 2 3\n4 5 sixty\n", "line 2: \"sixty\" is not a whole number"),
            ("1 2 -3 40000\n", "\"40000\" is not a whole number from -32768"),
            ("speed 7\n", "line 1: \"speed\" is not name, bw"),
            ("name x\nsamples 1025\n", "line 2: \"1025\" is not a whole number from 2 to 1024"),
            ("name x\n", "fewer than two points"),
            ("prob delay\n0 1\n", "fewer than two points"),
            ("loss-level 0\nprob delay\n0 1\n1 2\n", "a loss-level of 0"),
            ("prob delay\n0 1\n0.5 2\n", "end at the probability 50 %"),
            ("prob delay\n0 5\n1 2\n", "no curve"),
            ("prob delay\n0 5 6\n", "line 2 has 3 values"),
            ("loss-level 2\n", "line 1: \"2\" is not a probability"),
        ];
        for (text, wanted) in table {
            let error = Times::read(text).map(|_| "nothing wrong").unwrap_err().to_string();
            assert!(error.contains(wanted), "{text:?}: {error}");
        }
        let long = "1\n".repeat(MAX_LENGTH / 2 + 1);
        assert_eq!(Times::read(&long), Err(DistributionError::Long { limit: MAX_LENGTH }));
        let many = "-1 2 ".repeat(MAX_CELLS);
        assert!(Shape::read(&many).unwrap_err().to_string().contains("more than 16384"));
        let many = format!("prob delay\n{}", "0 1\n".repeat(1025));
        assert!(Times::read(&many).unwrap_err().to_string().contains("more than 1024"));
        assert!(Chances::read("prob delay\n").unwrap_err().to_string().contains("has times"));
    }

    #[test]
    fn names_texts_and_files() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        std::fs::write(folder.join("rtt.csv"), "10\n20\n").unwrap();
        std::fs::write(folder.join("bad.csv"), "10\nx\n").unwrap();
        let file = Times::parse("rtt.csv", folder).unwrap();
        assert_eq!(file, Times::parse("10; 20", folder).unwrap());
        let error = Times::parse("bad.csv", folder).unwrap_err();
        assert!(error.contains("bad.csv: line 2"), "{error}");
        let error = Shape::parse("norml", folder).unwrap_err();
        assert!(error.contains("norml is no file") && error.contains("pareto-normal"), "{error}");
        assert!(Times::parse(".", folder).unwrap_err().contains("plain file"));
        assert!(Times::parse("normal", folder).unwrap_err().contains("jitter"));
        assert!(std::ptr::eq(&*Shape::named("gamma").unwrap(), &*Shape::parse(" gamma ", folder).unwrap()));
        assert!(Shape::named("gama").is_none());
    }

    #[test]
    fn examples_can_be_read() {
        for grammar in [crate::quantile::SHAPE, crate::quantile::TIMES, crate::quantile::CHANCES] {
            for example in grammar.examples {
                (grammar.read)(example, Path::new(".")).unwrap();
            }
        }
    }

    proptest! {
        #[test]
        fn hostile_texts_never_panic(text in "([-0-9.,;#%() \\n]|[0-9]{1,6} ?(ms|%|s)?\\n|prob \
            delay\\n|loss-level |e9|\\PC){0,60}") {
            let _ = (Times::read(&text), Shape::read(&text), Chances::read(&text));
        }

        #[test]
        fn samples_keep_mean_order_and_ends(mut samples in prop::collection::vec(0u64..100_000_000_000,
            1..200)) {
            let text: String = samples.iter().map(|ns| format!("{ns} ns\n")).collect();
            let times = Times::read(&text).unwrap();
            samples.sort_unstable();
            prop_assert_eq!(times.ends(), (Nanos(samples[0]), Nanos(samples[samples.len() - 1])));
            let mean = samples.iter().map(|&ns| ns as f64).sum::<f64>() / samples.len() as f64;
            prop_assert!((times.mean() - mean).abs() <= mean * 1e-12);
            let mut last = Nanos::ZERO;
            for step in 0..500 {
                let time = times.at(step * (u64::MAX / 499));
                prop_assert!(last <= time && times.ends().0 <= time && time <= times.ends().1);
                last = time;
            }
        }

        #[test]
        fn points_keep_mean_and_ends(
            steps in prop::collection::vec((0u64..1000, 0u64..1_000_000), 1..50), level in 1u64..1000
        ) {
            // As a profile, which may be truncated.
            let total: u64 = steps.iter().map(|step| step.0).sum::<u64>().max(1);
            let (mut c, mut x, mut text) = (0, 0, format!("loss-level {}\nprob delay\n0 0\n",
                level as f64 / 1000.0));
            for (width, rise) in &steps {
                (c, x) = (c + width, x + rise);
                text += &format!("{} {}\n", c as f64 / total as f64, x as f64 / 1e6);
            }
            text += &format!("1 {}\n", x as f64 / 1e6);
            let times = Times::read(&text).unwrap();
            prop_assert!(times.ends().1 <= Nanos(x));
            prop_assert!((times.lost_share().as_f64() - (1.0 - level as f64 / 1000.0)).abs() < 1e-12);
            // The same area computed by hand.
            let (level, mut area, mut c, mut x) = (level as f64 / 1000.0, 0.0, 0.0, 0.0);
            for (width, rise) in &steps {
                let (width, rise) = (*width as f64 / total as f64, *rise as f64);
                let part = (level - c).clamp(0.0, width);
                area += part * x + if width > 0.0 { part * part * rise / width / 2.0 } else { 0.0 };
                (c, x) = (c + width, x + rise);
            }
            area += (level - c).max(0.0) * x;
            prop_assert!((times.mean() - area / level).abs() < 0.02 + 1e-9 * x, "{} {}", times.mean(),
                area / level);
        }
    }
}
