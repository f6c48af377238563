//! Tables 8 to 12: the largest, average and standard deviation of delays by class; figures 9 to 13: the
//! delays themselves.

use super::trial::{Delays, Runs};
use crate::book::{Book, paper_if};
use crate::plot::{Plot, Style};
use longwire_report::Row;
use longwire_sched::SPECS;
use longwire_sched::model::TABLE_7;

/// The paper's averages by Little's law at its ports' rate: 48 packets inside under CBCS, 64 under separate
/// DRR.
pub(super) const CBCS_INSIDE: usize = 48;
pub(super) const SEPARATE_INSIDE: usize = 64;
/// An equal number of packets inside, between these.
pub(super) const EQUAL: usize = 56;

/// A table row: maximum, average and standard deviation, in ms.
type Line = [f64; 3];

/// A class's resource requirements, and the paper's table of it: CBCS, then separate DRR.
pub(super) struct Table {
    /// Its number; its figure has the next one.
    pub number: u32,
    pub what: &'static str,
    pub cbcs: Line,
    pub separate: Line,
    /// Reduction of maximum, average and deviation under CBCS: the percentages of section 5.2.
    pub reduced: [u32; 3],
}

/// In the order of [`TABLE_7`].
pub(super) const TABLES: [Table; 5] = [
    Table {
        number: 8,
        what: "high CPU, high bandwidth",
        cbcs: [1.057_624, 0.664_084, 0.149_557],
        separate: [1.498_264, 0.915_469, 0.194_695],
        reduced: [29, 28, 25],
    },
    Table {
        number: 9,
        what: "high CPU, low bandwidth",
        cbcs: [1.109_144, 0.708_829, 0.144_204],
        separate: [1.315_864, 0.888_282, 0.187_556],
        reduced: [15, 21, 22],
    },
    Table {
        number: 10,
        what: "low CPU, high bandwidth",
        cbcs: [0.956_184, 0.598_476, 0.137_83],
        separate: [1.283_544, 0.823_126, 0.205_549],
        reduced: [26, 28, 35],
    },
    Table {
        number: 11,
        what: "low CPU, low bandwidth",
        cbcs: [0.996_664, 0.586_97, 0.142_346],
        separate: [1.098_904, 0.771_186, 0.191_77],
        reduced: [9, 25, 26],
    },
    Table {
        number: 12,
        what: "medium CPU, medium bandwidth",
        cbcs: [1.111_224, 0.721_62, 0.138_434],
        separate: [1.310_104, 0.892_562, 0.209_577],
        reduced: [15, 19, 35],
    },
];

impl Table {
    /// The paper's table row of a scheduler, if it has one.
    fn line(&self, scheduler: &str) -> Option<Line> {
        match scheduler {
            "cbcs" => Some(self.cbcs),
            "separate-drr" => Some(self.separate),
            _ => None,
        }
    }
}

/// Number of packets inside in the third column.
pub(super) fn own_number(scheduler: &str) -> usize {
    if scheduler == "separate-drr" { SEPARATE_INSIDE } else { CBCS_INSIDE }
}

const STATISTICS: [&str; 3] = ["largest", "average", "deviation"];

fn statistic(delays: &Delays, place: usize) -> f64 {
    [delays.max, delays.mean, delays.deviation][place]
}

/// The paper's two schedulers first, then the others.
fn schedulers() -> impl Iterator<Item = &'static str> {
    let of_paper = ["cbcs", "separate-drr"];
    let others = SPECS.iter().map(|spec| spec.name).filter(move |name| !of_paper.contains(name));
    of_paper.into_iter().chain(others)
}

pub(super) fn rows(book: &mut Book<'_>, runs: &mut Runs<'_>) {
    for (class, table) in TABLES.iter().enumerate() {
        for scheduler in schedulers() {
            for (place, name) in STATISTICS.iter().enumerate() {
                let title = format!("table {}: {}, {scheduler}, {name}", table.number, table.what);
                let known = table.line(scheduler).map(|line| (line[place] * 1e6).round());
                let row = paper_if(Row::new(title, "ns"), known);
                book.row(row, |row| {
                    let own = own_number(scheduler);
                    let third = statistic(&runs.of(scheduler, own)?.delays[class], place);
                    let equal = &runs.of(scheduler, EQUAL)?.delays[class];
                    Ok(row
                        .measured(statistic(equal, place).round())
                        .extra("also", third.round())
                        .extra("packets", equal.count)
                        .extra("inside", EQUAL)
                        .extra("also_inside", own))
                });
            }
        }
        figure(book, runs, class, table);
    }
}

fn figure(book: &mut Book<'_>, runs: &Runs<'_>, class: usize, table: &Table) {
    let flows = TABLE_7[class].flows.len();
    let title = format!("Figure {}: delays of the {flows} flows with {}", table.number + 1, table.what);
    let mut plot = Plot::new(title, "packet", "delay, ms");
    for scheduler in ["cbcs", "separate-drr"] {
        let own = own_number(scheduler);
        let points = runs.known(scheduler, own).map(|run| run.delays[class].first.clone());
        plot = plot.with(format!("{scheduler}, {own} inside"), Style::Scatter, points.unwrap_or_default());
    }
    let average = |line: Line| vec![(0.0, line[1]), (249.0, line[1])];
    book.plot(plot.with("paper's average, CBCS", Style::Reference, average(table.cbcs)).with(
        "paper's average, separate DRR",
        Style::Reference,
        average(table.separate),
    ));
}
