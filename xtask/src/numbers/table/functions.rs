//! Tables of functions: totals by project, the measured functions of each object, and functions that do not
//! load with the reason.

use super::cell;
use longwire_report::{Row, Scalar};
use serde_json::Value;

/// Makes these tables from all rows.
///
/// A row of a function has the fields `project`, `object` and `function`; one of a total has `sum`,
/// `revision` and `functions`.
pub(super) fn by_objects<'r>(rows: &'r [Row], _: &[&str]) -> (String, Vec<&'r Row>) {
    let (sums, functions): (Vec<&Row>, Vec<&Row>) =
        rows.iter().partition(|row| row.extra.contains_key("sum"));
    let (loaded, refused): (Vec<&Row>, Vec<&Row>) =
        functions.iter().partition(|row| matches!(&row.measured, Some(value) if value.as_f64().is_some()));
    let mut lines = vec!["| project | commit | functions | load |\n|---|---|---|---|".to_owned()];
    lines.extend(sums.iter().map(|row| sum(row)));
    lines.push("\n| object | functions, with the worst case in nanoseconds |\n|---|---|".into());
    lines.extend(grouped(&loaded, object).into_iter().map(|(object, rows)| {
        format!("| {object} | {} |", listed(&rows, |row| format!(" {:.1}", number(&row.measured))))
    }));
    if !refused.is_empty() {
        lines.push("\nThese do not load:\n\n| object | functions | reason |\n|---|---|---|".into());
    }
    let by_reason = grouped(&refused, |row| format!("{} | {}", object(row), reason(row)));
    lines.extend(by_reason.iter().map(|(_, rows)| {
        let names = listed(rows, |_| String::new());
        format!("| {} | {names} | {} |", object(rows[0]), cell(&reason(rows[0])))
    }));
    (lines.join("\n") + "\n", functions)
}

fn sum(row: &Row) -> String {
    let (loaded, all) = (number(&row.measured), row.extra["functions"].as_f64().unwrap_or(0.0));
    let share = if all > 0.0 { format!(" ({:.0} %)", 100.0 * loaded / all) } else { String::new() };
    format!("| {} | {} | {all} | {loaded}{share} |", field(row, "sum"), field(row, "revision"))
}

/// Groups rows by a text, in the order of its first occurrence.
fn grouped<'r>(rows: &[&'r Row], key: impl Fn(&Row) -> String) -> Vec<(String, Vec<&'r Row>)> {
    let mut groups: Vec<(String, Vec<&Row>)> = Vec::new();
    for &row in rows {
        let key = key(row);
        match groups.iter_mut().find(|(known, _)| *known == key) {
            Some((_, group)) => group.push(row),
            None => groups.push((key, vec![row])),
        }
    }
    groups
}

fn listed(rows: &[&Row], more: impl Fn(&Row) -> String) -> String {
    let each = rows.iter().map(|row| format!("`{}`{}", field(row, "function"), more(row)));
    each.collect::<Vec<_>>().join(", ")
}

fn object(row: &Row) -> String {
    format!("{}: `{}`", field(row, "project"), field(row, "object"))
}

fn reason(row: &Row) -> String {
    row.notes.join("; ")
}

fn field<'r>(row: &'r Row, name: &str) -> &'r str {
    row.extra.get(name).and_then(Value::as_str).unwrap_or("")
}

fn number(value: &Option<Scalar>) -> f64 {
    value.as_ref().and_then(Scalar::as_f64).unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn function(object: &str, name: &str) -> Row {
        Row::new(format!("p: {object}: {name}"), "ns")
            .extra("project", "p")
            .extra("object", object)
            .extra("function", name)
    }

    #[test]
    fn functions_stand_with_their_object_and_refusals_with_their_reason() {
        let refused = |name| function("b", name).measured("does not load").note("a|b");
        let sum = Row::new("sum: p", "functions").measured(3.0).extra("sum", "p");
        let rows = [
            function("a", "f").measured(0.8),
            function("b", "g").measured(1975.24),
            refused("x"),
            function("a", "h").measured(107.0),
            refused("y"),
            sum.extra("revision", "abc").extra("functions", 5),
        ];
        let (text, shown) = by_objects(&rows, &[]);
        let lines: Vec<&str> = text.lines().filter(|line| line.starts_with("| p")).collect();
        assert_eq!(
            lines,
            [
                "| project | commit | functions | load |",
                "| p | abc | 5 | 3 (60 %) |",
                "| p: `a` | `f` 0.8, `h` 107.0 |",
                "| p: `b` | `g` 1975.2 |",
                "| p: `b` | `x`, `y` | a\\|b |",
            ]
        );
        assert_eq!(shown.len(), 5, "sums are of rows that are judged already");
        assert!(!by_objects(&rows[..1], &[]).0.contains("do not load"));
    }
}
