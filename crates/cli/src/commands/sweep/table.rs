//! `longwire sweep table`

use crate::{Json, Outcome, outcome};
use anyhow::ensure;
use longwire_report::shown::columns;
use longwire_report::{Report, Row};
use longwire_sweep::{Line, RowTable};
use serde_json::{Map, Value};
use std::path::PathBuf;

/// Show rows of a sweep as a table, or write them as CSV
///
/// Rows of several files are joined and sorted by task. Drops for a reason that did not occur are 0.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  longwire sweep table rows.jsonl --columns 'source.*.lost'
  longwire sweep table rows-*.jsonl --csv > rows.csv
  longwire sweep table rows.jsonl --columns 'dropped,link.bottleneck.*' --json")]
pub struct Args {
    /// Files of rows, of one sweep.
    #[arg(required = true, value_name = "ROWS")]
    files: Vec<PathBuf>,

    /// Show only these columns, beside those that say which task it is; * matches any text, commas separate
    /// columns; repeatable.
    #[arg(long, value_name = "PATTERN", value_delimiter = ',')]
    columns: Vec<String>,

    /// Write CSV.
    #[arg(long, conflicts_with = "json")]
    csv: bool,

    #[command(flatten)]
    json: Json,
}

impl Args {
    pub(super) fn run(self) -> anyhow::Result<Outcome> {
        let mut table = RowTable::default();
        self.files.iter().try_for_each(|file| table.read(file))?;
        ensure!(table.rows().len() > 0, "{}: there are no rows", self.files[0].display());
        let names = table.columns(&self.columns)?;
        if self.csv {
            return outcome::print_with(|out| table.write_csv(&names, out));
        }
        if self.json.on {
            let report = Report::new("sweep table").with("columns", names.clone());
            let report = report.with_rows(table.rows().map(|line| row(line, &names)));
            return outcome::print_report(&report, true);
        }
        let head: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let cells = |line: &Line| names.iter().map(|name| RowTable::cell(line, name)).collect();
        let lines: Vec<Vec<String>> = std::iter::once(head).chain(table.rows().map(cells)).collect();
        outcome::print(&columns(&lines).join("\n"))
    }
}

fn row(line: &Line, names: &[&str]) -> Row {
    let values = names.iter().filter_map(|name| Some(((*name).to_owned(), line.get(name)?.clone())));
    Row::new(format!("task {}", line.task().unwrap_or_default()), "")
        .extra("values", values.collect::<Map<String, Value>>())
}
