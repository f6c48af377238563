//! One worker against two that share the work: each with its own ports and links, or one with the ports and
//! the other with the links, as in Joglekar's thesis "High Capacity Network Link Emulation Using Network
//! Processors", section 4.1.2. Runs from memory to memory alternate.

use crate::engine::{checked, speed};
use crate::punctual::{Punctual, greeting};
use crate::{BenchError, Sample, Settings, require_two_processors, stop_after};
use longwire_block::Port;
use longwire_engine::Report;
use longwire_port::driver::memory::{Blast, BlastPlan};
use longwire_report::Row;
use std::fmt::Write;
use std::net::Ipv4Addr;
use std::time::Duration;

/// Number of workers that share the work.
const WORKERS: usize = 2;
/// Pairs of ports with a link from one to the other: one pair per worker.
const PAIRS: usize = WORKERS;
/// Required speedup of two workers if no packet changes workers.
const PARALLEL: f64 = 1.8;

/// Addresses of both ports of a pair: each pair has its own bridge.
const FROM: [u8; 6] = [2, 0, 0, 0, 0, 1];
const TO: [u8; 6] = [2, 0, 0, 0, 0, 2];

/// Links to run under each mapping.
pub struct Links {
    /// Their names.
    pub name: &'static str,
    /// Their keys in a scenario.
    keys: &'static str,
}

/// The links compared.
pub const LINKS: [Links; 2] = [
    Links { name: "no rate, no delay, dice on", keys: "" },
    Links { name: "100 Gbit/s and 10 ms", keys: "rate = \"100 Gbit/s\"\ndelay = \"10 ms\"\n" },
];

/// Mappings compared with one worker: name, section `[engine]`, and required speedup.
const SHARED: [(&str, &str, Option<f64>); 3] = [
    ("parallel", "mapping = \"parallel\"", Some(PARALLEL)),
    ("pipeline", "mapping = \"pipeline\"", None),
    ("pipeline, shared rings", "mapping = \"pipeline\"\nbetween-workers = \"shared\"", None),
];

/// The mappings, in the order of the rows of [`Links::compare`].
pub fn mappings() -> impl Iterator<Item = &'static str> {
    std::iter::once("single").chain(SHARED.iter().map(|(name, ..)| *name))
}

/// The rows of this bench.
pub(crate) fn rows(settings: &Settings<'_>) -> Result<Vec<Row>, BenchError> {
    let each = LINKS.iter().map(|links| links.compare(settings)).collect::<Result<Vec<_>, _>>()?;
    Ok(each.into_iter().flatten().collect())
}

impl Links {
    /// Packets per second of one worker, and the speedup of two workers under each other mapping.
    ///
    /// # Errors
    /// If the bench is stopped, or this machine can't run two workers.
    pub fn compare(&self, settings: &Settings<'_>) -> Result<Vec<Row>, BenchError> {
        require_two_processors("two workers need two processors")?;
        let Self { name, keys } = self;
        let mut single = Vec::new();
        let mut shared = SHARED.map(|_| (Vec::new(), Vec::new()));
        for _ in 0..settings.runs(7) {
            settings.next(&format!("mapping: {name}"))?;
            let alone = run(settings, &scenario(keys, 1, "mapping = \"single\""))?;
            for ((_, engine, _), (shares, runs)) in SHARED.iter().zip(&mut shared) {
                settings.go_on()?;
                let other = run(settings, &scenario(keys, WORKERS, engine))?;
                shares.push(other.0 / alone.0);
                runs.push(other);
            }
            single.push(alone);
        }
        let speeds: Sample = single.iter().map(|run| run.0).collect();
        let row = speeds.shown(&format!("mapping: {name}, single"), "pps");
        let mut rows = vec![checked(row, single.iter().map(|run| &run.1))];
        for ((how, _, target), (shares, runs)) in SHARED.iter().zip(shared) {
            let name = format!("mapping: {name}, {how}, {WORKERS} workers of one's speed");
            let shares: Sample = shares.into_iter().collect();
            let row = match target {
                Some(target) => shares.median_at_least(&name, "x", *target),
                None => shares.shown(&name, "x"),
            };
            let speeds: Sample = runs.iter().map(|run| run.0).collect();
            rows.push(checked(row.extra("pps", speeds.median()), runs.iter().map(|run| &run.1)));
        }
        Ok(rows)
    }
}

/// Pairs of ports, each with a link from the first to the second.
fn scenario(link: &str, workers: usize, engine: &str) -> String {
    let cpus: Vec<usize> = (0..workers).collect();
    let mut text = format!(
        "[engine]\nworkers = {workers}\n{engine}\nwait = \"spin\"\npool = \"256 MiB\"\ncpus = {cpus:?}\n"
    );
    for pair in 0..PAIRS {
        let _ = write!(text, "[[bridge]]\nname = \"between{pair}\"\n");
        for end in ["from", "to"] {
            let _ = write!(
                text,
                "[[port]]\nname = \"{end}{pair}\"\ndriver = \"memory\"\nbridge = \"between{pair}\"\n"
            );
        }
        let _ = write!(
            text,
            "[[link]]\nname = \"over{pair}\"\nfrom = \"from{pair}\"\nto = \"to{pair}\"\nloss = \"0 %\"\n\
             {link}"
        );
    }
    text
}

/// Packets per second of all pairs together, after as long a warm-up.
fn run(settings: &Settings<'_>, scenario: &str) -> Result<(f64, Report), BenchError> {
    let time = settings.time(Duration::from_secs(1));
    let plan = longwire_scenario::parse("bench mapping", scenario)?;
    let source = BlastPlan {
        count: u64::MAX,
        pairs: (1..=8).map(|n| (Ipv4Addr::new(10, 0, 0, n), Ipv4Addr::new(11, 0, 0, n))).collect(),
        macs: (TO, FROM),
        ..BlastPlan::sink()
    };
    let sink = greeting((FROM, TO));
    let port = |place: usize| {
        let plan = if place.is_multiple_of(2) { source.clone() } else { sink.clone() };
        let blast = Blast::new("memory", plan).expect("60-byte frames are in range");
        Box::new(Punctual::new(blast)) as Box<dyn Port>
    };
    let ports = (0..2 * PAIRS).map(port).collect();
    let run = longwire_assemble::build(&plan, ports, |_| None)?.setup.start();
    let speed = speed(&run.remote(), [time; 2], |time| settings.pause(time));
    stop_after(run, speed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use longwire_assemble::port_workers;

    #[test]
    fn pairs_of_ports_have_a_worker_each_or_all_the_first() {
        let of = |engine: &str| port_workers(&longwire_scenario::plan_of(&scenario("", 2, engine)));
        assert_eq!(of(SHARED[0].1), [0, 0, 1, 1]);
        assert_eq!(of(SHARED[1].1), [0, 0, 0, 0]);
    }
}
