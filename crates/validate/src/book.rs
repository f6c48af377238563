//! Collects the rows and figures of a run.

use crate::Settings;
use crate::plot::Plot;
use crate::table::NOT_RUN;
use crate::trust;
use longwire_bench::BenchError;
use longwire_bench::world::require_hosts;
use longwire_report::{Row, Scalar};
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Results of a run.
#[derive(Debug)]
pub struct Findings {
    /// The rows, in the paper's order; a row that was not run says why.
    pub rows: Vec<Row>,
    /// The figures of the rows that were run.
    pub plots: Vec<Plot>,
    /// Whether a requested row exists.
    pub matched: bool,
    /// What the rows together say about the paper's claims, in sentences; shown before the counts.
    pub summary: Vec<String>,
}

/// Collects the requested rows.
pub(crate) struct Book<'a> {
    pub settings: &'a Settings<'a>,
    findings: Findings,
    /// Requested rows so far, and in total.
    wanted: usize,
    all: usize,
}

impl<'a> Book<'a> {
    /// For `all` requested rows.
    pub(crate) fn new(settings: &'a Settings<'a>, all: usize) -> Self {
        let matched = settings.only.is_empty();
        let findings = Findings { rows: Vec::new(), plots: Vec::new(), matched, summary: Vec::new() };
        Self { settings, findings, wanted: 0, all }
    }

    /// Number of requested rows so far.
    pub(crate) const fn wanted(&self) -> usize {
        self.wanted
    }

    pub(crate) fn close(self) -> Findings {
        self.findings
    }

    /// Measures and keeps a row, if requested. Returns it if it was measured.
    pub(crate) fn row(
        &mut self,
        row: Row,
        measure: impl FnOnce(Row) -> Result<Row, BenchError>,
    ) -> Option<Row> {
        let row = self.measured(row, measure);
        self.findings.rows.push(row.clone());
        was_run(&row).then_some(row)
    }

    /// As [`Self::row`]; returns the row's number if it was measured.
    pub(crate) fn number(
        &mut self,
        row: Row,
        measure: impl FnOnce(Row) -> Result<Row, BenchError>,
    ) -> Option<f64> {
        self.row(row, measure)?.measured?.as_f64()
    }

    fn measured(&mut self, row: Row, measure: impl FnOnce(Row) -> Result<Row, BenchError>) -> Row {
        let settings = self.settings;
        let wanted = settings.only.is_empty() || settings.only.iter().any(|text| contains(&row.name, text));
        self.findings.matched |= wanted;
        self.wanted += usize::from(wanted);
        if settings.list || !wanted {
            return not_run(row, "not asked for");
        }
        if settings.stop.load(Ordering::Relaxed) {
            return not_run(row, "stopped before it");
        }
        (settings.say)(&format!("{} ({} of {})", row.name, self.wanted, self.all));
        match measure(row.clone()) {
            Ok(row) => with_ratio(self.marked(trust::sealed(row))),
            Err(BenchError::NotHere(why)) => not_run(row, &why),
            Err(BenchError::Stopped) => not_run(row, "stopped while it was measured"),
            Err(error) => row.measured("failed").note(error.to_string()).judged(false),
        }
    }

    /// Marks the rows of a quick run.
    fn marked(&self, row: Row) -> Row {
        if self.settings.quick { row.extra("quick", true) } else { row }
    }

    /// Adds a sentence about the rows so far, if any was run.
    pub(crate) fn say_of_all(&mut self, sentence: String) {
        if self.findings.rows.iter().any(was_run) {
            self.findings.summary.push(sentence);
        }
    }

    /// Adds a figure, unless it is empty.
    pub(crate) fn plot(&mut self, plot: Plot) {
        if plot.shows_a_measurement() {
            self.findings.plots.push(plot);
        }
    }
}

#[cfg(test)]
impl<'a> Settings<'a> {
    /// Quick, in virtual time, and silent.
    pub(crate) fn of_test(stop: &'a std::sync::atomic::AtomicBool) -> Self {
        Self {
            driver: longwire_bench::world::Driver::AfPacket,
            simulate: true,
            quick: true,
            full: false,
            seed: 7,
            only: &[],
            list: false,
            say: &|_| (),
            stop,
        }
    }
}

impl Settings<'_> {
    /// The first value for a whole run, the second for a quick one.
    pub(crate) fn choose<T>(&self, whole: T, quick: T) -> T {
        if self.quick { quick } else { whole }
    }

    /// Checks that test hosts are allowed.
    ///
    /// # Errors
    /// The reason why not.
    pub(crate) fn require_real(&self, what: &str) -> Result<(), BenchError> {
        self.require_real_time(what)?;
        require_hosts(what)
    }

    /// Checks that this is a run in real time.
    ///
    /// # Errors
    /// If it is not.
    pub(crate) fn require_real_time(&self, what: &str) -> Result<(), BenchError> {
        if self.simulate {
            return Err(BenchError::NotHere(format!("{what} has no meaning in virtual time")));
        }
        Ok(())
    }

    /// # Errors
    /// If the run is stopped.
    pub(crate) fn go_on(&self) -> Result<(), BenchError> {
        if self.stop.load(Ordering::Relaxed) { Err(BenchError::Stopped) } else { Ok(()) }
    }

    /// Waits for this time.
    pub(crate) fn pause(&self, time: Duration) -> Result<(), BenchError> {
        longwire_bench::pause(time, || self.go_on())
    }
}

/// The row with the paper's value.
pub(crate) fn paper(row: Row, value: impl Into<Scalar>) -> Row {
    let value = value.into();
    row.extra("paper", serde_json::to_value(value).unwrap_or_default())
}

/// The row with the paper's value, where there is one.
pub(crate) fn paper_if(row: Row, value: Option<impl Into<Scalar>>) -> Row {
    match value {
        Some(value) => paper(row, value),
        None => row,
    }
}

/// What `measure` returned the first time.
pub(crate) fn once<T>(
    known: &mut Option<T>,
    measure: impl FnOnce() -> Result<T, BenchError>,
) -> Result<&T, BenchError> {
    match known {
        Some(known) => Ok(known),
        none => Ok(none.insert(measure()?)),
    }
}

/// Whether the row has a value, and not words that say why it has none.
fn was_run(row: &Row) -> bool {
    row.measured.as_ref().is_some_and(|value| !matches!(value, Scalar::Text(_)))
}

fn not_run(row: Row, why: &str) -> Row {
    row.measured(NOT_RUN).note(why)
}

/// The row with our value as a multiple of the paper's, if both are numbers.
fn with_ratio(row: Row) -> Row {
    let paper = row.extra.get("paper").and_then(serde_json::Value::as_f64).filter(|paper| *paper != 0.0);
    match (paper, row.measured.as_ref().and_then(Scalar::as_f64)) {
        (Some(paper), Some(ours)) => row.extra("ratio", ours / paper),
        _ => row,
    }
}

fn contains(name: &str, text: &str) -> bool {
    name.to_lowercase().contains(&text.to_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicBool;

    fn book_of_void(settings: &Settings<'_>) -> Findings {
        settings.stop.store(false, Ordering::Relaxed);
        let mut book = Book::new(settings, 1);
        book.row(Row::new("table 1", "ns").expected(4), |row| {
            Ok(trust::void(row, "a packet was late").measured(4).within(1.0))
        });
        book.close()
    }

    #[test]
    fn rows_say_why_they_were_not_run() {
        let stop = AtomicBool::new(false);
        let only = ["TABLE 1".to_owned()];
        let settings = Settings { only: &only, ..Settings::of_test(&stop) };
        let mut book = Book::new(&settings, 3);
        let row = |name: &str| paper(Row::new(name, "ns").expected(4), 8);
        assert!(book.row(row("table 1: a"), |row| Ok(row.measured(2).within(3.0))).is_some());
        assert!(book.row(row("table 1: b"), |_| Err(BenchError::NotHere("no root".into()))).is_none());
        assert!(book.row(row("table 2: a"), |row| Ok(row.measured(2))).is_none());
        stop.store(true, Ordering::Relaxed);
        assert!(book.row(row("table 1: c"), |row| Ok(row.measured(2))).is_none());
        let findings = book.close();
        assert!(findings.matched);
        let rows = &findings.rows;
        assert_eq!((rows[0].pass, rows[0].extra["ratio"].as_f64()), (Some(true), Some(0.25)));
        assert_eq!(rows[0].extra["quick"], true);
        assert_eq!(book_of_void(&settings).rows[0].pass, Some(false), "whatever the row says of itself");
        for (row, why) in rows[1..].iter().zip(["no root", "not asked for", "stopped before it"]) {
            assert_eq!((row.measured.clone(), row.pass), (Some("not run".into()), None), "{row:?}");
            assert_eq!(row.notes, [why]);
        }
    }
}
