//! Effect of other choices for what the paper leaves open, one at a time: the reduction of HH's average delay
//! under CBCS compared with separate DRR.

use super::tables::{EQUAL, TABLES};
use super::trial::{CHOSEN, OfferedLoad, OpenChoices, measure};
use crate::book::{Book, paper};
use longwire_report::Row;
use longwire_sched::model::TABLE_7;

/// Other choices, each one parameter different from [`CHOSEN`].
const CHOICES: [(&str, OpenChoices); 13] = [
    ("as chosen", CHOSEN),
    ("rings of 1 message", OpenChoices { ring: 1, ..CHOSEN }),
    ("rings of 16 messages", OpenChoices { ring: 16, ..CHOSEN }),
    ("rings of 128 messages", OpenChoices { ring: 128, ..CHOSEN }),
    ("a tenth of the quanta", OpenChoices { quantum: 1, ..CHOSEN }),
    ("ten times the quanta", OpenChoices { quantum: 100, ..CHOSEN }),
    ("any flow sends next, drawn", OpenChoices { drawn: true, ..CHOSEN }),
    ("each flow has as many inside", OpenChoices { each_its_own: true, ..CHOSEN }),
    ("estimates: what was measured last", OpenChoices { estimator: 2, ..CHOSEN }),
    ("estimates: the mean", OpenChoices { estimator: 3, ..CHOSEN }),
    ("estimates: exact", OpenChoices { estimator: 4, ..CHOSEN }),
    ("threads take 100 ns", OpenChoices { step: 100, ..CHOSEN }),
    ("threads take 1 µs", OpenChoices { step: 1000, ..CHOSEN }),
];

pub(super) fn rows(book: &mut Book<'_>) {
    let settings = book.settings;
    let hh = &TABLES[0];
    for (name, open) in CHOICES {
        let row = Row::new(format!("open: {name}: HH's average less under CBCS by"), "%");
        book.row(paper(row, hh.reduced[1]), |row| {
            let mut averages = Vec::new();
            for scheduler in ["cbcs", "separate-drr"] {
                let run = measure(settings, scheduler, OfferedLoad::Inside(EQUAL), open)?;
                averages.push(run.delays.iter().map(|class| class.mean / 1e6).collect::<Vec<_>>());
            }
            let reduced = (1.0 - averages[0][0] / averages[1][0]) * 100.0;
            let text = |of: &[f64]| {
                let each = TABLE_7.iter().zip(of).map(|(class, mean)| format!("{} {mean:.3}", class.name));
                each.collect::<Vec<_>>().join(", ")
            };
            let (cbcs, separate) = (text(&averages[0]), text(&averages[1]));
            Ok(row
                .measured((reduced * 10.0).round() / 10.0)
                .note(format!("averages in ms, CBCS: {cbcs}; separate DRR: {separate}")))
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use longwire_sched::Estimator;

    #[test]
    fn choices_are_what_their_names_say() {
        let names: Vec<_> = CHOICES
            .iter()
            .filter(|(name, _)| name.starts_with("estimates"))
            .map(|(_, open)| Estimator::ALL[open.estimator].0)
            .collect();
        assert_eq!(names, ["last", "mean", "exact"]);
        assert_eq!(Estimator::ALL[CHOSEN.estimator].0, "ses-shift", "the paper's");
    }
}
