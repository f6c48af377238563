//! How late packets leave the engine itself, away from kernel and ports.

use crate::engine::{Case, Outcome, checked, run};
use crate::{BenchError, Sample, Settings};
use longwire_engine::LatenessSummary;
use longwire_link::LinkConfig;
use longwire_report::Row;
use longwire_units::Nanos;
use std::time::Duration;

/// The rows of this bench: 100 kpps over 100 links.
pub fn rows(settings: &Settings<'_>) -> Result<Vec<Row>, BenchError> {
    let config = LinkConfig::default()
        .with_text("loss", "0 %")?
        .with_text("rate", "1 Gbit/s")?
        .with_text("delay", "10 ms")?;
    let case = Case {
        links: 100,
        gap: Some(Nanos::from_micros(10)),
        pool_bytes: 16 << 20,
        ..Case::new(&config, settings.time(Duration::from_secs(2)))
    };
    let mut outcomes = Vec::new();
    for _ in 0..settings.runs(3) {
        settings.next("lateness: 100 kpps on 100 links")?;
        outcomes.push(run(&case)?);
    }
    let sample = |of: fn(&LatenessSummary) -> u64| -> Sample {
        outcomes.iter().filter_map(|o| Some(of(&o.report.fidelity.as_ref()?.lateness) as f64)).collect()
    };
    let p50 = sample(|l| l.without_pauses.p50.0).at_most("lateness: 100 kpps on 100 links, p50", "ns", 1e3);
    let p99 = sample(|l| l.without_pauses.p99.0).at_most("lateness: 100 kpps on 100 links, p99", "ns", 10e3);
    let with = sample(|l| l.all.p99.0).shown("lateness: the same with the machine's pauses, p99", "ns");
    let with = outcomes.last().map_or(with.clone(), |outcome| with.note(pauses(outcome)));
    Ok(vec![checked(p50, outcomes.iter().map(|outcome| &outcome.report)), p99, with])
}

fn pauses(outcome: &Outcome) -> String {
    let seconds = outcome.report.elapsed.as_secs_f64();
    match &outcome.report.fidelity {
        Some(fidelity) => format!(
            "{} pauses in {seconds:.1} s of the last run, {} at the longest",
            fidelity.lateness.pauses, fidelity.lateness.longest_pause
        ),
        None => String::new(),
    }
}
