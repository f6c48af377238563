//! TheaterQ's trace files (the kernel module TheaterQ, its README and its line parser).
//!
//! A line is an entry that holds for a while: `KEEP,LATENCY,RATE,LOSS,LIMIT`, or extended
//! `KEEP,LATENCY,JITTER,RATE,LOSS,LIMIT,DUP_PROB,DUP_DELAY,ROUTE_ID,QUEUE_ID`. The last two columns are a
//! later addition and may be missing; the last is ignored. Lines that do not begin with a digit, apart from
//! spaces, are skipped: headers and comments.
//!
//! KEEP is in µs and above zero, times are in ns, RATE in bit/s, probabilities are fractions of 2³² − 1. All
//! columns are non-negative whole numbers, except for a RATE of −1, which means no rate limit in newer
//! versions; a RATE of 0 means the same, as in older ones. A LIMIT of 0 means no queue limit.

use crate::{MAX_STEPS, Series, TraceError, series::too_many};
use longwire_units::{Nanos, Probability, Rate};
use std::str::Split;

/// No rate limit.
const NO_RATE: &str = "-1";

/// One line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry {
    /// Duration of the entry.
    pub keep: Nanos,
    /// The delay.
    pub latency: Nanos,
    /// Uniform jitter to both sides of the delay.
    pub jitter: Nanos,
    /// The rate; unlimited for -1 or 0.
    pub rate: Rate,
    /// Whether RATE is 0: newer versions of TheaterQ send nothing then.
    pub has_zero_rate: bool,
    /// The probability that a packet is lost.
    pub loss: Probability,
    /// Most packets (or bytes, by the module's configuration) in the queue; none for 0.
    pub limit: Option<u32>,
    /// The probability that a packet is duplicated.
    pub duplicate: Probability,
    /// The additional delay of a duplicate.
    pub duplicate_delay: Nanos,
    /// Route: packets of one route keep their order, except those of route 0.
    pub route: u32,
    /// Whether there is a QUEUE_ID.
    pub has_queue: bool,
}

/// Whether a line resembles an entry: five, or eight to ten whole numbers.
pub fn is_entry(line: &str) -> bool {
    let whole = |field: &str| {
        field == NO_RATE || !field.is_empty() && field.bytes().all(|byte| byte.is_ascii_digit())
    };
    matches!(line.split(',').count(), 5 | 8..=10) && line.split(',').all(|field| whole(field.trim()))
}

/// Reads the entries of a file.
///
/// # Errors
/// Names the line and column that can't be read, or the line whose number of columns differs from the first
/// line's.
pub fn entries(text: &str) -> Result<Vec<Entry>, TraceError> {
    let (mut entries, mut columns) = (Vec::new(), 0);
    for (index, line) in text.lines().enumerate() {
        let line = line.trim_start();
        if !line.starts_with(|first: char| first.is_ascii_digit()) {
            continue;
        }
        let error = |what: String| TraceError::line(index + 1, what);
        let count = line.split(',').count();
        if entries.is_empty() {
            columns = count;
        }
        if !matches!(count, 5 | 8..=10) || count != columns {
            let wanted = if columns == count { "5, or 8 to 10".into() } else { columns.to_string() };
            return Err(error(format!("{count} columns where there must be {wanted}")));
        }
        if entries.len() == MAX_STEPS {
            return Err(too_many());
        }
        entries.push(entry(line, count).map_err(error)?);
    }
    Ok(entries)
}

/// The steps of one column.
pub(crate) fn series<T: Copy + PartialEq>(
    text: &str,
    column: fn(&Entry) -> T,
) -> Result<Series<T>, TraceError> {
    let (mut at, mut steps) = (Nanos::ZERO, Vec::new());
    for entry in entries(text)? {
        steps.push((at, column(&entry)));
        at += entry.keep;
    }
    Series::new(steps, at)
}

/// The entry of a line with this number of columns.
fn entry(line: &str, columns: usize) -> Result<Entry, String> {
    let extended = columns > 5;
    let mut fields = Fields { rest: line.split(',') };
    let keep = fields.number("KEEP", u64::MAX / 1000 - 1)?;
    if keep == 0 {
        return Err("KEEP is 0; an entry must hold for at least 1 (us)".into());
    }
    let latency = fields.number("LATENCY", u64::MAX)?;
    let jitter = if extended { fields.number("JITTER", u64::MAX)? } else { 0 };
    let written_rate = fields.rate()?;
    let rate = match written_rate.unwrap_or(0) {
        0 => Rate::UNLIMITED,
        rate if (Rate::MIN.0..=Rate::MAX.0).contains(&rate) => Rate(rate),
        rate => {
            return Err(format!("RATE is {rate}, but goes from 300 bit/s to 400 Gbit/s; -1 is unlimited"));
        }
    };
    let loss = fields.share("LOSS")?;
    let limit = fields.number("LIMIT", u32::MAX.into())? as u32;
    let (duplicate, delay) = match extended {
        true => (fields.share("DUP_PROB")?, fields.number("DUP_DELAY", u64::MAX)?),
        false => (Probability::ZERO, 0),
    };
    Ok(Entry {
        keep: Nanos::from_micros(keep),
        latency: Nanos(latency),
        jitter: Nanos(jitter),
        rate,
        has_zero_rate: written_rate == Some(0),
        loss,
        limit: Some(limit).filter(|&limit| limit > 0),
        duplicate,
        duplicate_delay: Nanos(delay),
        route: if columns > 8 { fields.number("ROUTE_ID", u32::MAX.into())? as u32 } else { 0 },
        has_queue: columns > 9,
    })
}

struct Fields<'a> {
    rest: Split<'a, char>,
}

impl Fields<'_> {
    /// The rate; none for -1.
    fn rate(&mut self) -> Result<Option<u64>, String> {
        match self.rest.clone().next().map(str::trim) {
            Some(NO_RATE) => {
                self.rest.next();
                Ok(None)
            }
            _ => self.number("RATE", u64::MAX).map(Some),
        }
    }

    fn number(&mut self, name: &str, most: u64) -> Result<u64, String> {
        let field = self.rest.next().unwrap_or("").trim();
        let number = field.parse().ok().filter(|&number: &u64| number <= most);
        number.ok_or_else(|| {
            format!("{name} is \"{field:.40}\", but a whole number from 0 to {most} is wanted")
        })
    }

    fn share(&mut self, name: &str) -> Result<Probability, String> {
        let most = u64::from(u32::MAX);
        let part = u128::from(self.number(name, most)?) * u128::from(Probability::ONE.bits());
        Ok(Probability::from_bits(((part + u128::from(most / 2)) / u128::from(most)) as u64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn reads_both_forms() {
        let simple =
            "keep,latency,rate,loss,limit\n10000,42050000,46996000,0,200\r\n20000,1,0,4294967295,0\n";
        let got = entries(simple).unwrap();
        assert_eq!(got.len(), 2);
        let first = got[0];
        assert_eq!((first.keep, first.latency), (Nanos::from_millis(10), Nanos(42_050_000)));
        assert_eq!((first.rate, first.loss, first.limit), (Rate(46_996_000), Probability::ZERO, Some(200)));
        assert_eq!((got[1].rate, got[1].loss, got[1].limit), (Rate::UNLIMITED, Probability::ONE, None));

        let extended = "# a comment\n10000,42050000,96050,46996000,0,200,2147483648,7,3\n";
        let entry = entries(extended).unwrap()[0];
        assert_eq!((entry.jitter, entry.duplicate_delay, entry.route), (Nanos(96_050), Nanos(7), 3));
        assert!((entry.duplicate.as_f64() - 0.5).abs() < 1e-9);
        assert_eq!(entries("1,2,3,400,0,5,0,0\n").unwrap()[0].rate, Rate(400));
        let newest = entries("1,2,3,-1,0,5,0,0,6,7\n").unwrap()[0];
        assert_eq!((newest.rate, newest.limit, newest.route), (Rate::UNLIMITED, Some(5), 6));
        assert_eq!((newest.has_zero_rate, newest.has_queue), (false, true));
        assert_eq!((got[0].has_zero_rate, got[1].has_zero_rate, entry.has_queue), (false, true, false));
        let indented = entries("  1000,5,1000,0,0\n\t2000,6,1000,0,0\n").unwrap();
        assert_eq!(indented.len(), 2);
    }

    #[test]
    fn steps_of_a_column() {
        let rates = series("10,5,1000,0,0\n20,5,2000,0,0\n30,6,2000,0,0\n", |entry| entry.rate).unwrap();
        assert_eq!(rates.steps(), [(Nanos(0), Rate(1000)), (Nanos(10_000), Rate(2000))]);
        assert_eq!(rates.length(), Nanos(60_000));
    }

    #[test]
    fn says_which_line_and_column_is_wrong() {
        for (text, wanted) in [
            ("1,2,3000,4\n", "line 1: 4 columns where there must be 5, or 8 to 10"),
            ("1,2,3000,0,5\n1,2,3,4000,0,6,7,8,9\n", "line 2: 9 columns where there must be 5"),
            ("0,2,3000,0,5\n", "KEEP is 0"),
            ("h\n1,2,-2,0,5\n", "line 2: RATE is \"-2\""),
            ("1,2,299,0,5\n", "RATE is 299"),
            ("1,2,3000,4294967296,5\n", "LOSS is \"4294967296\""),
        ] {
            let error = entries(text).unwrap_err().to_string();
            assert!(error.contains(wanted), "{text:?}: {error}");
        }
        assert!(series("\n", |entry| entry.rate).unwrap_err().to_string().contains("no line of the trace"));
        // The sum of the KEEPs exceeds the clock's range.
        let long = format!("{0},0,0,0,0\n{0},0,0,0,0\n", u64::MAX / 1000 - 1);
        assert!(series(&long, |entry| entry.rate).is_err());
    }

    proptest! {
        #[test]
        fn hostile_text_never_panics(text in "([0-9]{0,21}[,\n #a-]?){0,40}") {
            let _ = series(&text, |entry| entry.latency);
        }
    }
}
