//! Figure 5: configured and observed loss probability, fixed and drawn from a table of (x, C(x)).

use crate::book::{Book, paper};
use crate::experiment::Hosts;
use crate::kinds::require;
use crate::linkem::loss::{lose_by, say_seed};
use crate::plot::{Plot, Style};
use longwire_report::Row;

/// Configured, in percent.
const SET: [u32; 6] = [1, 2, 5, 10, 20, 50];
/// At 1518 bytes and 8000 packets a second, 97 Mbit/s: 5 s.
const PACKETS: u64 = 40_000;

/// Tables of the paper's kind: evenly spaced C(x), and their mean in percent, computed by hand.
const TABLES: [(&str, &str, f64); 2] = [
    // Uniform between 0 and 20 %.
    ("uniform from 0 to 20 %", "0 0; 0.05 0.25; 0.1 0.5; 0.15 0.75; 0.2 1", 10.0),
    // Low for most packets, high for some: the steps' means are 0, 0.5, 1.5 and 16 %.
    ("a long tail", "0 0; 0 0.25; 0.01 0.5; 0.02 0.75; 0.3 1", 4.5),
];

pub(super) fn rows(book: &mut Book<'_>, hosts: &mut Hosts) {
    let (mut fixed, mut drawn) = (Vec::new(), Vec::new());
    let settings = book.settings;
    for set in SET {
        let row = Row::new(format!("fig 5: loss set to {set} %"), "%").expected(set);
        let seen = book.number(paper(row, "equal"), |row| {
            let keys = format!("loss = \"{set} %\"");
            let (draws, row) = lose_by(settings, hosts, &keys, PACKETS, row)?;
            Ok(draws.judged(row, f64::from(set) / 100.0))
        });
        fixed.extend(seen.map(|seen| (f64::from(set), seen)));
    }
    for (name, table, mean) in TABLES {
        let row = Row::new(format!("fig 5: loss drawn from a CDF table, {name}"), "%").expected(mean);
        let seen = book.number(row, |row| {
            require("loss", "drawn")?;
            // Independent, with the table's mean.
            let keys = format!("loss = {{ kind = \"drawn\", distribution = \"{table}\" }}");
            let (losses, row) = lose_by(settings, hosts, &keys, PACKETS, row)?;
            Ok(losses.judged(row, mean / 100.0))
        });
        drawn.extend(seen.map(|seen| (mean, seen)));
    }
    say_seed(book);
    book.plot(
        Plot::new("Figure 5: loss set and observed", "set, %", "observed, %")
            .with("equal", Style::Reference, vec![(0.0, 0.0), (50.0, 50.0)])
            .with("fixed", Style::Scatter, fixed)
            .with("drawn from a CDF table", Style::Scatter, drawn),
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Mean of a table with evenly spaced C(x): the mean of its steps' midpoints.
    fn mean(table: &str) -> f64 {
        let xs: Vec<f64> =
            table.split("; ").filter_map(|point| point.split(' ').next()?.parse().ok()).collect();
        let steps: Vec<f64> = xs.windows(2).map(|pair| f64::midpoint(pair[0], pair[1])).collect();
        steps.iter().sum::<f64>() / steps.len() as f64
    }

    #[test]
    fn the_tables_have_the_means_that_are_expected() {
        for (name, table, percent) in TABLES {
            assert!((mean(table) * 100.0 - percent).abs() < 1e-9, "{name}: {}", mean(table));
        }
    }
}
