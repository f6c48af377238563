//! The report as a table for people.

use crate::shown::columns;
use crate::{Report, Row, Scalar};
use serde::Deserialize as _;
use std::io::{self, Write};
use std::iter::once;

const HEAD: [&str; 5] = ["", "configured", "measured", "error", ""];

impl Report {
    /// Writes the rows as an aligned table with a line about the machine above it and the notes below it.
    /// Units are scaled (`10 Mbit/s`, `20 ms`); the JSON keeps the plain ones.
    pub fn print_table(&self, out: &mut dyn Write) -> io::Result<()> {
        self.print_rows(out, &HEAD, cells)
    }

    /// Writes the heading and an aligned table with the headings `head`: the cells of each row, and its notes
    /// below them.
    ///
    /// # Errors
    /// If `out` can't be written.
    pub fn print_rows(
        &self,
        out: &mut dyn Write,
        head: &[&str],
        cells: impl Fn(&Row) -> Vec<String>,
    ) -> io::Result<()> {
        writeln!(out, "{}", self.heading())?;
        let head: Vec<_> = head.iter().map(|&name| name.to_owned()).collect();
        let lines: Vec<_> = once(head).chain(self.rows.iter().map(cells)).collect();
        let none: &[String] = &[];
        let notes = once(none).chain(self.rows.iter().map(|row| row.notes.as_slice()));
        for (line, notes) in columns(&lines).iter().zip(notes) {
            writeln!(out, "{line}")?;
            notes.iter().try_for_each(|note| writeln!(out, "    {note}"))?;
        }
        Ok(())
    }

    /// The line above a table: version, command and machine.
    fn heading(&self) -> String {
        let (machine, memory) = (&self.machine, in_unit(self.machine.memory_bytes as f64, "bytes"));
        format!(
            "longwire {} {} on {}, {} cores, {memory}, Linux {}",
            self.version, self.command, machine.cpu_model, machine.cores, machine.kernel
        )
    }
}

fn cells(row: &Row) -> Vec<String> {
    let value = |value: &Option<Scalar>| {
        value.as_ref().map_or_else(|| "-".to_owned(), |value| value.in_unit(&row.unit))
    };
    let error = row.error_percent.map(|percent| format!("{percent:+.2} %")).unwrap_or_default();
    let pass = match row.pass {
        Some(true) => "ok",
        Some(false) => "FAIL",
        None => "",
    };
    vec![row.name.clone(), value(&row.expected), value(&row.measured), error, pass.to_owned()]
}

impl Scalar {
    /// For people: a number as [`in_unit`] writes it, a text as it is.
    pub fn in_unit(&self, unit: &str) -> String {
        self.as_f64().map_or_else(|| self.to_string(), |number| in_unit(number, unit))
    }
}

impl Row {
    /// An extra field with a value in the row's unit, for people; empty if there is none.
    pub fn extra_in_unit(&self, name: &str) -> String {
        let value = self.extra.get(name).and_then(|value| Scalar::deserialize(value).ok());
        value.map_or_else(String::new, |value| value.in_unit(&self.unit))
    }
}

/// A number with its unit, scaled where that is usual: `10 Mbit/s`.
pub fn in_unit(value: f64, unit: &str) -> String {
    const TIMES: [(f64, &str); 4] = [(1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1.0, "ns")];
    const BITS: [(f64, &str); 4] = [(1e9, "Gbit/s"), (1e6, "Mbit/s"), (1e3, "kbit/s"), (1.0, "bit/s")];
    const BYTES: [(f64, &str); 4] = [(1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1.0, "bytes")];
    const PACKETS: [(f64, &str); 3] = [(1e6, "Mpps"), (1e3, "kpps"), (1.0, "pps")];
    let (value, scales): (f64, &[(f64, &str)]) = match unit {
        "s" => (value * 1e9, &TIMES),
        "ms" => (value * 1e6, &TIMES),
        "µs" | "us" => (value * 1e3, &TIMES),
        "ns" => (value, &TIMES),
        "bit/s" => (value, &BITS),
        "bytes" => (value, &BYTES),
        "pps" | "packets/s" => (value, &PACKETS),
        _ => return format!("{} {unit}", rounded(value)).trim_end().to_owned(),
    };
    let fits = |scale: &&(f64, &str)| value.abs() >= scale.0;
    let (scale, name) = scales.iter().find(fits).or(scales.last()).copied().unwrap_or((1.0, unit));
    format!("{} {name}", rounded(value / scale))
}

/// At most three decimals, without trailing zeros.
fn rounded(value: f64) -> String {
    let text = format!("{value:.3}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" { "0".to_owned() } else { text.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Machine;

    #[test]
    fn units_are_scaled() {
        let table = [
            (10e6, "bit/s", "10 Mbit/s"),
            (999.0, "bit/s", "999 bit/s"),
            (20_012_345.0, "ns", "20.012 ms"),
            (0.0205, "s", "20.5 ms"),
            (1500.0, "µs", "1.5 ms"),
            (0.0, "ns", "0 ns"),
            (-2500.0, "ns", "-2.5 µs"),
            (0.25, "ns", "0.25 ns"),
            (1514.0, "bytes", "1.514 kB"),
            (2.0, "%", "2 %"),
            (2000.0, "packets", "2000 packets"),
            (1.25e6, "pps", "1.25 Mpps"),
            (3.0, "", "3"),
        ];
        for (value, unit, text) in table {
            assert_eq!(in_unit(value, unit), text);
        }
    }

    #[test]
    fn columns_are_aligned() {
        let mut report = Report::new("demo");
        report.machine = Machine {
            cpu_model: "Some CPU".into(),
            cores: 2,
            memory_bytes: 8_000_000_000,
            kernel: "6.1.0".into(),
        };
        report.version = "1.2.3".into();
        report.push(
            Row::new("bandwidth", "bit/s").expected(10_000_000).measured(9_990_000).within_percent(1.0),
        );
        report.push(
            Row::new("délai", "ns")
                .expected(20_000_000)
                .measured(25_000_000)
                .within_percent(1.0)
                .note("late by a queue"),
        );
        report.push(Row::new("driver", "").measured("tap"));
        let mut out = Vec::new();
        report.print_table(&mut out).unwrap();
        let expected = "\
longwire 1.2.3 demo on Some CPU, 2 cores, 8 GB, Linux 6.1.0
           configured     measured     error
bandwidth   10 Mbit/s  9.99 Mbit/s   -0.10 %  ok
délai           20 ms        25 ms  +25.00 %  FAIL
    late by a queue
driver              -          tap
";
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }
}
