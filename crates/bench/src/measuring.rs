//! Parts of a measurement: waiting, a rate from two counts, other threads, watched ports, and the end of a
//! run.

use crate::BenchError;
use longwire_block::{Port, PortError};
use longwire_engine::{Report, Run};
use longwire_packet::{Batch, Pool};
use longwire_port::intercepted::{InterceptedPort, Interceptor};
use longwire_units::Nanos;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::ScopedJoinHandle;
use std::time::{Duration, Instant};

/// Waits for this time; `go_on` is called at least ten times a second.
///
/// # Errors
/// What `go_on` returns.
pub fn pause(time: Duration, go_on: impl Fn() -> Result<(), BenchError>) -> Result<(), BenchError> {
    let end = Instant::now() + time;
    loop {
        go_on()?;
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(());
        }
        std::thread::sleep(left.min(Duration::from_millis(100)));
    }
}

/// Events per second over a time, after a warm-up: `count` returns their number so far and the time of the
/// count, and `wait` waits.
///
/// # Errors
/// What `count` and `wait` return.
pub(crate) fn per_second(
    mut count: impl FnMut() -> Result<(u64, Nanos), BenchError>,
    [warm_up, time]: [Duration; 2],
    wait: impl Fn(Duration) -> Result<(), BenchError>,
) -> Result<f64, BenchError> {
    wait(warm_up)?;
    let (before, from) = count()?;
    wait(time)?;
    let (after, to) = count()?;
    Ok((after - before) as f64 / to.since(from).as_secs_f64())
}

/// Runs `work` on another thread until `measure` has ended, also by a panic; `work` ends soon after its flag
/// is set.
///
/// # Errors
/// What `work` returns, or else `measure`.
pub fn alongside<W: Send, R>(
    work: impl FnOnce(&AtomicBool) -> Result<W, BenchError> + Send,
    measure: impl FnOnce() -> Result<R, BenchError>,
) -> Result<(W, R), BenchError> {
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let working = scope.spawn(|| work(&stop));
        let measured = {
            let _guard = StopGuard(&stop);
            measure()
        };
        Ok((joined(working)?, measured?))
    })
}

/// What `work` returns on a separate thread, so that what follows is not pinned to its processor.
pub fn apart<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| joined(scope.spawn(work)))
}

/// What a thread returns, or its panic.
pub fn joined<T>(thread: ScopedJoinHandle<'_, T>) -> T {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Stops a run that has been measured. Returns the measurement with the run's report.
///
/// # Errors
/// The measurement's error; the run is stopped all the same.
pub fn stop_after<T>(run: Run, measured: Result<T, BenchError>) -> Result<(T, Report), BenchError> {
    let report = run.stop();
    Ok((measured?, report))
}

/// Number of threads that can run at once, each on its own processor.
pub fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Checks that two threads can run at once.
///
/// # Errors
/// `why` they must, as [`BenchError::NotHere`].
pub fn require_two_processors(why: &str) -> Result<(), BenchError> {
    if processors() < 2 { Err(BenchError::not_here(why)) } else { Ok(()) }
}

/// Sets a flag when dropped, also on a panic.
struct StopGuard<'a>(&'a AtomicBool);

impl Drop for StopGuard<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// A port that receives by `receive`, which is given the port as it was.
pub fn receiving_by<F>(port: Box<dyn Port>, receive: F) -> Box<dyn Port>
where
    F: FnMut(&mut dyn Port, &mut Pool, Nanos, &mut Batch) -> Result<(), PortError> + Send + 'static,
{
    Box::new(InterceptedPort::new(port, Receiving(receive)))
}

struct Receiving<F>(F);

impl<F> Interceptor for Receiving<F>
where
    F: FnMut(&mut dyn Port, &mut Pool, Nanos, &mut Batch) -> Result<(), PortError> + Send,
{
    fn receive(
        &mut self,
        port: &mut dyn Port,
        pool: &mut Pool,
        now: Nanos,
        batch: &mut Batch,
    ) -> Result<(), PortError> {
        self.0(port, pool, now, batch)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn until(stop: &AtomicBool) -> Result<u8, BenchError> {
        while !stop.load(Ordering::Relaxed) {
            std::thread::yield_now();
        }
        Ok(7)
    }

    #[test]
    fn work_ends_with_the_measurement_however_that_ends() {
        assert_eq!(alongside(until, || Ok("seen")).unwrap(), (7, "seen"));
        let stopped = alongside(until, || Err::<(), _>(BenchError::Stopped));
        assert!(matches!(stopped, Err(BenchError::Stopped)));
        let panicked = || -> Result<(), BenchError> { panic!("nothing can be measured") };
        assert!(std::panic::catch_unwind(|| alongside(until, panicked)).is_err());
    }

    #[test]
    fn the_reason_why_work_failed_comes_first() {
        let work = |_: &AtomicBool| Err::<(), _>(BenchError::NotHere("no port".into()));
        let error = alongside(work, || Err::<(), _>(BenchError::Stopped)).unwrap_err();
        assert_eq!(error.to_string(), "no port");
    }
}
