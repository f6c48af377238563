//! Answers of an instance in the common report format.

use super::{Target, text};
use crate::{Outcome, outcome};
use longwire_report::{Report, Row};
use serde_json::Value;

/// The fields of an answer.
pub(super) type Fields = serde_json::Map<String, Value>;

/// The report on an instance's answer about a router: its fields, and a row for each element of the list
/// called `list`.
pub(super) fn report(
    command: &str,
    router: &str,
    answer: Value,
    list: &str,
    row: impl Fn(Fields) -> Row,
) -> Report {
    let mut report = Report::new(command).with("router", router);
    let Value::Object(fields) = answer else { return report };
    for (name, value) in fields {
        match value {
            Value::Array(all) if name == list => {
                report.extend(all.into_iter().filter_map(|one| match one {
                    Value::Object(fields) => Some(row(fields)),
                    _ => None,
                }));
            }
            value => report.set(name, value),
        }
    }
    report
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

/// The report about one program.
pub(super) fn about_one(command: &str, router: &str, answer: Value) -> Report {
    let mut report = Report::new(command).with("router", router);
    report.extend(answer.as_object().cloned().map(|fields| program_row(router, fields)));
    report
}

/// Reports which programs were changed, if JSON is requested.
pub(super) fn done(command: &str, target: &Target, fids: &[u32]) -> anyhow::Result<Outcome> {
    let Target { router, json, .. } = target;
    let mut report = Report::new(command).with("router", router.as_str());
    report
        .extend(fids.iter().map(|&fid| program_row(router, Fields::from_iter([("fid".into(), fid.into())]))));
    outcome::print_if_json(&report, *json)
}

/// A row for a map of a program, or an entry of one, named by the field `name`.
pub(super) fn named_row(fields: Fields, name: &str) -> Row {
    let row = Row::new(fields.get(name).map_or("", text), "");
    fields
        .into_iter()
        .filter(|(field, _)| field != "name")
        .fold(row, |row, (field, value)| row.extra(field, value))
}
