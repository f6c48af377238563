//! Numbers and tables for people.

/// Formats a rate with three significant digits or more: `9.87 Mbit/s`.
pub fn rate(bits_per_second: f64) -> String {
    scaled(bits_per_second, &[(1e9, "Gbit/s"), (1e6, "Mbit/s"), (1e3, "kbit/s")], "bit/s")
}

/// Formats a time given in nanoseconds: `20.04 ms`.
pub fn time(nanos: f64) -> String {
    scaled(nanos, &[(1e9, "s"), (1e6, "ms"), (1e3, "µs")], "ns")
}

/// A size: `1.50 MB`.
pub fn bytes(bytes: f64) -> String {
    scaled(bytes, &[(1e9, "GB"), (1e6, "MB"), (1e3, "kB")], "B")
}

/// Formats a count with separated thousands: `1 234 567`.
pub fn count(count: u64) -> String {
    let digits = count.to_string();
    let mut text = String::with_capacity(digits.len() * 4 / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push('\u{a0}');
        }
        text.push(digit);
    }
    text
}

fn scaled(value: f64, units: &[(f64, &str)], smallest: &str) -> String {
    match units.iter().find(|(size, _)| value.abs() >= *size) {
        Some((size, unit)) => {
            let scaled = value / size;
            let digits = if scaled >= 100.0 { 1 } else { 2 };
            format!("{scaled:.digits$} {unit}")
        }
        None => format!("{value:.0} {smallest}"),
    }
}

/// Aligns lines of cells in columns: the first and the last column to the left, those between to the right.
/// The first line is the header.
pub fn columns(lines: &[Vec<String>]) -> Vec<String> {
    let count = lines.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        lines.iter().filter_map(|line| line.get(column)).map(|cell| cell.chars().count()).max()
    };
    let widths: Vec<_> = (0..count).map(|column| width(column).unwrap_or(0)).collect();
    let line = |cells: &Vec<String>| {
        let cells = cells.iter().enumerate().map(|(column, cell)| {
            let width = widths[column];
            if column == 0 || column + 1 == count {
                format!("{cell:<width$}")
            } else {
                format!("{cell:>width$}")
            }
        });
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    lines.iter().map(line).collect()
}

/// A line of cells.
#[macro_export]
macro_rules! cells {
    ($($cell:expr),+ $(,)?) => { vec![$(String::from($cell)),+] };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scales() {
        assert_eq!(rate(0.0), "0 bit/s");
        assert_eq!(rate(9_876_543.0), "9.88 Mbit/s");
        assert_eq!(rate(250e9), "250.0 Gbit/s");
        assert_eq!(time(20_040_000.0), "20.04 ms");
        assert_eq!(time(999.0), "999 ns");
        assert_eq!(bytes(1_500_000.0), "1.50 MB");
        assert_eq!(count(7), "7");
        assert_eq!(count(1_234_567), "1\u{a0}234\u{a0}567");
    }

    #[test]
    fn aligns() {
        let lines = columns(&[cells!["link", "in", "why"], cells!["a", "1000", "x"], cells!["bc", "2", ""]]);
        assert_eq!(lines, ["link    in  why", "a     1000  x", "bc       2"]);
    }
}
