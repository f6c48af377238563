//! Curves of a sweep's rows: one column over another.

use crate::line::Line;
use crate::table::RowTable;
use anyhow::ensure;
use longwire_units::{Bytes, Nanos, Probability, Rate};
use serde_json::Value;

/// One column of a sweep over another.
#[derive(Debug, Clone, PartialEq)]
pub struct Curves {
    /// The labels of the horizontal and of the vertical axis: columns with their units.
    pub labels: [String; 2],
    /// A curve for each combination of the other axes.
    pub curves: Vec<Curve>,
}

/// A curve of a figure.
#[derive(Debug, Clone, PartialEq)]
pub struct Curve {
    /// The values of the other axes.
    pub name: String,
    /// Its points, from left to right. Rows that differ only in the seed are one point, their mean.
    pub points: Vec<(f64, f64)>,
}

/// A curve whose points still are sums.
struct Sums {
    name: String,
    /// Each with the number of its rows.
    points: Vec<(f64, f64, u32)>,
}

/// What a column's numbers are shown in; empty if they are just numbers.
type Unit = &'static str;

impl Curves {
    /// The curves of column `y` over column `x`.
    ///
    /// # Errors
    /// If there is no such column, no row has a number in both, or the numbers of one have several units.
    pub fn of(table: &RowTable, x: &str, y: &str) -> anyhow::Result<Self> {
        for column in [x, y] {
            table.check_column(column)?;
        }
        let others: Vec<&str> = table.axes().filter(|axis| *axis != x).collect();
        let (mut sums, mut units) = (Vec::<Sums>::new(), [None; 2]);
        for line in table.rows() {
            let (Some((at, of_x)), Some((value, of_y))) = (number(line, x), number(line, y)) else {
                continue;
            };
            for ((unit, own), column) in units.iter_mut().zip([(at, of_x), (value, of_y)]).zip([x, y]) {
                let is_same = joined(unit, own);
                ensure!(is_same, "{column} has values of several units, which have no axis in common");
            }
            let name = others.iter().map(|axis| format!("{axis}={}", RowTable::cell(line, axis)));
            add(&mut sums, name.collect::<Vec<_>>().join(", "), (at, value));
        }
        ensure!(!sums.is_empty(), "no row has a number in both {x} and {y}");
        let [of_x, of_y] = units.map(Option::unwrap_or_default);
        let labels = [label(x, of_x), label(y, of_y)];
        Ok(Self { labels, curves: sums.into_iter().map(Sums::means).collect() })
    }
}

/// Notes the unit of an axis's number, of which 0 needs none. Whether the numbers before have the same.
fn joined(unit: &mut Option<Unit>, (value, own): (f64, Unit)) -> bool {
    (value == 0.0 && own.is_empty()) || *unit.get_or_insert(own) == own
}

/// Adds a value to the point at its place of the curve with this name.
fn add(sums: &mut Vec<Sums>, name: String, (x, y): (f64, f64)) {
    let at = sums.iter().position(|curve| curve.name == name).unwrap_or_else(|| {
        sums.push(Sums { name, points: Vec::new() });
        sums.len() - 1
    });
    let points = &mut sums[at].points;
    match points.iter_mut().find(|(known, ..)| known.total_cmp(&x).is_eq()) {
        Some((_, sum, rows)) => (*sum, *rows) = (*sum + y, *rows + 1),
        None => points.push((x, y, 1)),
    }
}

impl Sums {
    fn means(mut self) -> Curve {
        self.points.sort_by(|one, other| one.0.total_cmp(&other.0));
        let means = self.points.into_iter().map(|(x, sum, rows)| (x, sum / f64::from(rows)));
        Curve { name: self.name, points: means.collect() }
    }
}

/// The axis's label.
fn label(column: &str, unit: Unit) -> String {
    if unit.is_empty() { column.into() } else { format!("{column}, {unit}") }
}

/// The number in a column, in its unit, 0 for drops of which there were none; none if there is no number.
fn number(line: &Line, column: &str) -> Option<(f64, Unit)> {
    let Some(value) = line.get(column) else {
        return RowTable::has_none(line, column).then_some((0.0, ""));
    };
    match value {
        Value::Number(number) => {
            let number = number.as_f64()?;
            Some(match column {
                _ if is_time(column) => (number / 1e6, "ms"),
                _ if column.ends_with("bit_per_s") => (number / 1e6, "Mbit/s"),
                _ => (number, ""),
            })
        }
        Value::String(text) => quantity(text),
        _ => None,
    }
}

/// Whether a column's numbers are times: by its last part, because objects before it have any name.
fn is_time(column: &str) -> bool {
    column.rsplit('.').next().is_some_and(|counter| counter.contains("_ns"))
}

/// A setting's value as a number.
fn quantity(text: &str) -> Option<(f64, Unit)> {
    if let Ok(number) = text.parse::<f64>() {
        return Some((number, ""));
    }
    let rate = text.parse::<Rate>().ok().filter(|rate| *rate != Rate::UNLIMITED);
    let time = || text.parse::<Nanos>().ok().map(|time| (time.0 as f64 / 1e6, "ms"));
    let size = || text.parse::<Bytes>().ok().map(|size| (size.0 as f64 / 1e3, "kB"));
    let share = || text.parse::<Probability>().ok().map(|share| (share.as_f64() * 100.0, "%"));
    let packets = || {
        let number = text.strip_suffix("packets").or_else(|| text.strip_suffix("packet"))?;
        Some((number.trim().parse::<f64>().ok()?, "packets"))
    };
    let rate = rate.map(|rate| (rate.as_f64() / 1e6, "Mbit/s"));
    rate.or_else(time).or_else(size).or_else(share).or_else(packets)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_numbers_in_their_units() {
        assert_eq!(quantity("1500 kbit/s"), Some((1.5, "Mbit/s")));
        assert_eq!(quantity("5ms"), Some((5.0, "ms")));
        assert_eq!(quantity("64 kB"), Some((64.0, "kB")));
        assert_eq!(quantity("12"), Some((12.0, "")));
        assert_eq!(quantity("20 packets"), Some((20.0, "packets")));
        assert_eq!(quantity("codel"), None);
        assert_eq!(quantity("unlimited"), None);
    }

    #[test]
    fn names_of_objects_are_no_units() {
        let mut line = Line::default();
        line.push("link.lab_ns1.out_packets", 7);
        line.push("source.lab_ns1.delay_ns_p95", 2_000_000);
        assert_eq!(number(&line, "link.lab_ns1.out_packets"), Some((7.0, "")));
        assert_eq!(number(&line, "source.lab_ns1.delay_ns_p95"), Some((2.0, "ms")));
    }

    #[test]
    fn seeds_are_averaged_and_other_axes_kept_apart() {
        let mut sums = Vec::new();
        for (name, point) in [("q=1", (2.0, 4.0)), ("q=2", (1.0, 9.0)), ("q=1", (1.0, 1.0))] {
            add(&mut sums, name.into(), point);
        }
        add(&mut sums, "q=1".into(), (2.0, 8.0));
        let curves: Vec<Curve> = sums.into_iter().map(Sums::means).collect();
        assert_eq!(curves[0], Curve { name: "q=1".into(), points: vec![(1.0, 1.0), (2.0, 6.0)] });
        assert_eq!(curves[1].points, [(1.0, 9.0)]);
    }
}
