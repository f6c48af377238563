//! Allocations on the packet path, counted by the program's own allocator.

use crate::engine::{Case, setup};
use crate::{BenchError, Settings, receiving_by};
use longwire_block::Port;
use longwire_link::LinkConfig;
use longwire_packet::allocations;
use longwire_report::Row;
use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The rows of this bench.
pub fn rows(settings: &Settings<'_>) -> Result<Vec<Row>, BenchError> {
    if !is_counting() {
        return Err(BenchError::NotHere("this program's allocator does not count".into()));
    }
    let plain = LinkConfig::default().with_text("loss", "0 %")?;
    let busy = plain.clone().with_text("rate", "100 Gbit/s")?.with_text("delay", "10 ms")?;
    let lossy = busy.clone().with_text("loss", "5 %")?;
    let case = |config, links| Case { links, ..Case::new(config, settings.time(Duration::from_millis(500))) };
    let cases = [
        ("8 links, unlimited, no delay", case(&plain, 8)),
        ("1000 links, 100 Gbit/s and 10 ms each", case(&busy, 1000)),
        ("8 links with 5 % loss", case(&lossy, 8)),
    ];
    let mut rows = Vec::new();
    for (name, case) in &cases {
        settings.next(&format!("alloc: {name}"))?;
        let (allocations, packets) = measure(settings, case)?;
        rows.push(
            Row::new(format!("alloc: {name}"), "allocations")
                .expected(0)
                .measured(allocations)
                .judged(allocations == 0 && packets > 0)
                .extra("packets", packets)
                .note(format!("while {packets} packets were forwarded, after as long to warm up")),
        );
    }
    Ok(rows)
}

/// Whether the program's allocator counts.
fn is_counting() -> bool {
    let before = allocations();
    drop(black_box(Box::new(0u64)));
    allocations() > before
}

/// Allocations of the worker's thread, and packets it received meanwhile.
fn measure(settings: &Settings<'_>, case: &Case) -> Result<(u64, u64), BenchError> {
    let counts = Arc::new(LastCounts::default());
    let shown = Arc::clone(&counts);
    let counting = move |port: Box<dyn Port>| {
        receiving_by(port, move |port, pool, now, batch| {
            shown.allocations.store(allocations(), Ordering::Relaxed);
            shown.packets.store(port.stats().in_frames, Ordering::Relaxed);
            port.receive(pool, now, batch)
        })
    };
    let (setup, _) = setup(case, counting)?;
    let run = setup.start();
    let wait = || settings.pause(case.time);
    // No requests to the worker meanwhile: its answers would allocate.
    let counted = wait().and_then(|()| {
        let before = counts.load();
        wait()?;
        let after = counts.load();
        Ok((after.0 - before.0, after.1 - before.1))
    });
    drop(run.stop());
    counted
}

/// The counts of a worker's thread when it last polled.
#[derive(Default)]
struct LastCounts {
    allocations: AtomicU64,
    packets: AtomicU64,
}

impl LastCounts {
    fn load(&self) -> (u64, u64) {
        (self.allocations.load(Ordering::Relaxed), self.packets.load(Ordering::Relaxed))
    }
}
