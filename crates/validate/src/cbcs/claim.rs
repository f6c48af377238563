//! The paper's claim that every class of flows waits less under CBCS than under separate DRR, judged class by
//! class under each interpretation of what the paper leaves open.

use super::tables::{CBCS_INSIDE, EQUAL, SEPARATE_INSIDE, TABLES};
use super::trial::{CHOSEN, OfferedLoad, OpenChoices, Outcome, PLACES, Runs};
use crate::book::{Book, paper};
use longwire_bench::BenchError;
use longwire_report::Row;
use longwire_sched::model::TABLE_7;

/// The claim holds for a class if its average is reduced by at least this share of the paper's reduction.
const SHARE_OF_PAPER: f64 = 0.5;
/// Tolerance for agreement with the paper's value, in percent.
const AGREES: f64 = 15.0;

/// A condition under which the claim is tested.
struct Condition {
    name: &'static str,
    cbcs: OfferedLoad,
    separate: OfferedLoad,
    open: OpenChoices,
}

/// A constant number of packets inside: under CBCS, and under separate DRR.
const fn inside(name: &'static str, numbers: (usize, usize), ring: u32) -> Condition {
    let (cbcs, separate) = (OfferedLoad::Inside(numbers.0), OfferedLoad::Inside(numbers.1));
    Condition { name, cbcs, separate, open: OpenChoices { ring, ..CHOSEN } }
}

/// 30 % more than the port's rate, and few buffers.
const fn overload(name: &'static str, ring: u32) -> Condition {
    let offered = OfferedLoad::Percent(130);
    Condition { name, cbcs: offered, separate: offered, open: OpenChoices { ring, tight: true, ..CHOSEN } }
}

const OWN: (usize, usize) = (CBCS_INSIDE, SEPARATE_INSIDE);

const CONDITIONS: [Condition; 11] = [
    Condition {
        name: "stated load: an open source of 50 Mbit/s",
        cbcs: OfferedLoad::Percent(100),
        separate: OfferedLoad::Percent(100),
        open: CHOSEN,
    },
    inside("saturation, 56 inside, rings of 4", (EQUAL, EQUAL), 4),
    inside("saturation, 56 inside, rings of 16", (EQUAL, EQUAL), 16),
    inside("saturation, 56 inside, rings of 64", (EQUAL, EQUAL), 64),
    inside("saturation, 48 and 64 inside, rings of 4", OWN, 4),
    inside("saturation, 48 and 64 inside, rings of 16", OWN, 16),
    inside("saturation, 48 and 64 inside, rings of 64", OWN, 64),
    overload("overload, few buffers, rings of 4", 4),
    overload("overload, few buffers, rings of 8", 8),
    overload("overload, few buffers, rings of 16", 16),
    overload("overload, few buffers, rings of 32", 32),
];

/// Result under a condition: the number of classes tested, and of those for which the claim holds.
#[derive(Debug, Clone, Copy, Default)]
struct ClaimCount {
    classes: usize,
    holds: usize,
}

pub(super) fn rows(book: &mut Book<'_>, runs: &mut Runs<'_>) {
    let mut all = Vec::new();
    for condition in &CONDITIONS {
        let mut tried = ClaimCount::default();
        for (class, table) in TABLES.iter().enumerate() {
            let name =
                format!("claim, {}: {}'s average less under CBCS by", condition.name, TABLE_7[class].name);
            let row = book.row(paper(Row::new(name, "%"), table.reduced[1]), |row| {
                let both = both(runs, condition)?;
                Ok(judged(row, [&both[0], &both[1]], class))
            });
            let Some(row) = row else { continue };
            tried.classes += 1;
            tried.holds += usize::from(row.pass == Some(true));
        }
        let name = format!("reproduced, {}: averages of tables 8 to 12", condition.name);
        book.row(Row::new(name, "values").expected(10), |row| {
            let both = both(runs, condition)?;
            Ok(agreement(row, [&both[0], &both[1]]))
        });
        all.push((condition.name, tried));
    }
    book.say_of_all(headline(&all));
    places(book, runs);
}

/// Runs of both schedulers: CBCS, then separate DRR.
fn both(runs: &mut Runs<'_>, condition: &Condition) -> Result<[Outcome; 2], BenchError> {
    let cbcs = runs.under("cbcs", condition.cbcs, condition.open)?.clone();
    Ok([cbcs, runs.under("separate-drr", condition.separate, condition.open)?.clone()])
}

/// Reduction from the second to the first, in percent.
fn reduction(cbcs: f64, separate: f64) -> f64 {
    ((1.0 - cbcs / separate) * 1e3).round() / 10.0
}

/// The row of a class: the reduction of its average, and whether the claim holds.
fn judged(row: Row, runs: [&Outcome; 2], class: usize) -> Row {
    let [cbcs, separate] = runs.map(|run| &run.delays[class]);
    let reduced = reduction(cbcs.mean, separate.mean);
    let wanted = f64::from(TABLES[class].reduced[1]) * SHARE_OF_PAPER;
    let row = row
        .measured(reduced)
        .judged(reduced >= wanted)
        .extra("cbcs_ns", cbcs.mean.round())
        .extra("separate_drr_ns", separate.mean.round())
        .extra("largest_reduced_percent", reduction(cbcs.max, separate.max))
        .extra("deviation_reduced_percent", reduction(cbcs.deviation, separate.deviation));
    let verdict = if reduced >= wanted { "reproduced" } else { "not reproduced" };
    row.extra("claim", verdict).note(format!(
        "{verdict} (at least half of the paper's reduction): {:.3} ms under CBCS, {:.3} ms under separate \
         DRR; {:.1} and {:.1} packets inside",
        cbcs.mean / 1e6,
        separate.mean / 1e6,
        runs[0].inside(),
        runs[1].inside()
    ))
}

/// How many values of tables 8 to 12 the runs reproduce: averages in the row; maxima and deviations in its
/// note.
fn agreement(row: Row, runs: [&Outcome; 2]) -> Row {
    let mut agreeing = [0; 3];
    for (class, table) in TABLES.iter().enumerate() {
        for (run, line) in runs.into_iter().zip([table.cbcs, table.separate]) {
            let delays = &run.delays[class];
            let own = [delays.max, delays.mean, delays.deviation];
            for (count, (own, of_paper)) in agreeing.iter_mut().zip(own.into_iter().zip(line)) {
                *count += i64::from((own / (of_paper * 1e6) - 1.0).abs() * 100.0 <= AGREES);
            }
        }
    }
    let [largest, averages, deviations] = agreeing;
    row.measured(averages).extra("largest", largest).extra("deviations", deviations).note(format!(
        "within {AGREES} %: {averages} of 10 averages, {largest} of 10 largest delays, {deviations} of 10 \
         deviations"
    ))
}

/// The first line of the summary, about all conditions.
fn headline(all: &[(&str, ClaimCount)]) -> String {
    let which = |wanted: fn(&ClaimCount) -> bool| {
        let names: Vec<_> = all.iter().filter(|(_, tried)| wanted(tried)).map(|(name, _)| *name).collect();
        if names.is_empty() { None } else { Some(names.join("; ")) }
    };
    let whole = TABLES.len();
    let [holds, fails, open] = [
        which(|tried| tried.classes == TABLES.len() && tried.holds == tried.classes),
        which(|tried| tried.holds < tried.classes),
        which(|tried| tried.classes < TABLES.len() && tried.holds == tried.classes),
    ];
    let mut parts = Vec::new();
    parts.extend(fails.map(|names| format!("is not reproduced under {names}")));
    parts.extend(holds.map(|names| format!("is reproduced under {names}")));
    parts.extend(open.map(|names| format!("was not tried in whole under {names}")));
    format!(
        "the paper's headline (each of {whole} classes waits less under CBCS than under separate DRR) {}",
        parts.join(". It ")
    )
}

/// Where packets wait, which explains the reductions.
fn places(book: &mut Book<'_>, runs: &mut Runs<'_>) {
    for condition in CONDITIONS.iter().filter(|condition| condition.open.ring >= 16) {
        for (at, scheduler) in ["cbcs", "separate-drr"].into_iter().enumerate() {
            let name = format!("where packets wait, {}: {scheduler}", condition.name);
            book.row(Row::new(name, "packets"), |row| {
                let run = &both(runs, condition)?[at];
                let each = PLACES.iter().zip(run.places).filter(|(_, mean)| *mean >= 0.05);
                let each: Vec<_> = each.map(|(place, mean)| format!("{place} {mean:.1}")).collect();
                let class = TABLE_7.iter().enumerate();
                let class = class.map(|(at, class)| format!("{} {:.1}", class.name, run.inside_of(at)));
                let class = class.collect::<Vec<_>>().join(", ");
                Ok(row
                    .measured((run.inside() * 10.0).round() / 10.0)
                    .note(format!("{}; by class (Little's law): {class}", each.join(", "))))
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Settings;
    use std::sync::atomic::AtomicBool;

    #[test]
    fn reductions_are_the_papers_to_a_percent() {
        for table in &TABLES {
            for (at, printed) in table.reduced.into_iter().enumerate() {
                let own = reduction(table.cbcs[at], table.separate[at]);
                // Section 5.2 differs slightly from the tables: it prints a deviation of 35 % for LH where
                // they have 32.9, and of 25 for HH where they have 23.2.
                assert!((own - f64::from(printed)).abs() <= 2.2, "table {}: {own} {printed}", table.number);
            }
        }
    }

    #[test]
    fn the_headline_depends_on_what_is_open() {
        let stop = AtomicBool::new(false);
        let settings = Settings::of_test(&stop);
        let mut book = Book::new(&settings, 0);
        rows(&mut book, &mut Runs::new(&settings));
        let findings = book.close();
        let holds = |condition: &str| {
            let name = format!("claim, {condition}");
            let rows = findings.rows.iter().filter(|row| row.name.starts_with(&name));
            let passed: Vec<_> = rows.map(|row| row.pass == Some(true)).collect();
            (passed.len(), passed.into_iter().filter(|passed| *passed).count())
        };
        // The port sends at the rate of arrivals: both are equal.
        assert_eq!(holds("stated load"), (5, 0));
        assert_eq!(holds("saturation, 56 inside, rings of 64"), (5, 0));
        assert_eq!(holds("saturation, 56 inside, rings of 4:"), (5, 1), "LH alone");
        assert_eq!(holds("saturation, 56 inside, rings of 16:"), (5, 2), "HH and LH alone");
        assert_eq!(holds("overload, few buffers, rings of 16"), (5, 5));
        let line = &findings.summary[0];
        assert!(line.contains("is not reproduced under stated load"), "{line}");
        assert!(line.contains("It is reproduced under saturation, 48 and 64 inside, rings of 64;"), "{line}");
    }
}
