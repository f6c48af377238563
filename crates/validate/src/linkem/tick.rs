//! The thesis' emulator acts at ticks of 8192 Hz. Longwire has no tick: a histogram of lateness.

use crate::book::{Book, paper};
use crate::experiment::links;
use crate::memory::Load;
use crate::plot::{Plot, Style};
use longwire_report::Row;
use longwire_units::Histogram;
use std::time::Duration;

/// A tick of 8192 Hz, in ns.
const TICK: u64 = 1_000_000_000 / 8192;
/// 50 links for each of two ports, and together 100 000 packets of 64 bytes a second.
const LINKS: u32 = 50;
const RATE: u64 = 50_000 * 64 * 8;

pub(super) fn rows(book: &mut Book<'_>) {
    let settings = book.settings;
    let mut histogram = None;
    let row = paper(
        Row::new("tick: lateness inside the engine, p99 (LinkEM acts at ticks of 8192 Hz)", "ns"),
        "a period of 122 µs, and no lateness",
    );
    book.row(row, |row| {
        settings.require_real_time("lateness")?;
        let keys = "rate = \"1 Gbit/s\"\ndelay = \"10 ms\"\nloss = \"0 %\"";
        let text = links(0, LINKS, keys) + &links(1, LINKS, keys);
        let load = Load { ports: 2, links_a_port: LINKS, frame_bytes: 60, links: text, rate: Some(RATE) };
        let late = load.lateness(settings, Duration::from_millis(settings.choose(3000, 300)))?;
        let row = described(row, &late);
        histogram = Some(late);
        Ok(row)
    });
    let Some(late) = histogram else { return };
    let shares = (1..1000).map(|n| f64::from(n) / 1000.0).chain([0.9995, 0.9999, 1.0]);
    let points = shares.map(|share| (late.quantile(share).0.max(1) as f64, share)).collect();
    let tick = vec![(1.0, 0.0), (TICK as f64, 1.0)];
    book.plot(
        Plot::new("Lateness inside the engine, 100 kpps on 100 links", "late by, ns", "share of packets")
            .log_x()
            .with("Longwire", Style::Steps, points)
            .with("a tick of 8192 Hz (0 to 122 µs)", Style::Reference, tick),
    );
}

fn described(row: Row, late: &Histogram) -> Row {
    let quantile = |share| late.quantile(share).0;
    let [p50, p99, p999] = [0.5, 0.99, 0.999].map(quantile);
    row.measured(p99)
        .extra("p50_ns", p50)
        .extra("p999_ns", p999)
        .extra("max_ns", late.max().0)
        .extra("packets", late.total())
        .note(format!(
            "p50 {p50} ns, p99 {p99} ns, p99.9 {p999} ns, max {} ns of {} packets at 100 kpps on 100 links, \
             the machine's pauses included",
            late.max().0,
            late.total()
        ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use longwire_units::Nanos;

    #[test]
    fn the_row_has_the_histograms_quantiles() {
        let mut late = Histogram::default();
        (0..100).for_each(|n| late.record(Nanos(if n < 98 { 8 } else { 15 })));
        let row = described(Row::new("x", "ns"), &late);
        assert_eq!((row.measured, row.extra["p50_ns"].as_u64()), (Some(15.into()), Some(8)));
    }
}
