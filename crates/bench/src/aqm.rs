//! Active queue management with real TCP: bulk connections share a bottleneck with pings, as in the first
//! scenarios of RFC 7928: TCP-friendly senders (section 5.1), delay and goodput judged together (section 2),
//! without and with ECN.

use crate::tcp::available_congestion_control;
use crate::world::{BenchHosts, Driver, require_hosts, with_losses};
use crate::{BenchError, Sample, Settings, joined, stop_after};
use longwire_engine::Report;
use longwire_lab::traffic::bulk::{Bulk, BulkResult, send};
use longwire_lab::traffic::ping::{Ping, ping_each};
use longwire_lab::traffic::{self, DEFAULT_PORT, Receiver, Server, StopAfter, until};
use longwire_report::Row;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Duration of the connections; shorter in quick mode.
const TIME: Duration = Duration::from_secs(20);
/// The bottleneck's rate in bit/s at the IP layer, and the round-trip time with an empty queue.
const RATE: f64 = 10e6;
const ROUND_TRIP_NS: i64 = 20_000_000;
/// Bytes of a full packet at the IP layer, and of its TCP payload with timestamps.
const PACKET: f64 = 1500.0;
const PAYLOAD: f64 = 1448.0;
/// Required utilization in percent.
const USED: f64 = 80.0;
/// Required delay with tail drop in ns: with less, the disciplines had nothing to do.
const STANDING: f64 = 100e6;
/// Required share of marks among all congestion signals with ECN, in percent.
const MARKS: f64 = 50.0;
/// Required fairness of two connections: Jain's index.
const EVEN: f64 = 0.9;

/// A queue to test.
struct Trial {
    name: &'static str,
    /// The parameters of the link's queue.
    queue: &'static str,
    /// Number of parallel connections.
    flows: u16,
    /// Whether TCP and the queue use ECN.
    ecn: bool,
    /// Limit for the mean wait of pings in ns; none for tail drop, where they must wait.
    most: Option<f64>,
}

/// Limits are a few times the disciplines' targets, because CUBIC's sawtooth grows with the path's length.
const TRIALS: [Trial; 9] = [
    trial("tail-drop", "kind = \"tail-drop\"", 1, None),
    trial("red", RED, 1, Some(30e6)),
    trial("codel", "kind = \"codel\"", 1, Some(25e6)),
    trial("pie", "kind = \"pie\"", 1, Some(45e6)),
    trial("fq-codel, two connections", FQ_CODEL, 2, Some(5e6)),
    Trial { ecn: true, ..trial("red, ECN", RED, 1, Some(30e6)) },
    Trial { ecn: true, ..trial("codel, ECN", "kind = \"codel\"", 1, Some(25e6)) },
    Trial { ecn: true, ..trial("pie, ECN", "kind = \"pie\"", 1, Some(45e6)) },
    Trial { ecn: true, ..trial("fq-codel, two connections, ECN", FQ_CODEL, 2, Some(5e6)) },
];

const RED: &str = "kind = \"red\", min = 10, max = 30";
const FQ_CODEL: &str = "kind = \"fq-codel\"";

/// A trial without ECN.
const fn trial(name: &'static str, queue: &'static str, flows: u16, most: Option<f64>) -> Trial {
    Trial { name, queue, flows, ecn: false, most }
}

/// The rows of this bench.
pub fn rows(settings: &Settings<'_>) -> Result<Vec<Row>, BenchError> {
    require_hosts("aqm")?;
    let congestion = congestion()?;
    let mut rows = Vec::new();
    // Three at once: their rates leave the machine nearly idle, and the delays are a thousand times its own.
    for trials in TRIALS.chunks(3) {
        let names: Vec<_> = trials.iter().map(|trial| trial.name).collect();
        settings.next(&format!("aqm: {}", names.join("; ")))?;
        let measured: Vec<_> = std::thread::scope(|scope| {
            let start = |trial| scope.spawn(move || measure(settings, trial, congestion));
            let running: Vec<_> = trials.iter().map(start).collect();
            running.into_iter().map(joined).collect()
        });
        for (trial, results) in trials.iter().zip(measured) {
            let name = format!("aqm: {}", trial.name);
            match results {
                Ok(results) => rows.extend(judge(&name, trial, congestion, &results)),
                Err(BenchError::Stopped) => return Err(BenchError::Stopped),
                Err(error) => rows.push(Settings::could_not(&name, &error)),
            }
        }
    }
    Ok(rows)
}

/// A loss-based congestion control, CUBIC or Reno. BBR, the default of some systems, is not.
fn congestion() -> Result<&'static str, BenchError> {
    available_congestion_control(&["cubic", "reno"])
        .ok_or_else(|| BenchError::not_here("aqm needs TCP with CUBIC or Reno: modprobe tcp_cubic"))
}

/// The results of a trial.
struct Results {
    transfers: Vec<BulkResult>,
    /// Waiting times of pings beyond the path's own round trip, in ns.
    waits: Sample,
    report: Report,
}

/// A bottleneck from `a` to `b`, delay both ways, and fresh hosts, so that TCP has no metrics of earlier
/// trials.
fn measure(settings: &Settings<'_>, trial: &Trial, congestion: &str) -> Result<Results, BenchError> {
    let world = BenchHosts::new(Driver::Tap, true)?;
    for host in world.hosts() {
        let value = if trial.ecn { "1" } else { "0" };
        host.run(|| std::fs::write("/proc/sys/net/ipv4/tcp_ecn", value))?
            .map_err(BenchError::system("setting tcp_ecn"))?;
    }
    let run = world.start_scenario(&scenario(trial))?;
    let traffic = traffic(settings, trial, congestion, &world);
    let ((transfers, waits), report) = stop_after(run, traffic)?;
    Ok(Results { transfers, waits, report })
}

fn scenario(trial: &Trial) -> String {
    let (queue, ecn) = (trial.queue, if trial.ecn { "yes" } else { "no" });
    let ecn = if trial.most.is_some() { format!(", ecn = \"{ecn}\"") } else { String::new() };
    let host = |name, address| {
        format!("[[host]]\nname = \"{name}\"\naddress = \"{address}/24\"\ndriver = \"tap\"\n")
    };
    "[engine]\nwait = \"sleep\"\n".to_owned()
        + &host("a", "10.0.0.1")
        + &host("b", "10.0.0.2")
        + "[[link]]\nname = \"go\"\nfrom = \"a\"\nto = \"b\"\nrate = \"10 Mbit/s\"\nframing = \"ip\"\n\
            delay = \"10 ms\"\n"
        + &format!("queue = {{ {queue}, limit = \"1000 packets\"{ecn} }}\n")
        + "[[link]]\nname = \"back\"\nfrom = \"b\"\nto = \"a\"\ndelay = \"10 ms\"\n"
}

/// Connections and pings from `a` to `b` in parallel.
fn traffic(
    settings: &Settings<'_>,
    trial: &Trial,
    congestion: &str,
    world: &BenchHosts,
) -> Result<(Vec<BulkResult>, Sample), BenchError> {
    let (a, b) = (world.host("a")?, world.host("b")?);
    let bulk = Bulk {
        congestion: Some(congestion.to_owned()),
        ..Bulk::new(StopAfter::duration(settings.time(TIME)))
    };
    let stop = AtomicBool::new(false);
    let addresses = (0..trial.flows).map(|flow| SocketAddr::from(([10, 0, 0, 2], DEFAULT_PORT + flow)));
    let servers: Result<Vec<_>, _> =
        b.run(|| addresses.map(|address| Ok((address, Server::bind(address)?))).collect())?;
    let servers: Vec<(SocketAddr, Server)> = servers.map_err(|error: traffic::Error| error)?;
    std::thread::scope(|scope| {
        for (_, server) in &servers {
            let stop = &stop;
            // A failed session is reported to its sender, whose error is returned.
            scope.spawn(move || b.run(|| server.serve(stop, &mut |_| ())));
        }
        let senders: Vec<_> = servers
            .iter()
            .map(|(address, _)| {
                let (receiver, bulk) = (Receiver::at(*address), &bulk);
                scope.spawn(move || a.run(|| send(&receiver, bulk, &mut until(settings.stop))))
            })
            .collect();
        let waits = pings(settings, world);
        let transfers: Vec<_> = senders.into_iter().map(joined).collect();
        stop.store(true, Ordering::Relaxed);
        let transfers: Result<Vec<BulkResult>, BenchError> =
            transfers.into_iter().map(|transfer| Ok(transfer??)).collect();
        Ok((transfers?, waits?))
    })
}

/// Waiting times of pings during the last three quarters of the transfers, after slow start.
fn pings(settings: &Settings<'_>, world: &BenchHosts) -> Result<Sample, BenchError> {
    const INTERVAL: Duration = Duration::from_millis(10);
    let time = settings.time(TIME);
    settings.pause(time / 4)?;
    let count = (time * 3 / 4).as_millis() / INTERVAL.as_millis();
    let ping = Ping { interval_ns: 10_000_000, ..Ping::new([10, 0, 0, 2].into(), count as u32) };
    let mut waits = Vec::new();
    let mut each = |round_trip: i64| waits.push((round_trip - ROUND_TRIP_NS) as f64);
    world.host("a")?.run(|| ping_each(&ping, &mut until(settings.stop), &mut each))??;
    Ok(waits.into_iter().collect())
}

fn judge(name: &str, trial: &Trial, congestion: &str, results: &Results) -> Vec<Row> {
    let stats = results.report.links.first().map(|link| link.stats.clone()).unwrap_or_default();
    let (drops, marks) = (stats.dropped(), stats.marked_packets);
    let goodputs: Vec<f64> = results
        .transfers
        .iter()
        .map(|transfer| transfer.reception.goodput_bits_per_second.unwrap_or(0.0))
        .collect();
    let used = goodputs.iter().sum::<f64>() * PACKET / PAYLOAD / RATE * 100.0;
    let named = |ending: &str, unit: &str| Row::new(format!("{name}, {ending}"), unit);
    let waits = named("pings wait in the mean", "ns").measured(results.waits.mean()).note(congestion);
    let waits = match trial.most {
        Some(most) => waits.expected(most).at_most(),
        None => waits.expected(STANDING).at_least(),
    };
    // A mean of nothing is 0, which no limit exceeds.
    let waits = match results.waits.values() {
        [] => waits.judged(false).note("no ping came back"),
        _ => waits,
    };
    let round_trips = results.transfers.iter().filter_map(|transfer| transfer.rtt);
    let own: Vec<f64> = round_trips.map(|rtt| rtt.mean_ns - ROUND_TRIP_NS as f64).collect();
    let mut rows = vec![
        with_losses(waits, &results.report),
        named("95 % of pings wait at most", "ns").measured(results.waits.quantile(0.95)),
        named("TCP's own packets wait in the mean", "ns")
            .measured(own.iter().sum::<f64>() / own.len().max(1) as f64)
            .extra("connections", own),
        named("rate in use", "%").expected(USED).measured(used).at_least(),
        named("dropped", "packets").measured(drops),
        named("marked", "packets").measured(marks),
    ];
    if trial.ecn {
        let share = marks as f64 * 100.0 / (marks + drops).max(1) as f64;
        rows.push(named("marks among marks and drops", "%").expected(MARKS).measured(share).at_least());
    }
    if goodputs.len() > 1 {
        rows.push(
            named("Jain's index of the connections", "").expected(EVEN).measured(jain(&goodputs)).at_least(),
        );
    }
    rows
}

/// Jain's index, (Σ x)² / (n Σ x²): 1 if all have the same, 1/n if one has everything (Jain, Chiu & Hawe
/// 1984).
fn jain(shares: &[f64]) -> f64 {
    let squares: f64 = shares.iter().map(|share| share * share).sum();
    let sum: f64 = shares.iter().sum();
    if squares == 0.0 { 0.0 } else { sum * sum / (squares * shares.len() as f64) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn even_shares_and_uneven_ones() {
        assert_eq!(jain(&[5.0, 5.0]), 1.0);
        assert_eq!(jain(&[5.0, 0.0]), 0.5);
        // (1 + 3)² / (2 · (1 + 9)).
        assert_eq!(jain(&[1.0, 3.0]), 0.8);
        assert_eq!(jain(&[0.0, 0.0]), 0.0);
    }

    #[test]
    fn lost_pings_have_not_waited_for_less_than_allowed() {
        let trial = TRIALS.iter().find(|trial| trial.name == "codel").unwrap();
        let judged = |waits: &[f64]| {
            let waits = waits.iter().copied().collect();
            let results = Results { transfers: Vec::new(), waits, report: Report::default() };
            judge("aqm", trial, "cubic", &results)[0].pass
        };
        assert_eq!((judged(&[]), judged(&[1e6, 2e6])), (Some(false), Some(true)));
    }

    #[test]
    fn every_trial_is_a_scenario() {
        for trial in &TRIALS {
            longwire_scenario::plan_of(&scenario(trial));
        }
    }
}
