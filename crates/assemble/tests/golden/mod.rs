//! Golden traces: several hundred random scenarios, in which every packet and counter must be as recorded in
//! `traces.txt`, with any number of workers. They must cover every block, medium, scheduler, forwarder and
//! service, or the test fails.
//!
//! A difference is a bug, or a correction that the change's description names. To see a case and its trace:
//!
//! ```sh
//! LONGWIRE_GOLDEN_CASE=block/queue/red/2 cargo test -p longwire-assemble --test all golden
//! ```
//!
//! writes both to `target/tmp/golden`, and `LONGWIRE_GOLDEN_CASE=all` those of all cases. With
//! `LONGWIRE_GOLDEN_AGAINST` set to such a folder, written by another version, the first difference is
//! printed. `LONGWIRE_GOLDEN_RECORD=1` writes `traces.txt` anew.

mod cases;
mod coverage;
mod frames;
mod routed;
mod trace;

use crate::swarm::{draw, routers};
use cases::Case;
use coverage::Coverage;
use longwire_engine::Report;
use std::fmt::Write;
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use trace::{hash, read, run};

const RECORDED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/traces.txt");
const HEAD: &str = "# case, packets in, out and dropped, hash of the scenario, hash of the trace, blocks of \
    its links. See main.rs.\n";

/// What a case did.
struct Outcome {
    /// Its line in the file.
    line: String,
    trace: u64,
    met: Coverage,
    /// Numbers of workers with other results, and the differences.
    differs: Vec<String>,
}

/// The outcomes of all cases, computed once for all tests here.
fn outcomes() -> &'static [(Case, Outcome)] {
    static OUTCOMES: OnceLock<Vec<(Case, Outcome)>> = OnceLock::new();
    OUTCOMES.get_or_init(|| {
        let wanted = std::env::var("LONGWIRE_GOLDEN_CASE").ok().filter(|name| name != "all");
        let mut cases = cases::all();
        cases.retain(|case| wanted.as_ref().is_none_or(|name| *name == case.name));
        assert!(!cases.is_empty(), "there is no case of that name");
        let outcomes = in_parallel(&cases, outcome);
        cases.into_iter().zip(outcomes).collect()
    })
}

/// Maps `work` over all items, on all processors, in order.
fn in_parallel<T: Sync, R: Send>(things: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let some = || {
        let mut done = Vec::new();
        while let Some((place, thing)) =
            Some(next.fetch_add(1, Ordering::Relaxed)).and_then(|n| Some((n, things.get(n)?)))
        {
            done.push((place, work(thing)));
        }
        done
    };
    let threads = std::thread::available_parallelism().map_or(1, NonZero::get);
    let mut all: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(some)).collect();
        threads.into_iter().flat_map(|thread| thread.join().expect("a case panicked")).collect()
    });
    all.sort_by_key(|(place, _)| *place);
    all.into_iter().map(|(_, result)| result).collect()
}

/// Runs a case with one worker, and with several, which must agree.
fn outcome(case: &Case) -> Outcome {
    let plan = read(case, 1).unwrap();
    let (trace, report) = run(case, &plan);
    check(case, 1, &report);
    let mut differs = Vec::new();
    // One other number of workers each, because threads that wait for each other are slow on few processors.
    let workers = case.workers();
    let (other, report) = run(case, &read(case, workers).unwrap());
    check(case, workers, &report);
    if trace != other {
        let difference = difference(&trace.text(), &other.text());
        differs.push(format!("{} with {workers} workers: {difference}", case.name));
    }
    let met = Coverage::of(case, &plan, &trace, &report);
    let text = trace.text();
    let hashed = hash(text.as_bytes());
    let dropped: u64 = report.links.iter().map(|link| link.stats.dropped()).sum();
    let elsewhere: u64 = report.flow.drops.iter().map(|(_, packets)| packets).sum();
    let scenario = hash(format!("{}{}{}", case.text, case.engine, case.until).as_bytes());
    let line = format!(
        "{} {} {} {} {scenario:016x} {hashed:016x} {}",
        case.name,
        report.flow.taken,
        report.flow.sent,
        dropped + elsewhere,
        met.blocks().join(" ")
    );
    if std::env::var_os("LONGWIRE_GOLDEN_CASE").is_some() {
        dump(case, &text);
    }
    Outcome { line: line.trim_end().into(), trace: hashed, met, differs }
}

fn check(case: &Case, workers: u32, report: &Report) {
    let what = format!("{} with {workers} workers", case.name);
    assert!(report.is_conserved(), "{what}: {report:?}\n{}", case.text);
}

/// The first line that differs, with the previous lines.
fn difference(one: &str, other: &str) -> String {
    let mut before = Vec::new();
    let (mut a, mut b) = (one.lines(), other.lines());
    loop {
        match (a.next(), b.next()) {
            (None, None) => return "no line differs".into(),
            (a, b) if a == b => before.extend(a),
            (a, b) => {
                let lines = before.len();
                let last = before.split_off(lines.saturating_sub(2)).join("\n");
                let (a, b) = (a.unwrap_or("nothing more"), b.unwrap_or("nothing more"));
                return format!("line {} differs:\n{last}\n- {a}\n+ {b}", lines + 1);
            }
        }
    }
}

/// Writes a case and its trace, and reports how that differs from another version's.
fn dump(case: &Case, trace: &str) {
    let path = |folder: &Path, kind: &str| folder.join(format!("{}.{kind}", case.name.replace('/', "-")));
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("golden");
    std::fs::create_dir_all(&folder).unwrap();
    let scenario = format!("{}\n[engine]\n{}\n# until {}\n", case.text, case.engine, case.until);
    std::fs::write(path(&folder, "toml"), scenario).unwrap();
    std::fs::write(path(&folder, "trace"), trace).unwrap();
    println!("{}: written to {}", case.name, path(&folder, "trace").display());
    if let Some(before) = std::env::var_os("LONGWIRE_GOLDEN_AGAINST") {
        let file = path(Path::new(&before), "trace");
        let before =
            std::fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        println!("{}: {}", case.name, difference(&before, trace));
    }
}

/// Result of comparing a case with its record.
fn verdict(recorded: &str, now: &str) -> &'static str {
    let scenario = |line: &str| line.split(' ').nth(4).map(str::to_owned);
    match scenario(recorded) == scenario(now) {
        true => "the scenario is the same and its trace is not",
        false => "the scenario is another, as of a block with other parameters",
    }
}

#[test]
fn traces_are_as_recorded() {
    let outcomes = outcomes();
    let lines: Vec<&str> = outcomes.iter().map(|(_, outcome)| &outcome.line[..]).collect();
    if std::env::var_os("LONGWIRE_GOLDEN_RECORD").is_some() {
        std::fs::write(RECORDED, format!("{HEAD}{}\n", lines.join("\n"))).unwrap();
    }
    let recorded = std::fs::read_to_string(RECORDED).unwrap_or_default();
    let name = |line: &str| line.split(' ').next().unwrap_or_default().to_owned();
    let before: std::collections::HashMap<_, _> = recorded.lines().map(|line| (name(line), line)).collect();
    let (mut told, mut count) = (String::new(), 0);
    for now in lines {
        let why = match before.get(&name(now)) {
            Some(before) if *before == now => continue,
            Some(before) => verdict(before, now),
            None => "it is not recorded",
        };
        count += 1;
        if count <= 20 {
            writeln!(told, "  {}: {why}", name(now)).unwrap();
        }
    }
    assert!(
        count == 0,
        "{count} cases differ from {RECORDED}:\n{told}\
         LONGWIRE_GOLDEN_CASE=NAME cargo test -p longwire-assemble --test all golden writes a case and its \
         trace to target/tmp/golden; do so with both versions and compare. A difference must be a documented \
         correction: see CONTRIBUTING.md."
    );
    if std::env::var_os("LONGWIRE_GOLDEN_CASE").is_none() {
        let gone = recorded.lines().filter(|line| !line.starts_with('#')).count();
        assert_eq!(gone, outcomes.len(), "cases are recorded that there are no more: record them anew");
        assert!(gone >= 600, "only {gone} cases");
    }
}

#[test]
fn the_number_of_workers_changes_nothing() {
    let differs: Vec<&str> =
        outcomes().iter().flat_map(|(_, outcome)| &outcome.differs).map(|text| &text[..]).collect();
    assert!(
        differs.is_empty(),
        "{} runs differ from those with one worker:\n{}",
        differs.len(),
        differs.join("\n")
    );
}

#[test]
fn everything_is_covered() {
    if std::env::var_os("LONGWIRE_GOLDEN_CASE").is_some() {
        return;
    }
    let mut met = Coverage::default();
    outcomes().iter().for_each(|(_, outcome)| met.add(&outcome.met));
    let missing = met.missing();
    assert!(missing.is_empty(), "no case has or does any of these:\n{}", missing.join("\n"));
    let idle = met.reached_nevertheless();
    assert!(idle.is_empty(), "some case does what is listed as out of reach:\n{}", idle.join("\n"));
}

/// Each block matters: without it, one of its cases has another trace.
#[test]
fn every_block_decides_something() {
    if std::env::var_os("LONGWIRE_GOLDEN_CASE").is_some() {
        return;
    }
    let kinds = draw::kinds();
    let decides = in_parallel(&kinds, |spec| {
        let own = outcomes().iter().filter(|(case, _)| case.has_block(spec));
        own.map(|(case, outcome)| (case.without_block(spec), outcome.trace)).any(|(case, trace)| {
            read(&case, 1).is_ok_and(|plan| hash(run(&case, &plan).0.text().as_bytes()) != trace)
        })
    });
    let idle = kinds.iter().zip(decides).filter(|(_, decides)| !decides);
    let idle: Vec<_> = idle.map(|(spec, _)| format!("{}/{}", spec.key, spec.kind)).collect();
    assert!(idle.is_empty(), "these change no trace: {}", idle.join(", "));
}
