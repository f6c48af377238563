//! `longwire sweep plot`

use crate::{Json, Outcome, outcome};
use anyhow::{Context, ensure};
use longwire_report::{Report, Row};
use longwire_sweep::{Line, RowTable};
use longwire_units::{Bytes, Nanos, Probability, Rate};
use longwire_validate::plot::{Plot, Style};
use serde_json::Value;
use std::path::PathBuf;

/// Draw a figure of a sweep's rows: one column over another
///
/// Rows that differ only in the seed are one point, their mean. Each combination of the other axes is a line.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  longwire sweep plot rows.jsonl --x bottleneck.rate --y source.flow1.delay_ns_p95 --output delay.svg
  longwire sweep plot rows.jsonl --x bottleneck.rate --y dropped --log-x --output drops.svg")]
pub struct Args {
    /// Files of rows, of one sweep.
    #[arg(required = true, value_name = "ROWS")]
    files: Vec<PathBuf>,

    /// The column of the horizontal axis: a setting, or a result.
    #[arg(long, value_name = "COLUMN")]
    x: String,

    /// The column of the vertical axis.
    #[arg(long, value_name = "COLUMN")]
    y: String,

    /// Make the horizontal axis logarithmic.
    #[arg(long)]
    log_x: bool,

    /// Make the vertical axis logarithmic.
    #[arg(long)]
    log_y: bool,

    /// The figure's file, in SVG.
    #[arg(long, short, value_name = "FILE")]
    output: PathBuf,

    #[command(flatten)]
    json: Json,
}

/// What a column's numbers are shown in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unit {
    Milliseconds,
    MegabitsPerSecond,
    Kilobytes,
    Percent,
    Plain,
}

/// A line of the figure: its name, and its points with the number of their rows.
struct Curve {
    name: String,
    points: Vec<(f64, f64, u32)>,
}

impl Args {
    pub(super) fn run(self) -> anyhow::Result<Outcome> {
        let mut table = RowTable::default();
        self.files.iter().try_for_each(|file| table.read(file))?;
        for column in [&self.x, &self.y] {
            table.check_column(column)?;
        }
        let (curves, units) = self.curves(&table);
        let points: usize = curves.iter().map(|curve| curve.points.len()).sum();
        ensure!(points > 0, "no row has a number in both {} and {}", self.x, self.y);
        let [x, y] = [(&self.x, units.0), (&self.y, units.1)].map(|(name, unit)| unit.label(name));
        let mut plot = Plot::new(format!("{} over {}", self.y, self.x), x, y);
        (plot.log_x, plot.log_y) = (self.log_x, self.log_y);
        for Curve { name, points } in &curves {
            let means = points.iter().map(|(x, sum, rows)| (*x, sum / f64::from(*rows)));
            plot = plot.with(name.as_str(), Style::Line, means.collect());
        }
        let name = self.output.display();
        std::fs::write(&self.output, plot.to_svg()).with_context(|| format!("writing {name}"))?;
        if self.json.on {
            let mut report = Report::new("sweep plot").with("output", name.to_string());
            let row = |curve: &Curve| Row::new(&*curve.name, "points").measured(curve.points.len());
            report.extend(curves.iter().map(row));
            return outcome::print_report(&report, true);
        }
        outcome::print(&format!("{name}: {points} points in {} lines", curves.len()))?;
        Ok(Outcome::Well)
    }

    /// The curves, each from left to right, and the units of both axes.
    fn curves(&self, table: &RowTable) -> (Vec<Curve>, (Unit, Unit)) {
        let others: Vec<&str> = table.axes().filter(|axis| *axis != self.x).collect();
        let (mut curves, mut units) = (Vec::<Curve>::new(), (Unit::Plain, Unit::Plain));
        for line in table.rows() {
            let (Some((x, of_x)), Some((y, of_y))) = (number(line, &self.x), number(line, &self.y)) else {
                continue;
            };
            units = (of_x, of_y);
            let name = others.iter().map(|axis| format!("{axis}={}", RowTable::cell(line, axis)));
            let name = name.collect::<Vec<_>>().join(", ");
            let at = curves.iter().position(|curve| curve.name == name).unwrap_or_else(|| {
                curves.push(Curve { name, points: Vec::new() });
                curves.len() - 1
            });
            let points = &mut curves[at].points;
            match points.iter_mut().find(|(known, ..)| known.total_cmp(&x).is_eq()) {
                Some((_, sum, rows)) => (*sum, *rows) = (*sum + y, *rows + 1),
                None => points.push((x, y, 1)),
            }
        }
        curves.iter_mut().for_each(|curve| curve.points.sort_by(|one, other| one.0.total_cmp(&other.0)));
        (curves, units)
    }
}

impl Unit {
    /// The axis's label.
    fn label(self, column: &str) -> String {
        match self {
            Self::Milliseconds => format!("{column}, ms"),
            Self::MegabitsPerSecond => format!("{column}, Mbit/s"),
            Self::Kilobytes => format!("{column}, kB"),
            Self::Percent => format!("{column}, %"),
            Self::Plain => column.into(),
        }
    }
}

/// The number in a column, in its unit; none if there is no number.
fn number(line: &Line, column: &str) -> Option<(f64, Unit)> {
    match line.get(column)? {
        Value::Number(number) => {
            let number = number.as_f64()?;
            Some(match column {
                _ if column.contains("_ns") => (number / 1e6, Unit::Milliseconds),
                _ if column.ends_with("bit_per_s") => (number / 1e6, Unit::MegabitsPerSecond),
                _ => (number, Unit::Plain),
            })
        }
        Value::String(text) => quantity(text),
        _ => None,
    }
}

/// A setting's value as a number.
fn quantity(text: &str) -> Option<(f64, Unit)> {
    if let Ok(number) = text.parse::<f64>() {
        return Some((number, Unit::Plain));
    }
    let rate = text.parse::<Rate>().ok().filter(|rate| *rate != Rate::UNLIMITED);
    let time = || text.parse::<Nanos>().ok().map(|time| (time.0 as f64 / 1e6, Unit::Milliseconds));
    let size = || text.parse::<Bytes>().ok().map(|size| (size.0 as f64 / 1e3, Unit::Kilobytes));
    let share = || text.parse::<Probability>().ok().map(|share| (share.as_f64() * 100.0, Unit::Percent));
    let rate = rate.map(|rate| (rate.as_f64() / 1e6, Unit::MegabitsPerSecond));
    rate.or_else(time).or_else(size).or_else(share)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_numbers_in_their_units() {
        assert_eq!(quantity("1500 kbit/s"), Some((1.5, Unit::MegabitsPerSecond)));
        assert_eq!(quantity("5ms"), Some((5.0, Unit::Milliseconds)));
        assert_eq!(quantity("64 kB"), Some((64.0, Unit::Kilobytes)));
        assert_eq!(quantity("12"), Some((12.0, Unit::Plain)));
        assert_eq!(quantity("codel"), None);
        assert_eq!(quantity("unlimited"), None);
    }
}
