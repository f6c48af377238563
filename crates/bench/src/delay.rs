//! Errors of one-way delays between two hosts on real ports.

use crate::world::{BenchHosts, Driver, with_each_driver, with_losses};
use crate::{BenchError, Sample, Settings, stop_after};
use longwire_engine::Report;
use longwire_lab::traffic::udp::{SendingRate, UdpResult, UdpStream, send};
use longwire_lab::traffic::{Distribution, Layer, until};
use longwire_report::Row;
use std::time::Duration;

/// Configured delays in ms; 0 shows the path through hosts and ports alone.
const DELAYS: [u64; 4] = [0, 5, 30, 101];
/// Frame lengths with FCS.
const SIZES: [usize; 2] = [64, 1400];
/// Ethernet header and FCS, IPv4 header, UDP header.
const HEADERS: usize = 18 + 20 + 8;
const PER_SECOND: u64 = 1000;
/// Limits of the mean error and of the 99th percentile, in ns.
const MEAN: f64 = 12e3;
const P99: f64 = 40e3;

/// Maximum error of a timestamp, in ns.
const STAMP_ERROR_NS: i64 = 1000;

/// The rows of this bench.
pub fn rows(settings: &Settings<'_>) -> Result<Vec<Row>, BenchError> {
    with_each_driver("delay", |driver| of_driver(settings, driver))
}

fn of_driver(settings: &Settings<'_>, driver: Driver) -> Result<Vec<Row>, BenchError> {
    let world = BenchHosts::new(driver, true)?;
    let mut rows = Vec::new();
    for delay in DELAYS {
        for size in SIZES {
            let name = format!("delay: {}, {delay} ms, {size} bytes", driver.name());
            let (mut errors, mut lost, mut reports) = (Vec::new(), 0, Vec::new());
            for _ in 0..settings.runs(3) {
                settings.next(&name)?;
                let (result, report) = measure(settings, &world, delay, size)?;
                let nominal = delay as i64 * 1_000_000;
                errors.extend(result.reception.delay.map(|delay| delay.less(nominal)));
                lost += result.reception.lost;
                reports.push(report);
            }
            rows.extend(judge(&name, delay, &errors, (lost, &reports)));
        }
    }
    Ok(rows)
}

/// The rows of all runs: their errors, the packets lost in them, and the engine's reports.
fn judge(name: &str, delay: u64, errors: &[Distribution], (lost, reports): (u64, &[Report])) -> Vec<Row> {
    let means: Sample = errors.iter().map(|error| error.mean_ns).collect();
    let tails: Sample = errors.iter().map(|error| error.p99_ns as f64).collect();
    let (mean, tail) = (format!("{name}: mean error"), format!("{name}: p99 error"));
    if errors.is_empty() {
        return vec![Row::new(name, "ns").judged(false).note("no one-way delays were measured")];
    }
    let (mean, tail) = if delay == 0 {
        (means.shown(&mean, "ns").note("what hosts and ports take, for comparison"), tails.shown(&tail, "ns"))
    } else {
        (means.at_most(&mean, "ns", MEAN), tails.at_most(&tail, "ns", P99))
    };
    // Leaving early is an error too. Converting the kernel's stamps to the sender's clock has an error of its
    // own.
    let earliest = errors.iter().map(|error| error.min_ns).min().unwrap_or(0);
    let mean = mean.extra("min_ns", earliest).extra("max_ns", errors.iter().map(|error| error.max_ns).max());
    let mean = if delay > 0 && earliest < -STAMP_ERROR_NS {
        mean.judged(false).note(format!("a packet arrived {} ns before its time", -earliest))
    } else {
        mean
    };
    let mean = if lost > 0 { mean.note(format!("{lost} packets were lost")) } else { mean };
    vec![reports.iter().fold(mean.extra("packets_per_second", PER_SECOND), with_losses), tail]
}

fn measure(
    settings: &Settings<'_>,
    world: &BenchHosts,
    delay: u64,
    size: usize,
) -> Result<(UdpResult, Report), BenchError> {
    let run = world.start(&format!("delay = \"{delay} ms\"\nloss = \"0 %\""))?;
    let stream = UdpStream {
        layer: Layer::Ethernet,
        payload: size - HEADERS,
        quiet_ns: 300_000_000,
        ..UdpStream::new(SendingRate::PacketsPerSecond(PER_SECOND), settings.time(Duration::from_secs(5)))
    };
    stop_after(run, world.with_receiver(|receiver| send(receiver, &stream, &mut until(settings.stop))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn losses_of_every_run_are_told() {
        use longwire_engine::{OwnLosses, RemovedPorts};
        let [least, p99] = [5_000, 6_000];
        let error = Distribution {
            count: 100,
            min_ns: least,
            mean_ns: 5.1e3,
            deviation_ns: 50.0,
            p50_ns: least,
            p90_ns: least,
            p99_ns: p99,
            p999_ns: p99,
            max_ns: p99,
        };
        let losses = OwnLosses { port: 3, ..OwnLosses::default() };
        let lossy =
            Report { removed_ports: RemovedPorts { losses, ..RemovedPorts::default() }, ..Report::default() };
        let rows = judge("delay", 5, &[error], (3, &[lossy, Report::default()]));
        let notes = rows[0].notes.join("; ");
        assert!(notes.contains("3 packets were lost") && notes.contains("3 by ports"), "{notes}");
        assert_eq!(rows[0].pass, Some(true), "{notes}");
    }
}
