//! Workers in parallel, each timing its own bursts.

use crate::Settings;
use longwire_bench::{BenchError, Sample, joined, processors};
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Processes some packets. Returns their number, and the time if not all of it counts.
pub(super) type Burst<'a> = Box<dyn FnMut() -> (u64, Option<Duration>) + Send + 'a>;

/// Rates of parallel workers, summed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Rates {
    /// By each one's median burst.
    pub median: f64,
    /// By each one's best burst.
    pub best: f64,
}

/// Packets per second of all workers, which run in parallel, each on its own processor.
///
/// # Errors
/// If the run is stopped.
pub(super) fn rates(
    settings: &Settings<'_>,
    workers: Vec<Burst<'_>>,
    time: Duration,
) -> Result<Rates, BenchError> {
    settings.require_real_time("speed")?;
    let (stop, begin) = (AtomicBool::new(false), Barrier::new(workers.len() + 1));
    let samples: Vec<Sample> = std::thread::scope(|scope| {
        let threads: Vec<_> = (workers.into_iter().enumerate())
            .map(|(cpu, burst)| {
                let (stop, begin) = (&stop, &begin);
                scope.spawn(move || bursts(cpu, burst, stop, begin))
            })
            .collect();
        begin.wait();
        // The error of a stopped run is reported below, when the workers have ended.
        let _ = settings.pause(time);
        stop.store(true, Ordering::Relaxed);
        threads.into_iter().map(joined).collect()
    });
    settings.go_on()?;
    let sum = |of: fn(&Sample) -> f64| samples.iter().map(of).sum();
    Ok(Rates { median: sum(Sample::median), best: sum(Sample::most) })
}

/// The rates of one worker's bursts, the first of which warms up.
fn bursts(cpu: usize, mut burst: Burst<'_>, stop: &AtomicBool, begin: &Barrier) -> Sample {
    longwire_engine::clock::settle_thread(Some(cpu % processors()));
    burst();
    begin.wait();
    let mut rates = Vec::new();
    // At least one, however short the time.
    while rates.is_empty() || !stop.load(Ordering::Relaxed) {
        let started = Instant::now();
        let (packets, spent) = burst();
        let spent = spent.unwrap_or_else(|| started.elapsed());
        rates.push(packets as f64 / spent.as_secs_f64().max(1e-9));
    }
    rates.into_iter().collect()
}
