//! Tables 4.1 to 4.4: the cost of memory reads and hashing, and of each task for a packet of 64 bytes. The
//! thesis estimates a microengine's compute cycles from pseudo-code; here instructions are counted, as
//! differences between engines with and without a task, and between more and fewer packets.

use crate::Settings;
use crate::book::{Book, once, paper};
use crate::experiment::{Experiment, base, blast, generator, links};
use crate::meter::Meter;
use crate::princeton::{STAGE, counted_between, in_cycles, memory_read};
use longwire_bench::{BenchError, latency};
use longwire_block::stations::hash_address;
use longwire_link::classify::hash_v4_key;
use longwire_port::driver::memory::BlastPlan;
use longwire_report::Row;
use longwire_units::Nanos;
use std::hint::black_box;
use std::sync::atomic::Ordering;

/// Prefix of the stage name that tells a process of this program which tasks to run.
const TASK: &str = "task ";
/// Numbers of packets; their difference is counted.
const PACKETS: [u64; 2] = [2000, 12_000];

/// Engines with one more task each, as keys of a link; the first has no link.
const ENGINES: [Option<&str>; 4] = [
    None,
    Some(""),
    Some("loss = \"0 %\""),
    Some("loss = \"0 %\"\nrate = \"10 Gbit/s\"\nqueue = \"100 packets\""),
];

/// A row: its name, the compute cycles that the thesis prints, and the engines whose difference it is.
struct Task {
    name: &'static str,
    cycles: &'static str,
    engine: usize,
    less: Option<usize>,
}

const TASKS: [Task; 5] = [
    Task { name: "table 4.3: ingress and bridging", cycles: "80 + 210 cycles", engine: 0, less: None },
    Task {
        name: "table 4.4: classifier, with an empty link",
        cycles: "40-50 cycles",
        engine: 1,
        less: Some(0),
    },
    Task { name: "table 4.4: loss rate emulation", cycles: "30-35 cycles", engine: 2, less: Some(1) },
    Task {
        name: "table 4.4: FIFO enqueue and link scheduling, with the bandwidth's timer",
        cycles: "20-30 + 45-50 cycles",
        engine: 3,
        less: Some(2),
    },
    Task { name: "table 4.4: total", cycles: "135-165 cycles", engine: 3, less: Some(0) },
];

/// Table 4.1's memory reads: the memory, the cycles measured by the thesis, and our buffer size.
const READS: [(&str, u64, usize); 2] = [
    ("4 bytes of SRAM (ours: of 256 kB)", 18, 256 << 10),
    ("8 bytes of SDRAM (ours: of 64 MB)", 50, 64 << 20),
];

fn reads(book: &mut Book<'_>) {
    let settings = book.settings;
    for (what, cycles, bytes) in READS {
        let row = Row::new(format!("table 4.1: a read of {what}"), "cycles");
        book.row(paper(row, cycles), |row| memory_read(settings, row, bytes));
    }
}

/// Table 4.2's hashes, the cycles measured by the thesis, and ours: of a bridge's addresses, and of a
/// classifier's key.
const HASHES: [Hash; 2] = [
    Hash { what: "two 48-bit hashes", cycles: 40, ours: |key| hash_address(hash_address(key)) },
    Hash { what: "one 64-bit hash", cycles: 35, ours: hash_v4_key },
];

struct Hash {
    what: &'static str,
    cycles: u64,
    ours: fn(u64) -> u64,
}

fn hashes(book: &mut Book<'_>) {
    let settings = book.settings;
    for hash in &HASHES {
        let row = Row::new(format!("table 4.2: {}", hash.what), "cycles");
        book.row(paper(row, hash.cycles), |row| {
            let (ns, row) = in_cycles(settings, row, || chained(hash.ours))?;
            Ok(row.note(format!(
                "{ns:.2} ns, each hash waiting for the one before, which goes through memory; \
                the thesis' hash unit stands beside its microengines"
            )))
        });
    }
}

/// Nanoseconds of `hash`, each applied to the previous result.
fn chained(hash: fn(u64) -> u64) -> f64 {
    const STEPS: u64 = 10_000;
    let mut key = 1;
    latency::steps(STEPS as usize, || {
        for _ in 0..STEPS {
            key = hash(black_box(key));
        }
    })
}

pub(super) fn rows(book: &mut Book<'_>) {
    reads(book);
    hashes(book);
    let settings = book.settings;
    let mut known = [None; ENGINES.len()];
    for task in &TASKS {
        let row = Row::new(format!("{}, instructions of a packet", task.name), "");
        book.row(paper(row, task.cycles), |row| {
            let all = instructions(settings, &mut known, task.engine)?;
            let less = task.less.map_or(Ok(0.0), |engine| instructions(settings, &mut known, engine))?;
            Ok(row.measured((all - less).round()).note(
                "instructions counted by valgrind's callgrind as a difference of two runs on the virtual \
                 clock, a packet at a time; the first row has the clock's loop, generator and counter in it. \
                 The paper's are estimated compute cycles of a microengine, without its memory's",
            ))
        });
    }
}

/// Instructions per packet in this engine.
fn instructions(
    settings: &Settings<'_>,
    known: &mut [Option<f64>; ENGINES.len()],
    engine: usize,
) -> Result<f64, BenchError> {
    let measure = || {
        if !crate::PLAYS_STAGES.load(Ordering::Relaxed) {
            return Err(BenchError::not_here("this program can't run parts of itself"));
        }
        let stage = |packets| format!("{TASK}{engine} {packets}");
        let counts = counted_between(settings, &[], PACKETS, stage)?;
        Ok(counts.instructions as f64 / (PACKETS[1] - PACKETS[0]) as f64)
    };
    once(&mut known[engine], measure).copied()
}

/// Carries this many packets in virtual time. Returns the number delivered.
fn carry(engine: usize, packets: u64) -> Result<u64, BenchError> {
    let plan = BlastPlan { count: packets, gap: Some(Nanos(1000)), ..blast(0, 1, 60) };
    let meter = Meter::new(base(1), 1);
    let link = Experiment::one_way(generator(0, plan)?, meter, "", Nanos(packets * 1000))?;
    let links = ENGINES[engine].map_or_else(String::new, |keys| links(0, 1, keys));
    Ok(Experiment { links, ..link }.simulate()?.meters[1].packets())
}

/// Runs an engine if this process was started for that; returns false otherwise.
pub(crate) fn play_task() -> bool {
    let Ok(text) = std::env::var(STAGE) else { return false };
    let Some(text) = text.strip_prefix(TASK) else { return false };
    let mut words = text.split(' ').map(str::parse::<u64>);
    if let (Some(Ok(engine)), Some(Ok(packets))) = (words.next(), words.next())
        && (engine as usize) < ENGINES.len()
    {
        // The parent sees from the numbers if this failed.
        let _ = carry(engine as usize, packets);
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_engine_carries_all_packets() {
        for engine in 0..ENGINES.len() {
            assert_eq!(carry(engine, 200).unwrap(), 200, "{engine}");
        }
    }
}
