//! Memory per waiting packet.

use crate::engine::{Case, setup};
use crate::machine_memory::{available_bytes, resident_bytes};
use crate::{BenchError, Settings};
use longwire_link::LinkConfig;
use longwire_packet::Pool;
use longwire_report::Row;
use longwire_units::Nanos;
use std::time::Duration;

const FRAME: usize = 64;
/// Limit of bytes per waiting 64-byte packet.
const TARGET: f64 = 192.0;

/// The rows of this bench: this many packets are in flight at once.
pub fn rows(settings: &Settings<'_>) -> Result<Vec<Row>, BenchError> {
    let count: u64 = if settings.quick { 1_000_000 } else { 10_000_000 };
    let pool_bytes = Pool::cost_of(FRAME) * count / 100 * 101 + (4 << 20);
    let free = available_bytes();
    if free < pool_bytes / 4 * 5 {
        return Err(BenchError::NotHere(format!(
            "memory: {count} packets need {} MiB and some to spare, and the machine has {} MiB free",
            pool_bytes >> 20,
            free >> 20
        )));
    }
    settings.next(&format!("memory: {count} packets at once"))?;
    // Long enough for all to arrive before the first leaves.
    let config = LinkConfig::default().with_text("delay", "100 s")?;
    let case = Case { count, pool_bytes, frame_bytes: FRAME, ..Case::new(&config, Duration::ZERO) };
    let before = resident_bytes();
    let (setup, _) = setup(&case, |port| port)?;
    let run = setup.start();
    let remote = run.remote();
    let started = std::time::Instant::now();
    // Plus one packet that the sink sends first.
    while remote.flow()?.0.taken <= count && started.elapsed() < Duration::from_secs(60) {
        settings.pause(Duration::from_millis(50))?;
    }
    let report = remote.report(longwire_engine::Tolerance::default())?;
    let grown = resident_bytes() - before;
    let held: u64 = report.links.iter().map(|link| link.stats.travelling_packets).sum();
    let lost = report.flow.drops.iter().map(|(_, packets)| packets).sum::<u64>();
    drop(run.stop());
    let each = |bytes: f64| bytes / held.max(1) as f64;
    Ok(vec![
        Row::new("memory: 64-byte packets held at once", "packets").expected(count).measured(held).at_least(),
        Row::new("memory: resident memory of each", "bytes")
            .expected(TARGET)
            .measured(each(grown))
            .at_most()
            .note("growth of the process: pool, links, everything"),
        Row::new("memory: the pool's own figure", "bytes")
            .expected(TARGET)
            .measured(each(report.pool_used as f64))
            .at_most()
            .note(format!("{lost} dropped; held for {}", Nanos::from_secs(100))),
    ])
}
