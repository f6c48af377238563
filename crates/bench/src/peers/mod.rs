//! Other forwarders and emulators on this machine beside Longwire: between identical interfaces, with the
//! same generator and traffic, alternating. Nothing is judged, because there are no targets for other
//! programs.

mod dummynet;
mod fastclick;
mod kernel;
mod longwire;
mod mahimahi;
mod program;
mod rattan;
mod shell;
mod testbed;
mod testpmd;

use crate::world::{Driver, require_hosts, with_losses};
use crate::{BenchError, Sample, Settings, ports};
use longwire_engine::Run;
use longwire_lab::traffic::udp::{SendingRate, UdpResult, UdpStream, send};
use longwire_lab::traffic::{Layer, until};
use longwire_report::Row;
use longwire_units::Rate;
use program::Program;
use std::time::Duration;
use testbed::Testbed;

/// Configured delay.
const DELAY_MS: u64 = 10;
/// Configured rate in bit/s, at the layer at which each peer counts.
const RATE: u64 = 10_000_000;
/// Bytes of full packets: UDP payload, and IP packet.
const PAYLOAD: usize = 1472;
const PACKET: u32 = 1500;
/// Payload of a frame of 64 bytes with FCS.
const SHORT_PAYLOAD: usize = 18;
/// The baseline of packet rates.
const BARE: &str = "bare loop, AF_PACKET";

/// The task of a peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Job {
    /// Forward 64-byte frames at full speed. Emulators keep their queue, set so that it never limits.
    Forward,
    /// Delay packets by [`DELAY_MS`].
    Delay,
    /// Limit packets to [`RATE`].
    Rate,
}

/// A peer's name, and what it can do.
#[derive(Default)]
struct PeerAbilities {
    name: &'static str,
    /// The configured delay of [`Job::Delay`]; none if it can't delay. 0 measures the path through the hosts
    /// alone.
    nominal_delay_ms: Option<u64>,
    /// Bytes that its rate counts beyond the IP packet; none if it can't limit rates.
    rate_overhead: Option<u32>,
}

/// A program or kernel function that carries frames from one interface to another.
trait Peer: Sync {
    fn abilities(&self) -> PeerAbilities;

    /// The installed version, or why there is none and how to get it. May change `bed`, which is discarded.
    fn presence(&self, bed: &Testbed) -> Result<String, String>;

    /// Starts it between the interfaces of `bed`.
    fn start(&self, bed: &Testbed, job: Job) -> Result<Carrier, BenchError>;
}

/// A running peer.
enum Carrier {
    /// Kernel functions, until the namespace is removed.
    Kernel,
    /// A process.
    Program(Program),
    /// Longwire's engine.
    Engine(Box<Run>),
}

impl Carrier {
    /// Stops it. Returns a note about the run, if any.
    fn stop(self) -> Result<Option<String>, BenchError> {
        match self {
            Self::Kernel => Ok(None),
            Self::Program(mut program) => program.check().map(|()| None),
            Self::Engine(run) => {
                let report = run.stop();
                if !report.is_conserved() {
                    let reason = "packets are missing from its counters".to_owned();
                    return Err(BenchError::Tool { command: "Longwire".into(), reason });
                }
                Ok(with_losses(Row::new("", ""), &report).notes.pop())
            }
        }
    }
}

/// All peers, in the order of their rows.
fn all() -> Vec<Box<dyn Peer>> {
    vec![
        Box::new(longwire::Longwire(Driver::AfPacket)),
        Box::new(longwire::Longwire(Driver::AfXdp)),
        Box::new(kernel::Bridge),
        Box::new(kernel::Routing),
        Box::new(kernel::TBF),
        Box::new(kernel::HTB),
        Box::new(kernel::NETEM),
        Box::new(dummynet::Dummynet),
        Box::new(mahimahi::Mahimahi),
        Box::new(rattan::Rattan),
        Box::new(testpmd::AF_PACKET),
        Box::new(testpmd::AF_XDP),
        Box::new(fastclick::FastClick),
    ]
}

/// A peer with its results.
struct Entry {
    peer: Box<dyn Peer>,
    /// The installed version, or the reason for its absence.
    presence: Result<String, String>,
    forward: Results,
    delay: Results,
    rate: Results,
}

/// Results of one job.
#[derive(Default)]
struct Results {
    values: Vec<f64>,
    notes: Vec<String>,
    failed: Option<BenchError>,
}

impl Results {
    fn add(&mut self, measured: Result<(f64, Option<String>), BenchError>) -> Result<(), BenchError> {
        match measured {
            Ok((value, note)) => {
                self.values.push(value);
                self.notes.extend(note);
            }
            Err(BenchError::Stopped) => return Err(BenchError::Stopped),
            Err(error) => self.failed = Some(error),
        }
        Ok(())
    }

    fn sample(&self) -> Sample {
        self.values.iter().copied().collect()
    }

    fn noted(&self, row: Row) -> Row {
        self.notes.last().map_or(row.clone(), |note| row.note(note.clone()))
    }
}

/// The rows of this bench.
pub fn rows(settings: &Settings<'_>) -> Result<Vec<Row>, BenchError> {
    require_hosts("peers")?;
    let mut entries = Vec::new();
    for peer in all() {
        settings.next(&format!("peers: is there {}", peer.abilities().name))?;
        let presence = peer.presence(&Testbed::new(false)?);
        let results = Results::default;
        entries.push(Entry { peer, presence, forward: results(), delay: results(), rate: results() });
    }
    let mut bare = Results::default();
    for round in 1..=settings.runs(5) {
        settings.next(&format!("peers: 64-byte packets, round {round}, {BARE}"))?;
        bare.add(bare_loop(settings).map(|rate| (rate, None)))?;
        each(settings, &mut entries, round, Job::Forward)?;
    }
    for round in 1..=settings.runs(3) {
        each(settings, &mut entries, round, Job::Delay)?;
        each(settings, &mut entries, round, Job::Rate)?;
    }
    Ok(table(&bare, &entries))
}

/// One round of a job: every available peer that can do it, once.
fn each(settings: &Settings<'_>, entries: &mut [Entry], round: u32, job: Job) -> Result<(), BenchError> {
    for entry in entries.iter_mut().filter(|entry| entry.presence.is_ok()) {
        let (peer, can) = (&*entry.peer, entry.peer.abilities());
        let (results, what) = match job {
            Job::Forward => (&mut entry.forward, "64-byte packets"),
            Job::Delay if can.nominal_delay_ms.is_some() => (&mut entry.delay, "delay"),
            Job::Rate if can.rate_overhead.is_some() => (&mut entry.rate, "rate"),
            _ => continue,
        };
        // After a failure a peer is not tried again: it would fail again, after as long.
        if results.failed.is_none() {
            settings.next(&format!("peers: {what}, round {round}, {}", can.name))?;
            results.add(measure(settings, peer, job))?;
        }
    }
    Ok(())
}

/// Measures one job of one peer on a fresh testbed.
fn measure(settings: &Settings<'_>, peer: &dyn Peer, job: Job) -> Result<(f64, Option<String>), BenchError> {
    let bed = Testbed::new(job != Job::Forward)?;
    let (carrier, can) = (peer.start(&bed, job)?, peer.abilities());
    let measured = bed.wait_until_it_carries(settings).and_then(|()| match job {
        Job::Forward => Ok((ports::flooded(settings, &bed.world)?, None)),
        Job::Delay => Ok((delay_error(settings, &bed, can.nominal_delay_ms.unwrap_or(0))?, None)),
        Job::Rate => rate(settings, &bed, can.rate_overhead.unwrap_or(0)),
    });
    // A program's last output explains more than the absence of frames.
    let of_carrier = carrier.stop()?;
    let (value, of_traffic) = measured?;
    Ok((value, of_traffic.or(of_carrier)))
}

/// Packets per second of the bare loop.
fn bare_loop(settings: &Settings<'_>) -> Result<f64, BenchError> {
    let bed = Testbed::new(false)?;
    let mut open = bed.world.open_by(Driver::AfPacket)?;
    ports::forward(&mut open, || ports::flooded(settings, &bed.world))
}

/// Mean one-way delay of 64-byte frames minus the configured one, in ns.
fn delay_error(settings: &Settings<'_>, bed: &Testbed, nominal_ms: u64) -> Result<f64, BenchError> {
    let stream = UdpStream {
        payload: SHORT_PAYLOAD,
        quiet_ns: 300_000_000,
        ..UdpStream::new(SendingRate::PacketsPerSecond(1000), settings.time(Duration::from_secs(5)))
    };
    let delay = traffic(settings, bed, &stream)?.reception.delay;
    let delay = delay.ok_or_else(|| failed("no one-way delays were measured"))?;
    Ok(delay.mean_ns - nominal_ms as f64 * 1e6)
}

/// Rate of arrivals in bit/s, at a layer with this many bytes beyond the IP packet, and a note if the offered
/// load was too low.
fn rate(settings: &Settings<'_>, bed: &Testbed, overhead: u32) -> Result<(f64, Option<String>), BenchError> {
    let stream = UdpStream {
        layer: Layer::Ip,
        payload: PAYLOAD,
        ..UdpStream::new(SendingRate::BitsPerSecond(RATE / 10 * 11), settings.time(Duration::from_secs(10)))
    };
    let result = traffic(settings, bed, &stream)?;
    let rate = result.reception.rate_bits_per_second;
    let rate = rate.ok_or_else(|| failed("fewer than two packets arrived"))?;
    let offered = at_layer(result.sent_bits_per_second.unwrap_or(0.0), overhead);
    let note = too_little(offered);
    Ok((at_layer(rate, overhead), note))
}

/// A note if the offered load was below 105 % of the rate.
fn too_little(offered: f64) -> Option<String> {
    let short = offered < RATE as f64 * 1.05;
    short.then(|| {
        format!("the generator offered no more than {:.2} Mbit/s: the machine was busy", offered / 1e6)
    })
}

/// A rate of full IP packets with this many more bytes each.
fn at_layer(ip_rate: f64, overhead: u32) -> f64 {
    ip_rate * f64::from(PACKET + overhead) / f64::from(PACKET)
}

fn traffic(settings: &Settings<'_>, bed: &Testbed, stream: &UdpStream) -> Result<UdpResult, BenchError> {
    let result = bed.world.with_receiver(|receiver| send(receiver, stream, &mut until(settings.stop)));
    match result {
        Err(_) if settings.go_on().is_err() => Err(BenchError::Stopped),
        result => result,
    }
}

fn failed(reason: &str) -> BenchError {
    BenchError::Tool { command: "measuring".into(), reason: reason.into() }
}

/// The rows: the bare loop, then each peer's.
fn table(bare: &Results, entries: &[Entry]) -> Vec<Row> {
    let mut rows = vec![row(bare, "peers: bare loop, 64 bytes", |sample| {
        sample.shown("peers: bare loop, 64 bytes", "pps").note(BARE)
    })];
    for entry in entries {
        let name = format!("peers: {}", entry.peer.abilities().name);
        match &entry.presence {
            Err(why) => rows.push(Row::new(name, "").measured("not run").note(why.clone())),
            Ok(version) => rows.extend(of_peer(&name, version, entry, bare)),
        }
    }
    rows
}

fn of_peer(name: &str, version: &str, entry: &Entry, bare: &Results) -> Vec<Row> {
    let (pps, can) = (format!("{name}, 64 bytes"), entry.peer.abilities());
    let mut rows = vec![row(&entry.forward, &pps, |sample| sample.shown(&pps, "pps").note(version))];
    if entry.forward.failed.is_none() && bare.failed.is_none() {
        let pairs = entry.forward.values.iter().zip(&bare.values);
        let shares: Sample = pairs.map(|(own, bare)| own / bare.max(1.0) * 100.0).collect();
        rows.push(shares.shown(&format!("{name}, of the bare loop"), "%"));
    }
    if let Some(nominal) = can.nominal_delay_ms {
        let name = match nominal {
            0 => format!("{name}, one-way time with no delay set"),
            nominal => format!("{name}, {nominal} ms: error of the mean delay"),
        };
        rows.push(row(&entry.delay, &name, |sample| sample.shown(&name, "ns")));
    }
    if let Some(overhead) = can.rate_overhead {
        let name = format!("{name}, {}", Rate(RATE));
        rows.push(row(&entry.rate, &name, |sample| rate_row(&name, &sample, overhead)));
    }
    rows
}

fn rate_row(name: &str, sample: &Sample, overhead: u32) -> Row {
    let percent = |rate: f64| (rate / RATE as f64 - 1.0) * 100.0;
    let [least, most] = [sample.least(), sample.most()];
    let counts = match overhead {
        0 => "it counts IP packets".to_owned(),
        overhead => format!("it counts {overhead} bytes with each IP packet"),
    };
    Row::new(name, "bit/s")
        .expected(RATE)
        .measured(sample.median())
        .extra("least", least)
        .extra("most", most)
        .note(format!("{:+.3} % to {:+.3} %; {counts}", percent(least), percent(most)))
}

/// A row of the results, or of the reason why there are none.
fn row(results: &Results, name: &str, shown: impl FnOnce(Sample) -> Row) -> Row {
    match &results.failed {
        // A failure of another program is no failure of this bench.
        Some(error) => Row::new(name, "").measured("failed").note(error.to_string()),
        None => results.noted(shown(results.sample())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_counted_where_the_peer_counts() {
        assert_eq!(at_layer(1500.0, 14), 1514.0);
        assert_eq!(too_little(RATE as f64 * 1.1), None);
        assert!(too_little(9e6).is_some_and(|note| note.contains("9.00 Mbit/s")));
    }

    #[test]
    fn what_fails_or_is_absent_says_why_and_is_not_judged() {
        let mut results = Results::default();
        results.add(Ok((5.0, None))).unwrap();
        results.add(Err(failed("no interface"))).unwrap();
        assert!(matches!(results.add(Err(BenchError::Stopped)), Err(BenchError::Stopped)));
        let bare = Results { values: vec![10.0], ..Results::default() };
        let entry = |presence, forward| Entry {
            peer: Box::new(kernel::TBF),
            presence,
            forward,
            delay: Results::default(),
            rate: Results { values: vec![9.9e6, 1e7], ..Results::default() },
        };
        let rows = table(
            &bare,
            &[entry(Err("install it".into()), Results::default()), entry(Ok("1".into()), results)],
        );
        let texts: Vec<_> = rows.iter().map(|row| (row.measured.clone(), row.notes.join("; "))).collect();
        assert_eq!(rows.len(), 4, "{texts:?}");
        assert_eq!(texts[1], (Some("not run".into()), "install it".into()));
        assert_eq!(texts[2], (Some("failed".into()), "measuring: no interface".into()));
        assert_eq!(rows[3].error_percent, Some(-0.5));
        assert!(texts[3].1.contains("-1.000 % to +0.000 %; it counts 14 bytes"), "{texts:?}");
        assert!(rows.iter().all(|row| row.pass.is_none()));
    }

    #[test]
    fn peers_have_names_of_their_own() {
        let names: Vec<_> = all().iter().map(|peer| peer.abilities().name).collect();
        let distinct: std::collections::BTreeSet<_> = names.iter().collect();
        assert_eq!(distinct.len(), names.len());
    }
}
