//! A report as one self-contained HTML file: rows as a table, figures as inline SVG.

use crate::plot::Plot;
use crate::table::{cells, claims, columns, sum, verdict};
use longwire_report::{Report, in_unit};
use std::fmt::Write as _;

/// Light background unless the reader's system is dark; the series' colours are distinct on both.
const STYLE: &str = "\
:root{color-scheme:light dark;--ground:#fff;--text:#1b1b1b;--soft:#666;--grid:#e2e2e2;--ok:#0a7a3c;--bad:#b32\
61e}\
@media (prefers-color-scheme:dark)\
{:root{--ground:#16181b;--text:#e6e6e6;--soft:#9aa0a6;--grid:#33373c;--ok:#5bd18b;--bad:#ff8a80}}\
body{font:15px/1.5 system-ui,sans-serif;background:var(--ground);color:var(--text);max-width:72rem;margin:2re\
m auto;padding:0 1rem}\
table{border-collapse:collapse;width:100%;font-variant-numeric:tabular-nums}\
th,td{padding:.25rem .6rem;border-bottom:1px solid var(--grid);text-align:right;vertical-align:top}\
th:first-child,td:first-child{text-align:left}\
td.note{text-align:left;color:var(--soft);font-size:.85em;padding-left:2rem}\
.ok{color:var(--ok)}.bad{color:var(--bad);font-weight:600}.soft{color:var(--soft)}\
.scroll{overflow-x:auto}\
.plots{display:grid;grid-template-columns:repeat(auto-fill,minmax(28rem,1fr));gap:1.5rem}\
.plot{width:100%;height:auto}\
.plot text{fill:var(--text);font:12px system-ui,sans-serif}\
.plot .title{font-size:14px;font-weight:600}.plot .tick{font-size:11px;fill:var(--soft)}\
.plot .grid{stroke:var(--grid)}.plot .frame{fill:none;stroke:var(--soft)}\
.plot .line{fill:none;stroke:var(--c);stroke-width:2}.plot .reference{stroke-dasharray:5 4}\
.plot .mark,.plot .bar{fill:var(--c)}\
.c0{--c:#0072b2}.c1{--c:#d55e00}.c2{--c:#009e73}.c3{--c:#cc79a7}.c4{--c:#e69f00}.c5{--c:#56b4e9}";

/// The whole page.
pub fn page(title: &str, report: &Report, plots: &[Plot]) -> String {
    let machine = &report.machine;
    let heading = escaped(&report.command);
    let judged = report.rows.iter().any(|row| row.pass.is_some());
    let verdict = match report.pass {
        true if judged => "<span class=\"ok\">passed</span>",
        true => "<span class=\"soft\">nothing judged</span>",
        false => "<span class=\"bad\">failed</span>",
    };
    let said: String =
        claims(report).iter().map(|line| format!("<p><strong>{}.</strong></p>\n", escaped(line))).collect();
    let mut out = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n\
         <title>longwire {heading}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n\
         <h1>longwire {heading}: {verdict}</h1>\n<p>{}</p>\n{said}<p>{}.</p>\n\
         <p class=\"soft\">longwire {} on {}, {} cores, {}, Linux {}</p>\n",
        escaped(title),
        sum(report),
        escaped(&report.version),
        escaped(&machine.cpu_model),
        machine.cores,
        in_unit(machine.memory_bytes as f64, "bytes"),
        escaped(&machine.kernel)
    );
    if plots.is_empty() {
        out += "<p class=\"soft\">No figures: the rows that they show were not run.</p>\n";
    } else {
        out += "<h2>Figures</h2>\n<div class=\"plots\">\n";
        plots.iter().for_each(|plot| out += &plot.to_svg());
        out += "</div>\n";
    }
    out += "<h2>Rows</h2>\n<div class=\"scroll\">\n<table>\n";
    table(&mut out, report);
    out + "</table>\n</div>\n</body>\n</html>\n"
}

fn table(out: &mut String, report: &Report) {
    let columns = columns(report);
    let head: String = columns.iter().map(|(_, name)| format!("<th>{name}</th>")).collect();
    let _ = writeln!(out, "<thead><tr>{head}<th></th></tr></thead>\n<tbody>");
    for row in &report.rows {
        let cells = cells(row);
        let last = match verdict(row) {
            Some((text, true)) => format!("<td class=\"ok\">{}</td>", escaped(text)),
            Some((text, false)) => format!("<td class=\"bad\">{}</td>", escaped(text)),
            None => "<td></td>".to_owned(),
        };
        let texts = columns.iter().map(|(column, _)| &cells[*column]);
        let texts: String = texts.map(|text| format!("<td>{}</td>", escaped(text))).collect();
        let _ = writeln!(out, "<tr>{texts}{last}</tr>");
        for note in &row.notes {
            let (span, note) = (columns.len() + 1, escaped(note));
            let _ = writeln!(out, "<tr><td class=\"note\" colspan=\"{span}\">{note}</td></tr>");
        }
    }
    *out += "</tbody>\n";
}

/// Text escaped for HTML, SVG, and attributes in double quotes.
pub(crate) fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plot::Style;
    use longwire_report::Row;

    /// Checks that every element has its end tag, in order; void elements of HTML need none.
    fn is_well_formed(text: &str) -> Result<(), String> {
        let mut open: Vec<String> = Vec::new();
        let mut rest = text;
        while let Some(begin) = rest.find('<') {
            let end = begin + rest[begin..].find('>').ok_or("a tag without an end")?;
            let tag = &rest[begin + 1..end];
            rest = &rest[end + 1..];
            let name: String =
                tag.chars().skip_while(|c| *c == '/').take_while(|c| c.is_alphanumeric()).collect();
            if !tag.matches('"').count().is_multiple_of(2) {
                return Err(format!("a quote is open in <{tag}>"));
            }
            match tag {
                _ if tag.starts_with('!') || name == "meta" || tag.ends_with('/') => {}
                _ if tag.starts_with('/') => match open.pop() {
                    Some(last) if last == name => {}
                    other => return Err(format!("</{name}> closes {other:?}")),
                },
                _ => open.push(name),
            }
        }
        if open.is_empty() { Ok(()) } else { Err(format!("{open:?} are open")) }
    }

    fn plots() -> Vec<Plot> {
        let points = vec![(64.0, 496.25), (1518.0, 32.5), (f64::NAN, 1.0)];
        [Style::Line, Style::Reference, Style::Scatter, Style::Steps, Style::Bars]
            .into_iter()
            .map(|style| {
                Plot::new("Rate <\"of\"> A & B", "size", "kpps").with("ours", style, points.clone()).with(
                    "thesis' & others",
                    Style::Line,
                    vec![(1.0, 2.0)],
                )
            })
            .chain([
                Plot::new("empty", "x", "y"),
                Plot::new("log", "x", "y").log_x().log_y().with(
                    "all",
                    Style::Line,
                    vec![(0.0, 1.0), (10.0, 100.0), (1000.0, 1.0)],
                ),
            ])
            .collect()
    }

    #[test]
    fn figures_are_well_formed_and_have_what_they_show() {
        for plot in plots() {
            let svg = plot.to_svg();
            is_well_formed(&svg).unwrap_or_else(|error| panic!("{error}:\n{svg}"));
            assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
        }
        let line = plots()[0].to_svg();
        assert!(line.contains("ours: 64, 496.25") && line.contains("A &amp; B"), "{line}");
        assert_eq!(plots()[6].to_svg().matches("<circle").count(), 2, "0 has no place on a logarithmic axis");
    }

    #[test]
    fn the_checker_sees_what_is_wrong() {
        for wrong in ["<a><b></a></b>", "<p>", "</p>", "<a b=\">", "<"] {
            assert!(is_well_formed(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_page_has_all_rows_and_nothing_from_elsewhere() {
        let mut report = Report::new("validate linkem").with("summary", vec!["a claim is <not> reproduced"]);
        report.push(
            Row::new("table 5.1: 64 kbit/s", "bit/s")
                .extra("paper", 63_460)
                .expected(64_000)
                .measured(64_001)
                .within_percent(0.5)
                .note("on <af_packet>"),
        );
        report.push(Row::new("tick", "ns").measured("not run").note("no"));
        report.push(Row::new("loss", "%").expected(1).measured(3).within(1.0));
        let page = page("A thesis", &report, &plots());
        is_well_formed(&page).unwrap();
        for text in [
            "63.46 kbit/s",
            "FAIL",
            "on &lt;af_packet&gt;",
            "<svg",
            "failed</span>",
            "judged: 2, of them failed: 1",
            "<strong>a claim is &lt;not&gt; reproduced.</strong>",
        ] {
            assert!(page.contains(text), "{text}");
        }
        let outside = page.replace("http://www.w3.org/2000/svg", "");
        assert!(!outside.contains("http") && !outside.contains("<script") && !outside.contains("@import"));
    }
}
