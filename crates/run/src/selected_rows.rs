//! The rows of a report that a client selects, among all links: only selected ones are written.

use crate::run_report::{LINK_COUNTS, ReportInput};
use longwire_control::{Problem, RowFilter, SelectableRow};
use longwire_engine::LinkReport;
use serde_json::Value;

/// A row that may be selected.
enum Candidate<'r> {
    /// Of a link, which is written when it is selected.
    Link {
        /// The link's name.
        name: &'r str,
        /// Its counters.
        link: &'r LinkReport,
        /// Its mean rate in bits per second.
        rate: f64,
    },
    /// Any other.
    Written(Value),
}

impl SelectableRow for Candidate<'_> {
    fn kind(&self) -> &str {
        match self {
            Self::Link { .. } => "link",
            Self::Written(row) => row.kind(),
        }
    }

    fn name(&self) -> &str {
        match self {
            Self::Link { name, .. } => name,
            Self::Written(row) => row.name(),
        }
    }

    fn number(&self, field: &str) -> Option<f64> {
        let (link, rate) = match self {
            Self::Link { link, rate, .. } => (link, rate),
            Self::Written(row) => return row.number(field),
        };
        match field {
            "drops" => Some(link.stats.dropped() as f64),
            "measured" => Some(*rate),
            _ => {
                let (_, count) = LINK_COUNTS.iter().find(|(name, _)| *name == field)?;
                Some(count(&link.stats) as f64)
            }
        }
    }

    fn numbers(&self) -> Vec<String> {
        match self {
            Self::Link { .. } => {
                LINK_COUNTS.iter().map(|(name, _)| *name).chain(["measured"]).map(String::from).collect()
            }
            Self::Written(row) => row.numbers(),
        }
    }
}

/// The report as JSON, with the selected rows and the number of those after them.
///
/// # Errors
/// If the filter names an unknown kind, field or row.
pub(crate) fn selected(ran: &ReportInput<'_>, filter: &RowFilter) -> Result<Value, Box<Problem>> {
    let mut report = serde_json::to_value(ran.report()).unwrap_or_default();
    if *filter == RowFilter::default() {
        return Ok(report);
    }
    let written = match report["rows"].take() {
        Value::Array(rows) => rows,
        _ => Vec::new(),
    };
    let sources = written.iter().take_while(|row| row.kind() == "source").count();
    // Of very many links the report has some only.
    let mut others = written.into_iter().filter(|row| row.kind() != "link").map(Candidate::Written);
    let mut rows: Vec<_> = others.by_ref().take(sources).collect();
    rows.extend(ran.counted.links.iter().map(|link| Candidate::Link {
        name: &ran.plan.links[link.place as usize].name,
        link,
        rate: ran.link_rate(link).round(),
    }));
    rows.extend(others);
    let (rows, left) = filter.select(rows)?;
    let written = rows.into_iter().map(|row| match row {
        Candidate::Link { link, .. } => serde_json::to_value(ran.link_row(link)).unwrap_or_default(),
        Candidate::Written(row) => row,
    });
    report["rows"] = written.collect();
    report["rows_left"] = left.into();
    Ok(report)
}

#[cfg(test)]
mod tests {
    use super::*;
    use longwire_engine::Report;
    use longwire_link::LinkStats;
    use longwire_scenario::plan_of;
    use longwire_units::Nanos;
    use std::collections::BTreeMap;
    use std::sync::Arc;

    /// Numbers by which links are sorted are those of their rows, also of links that carried nothing.
    #[test]
    fn rows_are_selected_among_all_links() {
        const LINKS: u64 = 10_002;
        let ports = ["a", "b"].map(|name| format!("[[port]]\nname = \"{name}\"\ndriver = \"memory\"\n"));
        let plan =
            Arc::new(plan_of(&(ports.concat() + "[[link]]\nname = \"l\"\nfrom = \"a\"\nto = \"b\"\n")));
        let link = |at: u64| {
            let drops = vec![("loss", at)];
            let stats = LinkStats { in_bytes: LINKS - at, collisions: at, drops, ..LinkStats::default() };
            LinkReport { place: 0, stats, lateness: None, changed: None }
        };
        let counted = Arc::new(Report { links: (0..LINKS).map(link).collect(), ..Report::default() });
        let ran = ReportInput {
            plan,
            counted,
            watches: Vec::new(),
            mode: "real",
            elapsed: Nanos(1),
            settings: Box::new(|_| BTreeMap::new()),
            aims: Box::new(|_| Vec::new()),
            planes: Vec::new(),
            programs: Vec::new(),
            nesp: None,
        };
        for field in ["collisions", "drops"] {
            let filter = RowFilter {
                name: Some("l*".into()),
                sort: Some(field.into()),
                limit: Some(1),
                ..RowFilter::default()
            };
            let report = selected(&ran, &filter).unwrap();
            assert_eq!(report["rows"][0].number(field), Some((LINKS - 1) as f64), "{report}");
            assert_eq!(report["rows_left"], LINKS - 1);
        }
        let row = serde_json::to_value(ran.link_row(&ran.counted.links[7])).unwrap();
        let candidate = Candidate::Link { name: "l", link: &ran.counted.links[7], rate: 0.0 };
        assert_eq!((candidate.kind(), candidate.name()), (row.kind(), row.name()));
        for (field, _) in LINK_COUNTS {
            assert_eq!(candidate.number(field), row.number(field), "{field}");
        }
        let all = selected(&ran, &RowFilter::default()).unwrap();
        assert!(all["rows_left"].is_null());
    }
}
