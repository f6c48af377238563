//! Consequences of the paper's own numbers, and the behaviour of its machine with them.

use super::tables::{CBCS_INSIDE, EQUAL, SEPARATE_INSIDE, TABLES};
use super::trial::{PROCESSORS, Runs};
use crate::book::Book;
use longwire_report::Row;
use longwire_sched::model::TABLE_7;

/// Transmission time of table 7's mean packet at 160 ns a byte, in ns.
const MEAN_WIRE: f64 = 13_475.0;
/// Share of four engines at 600 MHz that the 1546 cycles of table 7's mean packet take during its
/// transmission, in percent.
const DERIVED_USE: f64 = 4.78;

pub(super) fn rows(book: &mut Book<'_>, runs: &mut Runs<'_>) {
    let derived = "derived from table 7, not printed in the paper";
    let row = Row::new("facts: processors' use is under 5 %, cbcs at saturation", "%").expected(DERIVED_USE);
    book.row(row, |row| {
        let run = runs.of("cbcs", CBCS_INSIDE)?;
        let used = run.stats.processor_busy as f64 * 100.0 / (run.time.0 as f64 * f64::from(PROCESSORS));
        let port = run.stats.port_busy as f64 * 100.0 / run.time.0 as f64;
        Ok(row.measured((used * 1000.0).round() / 1000.0).judged(used < 5.0 && port > 99.0).note(format!(
            "{derived}: 1546 cycles are 2.58 µs, on four engines, against {:.1} µs on the port, which is \
             {port:.1} % busy: the processors are no bottleneck",
            MEAN_WIRE / 1e3
        )))
    });
    for (scheduler, own) in [("cbcs", CBCS_INSIDE), ("separate-drr", SEPARATE_INSIDE)] {
        let row = Row::new(format!("facts: packets inside by Little's law, {scheduler}"), "packets");
        let of_paper = TABLES.iter().zip(&TABLE_7).map(|(table, class)| {
            let line = if scheduler == "cbcs" { table.cbcs } else { table.separate };
            line[1] * 1e6 * class.flows.len() as f64
        });
        let of_paper = of_paper.sum::<f64>() / 16.0 / MEAN_WIRE;
        book.row(row.expected(EQUAL), |row| {
            let third = runs.of(scheduler, own)?.inside();
            let equal = runs.of(scheduler, EQUAL)?.inside();
            let rounded = |value: f64| (value * 10.0).round() / 10.0;
            let row = row.measured(rounded(equal)).within_percent(1.0).extra("also", rounded(third));
            Ok(row.extra("derived_from_paper", rounded(of_paper)).note(format!(
                "the paper's averages come to {of_paper:.1} packets, one each {:.1} µs; it does not print a \
                 number",
                MEAN_WIRE / 1e3
            )))
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mean_packet_by_hand() {
        // 7 flows of 123.5 bytes, 7 of 45, 2 of 84: 84.219 bytes at 160 ns.
        let bytes: f64 = TABLE_7
            .iter()
            .map(|class| f64::from(class.bytes.0 + class.bytes.1) / 2.0 * class.flows.len() as f64)
            .sum::<f64>()
            / 16.0;
        assert!((bytes * 160.0 - MEAN_WIRE).abs() < 1e-6, "{}", bytes * 160.0);
    }
}
