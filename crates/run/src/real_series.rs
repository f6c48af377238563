//! The time series of a run in real time.

use crate::instance::RunningInstance;
use crate::recording::FLUSH_TIME;
use crate::series::{SeriesFile, lock};
use longwire_units::Nanos;
use std::io;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// A series of a run in real time: a thread queries the workers. Dropping it ends it.
pub struct RealSeries {
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<anyhow::Result<u64>>>,
}

impl RealSeries {
    /// Starts the thread, which samples at interval `every`.
    ///
    /// # Errors
    /// If no thread can be started.
    pub fn start(file: SeriesFile, every: Nanos, instance: &Arc<RunningInstance>) -> io::Result<Self> {
        let (stop, stopped) = channel();
        let file = Arc::new(Mutex::new(file));
        instance.sample_links(&file);
        let (every, instance) = (Duration::from_nanos(every.0.max(1)), Arc::clone(instance));
        let work = move || {
            let mut next = Instant::now() + every;
            let mut flushed = Instant::now();
            loop {
                let wait = next.saturating_duration_since(Instant::now());
                let goes_on = stopped.recv_timeout(wait) == Err(RecvTimeoutError::Timeout);
                let state = instance.state();
                // A rewiring may have had the state until now.
                let time = instance.elapsed();
                // A worker that does not answer is reported elsewhere.
                if let Ok(report) = instance.count(&state) {
                    let mut file = lock(&file);
                    for link in &report.links {
                        file.add(time, &state.plan.links[link.place as usize].name, &link.stats);
                    }
                }
                drop(state);
                if !goes_on {
                    return lock(&file).finish();
                }
                if flushed.elapsed() >= FLUSH_TIME {
                    // For those who read it meanwhile.
                    lock(&file).flush();
                    flushed = Instant::now();
                }
                // If that took longer than the interval, samples are skipped.
                let now = Instant::now();
                let late = now.saturating_duration_since(next).as_nanos() / every.as_nanos();
                next += every.saturating_mul(u32::try_from(late).unwrap_or(u32::MAX)) + every;
            }
        };
        let thread = std::thread::Builder::new().name("time series".into()).spawn(work)?;
        Ok(Self { stop: Some(stop), thread: Some(thread) })
    }

    /// Takes the last sample while the workers still run.
    ///
    /// # Errors
    /// If a write failed.
    pub fn finish(mut self) -> anyhow::Result<u64> {
        self.end().unwrap_or(Ok(0))
    }

    fn end(&mut self) -> Option<anyhow::Result<u64>> {
        self.stop = None;
        self.thread.take()?.join().ok()
    }
}

impl Drop for RealSeries {
    fn drop(&mut self) {
        // The error can't be reported.
        let _ = self.end();
    }
}
