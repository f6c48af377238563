//! Errors of bandwidth between two hosts on real ports, at the link layer: bits of all arrivals but the first
//! over the time from first to last arrival.

use crate::world::{BenchHosts, Driver, with_each_driver, with_losses};
use crate::{BenchError, Sample, Settings, stop_after};
use longwire_lab::traffic::udp::{SendingRate, UdpStream, send};
use longwire_lab::traffic::{Layer, until};
use longwire_report::Row;
use std::time::Duration;

/// Configured rates in bit/s, and the payload of the packets that fill them.
const LINKS: [(u64, usize); 5] =
    [(64_000, 200), (1_000_000, 1000), (10_000_000, 1472), (100_000_000, 1472), (1_000_000_000, 1472)];
/// Tolerance in percent.
const WITHIN: f64 = 0.1;

/// The rows of this bench.
pub fn rows(settings: &Settings<'_>) -> Result<Vec<Row>, BenchError> {
    with_each_driver("rate", |driver| of_driver(settings, driver))
}

fn of_driver(settings: &Settings<'_>, driver: Driver) -> Result<Vec<Row>, BenchError> {
    let world = BenchHosts::new(driver, true)?;
    let mut rows = Vec::new();
    for (rate, payload) in LINKS {
        let name = format!("rate: {}, {}", driver.name(), longwire_units::Rate(rate));
        let mut rates = Vec::new();
        let mut row = Row::new(name.clone(), "bit/s").expected(rate);
        for _ in 0..settings.runs(1) {
            settings.next(&name)?;
            let (measured, noted) = measure(settings, &world, rate, payload, row)?;
            (row, rates) = (noted, [rates, vec![measured]].concat());
        }
        rows.push(judge(row, rate, &rates.into_iter().collect()));
    }
    Ok(rows)
}

/// The row of the run with the largest error: the best run would prove nothing.
fn judge(row: Row, rate: u64, rates: &Sample) -> Row {
    let off = |measured: f64| (measured - rate as f64).abs();
    let [least, most] = [rates.least(), rates.most()];
    let worst = if off(least) > off(most) { least } else { most };
    row.measured(worst)
        .within_percent(WITHIN)
        .extra("median", rates.median())
        .extra("least", least)
        .extra("most", most)
}

/// Offers a tenth more than the link's rate, and measures arrivals.
fn measure(
    settings: &Settings<'_>,
    world: &BenchHosts,
    rate: u64,
    payload: usize,
    row: Row,
) -> Result<(f64, Row), BenchError> {
    let run = world.start(&format!("rate = \"{rate} bit/s\"\nloss = \"0 %\"\nqueue = \"200 ms\""))?;
    let stream = UdpStream {
        layer: Layer::Ethernet,
        payload,
        ..UdpStream::new(SendingRate::BitsPerSecond(rate / 10 * 11), settings.time(Duration::from_secs(10)))
    };
    let result = world.with_receiver(|receiver| send(receiver, &stream, &mut until(settings.stop)));
    let (result, report) = stop_after(run, result)?;
    let reception = result.reception;
    let in_link: u64 = report.links.iter().map(|link| link.stats.dropped()).sum();
    let elsewhere = reception.lost.saturating_sub(in_link);
    let row = with_losses(row, &report).extra("packets", reception.received);
    let row = if elsewhere > 0 {
        row.note(format!(
            "{elsewhere} packets were lost outside the link: the hosts are too slow for this rate"
        ))
    } else {
        row
    };
    Ok((reception.rate_bits_per_second.unwrap_or(0.0), row))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_run_is_judged() {
        let row = || Row::new("x", "bit/s").expected(1000);
        assert_eq!(judge(row(), 1000, &[1000.0, 1000.5].into_iter().collect()).pass, Some(true));
        let off = judge(row(), 1000, &[998.0, 1000.5].into_iter().collect());
        assert_eq!((off.pass, off.measured.and_then(|v| v.as_f64())), (Some(false), Some(998.0)));
    }
}
