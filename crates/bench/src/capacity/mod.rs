//! Processor time of scenarios as predicted by `longwire check` from this machine's prices, and as measured.

pub(crate) mod drive;
mod drivers;
mod measure;

use crate::{BenchError, Sample, Settings};
use drive::{Course, links, links_of_two, ports};
use longwire_assemble::predict;
use longwire_prices::EnginePrices;
use longwire_report::Row;
use longwire_units::Bytes;
use std::time::Duration;

/// Tolerance of a prediction in percent of the measured value.
const TOLERANCE: f64 = 25.0;
/// Packet rate for which loads are reported.
const TOLD_AT: f64 = 1e6;

/// A driver that was not measured, and the reason.
pub type Skipped = (&'static str, String);

/// The prices of the engine and its port drivers on this machine, and the drivers that were not measured.
///
/// # Errors
/// If the bench is stopped, or memory is lacking.
pub fn prices(settings: &Settings<'_>) -> Result<(EnginePrices, Vec<Skipped>), BenchError> {
    let (mut prices, _) = measure::engine(settings, &[])?;
    let skipped = drivers::measure(settings, &mut prices)?;
    Ok((prices, skipped))
}

/// Nanoseconds as whole picoseconds, at least 0.
fn picoseconds(ns: f64) -> u64 {
    (ns.max(0.0) * 1e3).round() as u64
}

/// The rows of this bench. Prices and scenarios are measured alternately, under the same conditions.
pub(crate) fn rows(settings: &Settings<'_>) -> Result<Vec<Row>, BenchError> {
    let courses = courses(settings)?;
    let (prices, measured) = measure::engine(settings, &courses)?;
    Ok(courses.iter().zip(&measured).map(|(course, costs)| row(course, &prices, costs)).collect())
}

/// Processor time per packet under full load: predicted and measured.
fn row(course: &Course, prices: &EnginePrices, costs: &Sample) -> Row {
    let capacity = predict(&course.plan, prices, Bytes(course.frame_bytes as u64));
    let limit = capacity.workers.first().map_or(0, |worker| worker.saturated_at);
    let (predicted, measured) = (1e9 / limit.max(1) as f64, costs.median());
    let load = |ns: f64| ns * TOLD_AT / 1e9 * 100.0;
    let tenths = |value: f64| (value * 10.0).round() / 10.0;
    let error = (predicted - measured) / measured.max(0.001) * 100.0;
    Row::new(format!("capacity: {}", course.name), "ns")
        .expected(tenths(predicted))
        .measured(tenths(measured))
        .judged(error.abs() <= TOLERANCE)
        .extra("prediction_error_percent", tenths(error))
        .extra("least", tenths(costs.least()))
        .extra("most", tenths(costs.most()))
        .note(format!(
            "a million packets a second: {:.1} % of a core predicted, {:.1} % measured; the prediction is \
             off by {error:+.0} %",
            load(predicted),
            load(measured)
        ))
}

/// The scenarios: links of many kinds, fast enough for the worker to be the bottleneck.
fn courses(settings: &Settings<'_>) -> Result<Vec<Course>, BenchError> {
    const RATE: &str = "rate = \"100 Gbit/s\"\n";
    let of = |name: &str, text: &str| Course::new(name, &(ports("cpus = [0]\n") + text));
    let many = if settings.quick { 1000 } else { 300_000 };
    let timed = |keys: &str| format!("{RATE}{keys}\n");
    let after =
        |course: Course, milliseconds: u64| Course { delay: Duration::from_millis(milliseconds), ..course };
    let two = format!(
        "[[bridge]]\nname = \"x\"\n[[link]]\nfrom = \"a\"\nto = \"x\"\n{0}delay = \"5 ms\"\n[[link]]\n\
         from = \"x\"\nto = \"b\"\n{0}delay = \"2 ms\"\n",
        RATE
    );
    let filter = "filter = { kind = \"rules\", rules = \"drop if tcp port 80\" }\nmtu = \"1500\"\n";
    let loss = "delay = \"5 ms\"\nloss = { kind = \"gilbert-elliott\", p = \"0.1 %\", r = \"25 %\" }\n";
    let red = "delay = \"2 ms\"\nqueue = { kind = \"red\" }";
    let fair = "delay = \"2 ms\"\nqueue = { kind = \"fq-codel\" }";
    let jitter = "delay = { kind = \"jitter\", delay = \"20 ms\", jitter = \"2 ms\" }";
    let list = [
        (format!("{many} links, 100 Gbit/s and 4 ms"), many, timed("delay = \"4 ms\""), 4),
        ("16 links, 100 Gbit/s and 30 ms".into(), 16, timed("delay = \"30 ms\""), 30),
        ("1 link, no rate, no delay".into(), 1, String::new(), 0),
        ("3000 links, no rate, no delay".into(), 3000, String::new(), 0),
        ("8 links, RED, 100 Gbit/s and 2 ms".into(), 8, timed(red), 2),
        ("50 links, 20 ms with 2 ms of jitter".into(), 50, jitter.into(), 22),
        ("200 links, Gilbert-Elliott loss, 100 Gbit/s and 5 ms".into(), 200, timed(loss), 5),
        ("500 links, a filter and an MTU".into(), 500, filter.into(), 0),
    ];
    let mut courses = Vec::new();
    for (name, count, keys, delay) in list {
        courses.push(after(of(&name, &links(count, &keys))?.shuffled(count), delay));
    }
    let two_flows =
        of("8 links, FQ-CoDel, two flows each, 100 Gbit/s and 2 ms", &links_of_two(8, &timed(fair)))?;
    courses.push(after(two_flows.of_two(8), 2));
    courses.push(after(of("2 hops, 100 Gbit/s, 5 ms and 2 ms", &two)?, 7));
    courses
        .push(Course { to: Some([2, 0, 0, 0, 0, 0xfe]), ..of("a router, minimal IP", &measure::router())? });
    courses.push(Course {
        frame_bytes: drivers::LONG,
        ..of("8 links of 1514-byte frames, 100 Gbit/s", &links(8, RATE))?
    });
    Ok(courses)
}

#[cfg(test)]
mod tests {
    use super::*;
    use longwire_prices::Price;
    use std::sync::atomic::AtomicBool;

    #[test]
    fn what_is_predicted_are_scenarios() {
        let settings = Settings { runs: None, quick: true, say: &|_| (), stop: &AtomicBool::new(false) };
        assert!(courses(&settings).unwrap().len() >= 10);
        assert_eq!((picoseconds(1.2346), picoseconds(-3.0)), (1235, 0));
    }

    /// A packet of 60 bytes: two ports of 10 + 60 · 0.02 ns, 30 ns on the path, a link of 47.6 ns: 100 ns.
    #[test]
    fn a_row_passes_within_a_quarter() {
        let mut prices = EnginePrices::default();
        prices.set("packet", Price::exact(30_000));
        prices.set("link", Price::exact(47_600));
        let course =
            Course::new("one", &(ports("") + "[[link]]\nname = \"l\"\nfrom = \"a\"\nto = \"b\"\n")).unwrap();
        let row = |measured: f64| row(&course, &prices, &[measured].into_iter().collect());
        assert_eq!(
            [79.0, 81.0, 133.0, 134.0].map(|ns| row(ns).pass),
            [Some(false), Some(true), Some(true), Some(false)]
        );
        assert_eq!(row(81.0).expected.and_then(|value| value.as_f64()), Some(100.0));
    }
}
