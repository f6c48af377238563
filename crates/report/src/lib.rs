//! One format for every result, as JSON and as a table.
//!
//! Each command that measures something ends with a [`Report`]: command, machine, and one [`Row`] for each
//! quantity with the expected value, the measured value and the error. Tools read the JSON, people the table;
//! both are made from the same rows.
//!
//! ```
//! use longwire_report::{Report, Row};
//!
//! let mut report = Report::new("demo").with("mode", "virtual");
//! report.push(Row::new("bandwidth", "bit/s").expected(10_000_000).measured(9_990_000).within_percent(1.0));
//! report.push(Row::new("kernel's name", "").measured("linux"));
//! assert!(report.pass);
//! assert!(report.to_json().contains("\"error_percent\": -0.1"));
//! ```

pub mod chances;
mod machine;
pub mod output;
mod printable;
mod row;
pub mod shown;
mod table;
pub mod whole_file;

pub use machine::Machine;
pub use printable::printable;
pub use row::{Row, Scalar};
pub use table::in_unit;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Reserved names of the report, which extra fields can't use.
const OWN_FIELDS: [&str; 5] = ["command", "version", "machine", "rows", "pass"];

/// The result of one command.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// The command as typed: `demo`, `bench engine`.
    pub command: String,
    /// Version of Longwire.
    pub version: String,
    /// The machine it ran on.
    pub machine: Machine,
    /// One row per quantity, in display order.
    pub rows: Vec<Row>,
    /// Whether no row failed and [`Report::fail`] was not called.
    pub pass: bool,
    /// Further fields of this command, at the top level of the JSON: `"mode"`, `"fidelity"`.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl Report {
    /// An empty report of this machine, which passes.
    pub fn new(command: impl Into<String>) -> Self {
        Self {
            command: command.into(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            machine: Machine::this(),
            rows: Vec::new(),
            pass: true,
            extra: Map::new(),
        }
    }

    /// Adds a top-level field. A reserved name (`rows`, `pass`, …) gets a trailing underscore, so that no key
    /// appears twice.
    pub fn with(mut self, name: impl Into<String>, value: impl Into<Value>) -> Self {
        self.set(name, value);
        self
    }

    /// Adds a top-level field in place, as [`Report::with`] does.
    pub fn set(&mut self, name: impl Into<String>, value: impl Into<Value>) {
        self.extra.insert(own_name(name.into(), &OWN_FIELDS), value.into());
    }

    /// Adds a row. The report fails if the row failed.
    pub fn push(&mut self, row: Row) {
        self.pass &= row.pass != Some(false);
        self.rows.push(row);
    }

    /// Adds rows in order, as [`Report::push`] does.
    pub fn extend(&mut self, rows: impl IntoIterator<Item = Row>) {
        rows.into_iter().for_each(|row| self.push(row));
    }

    /// Adds rows to a new report.
    pub fn with_rows(mut self, rows: impl IntoIterator<Item = Row>) -> Self {
        self.extend(rows);
        self
    }

    /// Makes the report fail for a reason that belongs to no row, and adds the reason to the field
    /// `"failures"`.
    pub fn fail(&mut self, reason: impl Into<String>) {
        self.pass = false;
        let failures = self.extra.entry("failures").or_insert_with(|| Value::Array(Vec::new()));
        if let Value::Array(list) = failures {
            list.push(Value::String(reason.into()));
        }
    }

    /// The row with this name, if there is one.
    pub fn row(&self, name: &str) -> Option<&Row> {
        self.rows.iter().find(|row| row.name == name)
    }

    /// The report as indented JSON, without a final newline.
    pub fn to_json(&self) -> String {
        // Strings, finite numbers and maps with string keys can always be written as JSON.
        serde_json::to_string_pretty(self).unwrap_or_default()
    }
}

/// `name`, with an underscore added if it is one of `taken`.
fn own_name(mut name: String, taken: &[&str]) -> String {
    if taken.contains(&name.as_str()) {
        name.push('_');
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn sample() -> Report {
        let mut report = Report::new("demo").with("mode", "real").with("rows", 3);
        report.push(
            Row::new("rate", "bit/s")
                .expected(10_000_000)
                .measured(9_902_343.75)
                .within_percent(2.0)
                .extra("layer", "ip"),
        );
        report.push(Row::new("driver", "").measured("tap"));
        report
    }

    #[test]
    fn json_has_the_one_shape() {
        let value: Value = serde_json::from_str(&sample().to_json()).unwrap();
        let keys: Vec<_> = value.as_object().unwrap().keys().cloned().collect();
        for key in ["command", "version", "machine", "rows", "pass", "mode", "rows_"] {
            assert!(keys.iter().any(|k| k == key), "{key} in {keys:?}");
        }
        assert_eq!(value["command"], "demo");
        assert_eq!(value["mode"], "real");
        assert_eq!(value["pass"], true);
        assert_eq!(value["rows"][0]["expected"], json!(10_000_000));
        assert_eq!(value["rows"][0]["measured"], json!(9_902_343.75));
        assert_eq!(value["rows"][0]["layer"], "ip");
        assert_eq!(value["rows"][1]["measured"], "tap");
        for key in ["expected", "error_percent", "pass"] {
            assert!(value["rows"][1][key].is_null(), "{key} is there, and null");
        }
        for key in ["cpu_model", "cores", "memory_bytes", "kernel"] {
            assert!(!value["machine"][key].is_null(), "{key}");
        }
    }

    #[test]
    fn json_reads_back_the_same() {
        let report = sample();
        assert_eq!(serde_json::from_str::<Report>(&report.to_json()).unwrap(), report);
    }

    #[test]
    fn one_failed_row_or_reason_fails_the_report() {
        let mut report = sample();
        assert!(report.pass);
        report.push(Row::new("loss", "%").expected(2).measured(5).within(1.0));
        assert!(!report.pass);
        let mut report = sample();
        report.fail("nothing arrived");
        assert!(!report.pass);
        assert_eq!(report.extra["failures"], json!(["nothing arrived"]));
        assert!(report.row("rate").is_some() && report.row("none").is_none());
    }
}
