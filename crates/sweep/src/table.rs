//! Rows of one or more files as a table.

use crate::line::{ERROR, Line, SEED, STATUS, SWEEP, TASK};
use anyhow::Context;
use longwire_control::fits;
use longwire_run::series::csv_text;
use longwire_scenario::suggestion;
use serde_json::Value;
use std::collections::{BTreeMap, HashSet};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};
use std::path::Path;

/// Rows of a sweep, by task, with the columns that any of them has.
#[derive(Debug, Default)]
pub struct RowTable {
    columns: Vec<String>,
    known: HashSet<String>,
    rows: BTreeMap<u64, Line>,
    /// The fingerprint of their sweep, and the first file.
    sweep: Option<(String, String)>,
}

impl RowTable {
    /// Adds the rows of a file. A row of a task that is known replaces the earlier one.
    ///
    /// # Errors
    /// If the file can't be read, or a line is no row, or its rows are of another sweep than those before.
    pub fn read(&mut self, path: &Path) -> anyhow::Result<()> {
        let name = path.display().to_string();
        let file = File::open(path).with_context(|| format!("{name}: name a file of rows"))?;
        for (number, text) in (1u64..).zip(BufReader::new(file).lines()) {
            let text = text.with_context(|| format!("reading {name}"))?;
            if text.is_empty() {
                continue;
            }
            let wrong = || format!("{name}:{number}: this is no row of a sweep");
            let line: Line = serde_json::from_str(&text).with_context(wrong)?;
            self.add(line, &name).with_context(wrong)?;
        }
        Ok(())
    }

    fn add(&mut self, line: Line, file: &str) -> anyhow::Result<()> {
        let task = line.task().context("it has no number of a task")?;
        let sweep = line.get(SWEEP).and_then(Value::as_str).unwrap_or_default();
        let (known, first) = self.sweep.get_or_insert_with(|| (sweep.into(), file.into()));
        anyhow::ensure!(known.as_str() == sweep, "it belongs to another sweep than those of {first}");
        for (column, _) in line.columns() {
            if self.known.insert(column.into()) {
                self.columns.push(column.into());
            }
        }
        self.rows.insert(task, line);
        Ok(())
    }

    /// The rows, by task.
    pub fn rows(&self) -> impl ExactSizeIterator<Item = &Line> {
        self.rows.values()
    }

    /// The columns of the axes' settings.
    pub fn axes(&self) -> impl Iterator<Item = &str> {
        let axes = self.columns.iter().skip_while(|column| *column != SWEEP).skip(1);
        axes.map(String::as_str).take_while(|column| *column != SEED)
    }

    /// Checks that a row has this column.
    ///
    /// # Errors
    /// If none has: what it may mean.
    pub fn check_column(&self, column: &str) -> anyhow::Result<()> {
        if self.known.contains(column) {
            return Ok(());
        }
        let fix = match suggestion(column, self.columns.iter().map(String::as_str)) {
            Some(near) => format!("did you mean \"{near}\"?"),
            None => "longwire sweep table shows them all".into(),
        };
        anyhow::bail!("no row has a column \"{column}\"; {fix}")
    }

    /// The columns that say which task it is, and those that match one of the patterns; all columns without
    /// patterns.
    ///
    /// # Errors
    /// If a pattern matches none: what it may mean.
    pub fn columns(&self, patterns: &[String]) -> anyhow::Result<Vec<&str>> {
        let fits_none = |pattern: &&String| !self.columns.iter().any(|column| fits(column, pattern));
        // Rows have counts of drops only for reasons that occurred.
        let wrong = |pattern: &&String| fits_none(pattern) && !is_count_of_drops(pattern);
        patterns.iter().filter(wrong).try_for_each(|pattern| self.check_column(pattern))?;
        let axes: Vec<&str> = self.axes().collect();
        let names_task = |column: &str| [TASK, SEED, STATUS].contains(&column) || axes.contains(&column);
        let wanted = |column: &&str| {
            patterns.is_empty() || names_task(column) || patterns.iter().any(|pattern| fits(column, pattern))
        };
        Ok(self.columns.iter().map(String::as_str).filter(wanted).collect())
    }

    /// The text of a cell: empty if there is no value, 0 for drops of which there were none.
    pub fn cell(line: &Line, column: &str) -> String {
        match line.get(column) {
            Some(Value::String(text)) => text.clone(),
            Some(Value::Null) => String::new(),
            Some(value) => value.to_string(),
            None if Self::has_none(line, column) => "0".into(),
            None => String::new(),
        }
    }

    /// Whether a row lacks this column because there were no drops of its kind: those of a failed task are
    /// unknown.
    pub(crate) fn has_none(line: &Line, column: &str) -> bool {
        line.get(column).is_none() && line.get(ERROR) == Some(&Value::Null) && is_count_of_drops(column)
    }

    /// Writes these columns as CSV (RFC 4180), with the names of the columns first.
    ///
    /// # Errors
    /// If it can't be written.
    pub fn write_csv(&self, columns: &[&str], out: &mut dyn Write) -> io::Result<()> {
        let mut line = |cells: &mut dyn Iterator<Item = String>| {
            let cells: Vec<_> = cells.map(|cell| csv_text(&cell)).collect();
            writeln!(out, "{}", cells.join(","))
        };
        line(&mut columns.iter().map(|column| (*column).to_owned()))?;
        self.rows().try_for_each(|row| line(&mut columns.iter().map(|column| Self::cell(row, column))))
    }
}

/// Whether a column counts drops for one reason: rows have it only if there were any.
fn is_count_of_drops(column: &str) -> bool {
    column.starts_with("dropped.") || column.contains(".dropped.")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::curves::Curves;

    fn table(lines: &[&str]) -> anyhow::Result<RowTable> {
        let mut table = RowTable::default();
        for line in lines {
            table.add(serde_json::from_str(line)?, "x")?;
        }
        Ok(table)
    }

    /// The row of a task that is well, with more columns.
    fn ok(task: u64, rate: &str, more: &str) -> String {
        format!(
            "{{\"task\": {task}, \"sweep\": \"f\", \"a.rate\": \"{rate}\", \"seed\": 1, \"status\": \"ok\", \
             \"error\": null, {more}}}"
        )
    }

    #[test]
    fn rows_are_joined_by_task() {
        let table = table(&[
            &ok(2, "1,5", "\"taken\": 3"),
            r#"{"task": 0, "sweep": "f", "a.rate": "x", "seed": 1, "status": "failed", "error": "a \"b\""}"#,
            &ok(2, "1,5", "\"taken\": 4, \"link.l.dropped.loss\": 9"),
            &ok(3, "y", "\"taken\": 0.5"),
        ]);
        let table = table.unwrap();
        let mut csv = Vec::new();
        table.write_csv(&table.columns(&[]).unwrap(), &mut csv).unwrap();
        let wanted = "task,sweep,a.rate,seed,status,error,taken,link.l.dropped.loss\n\
            0,f,x,1,failed,\"a \"\"b\"\"\",,\n\
            2,f,\"1,5\",1,ok,,4,9\n\
            3,f,y,1,ok,,0.5,0\n";
        assert_eq!(String::from_utf8(csv).unwrap(), wanted);
        let drops = table.columns(&["link.*".into(), "dropped.aqm".into()]).unwrap();
        assert_eq!(drops, ["task", "a.rate", "seed", "status", "link.l.dropped.loss"]);
        let error = table.columns(&["taken".into(), "takn".into()]).unwrap_err().to_string();
        assert_eq!(error, "no row has a column \"takn\"; did you mean \"taken\"?");
        assert!(table.columns(&["nosuch*".into()]).is_err());
        assert_eq!(table.rows().len(), 3);
    }

    #[test]
    fn means_of_drops_include_the_rows_without_any() {
        let failed =
            r#"{"task": 3, "sweep": "f", "a.rate": "1", "seed": 4, "status": "failed", "error": "x"}"#;
        let lines =
            [ok(0, "1", "\"taken\": 3"), ok(1, "1", "\"taken\": 3"), ok(2, "1", "\"dropped.loss\": 6")];
        let table = table(&[&lines[0], &lines[1], &lines[2], failed]).unwrap();
        assert_eq!(Curves::of(&table, "a.rate", "dropped.loss").unwrap().curves[0].points, [(1.0, 2.0)]);
        assert_eq!(Curves::of(&table, "a.rate", "taken").unwrap().curves[0].points, [(1.0, 3.0)]);
    }

    #[test]
    fn the_numbers_of_an_axis_have_one_unit() {
        let label = |values: &[&str]| {
            let lines = (0..).zip(values).map(|(task, value)| ok(task, value, "\"taken\": 3"));
            let lines: Vec<String> = lines.collect();
            let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
            let curves = Curves::of(&table(&lines).unwrap(), "a.rate", "taken");
            curves.map_or_else(|error| error.to_string(), |curves| curves.labels[0].clone())
        };
        for (values, wanted) in [
            (["10 Mbit/s", "0"], "a.rate, Mbit/s"),
            (["10 packets", "1 packet"], "a.rate, packets"),
            (["0.1", "0.2"], "a.rate"),
        ] {
            assert_eq!(label(&values), wanted, "{values:?}");
        }
        for mixed in [["50 ms", "64 kB"], ["10 packets", "64 kB"], ["0.1", "1 %"]] {
            let said = label(&mixed);
            assert!(said.starts_with("a.rate has values of several units"), "{mixed:?}: {said}");
        }
    }

    #[test]
    fn rows_of_two_sweeps_are_not_joined() {
        let error = table(&[r#"{"task": 0, "sweep": "f"}"#, r#"{"task": 1, "sweep": "g"}"#]).unwrap_err();
        assert!(error.to_string().contains("another sweep than those of x"), "{error}");
        assert!(table(&[r#"{"sweep": "f"}"#]).is_err());
    }
}
