//! Lateness of the engine itself, without kernel and ports.

use crate::engine::{Case, Outcome, checked, run};
use crate::{BenchError, Sample, Settings};
use longwire_engine::LatenessSummary;
use longwire_link::LinkConfig;
use longwire_report::Row;
use longwire_units::Nanos;
use std::time::Duration;

/// A steady stream of packets over some links in turn.
struct Load {
    name: &'static str,
    links: u32,
    gap: Nanos,
    pool_bytes: u64,
}

const LOADS: [Load; 2] = [
    Load { name: "100 kpps on 100 links", links: 100, gap: Nanos::from_micros(10), pool_bytes: 16 << 20 },
    Load {
        name: "200 kpps on 10 000 links",
        links: 10_000,
        gap: Nanos::from_micros(5),
        pool_bytes: 64 << 20,
    },
];

/// The rows of this bench.
pub fn rows(settings: &Settings<'_>) -> Result<Vec<Row>, BenchError> {
    let config = LinkConfig::default()
        .with_text("loss", "0 %")?
        .with_text("rate", "1 Gbit/s")?
        .with_text("delay", "10 ms")?;
    let mut rows = Vec::new();
    for load in &LOADS {
        let case = Case {
            links: load.links,
            gap: Some(load.gap),
            pool_bytes: load.pool_bytes,
            ..Case::new(&config, settings.time(Duration::from_secs(2)))
        };
        let what = format!("lateness: {}", load.name);
        rows.extend(of_load(load.name, &settings.repeat::<_, Vec<_>>(3, &what, || Ok(run(&case)?))?));
    }
    Ok(rows)
}

fn of_load(name: &str, outcomes: &[Outcome]) -> [Row; 3] {
    let sample = |of: fn(&LatenessSummary) -> u64| -> Sample {
        outcomes.iter().filter_map(|o| Some(of(&o.report.fidelity.as_ref()?.lateness) as f64)).collect()
    };
    let p50 = sample(|l| l.without_pauses.p50.0).at_most(&format!("lateness: {name}, p50"), "ns", 1e3);
    let p99 = sample(|l| l.without_pauses.p99.0).at_most(&format!("lateness: {name}, p99"), "ns", 10e3);
    let with = format!("lateness: {name}, with the machine's pauses, p99");
    let with = sample(|l| l.all.p99.0).shown(&with, "ns");
    let with = outcomes.last().map_or(with.clone(), |outcome| with.note(pauses(outcome)));
    [checked(p50, outcomes.iter().map(|outcome| &outcome.report)), p99, with]
}

fn pauses(outcome: &Outcome) -> String {
    let seconds = outcome.report.elapsed.as_secs_f64();
    match &outcome.report.fidelity {
        Some(fidelity) => format!(
            "{} pauses in {seconds:.1} s of the last run, {} at the longest; in {} of them other programs \
             had the worker's processor",
            fidelity.lateness.pauses, fidelity.lateness.longest_pause, fidelity.lateness.preemptions
        ),
        None => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicBool;

    #[test]
    fn each_load_has_its_rows_and_the_books_are_right() {
        let settings = Settings { runs: None, quick: true, say: &|_| (), stop: &AtomicBool::new(false) };
        let rows = rows(&settings).unwrap();
        assert_eq!(rows.len(), 3 * LOADS.len());
        for (rows, load) in rows.chunks(3).zip(&LOADS) {
            assert!(rows.iter().all(|row| row.name.contains(load.name) && row.measured.is_some()));
            let missing = |note: &String| note.starts_with("packets are missing");
            assert!(!rows[0].notes.iter().any(missing), "{:?}", rows[0]);
            assert!(rows[0].expected.is_some() && rows[1].expected.is_some() && rows[2].pass.is_none());
        }
    }
}
