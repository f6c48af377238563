//! A row of results: columns in order, as a line of JSON.

use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use std::fmt;

/// The row of a task: names of columns and their values, in order. Its first columns are `task` and `sweep`,
/// followed by the settings of the axes, `seed`, `status` and `error`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Line(Vec<(String, Value)>);

impl Line {
    /// Appends a column.
    pub(crate) fn push(&mut self, column: impl Into<String>, value: impl Into<Value>) {
        self.0.push((column.into(), value.into()));
    }

    /// The value of a column.
    pub fn get(&self, column: &str) -> Option<&Value> {
        self.0.iter().find(|(known, _)| known == column).map(|(_, value)| value)
    }

    /// The columns with their values, in order.
    pub fn columns(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.0.iter().map(|(column, value)| (column.as_str(), value))
    }

    /// The number of its task.
    pub fn task(&self) -> Option<u64> {
        self.get(TASK)?.as_u64()
    }

    /// Why its task failed, if so.
    pub fn failure(&self) -> Option<&str> {
        self.get(ERROR)?.as_str()
    }

    /// The row as a line of JSON, with the newline.
    pub fn to_json(&self) -> String {
        let columns = self.columns().map(|(column, value)| format!("{}: {value}", Value::from(column)));
        format!("{{{}}}\n", columns.collect::<Vec<_>>().join(", "))
    }
}

/// Columns of every row.
pub(crate) const TASK: &str = "task";
pub(crate) const SWEEP: &str = "sweep";
pub(crate) const SEED: &str = "seed";
pub(crate) const STATUS: &str = "status";
pub(crate) const ERROR: &str = "error";

impl<'de> Deserialize<'de> for Line {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Columns)
    }
}

struct Columns;

impl<'de> Visitor<'de> for Columns {
    type Value = Line;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a row of a sweep")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Line, A::Error> {
        let mut line = Line::default();
        while let Some(column) = map.next_entry()? {
            line.0.push(column);
        }
        Ok(line)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_reads_back_in_its_order() {
        let mut line = Line::default();
        line.push(TASK, 7);
        line.push("b.rate", "1 \"Mbit/s\"\n");
        line.push("a", Value::Null);
        line.push(ERROR, "gone");
        let text = line.to_json();
        assert_eq!(
            text,
            "{\"task\": 7, \"b.rate\": \"1 \\\"Mbit/s\\\"\\n\", \"a\": null, \"error\": \"gone\"}\n"
        );
        let read: Line = serde_json::from_str(&text).unwrap();
        assert_eq!((read.task(), read.failure()), (Some(7), Some("gone")));
        assert_eq!(read, line);
        assert!(serde_json::from_str::<Line>("[1]").is_err());
    }
}
