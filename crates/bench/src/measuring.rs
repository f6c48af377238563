//! Parts of a measurement: waiting, a rate from two counts, and work that goes on meanwhile.

use crate::BenchError;
use longwire_units::Nanos;
use std::sync::atomic::{AtomicBool, Ordering};
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
        let worked = working.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        Ok((worked?, measured?))
    })
}

/// Sets a flag when dropped, also on a panic.
struct StopGuard<'a>(&'a AtomicBool);

impl Drop for StopGuard<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
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
