//! Tables between markers:
//!
//! ```text
//! <!-- numbers bench: engine, memory -->
//! …
//! <!-- end of numbers -->
//! ```
//!
//! contains the rows of `docs/results/bench.json` whose names begin with one of these texts, or all. With
//!
//! ```text
//! <!-- numbers peers by 64 bytes, of the bare loop -->
//! ```
//!
//! rows whose names differ only in these endings share a line, with a column for each ending. And
//!
//! ```text
//! <!-- numbers programs of functions -->
//! ```
//!
//! generates the tables of functions described in [`functions`].

mod functions;

use super::{FOLDER, measure};
use crate::files::File;
use longwire_report::{Report, Row, Scalar, in_unit};
use serde_json::Value;

const BEGIN: &str = "<!-- numbers ";
const END: &str = "<!-- end of numbers -->";

/// The text with its tables generated from the results among `files`.
///
/// # Errors
/// The line and its error.
pub(super) fn fill(text: &str, files: &[File]) -> Result<String, (usize, String)> {
    let mut out = String::with_capacity(text.len());
    let mut lines = text.split_inclusive('\n').enumerate();
    let mut quoted = false;
    while let Some((number, line)) = lines.next() {
        out += line;
        quoted ^= line.starts_with("```");
        if quoted {
            continue;
        }
        let Some(marker) = line.trim().strip_prefix(BEGIN) else { continue };
        let Some(marker) = marker.strip_suffix("-->") else {
            return Err((number + 1, "a marker is one line: <!-- numbers NAME: ROWS -->".into()));
        };
        let made = if let Some((name, endings)) = marker.split_once(" by ") {
            table(name.trim(), endings, files, by_endings)
        } else if let Some(name) = marker.trim().strip_suffix(" of functions") {
            table(name, "", files, functions::by_objects)
        } else {
            let (name, rows) = marker.split_once(':').unwrap_or((marker, ""));
            table(name.trim(), rows, files, by_rows)
        };
        out += &made.map_err(|why| (number + 1, why))?;
        let Some((_, end)) = lines.by_ref().find(|(_, line)| line.trim() == END) else {
            return Err((number + 1, format!("the table does not end with {END}")));
        };
        out += end;
    }
    Ok(out)
}

/// A layout returns the lines of a table, and the rows that it shows.
type Layout = for<'r> fn(&'r [Row], &[&str]) -> (String, Vec<&'r Row>);

/// The table of a result, or a note that there is none yet.
fn table(name: &str, chosen: &str, files: &[File], layout: Layout) -> Result<String, String> {
    let path = format!("{FOLDER}{name}.json");
    let Some(file) = files.iter().find(|file| file.path == path) else {
        return Ok(format!("\nNot measured yet: `{}`.\n\n", measure::command(name)));
    };
    let report: Report =
        serde_json::from_str(&file.text).map_err(|error| format!("{path} is no report: {error}"))?;
    let chosen: Vec<&str> = chosen.split(',').map(str::trim).filter(|text| !text.is_empty()).collect();
    let (lines, rows) = layout(&report.rows, &chosen);
    if rows.is_empty() {
        return Err(format!("{path} has no such rows"));
    }
    Ok(format!("\n{lines}\n{}\n\n", source(&report, &rows)))
}

fn was_run(row: &Row) -> bool {
    row.measured.as_ref().is_some_and(|value| *value != Scalar::Text("not run".into()))
}

/// A line for each row whose name begins with one of these texts, or for all.
fn by_rows<'r>(rows: &'r [Row], chosen: &[&str]) -> (String, Vec<&'r Row>) {
    let asked = |row: &&Row| chosen.is_empty() || chosen.iter().any(|text| row.name.starts_with(text));
    let rows: Vec<&Row> = rows.iter().filter(|row| was_run(row)).filter(asked).collect();
    (body(&rows), rows)
}

/// A line for each name without its ending, a column for each ending; for a skipped row the first column says
/// so.
fn by_endings<'r>(rows: &'r [Row], endings: &[&str]) -> (String, Vec<&'r Row>) {
    let mut lines: Vec<(&str, Vec<String>)> = Vec::new();
    let mut shown = Vec::new();
    for row in rows {
        let name = row.name.split_once(": ").map_or(row.name.as_str(), |(_, name)| name);
        let ending = |ending: &&str| name.strip_suffix(*ending)?.strip_suffix(", ");
        let found = endings.iter().enumerate().find_map(|(place, text)| Some((place, ending(text)?)));
        let (place, who, text) = match found {
            Some((place, who)) if was_run(row) => (place, who, with_spread(row)),
            None if !was_run(row) => (0, name, "not run".to_owned()),
            _ => continue,
        };
        let line = lines.iter().position(|(known, _)| *known == who).unwrap_or_else(|| {
            lines.push((who, vec![String::new(); endings.len()]));
            lines.len() - 1
        });
        lines[line].1[place] = text;
        shown.push(row);
    }
    let head = format!("| | {} |\n|---|{}\n", endings.join(" | "), "---|".repeat(endings.len()));
    let line = |(who, cells): &(&str, Vec<String>)| {
        let cells: Vec<String> = cells.iter().map(|text| cell(text)).collect();
        format!("| {} | {} |\n", cell(who), cells.join(" | "))
    };
    (head + &lines.iter().map(line).collect::<String>(), shown)
}

/// The measured value, with its range if known.
fn with_spread(row: &Row) -> String {
    let measured = shown(row.measured.as_ref(), &row.unit);
    let end = |name: &str| row.extra.get(name).and_then(Value::as_f64).map(|end| in_unit(end, &row.unit));
    match (end("least"), end("most")) {
        (Some(least), Some(most)) => format!("{measured} ({least} to {most})"),
        _ => measured,
    }
}

fn shown(value: Option<&Scalar>, unit: &str) -> String {
    value.map_or_else(String::new, |value| value.in_unit(unit))
}

fn body(rows: &[&Row]) -> String {
    let of_paper = rows.iter().any(|row| row.extra.contains_key("paper"));
    let mut lines = vec![if of_paper {
        "| what | paper | asked for | measured | |\n|---|---|---|---|---|".to_owned()
    } else {
        "| what | asked for | measured | |\n|---|---|---|---|".to_owned()
    }];
    for row in rows {
        let claim = row.extra.get("claim").and_then(Value::as_str);
        let void = row.extra.contains_key("void").then_some("void");
        let verdict = match row.pass {
            Some(true) => claim.unwrap_or("ok"),
            Some(false) => void.or(claim).unwrap_or("FAIL"),
            None => void.unwrap_or(""),
        };
        let paper =
            if of_paper { format!(" {} |", cell(&row.extra_in_unit("paper"))) } else { String::new() };
        let cells = [&row.expected, &row.measured];
        let cells = cells.map(|value| cell(&shown(value.as_ref(), &row.unit))).join(" | ");
        lines.push(format!("| {} |{paper} {cells} | {verdict} |", cell(&row.name)));
    }
    lines.join("\n") + "\n"
}

/// Escapes text for a table cell.
pub(super) fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}

/// The origin of the numbers: command, version, commit, day, machine; and the number of failed rows.
fn source(report: &Report, rows: &[&Row]) -> String {
    let made = report.extra.get("result");
    let field = |name: &str| made.and_then(|made| made.get(name)).and_then(Value::as_str).unwrap_or("?");
    let machine = &report.machine;
    let failed = rows.iter().filter(|row| row.pass == Some(false)).count();
    let judged = rows.iter().filter(|row| row.pass.is_some()).count();
    let text = format!(
        "`{}`, Longwire {} ({}, {}), on {}, {} cores, Linux {}: {judged} rows judged, {failed} failed.",
        field("command"),
        report.version,
        field("commit"),
        field("date"),
        machine.cpu_model,
        machine.cores,
        machine.kernel
    );
    wrapped(&text)
}

/// The text in lines of at most 100 characters.
fn wrapped(text: &str) -> String {
    let mut lines = String::new();
    let mut width = 0;
    for word in text.split(' ') {
        let length = word.chars().count();
        if width > 0 {
            let fits = width + 1 + length <= 100;
            lines.push(if fits { ' ' } else { '\n' });
            width = if fits { width + 1 } else { 0 };
        }
        lines += word;
        width += length;
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn results() -> Vec<File> {
        let mut report = Report::new("bench engine");
        report.version = "0.3.0".into();
        report.push(Row::new("engine, 8 links", "pps").expected(15e6).measured(16.1e6).at_least());
        report.push(Row::new("memory|all", "bytes").measured(129.7));
        report.push(Row::new("engine: x", "ns").measured("not run"));
        let void = Row::new("claims", "%").expected(1).measured(3).within(1.0).extra("paper", 28);
        report.push(void.extra("void", json!(["late"])));
        report.set(
            "result",
            json!({ "command": "longwire bench engine", "commit": "abc", "date": "2026-11-23" }),
        );
        vec![File { path: "docs/results/bench.json".into(), text: report.to_json() }]
    }

    #[test]
    fn tables_are_made_between_markers_and_nothing_else_is_touched() {
        let text = "a\n<!-- numbers bench: engine, memory -->\nold\n<!-- end of numbers -->\nb\n";
        let new = fill(text, &results()).unwrap();
        let lines: Vec<&str> = new.lines().collect();
        assert_eq!(lines[..2], ["a", "<!-- numbers bench: engine, memory -->"]);
        assert_eq!(lines[3..5], ["| what | asked for | measured | |", "|---|---|---|---|"]);
        assert_eq!(lines[5], "| engine, 8 links | 15 Mpps | 16.1 Mpps | ok |");
        assert_eq!(lines[6], "| memory\\|all |  | 129.7 bytes |  |");
        let end = lines.iter().position(|line| *line == "<!-- end of numbers -->").unwrap();
        let source = lines[8..end - 1].join(" ");
        assert!(
            source.starts_with("`longwire bench engine`, Longwire 0.3.0 (abc, 2026-11-23), on "),
            "{source}"
        );
        assert!(source.ends_with(": 1 rows judged, 0 failed."), "{source}");
        assert_eq!(lines[end..], ["<!-- end of numbers -->", "b"]);
        assert_eq!(fill(&new, &results()).unwrap(), new, "made again, it is the same");
    }

    #[test]
    fn lines_are_as_long_as_they_may_be() {
        let word = "w".repeat(49);
        assert_eq!(wrapped(&format!("{word} {word}w {word}")), format!("{word} {word}w\n{word}"));
    }

    #[test]
    fn the_papers_column_stands_where_rows_have_one_and_void_is_said() {
        let text = "<!-- numbers bench: claims -->\n<!-- end of numbers -->\n";
        let new = fill(text, &results()).unwrap();
        assert!(new.contains("| claims | 28 % | 1 % | 3 % | void |"), "{new}");
    }

    #[test]
    fn rows_that_differ_in_their_endings_share_a_line() {
        let mut report = Report::new("bench peers");
        let spread = |row: Row| row.extra("least", 1e6).extra("most", 3e6);
        report.push(spread(Row::new("peers: A, fast, 64 bytes", "pps").measured(2e6)));
        report.push(Row::new("peers: A, fast, of the loop", "%").measured(50));
        report.push(Row::new("peers: B, 64 bytes", "pps").measured("failed"));
        report.push(Row::new("peers: B, of the loop", "%").measured(60));
        report.push(Row::new("peers: C", "").measured("not run"));
        report.push(Row::new("peers: D, something else", "%").measured(1));
        let files = [File { path: "docs/results/peers.json".into(), text: report.to_json() }];
        let text = "<!-- numbers peers by 64 bytes, of the loop -->\n<!-- end of numbers -->\n";
        let new = fill(text, &files).unwrap();
        let lines: Vec<&str> = new.lines().skip(2).take(5).collect();
        assert_eq!(lines[..2], ["| | 64 bytes | of the loop |", "|---|---|---|"]);
        assert_eq!(
            lines[2..],
            ["| A, fast | 2 Mpps (1 Mpps to 3 Mpps) | 50 % |", "| B | failed | 60 % |", "| C | not run |  |"]
        );
        assert_eq!(fill(&new, &files).unwrap(), new);
    }

    #[test]
    fn a_marker_asks_for_tables_of_functions() {
        let mut report = Report::new("programs");
        let row = Row::new("p: o: f", "ns").measured(0.8);
        report.push(row.extra("project", "p").extra("object", "o").extra("function", "f"));
        let files = [File { path: "docs/results/programs.json".into(), text: report.to_json() }];
        let text = "<!-- numbers programs of functions -->\n<!-- end of numbers -->\n";
        let new = fill(text, &files).unwrap();
        assert!(new.contains("\n| p: `o` | `f` 0.8 |\n"), "{new}");
        assert_eq!(fill(&new, &files).unwrap(), new);
        assert!(fill(text, &[]).unwrap().contains("Not measured yet: `cargo xtask programs FOLDER`."));
    }

    #[test]
    fn what_is_wrong_is_said_and_what_is_missing_too() {
        let marker = |name: &str| format!("<!-- numbers {name} -->\n<!-- end of numbers -->\n");
        assert!(fill(&marker("other"), &results()).unwrap().contains("cargo xtask numbers --measure other"));
        assert_eq!(fill(&marker("bench: nothing"), &results()).unwrap_err().0, 1);
        assert!(fill("x\n<!-- numbers bench -->\n", &results()).unwrap_err().1.contains("does not end"));
        let example = "```text\n<!-- numbers bench -->\n```\n";
        assert_eq!(fill(example, &results()).unwrap(), example, "a quoted marker is text");
        assert_eq!(fill("no marker\n", &results()).unwrap(), "no marker\n");
    }
}
