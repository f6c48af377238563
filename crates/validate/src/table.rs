//! The rows as a table: the paper's value beside ours.

use longwire_report::{Report, Row, Scalar};
use std::io::{self, Write};

/// Column headings, without that of the verdict.
const HEAD: [&str; COLUMNS] = ["", "paper", "configured", "ours", ALSO, "error", "ours / paper"];
const COLUMNS: usize = 7;
/// The column of a row's field `also`: the value with the number of packets inside that the paper's delays
/// imply. Only if there are such rows.
const ALSO: &str = "ours, 48 / 64 inside";

/// The value of a row that was not run.
pub(crate) const NOT_RUN: &str = "not run";

/// The columns of a report.
pub(crate) fn columns(report: &Report) -> Vec<(usize, &'static str)> {
    let also = report.rows.iter().any(|row| row.extra.contains_key("also"));
    HEAD.into_iter().enumerate().filter(|(_, head)| also || *head != ALSO).collect()
}

/// A row's cells, without its verdict.
pub(crate) fn cells(row: &Row) -> [String; COLUMNS] {
    let shown = |value: &Option<Scalar>| value.as_ref().map_or_else(String::new, |v| v.in_unit(&row.unit));
    let [paper, also] = ["paper", "also"].map(|name| row.extra_in_unit(name));
    let error = row.error_percent.map_or_else(String::new, signed);
    let ratio = row.extra.get("ratio").and_then(serde_json::Value::as_f64);
    let ratio = ratio.map_or_else(String::new, |ratio| format!("{}×", three_digits(ratio)));
    [row.name.clone(), paper, shown(&row.expected), shown(&row.measured), also, error, ratio]
}

/// Sentences about the paper's claims, shown before the summary.
pub(crate) fn claims(report: &Report) -> Vec<&str> {
    let lines = report.extra.get("summary").and_then(serde_json::Value::as_array);
    lines.into_iter().flatten().filter_map(serde_json::Value::as_str).collect()
}

/// A row's verdict, and whether it is good.
pub(crate) fn verdict(row: &Row) -> Option<(&str, bool)> {
    if row.extra.contains_key("void") {
        return Some(("void", false));
    }
    let claim = row.extra.get("claim").and_then(serde_json::Value::as_str);
    row.pass.map(|pass| (claim.unwrap_or(if pass { "ok" } else { "FAIL" }), pass))
}

/// Summary of the report: the number of rows with a verdict, with a value but no verdict, and not run.
pub(crate) fn sum(report: &Report) -> String {
    let count = |wanted: fn(&Row) -> bool| report.rows.iter().filter(|row| wanted(row)).count();
    let judged = count(|row| row.pass.is_some());
    let failed = count(|row| row.pass == Some(false));
    let claims = count(|row| row.pass == Some(false) && row.extra.contains_key("claim"));
    let not_run = count(is_not_run);
    let claims = match claims {
        0 => String::new(),
        claims => format!(" ({claims} claims of the paper that are not reproduced)"),
    };
    let shown = report.rows.len() - judged - not_run;
    format!(
        "rows judged: {judged}, of them failed: {failed}{claims}; shown without a verdict: {shown}; not run: \
         {not_run}"
    )
}

/// Whether a row has a text instead of a value, and was not judged.
fn is_not_run(row: &Row) -> bool {
    row.pass.is_none() && row.measured.as_ref() == Some(&NOT_RUN.into())
}

/// A percentage with its sign, unless it rounds to zero.
fn signed(percent: f64) -> String {
    if percent.abs() < 0.0005 { "0 %".into() } else { format!("{percent:+.3} %") }
}

/// Three digits, or all before the point.
fn three_digits(value: f64) -> String {
    let decimals = match value.abs() {
        size if size >= 100.0 => 0,
        size if size >= 10.0 => 1,
        size if size >= 1.0 => 2,
        _ => 3,
    };
    format!("{value:.decimals$}")
}

/// Prints the rows as an aligned table, their notes below them, and a summary.
///
/// # Errors
/// If `out` can't be written.
pub fn print_table(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    let columns = columns(report);
    let head: Vec<_> = columns.iter().map(|(_, name)| *name).chain([""]).collect();
    report.print_rows(out, &head, |row| {
        let (cells, verdict) = (cells(row), verdict(row).map_or("", |(text, _)| text));
        let texts = columns.iter().map(|(column, _)| cells[*column].clone());
        texts.chain([verdict.to_owned()]).collect()
    })?;
    claims(report).into_iter().try_for_each(|line| writeln!(out, "{line}"))?;
    writeln!(out, "{}", sum(report))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_paper_stands_beside_ours() {
        let mut report = Report::new("validate linkem");
        let row = Row::new("64 kbit/s", "bit/s").extra("paper", 63_460).extra("ratio", 1.0085);
        report.push(row.expected(64_000).measured(64_001).within_percent(0.5));
        report
            .push(Row::new("tick", "ns").extra("paper", "8192 Hz").measured("not run").note("not asked for"));
        let mut out = Vec::new();
        print_table(&report, &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        let lines: Vec<_> = text.lines().skip(1).collect();
        assert_eq!(
            lines,
            [
                "                  paper  configured           ours     error  ours / paper",
                "64 kbit/s  63.46 kbit/s   64 kbit/s  64.001 kbit/s  +0.002 %         1.01×  ok",
                "tick            8192 Hz                    not run",
                "    not asked for",
                "rows judged: 1, of them failed: 0; shown without a verdict: 0; not run: 1",
            ]
        );
    }

    #[test]
    fn a_claim_that_does_not_hold_is_said_first() {
        let mut report = Report::new("validate cbcs").with("summary", vec!["the headline is not reproduced"]);
        report.push(Row::new("a", "%").measured(-3).judged(false).extra("claim", "not reproduced"));
        let mut out = Vec::new();
        print_table(&report, &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        let lines: Vec<_> = text.lines().skip(2).collect();
        assert_eq!(
            lines,
            [
                "a                     -3 %                       not reproduced",
                "the headline is not reproduced",
                "rows judged: 1, of them failed: 1 (1 claims of the paper that are not reproduced); shown \
                 without a verdict: 0; not run: 0",
            ]
        );
        assert!(!report.pass);
        let void = Row::new("a", "").measured(1).extra("void", vec!["late"]);
        assert_eq!(verdict(&void), Some(("void", false)), "shown rows say so, too");
    }

    #[test]
    fn a_third_column_stands_where_rows_have_one() {
        let mut report = Report::new("validate cbcs");
        report.push(Row::new("a", "ns").extra("paper", 4).measured(2).extra("also", 3));
        report.push(Row::new("b", "").measured(1));
        let mut out = Vec::new();
        print_table(&report, &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        let lines: Vec<_> = text.lines().skip(1).collect();
        assert_eq!(
            lines,
            [
                "   paper  configured  ours  ours, 48 / 64 inside  error  ours / paper",
                "a   4 ns              2 ns                  3 ns",
                "b                        1",
                "rows judged: 0, of them failed: 0; shown without a verdict: 2; not run: 0",
            ]
        );
    }

    #[test]
    fn ratios_have_three_digits() {
        assert_eq!([0.5, 1.234, 12.34, 1234.5].map(three_digits), ["0.500", "1.23", "12.3", "1234"]);
    }
}
