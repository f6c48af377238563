//! Answers of an instance in the common report format.

use super::{Target, text};
use crate::{Outcome, outcome};
use longwire_report::{Report, Row};
use serde_json::Value;

/// The fields of an answer.
pub(super) type Fields = serde_json::Map<String, Value>;

impl Target {
    /// Prints the report on an answer about the router: its fields, and a row for each element of the list
    /// called `list`.
    pub(super) fn print_list(
        &self,
        command: &str,
        answer: Value,
        list: &str,
        row: impl Fn(&str, Fields) -> Row,
    ) -> anyhow::Result<Outcome> {
        let mut report = self.report(command);
        for (name, value) in fields(answer).into_iter().flatten() {
            match value {
                Value::Array(all) if name == list => {
                    report.extend(all.into_iter().filter_map(fields).map(|one| row(&self.router, one)));
                }
                value => report.set(name, value),
            }
        }
        outcome::print_report(&report, true)
    }

    /// Prints the report about one program, or one entry of a map.
    pub(super) fn print_one(
        &self,
        command: &str,
        answer: Value,
        row: impl Fn(&str, Fields) -> Row,
    ) -> anyhow::Result<Outcome> {
        let row = fields(answer).map(|one| row(&self.router, one));
        outcome::print_report(&self.report(command).with_rows(row), true)
    }

    /// Reports which programs were changed, if JSON is requested.
    pub(super) fn done(&self, command: &str, fids: &[u32]) -> anyhow::Result<Outcome> {
        let fields = |fid: &u32| Fields::from_iter([("fid".into(), (*fid).into())]);
        let rows = fids.iter().map(|fid| program_row(&self.router, fields(fid)));
        outcome::print_if_json(&self.report(command).with_rows(rows), self.of.json)
    }

    fn report(&self, command: &str) -> Report {
        Report::new(command).with("router", self.router.as_str())
    }
}

fn fields(answer: Value) -> Option<Fields> {
    if let Value::Object(fields) = answer { Some(fields) } else { None }
}

/// A router's program, named as in the report of a run if possible, with its fields.
pub(super) fn program_row(router: &str, fields: Fields) -> Row {
    let names =
        [fields.get("fid").map(Value::to_string), fields.get("name").map(|name| text(name).to_owned())];
    let name = names.into_iter().flatten().fold(router.to_owned(), |name, more| format!("{name} {more}"));
    let row = Row::new(name, "").extra("kind", "program").extra("router", router);
    fields.into_iter().fold(row, |row, (field, value)| match field.as_str() {
        "name" => row.extra("called", value),
        "notes" => value.as_array().into_iter().flatten().fold(row, |row, note| row.note(text(note))),
        _ => row.extra(field, value),
    })
}

/// A row for a map of a program, or an entry of one, named by the field `name`.
pub(super) fn named_row(fields: Fields, name: &str) -> Row {
    let row = Row::new(fields.get(name).map_or("", text), "");
    let others = fields.into_iter().filter(|(field, _)| field != "name");
    others.fold(row, |row, (field, value)| row.extra(field, value))
}
