//! Section 4.1.2: tasks on several microengines, each with all of them (parallelism) or each with some
//! (pipelining). Here two workers compared with one, memory to memory.

use crate::Settings;
use crate::book::{Book, once};
use longwire_bench::{BenchError, mapping};
use longwire_report::Row;

/// What the thesis says; it prints no number.
const EXPECTED: &str = "the thesis expects the same of both where memory costs nothing: packets apart by a \
    stage's cycles only. Against pipelining it has the queues between microengines, against parallelism the \
    state that several of them update";

pub(super) fn rows(book: &mut Book<'_>) {
    let settings = book.settings;
    for links in &mapping::LINKS {
        let mut measured = None;
        for (place, how) in mapping::mappings().enumerate() {
            let unit = if place == 0 { "pps" } else { "x" };
            let name = format!("section 4.1.2: {}, {how}", links.name);
            book.row(Row::new(name, unit), |row| {
                let all = once(&mut measured, || compare(settings, links))?;
                let found = Row { name: row.name, ..all[place].clone() };
                // Once for all of them, in the first comparison.
                Ok(if place == 1 { found.note(EXPECTED) } else { found })
            });
        }
    }
}

fn compare(settings: &Settings<'_>, links: &mapping::Links) -> Result<Vec<Row>, BenchError> {
    settings.require_real_time("a speed")?;
    let settings = longwire_bench::Settings {
        runs: Some(settings.choose(5, 1)),
        quick: settings.quick,
        say: settings.say,
        stop: settings.stop,
    };
    links.compare(&settings)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicBool;

    #[test]
    fn each_mapping_has_a_row_of_each_kind_of_links() {
        let stop = AtomicBool::new(false);
        let settings = Settings { simulate: false, ..Settings::of_test(&stop) };
        let mut book = Book::new(&settings, 8);
        rows(&mut book);
        let rows = book.close().rows;
        assert_eq!(rows.len(), 8);
        for (row, how) in rows.iter().zip(mapping::mappings().chain(mapping::mappings())) {
            let is_measured = row.measured.as_ref().is_some_and(|value| value.as_f64() > Some(0.0));
            assert!(
                row.name.ends_with(how) && (is_measured || row.measured == Some("not run".into())),
                "{row:?}"
            );
            assert_eq!(row.unit, if how == "single" { "pps" } else { "x" });
        }
    }
}
